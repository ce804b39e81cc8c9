"""Simulate the traffic of LRU caches that the tiling lab draws, and store it: part of ``make captures``, a minute."""

import math

from mlsys.files import write_text
from mlsys.labs.tiling import TILES
from mlsys.units import Q_
from mlsys.viz.lru import CAPACITIES, EDGES, LINES, SIZES, lru_cliff, lru_curve
from pages import ROOT

FILE = ROOT / "mlsys" / "viz" / "data" / "lru_words.json"
BUFFERS = (1, 2)


def edges(size: int) -> list[int]:
    """Return the tile edges that the lab can ask for: of its slider, and where tiles fill a buffer or a cache."""
    fits = {math.isqrt(words // (3 * buffers)) for words in CAPACITIES for buffers in BUFFERS}
    cliffs = {lru_cliff(words) + past for words in CAPACITIES for past in (0, 1)}
    return sorted(min(edge, size) for edge in {*EDGES, *TILES, *fits, *cliffs} if edge <= size or edge == EDGES[-1])


def moved(size: int, tile: int, line: int) -> list[int]:
    """Return the words that caches of all capacities move."""
    curve = lru_curve(size, tile, line)
    return [curve.at(Q_(4 * words, "byte")) * line for words in CAPACITIES]


def main() -> None:
    """Write the table."""
    rows = []
    for size in SIZES:
        for line in LINES:
            rows += [f'  "{size} {tile} {line}": {moved(size, tile, line)}' for tile in dict.fromkeys(edges(size))]
        print(f"matrices of {size}", flush=True)
    write_text(FILE, "{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
