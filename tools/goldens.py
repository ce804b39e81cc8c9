"""Write, or compare, the accuracy of the estimates by class: tests/goldens/medians.txt.

    python tools/goldens.py             write the table (`make goldens`)
    python tools/goldens.py --check     compare it, write nothing

A line gives a class of machine, a kind of work and the median error in whole percent: of the fit, with the sweep left
out, and with the device left out. Classes of fewer than 30 rows are left out, because one row moves their median.
Other numbers have no copy here: a law, a published value or an oracle in the tests holds them.
"""

import argparse
import difflib
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mlsys.files import write_text

ROOT = Path(__file__).resolve().parents[1]
MEDIANS = ROOT / "tests" / "goldens" / "medians.txt"
FEWEST = 30
"""Rows from which a class has a line."""


def by_class(predictions: Iterable[Any]) -> dict[tuple[str, str], list[Any]]:
    """Return the predictions of each class of machine and kind of work."""
    groups = defaultdict(list)
    for each in predictions:
        groups[each.row.device_class, each.kind].append(each)
    return groups


def medians() -> str:
    """Return the table of median errors."""
    from mlsys_evidence.evaluate.answers import percent_cell
    from mlsys_evidence.evaluate.report import score, validate
    from mlsys_evidence.fit.refit import held_out_predictions
    from mlsys_evidence.rows import shipped_rows

    columns = [
        by_class(predictions)
        for predictions in (
            validate(shipped_rows()).predictions,
            held_out_predictions("sweep"),
            held_out_predictions("device"),
        )
    ]
    lines = [f"{'class of machine':<18}{'kind of work':<28}{'fit':>6}{'sweep left out':>18}{'device left out':>18}"]
    for machine, kind in sorted(columns[0]):
        scores = [score(column[machine, kind]) for column in columns]
        if scores[0].expressible >= FEWEST:
            fit, sweep, device = (percent_cell(each.median_ape) for each in scores)
            lines.append(f"{machine:<18}{kind:<28}{fit:>6}{sweep:>18}{device:>18}")
    return "\n".join(lines) + "\n"


def differences() -> list[str]:
    """Return the lines removed from the table and added to it, as ``-`` and ``+``."""
    before = MEDIANS.read_text("utf-8").splitlines() if MEDIANS.exists() else []
    moved = difflib.unified_diff(before, medians().splitlines(), lineterm="", n=0)
    return [line for line in moved if line[:1] in "+-" and line[:3] not in ("---", "+++")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare the table; return 1 if a comparison failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args(arguments)
    moved = differences()
    print("\n".join([f"{MEDIANS.relative_to(ROOT)}: {len(moved)} lines moved", *moved]))
    if moved and not options.check:
        write_text(MEDIANS, medians())
    return 1 if moved and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
