"""The lab on tiling. Every number in a question or an answer is computed or simulated here."""

import math
from functools import cache, partial

from mlsys import Hardware
from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.models.tiling import gemm_lower_bound, gemm_tile_words, gemm_traffic, largest_square_tile, tile_sizes
from mlsys.units import Q_
from mlsys.viz.lru import EDGES, lru_cliff, lru_curve, lru_words
from mlsys.viz.views.view import number, times

SIZE = 64
TILES: tuple[int, ...] = (13, 17, 21, 22, 27)
"""Tiles that the questions show, beside those of the stored table."""
_EDGES = (5, 14, 18, 23, 29, 35, 47)
_ORDERS = {"mnk": "C stays", "mkn": "A stays", "nkm": "B stays"}
_PRODUCTS = ((230, 340, 170), (410, 190, 290), (150, 530, 310))


def cache_of(draw: Draw) -> int:
    """Return the words of the cache that the lab asks about."""
    return draw.pick("words", (512, 768))


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    words = cache_of(draw)
    three, cliff = _fits(words), lru_cliff(words)
    at = {edge: _misses(edge, words) for edge in (three, three + 1, cliff, cliff + 1)}
    jumps = at[cliff + 1] > 3 * at[cliff] and at[three + 1] < 2 * at[cliff]
    return ChoiceQuestion(
        "prediction",
        f"A product of {SIZE} × {SIZE} matrices runs through a cache of {words:,} words that evicts what "
        f"was used "
        "longest ago. Past which tile edge do its misses explode?",
        f"At {three + 1}, where three tiles are too large, the cache moves {at[three + 1]:,} words, at "
        f"{cliff} still "
        f"{at[cliff]:,}, at {cliff + 1} suddenly {at[cliff + 1]:,}. What must fit is a tile of B with two "
        f"rows of A "
        "and one of C.",
        choices=tuple(Choice(f"Past {edge}", right=edge == cliff and jumps) for edge in (8, three, cliff, 48)),
    )


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    words = cache_of(draw)
    return {"size": SIZE, "tile": lru_cliff(words), "buffers": 1, "words": words, "line_words": 1}


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    factories = (_double, _equal_room, _best, _lines, _shared_memory, _three_tiles, _bound, _root)
    return tuple(make(draw) for make in factories)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task: tiles of a product in a buffer."""
    room = draw.pick("room", (1400, 2200, 3400, 4700))
    m, n, k = draw.pick("product", _PRODUCTS)
    edges = tuple((f"{edge}", edge) for edge in _EDGES)
    return (
        Design(
            "tiles",
            f"A product with M = {m}, N = {n} and K = {k} runs through a buffer of {room:,} words, double-buffered. "
            "Choose the tiles and the operand that stays, so that it moves the fewest words.",
            (
                Knob("tm", "Tile in M", edges),
                Knob("tn", "Tile in N", edges),
                Knob("tk", "Tile in K", edges),
                Knob("order", "What stays", tuple((text, order) for order, text in _ORDERS.items())),
            ),
            partial(_tiled, room, m, n, k),
        ),
    )


@cache
def _tiled(room: int, m: int, n: int, k: int, tm: int, tn: int, tk: int, order: str) -> Built:
    words, taken = gemm_traffic(m, n, k, (tm, tn, tk), order).words, gemm_tile_words((tm, tn, tk), 2)
    fault = f"They take {taken:,} words, more than {room:,}." if taken > room else ""
    return Built(float(words), f"Tiles of {tm} × {tn} × {tk} move {words:,} words.", fault)


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    words = cache_of(draw)
    three, cliff, tile = _fits(words), lru_cliff(words), 16
    room = gemm_tile_words(tile)
    buffer, cache = gemm_traffic(SIZE, SIZE, SIZE, tile).words, _misses(tile, room)
    single, double = (tile_sizes(Hardware.Cloud.H100, "fp16", buffers)["L1"] for buffers in (1, 2))
    return WrapUp(
        (
            Finding(
                f"Tiles of {three} move {_misses(three, words):,} words through the cache, tiles of {cliff} "
                f"{_misses(cliff, words):,} and tiles of {cliff + 1} {_misses(cliff + 1, words):,}: three tiles are no "
                f"limit for a "
                "cache, one tile and three rows are.",
                f"from mlsys.viz.lru import lru_words\nlru_words({SIZE}, {cliff + 1}, {words})",
            ),
            Finding(
                f"In the same room of {room} words, tiles of {tile} make a managed buffer move {buffer:,} "
                f"words and "
                f"a cache {cache:,}.",
                f"from mlsys.models.tiling import gemm_traffic\ngemm_traffic({SIZE}, {SIZE}, {SIZE}, {tile}).words",
            ),
            Finding(
                f"In the shared memory of an H100 half-precision tiles of {single} fit, double-buffered ones of "
                f"{double}.",
            ),
        ),
        (
            "For a buffer that you manage, three tiles must fit, or six with double buffering.",
            "For a cache, a tile and three rows must fit, and four tiles if it is to move as little as a buffer would.",
            "A formula without its assumptions is a number for another machine.",
        ),
    )


def _misses(tile: int, words: int, line_words: int = 1) -> int:
    """Return the words that an LRU cache moves for the lab's matrix product."""
    return lru_words(SIZE, tile, words, line_words)


def _fits(words: int, buffers: int = 1) -> int:
    return largest_square_tile(Q_(4 * words, "byte"), Q_(4, "byte"), buffers)


def _double(draw: Draw) -> Question:
    words = draw.pick("double", (1500, 2700, 3300, 5200, 6100))
    single, double = _fits(words), _fits(words, 2)
    return NumberQuestion(
        "double",
        f"Give the buffer {words:,} words and double-buffer. What is the largest edge of a square tile that fits?",
        f"Single-buffered, three tiles of {single} take {gemm_tile_words(single):,} words; double-buffered, six of "
        f"{double} take {gemm_tile_words(double, 2):,} and six of {double + 1} would take "
        f"{gemm_tile_words(double + 1, 2):,}.",
        setting={"buffers": 2},
        answer=double,
        unit="words",
        tolerance=0.0,
        least=1,
        hint="How many tiles must be there at once, and how many words has each?",
        slips=((single, "That many fit with single buffering: while one set is used, the next one arrives."),
               (math.isqrt(words), "A single tile of that edge fills the buffer.")),
    )  # fmt: skip


def _equal_room(draw: Draw) -> Question:
    tile = 16
    words = gemm_tile_words(tile)
    buffer, cache = gemm_traffic(SIZE, SIZE, SIZE, tile).words, _misses(tile, words)
    enough = int(lru_curve(SIZE, tile).smallest_capacity(buffer).m_as("byte")) // 4
    return ChoiceQuestion(
        "equal-room",
        f"Tiles of {tile} fill a managed buffer of {words} words exactly. A cache of as many words runs the "
        f"same loops. "
        "Does it move as little?",
        f"The buffer moves {buffer:,} words. A cache of {words} moves {cache:,}, {times(cache / buffer)}: it keeps "
        f"finished tiles as faithfully as needed ones, and takes {enough:,} words for the buffer's traffic.",
        setting={"size": SIZE, "tile": tile, "words": words, "line_words": 1, "buffers": 1},
        choices=(
            Choice("Yes: the same words are in use", "The same words are in use; but which words does it keep besides?",
                   cache == buffer),
            Choice("No, it moves more", right=cache > buffer),
            Choice("No, it moves less, since it keeps what is used", "It keeps what was used last, and that may be "
                   "finished. Set it and compare the two points.", cache < buffer),
        ),
    )  # fmt: skip


def _best(draw: Draw) -> Question:
    words = cache_of(draw)
    misses = {tile: _misses(tile, words) for tile in EDGES}
    best = min(misses, key=lambda tile: misses[tile])
    hints = {
        12: "Three of them fit, with room to spare. Is a larger one worse at once?",
        32: "One of them takes twice the cache. Which line jumps before it?",
        64: "That is no blocking at all: the tile is the matrix.",
    }
    others = [tile for tile in hints if tile != best]
    listed = ", ".join(f"{tile}: {misses[tile]:,}" for tile in sorted({best, *others}))
    return ChoiceQuestion(
        "best",
        f"Set the matrices to {SIZE}, the cache to {words} words and lines of one word. Which of these tiles moves "
        "least?",
        f"Words moved by tile: {listed}. The cliff of {words} words lies past {lru_cliff(words)}.",
        setting={"size": SIZE, "words": words, "line_words": 1, "tile": best},
        choices=tuple(Choice(f"{tile}", hints.get(tile, ""), tile == best) for tile in sorted({best, *others})),
    )


def _lines(draw: Draw) -> Question:
    small, large, line = 10, 16, 16
    words = cache_of(draw)
    by_word = {tile: _misses(tile, words) for tile in (small, large)}
    lined = {tile: _misses(tile, words, line) for tile in (small, large)}
    return ChoiceQuestion(
        "lines",
        f"Give a cache of {words:,} words lines of {line} words. Whose traffic grows more: that of tiles of "
        f"{small} or "
        f"of {large}?",
        f"In lines of one word tiles of {small} move {by_word[small]:,} words and tiles of {large} {by_word[large]:,}; "
        f"in lines "
        f"of {line}, {lined[small]:,} and {lined[large]:,}. Rows of {small} words straddle lines and bring words that "
        "belong to other tiles.",
        setting={"size": SIZE, "words": words, "line_words": line, "tile": small},
        choices=(
            Choice(f"Tiles of {small}", right=lined[small] / by_word[small] > lined[large] / by_word[large]),
            Choice(f"Tiles of {large}", "Where does a row of such a tile begin and end, counted in lines?",
                   lined[small] / by_word[small] < lined[large] / by_word[large]),
        ),
    )  # fmt: skip


def _shared_memory(draw: Draw) -> Question:
    """Return the question about double-buffered tiles computed with the formula for single buffering."""
    chip = Hardware.Cloud[draw.pick("shared-memory", ("V100", "A100", "H100"))]
    single, double = (tile_sizes(chip, "fp16", buffers)["L1"] for buffers in (1, 2))
    room = chip.level("L1").usable
    return ChoiceQuestion(
        "shared-memory",
        f"“{number(room)} KiB of shared memory take half-precision tiles of {single} × {single}; double-buffer them to "
        "overlap loads with arithmetic.” What is wrong?",
        f"Three tiles of {single} fill the {number(room)} KiB; with double buffering six must fit, which leaves "
        f"{double}. Six of {single} would need {number(gemm_tile_words(single, 2) * 2 / 1024)} KiB.",
        in_app=False,
        choices=(
            Choice("The tiles fit only without double buffering", right=double < single),
            Choice("Tiles must be powers of two", "Powers of two are handy, not needed. Add up the bytes."),
            Choice(NOTHING, "Add up the bytes of all tiles that are there at once."),
        ),
    )


def _three_tiles(draw: Draw) -> Question:
    words = cache_of(draw)
    fits, larger = _fits(words), {512: 20, 768: 24}[words]
    at = {tile: _misses(tile, words) for tile in (fits, larger)}
    return ChoiceQuestion(
        "three-tiles",
        f"“In a cache of {words:,} words tiles must not exceed {fits}, since three of them must fit; "
        f"tiles of {larger} would thrash.” What is wrong?",
        f"Simulated, tiles of {fits} move {at[fits]:,} words and tiles of {larger} {at[larger]:,}. The cliff of an LRU "
        f"cache lies at T² + 3T, past {lru_cliff(words)}; 3T² is the rule for a managed buffer.",
        in_app=False,
        setting={"size": SIZE, "tile": fits, "words": words, "line_words": 1},
        choices=(
            Choice("The rule is one for managed buffers; the cache does better with the larger tile",
                   right=at[larger] < at[fits]),
            Choice("The tiles would have to be smaller still", "Set both tiles in the lab and compare the red points."),
            Choice(NOTHING, "Which of the two machines of the picture has that rule?", at[larger] > at[fits]),
        ),
    )  # fmt: skip


def _bound(draw: Draw) -> Question:
    """Return the question about 2MNK/√S + MN, which some schedules of a short reduction undercut."""
    (m, n), k, room = draw.pick("bound", ((384, 192), (640, 320), (448, 224))), 32, 1024
    quoted = round(2 * m * n * k / room**0.5 + m * n)
    tile = (1, 30, k)
    least, safe = gemm_traffic(m, n, k, tile, "nmk").words, gemm_lower_bound(m, n, k, room)
    return ChoiceQuestion(
        "bound",
        f"“No schedule of a {m} × {n} product with a reduction of {k} moves fewer than {quoted:,} words through "
        f"{room:,} words of memory, by 2MNK/√S + MN.” What is wrong?",
        f"Hold {tile[1]} whole columns of B, {gemm_tile_words(tile):,} words with what streams past: every row of A "
        f"comes once for them, and {least:,} words move in all, below the quoted {quoted:,}. The larger of everything "
        f"once and 2MNK/√S − 2S is safe: {safe:,}.",
        in_app=False,
        choices=(
            Choice("That formula is an estimate, not a bound, and short reductions go below it",
                   right=safe <= least < quoted),
            Choice("The bound must count every matrix once", "It must, and this one is above that. Is it above every "
                   "schedule as well?"),
            Choice(NOTHING, "Try to keep whole columns of B, since the reduction is short, and "
                            "count.", least >= quoted),
        ),
    )  # fmt: skip


def _root(draw: Draw) -> Question:
    """Return the question about a correct statement."""
    size = draw.pick("root", (768, 1536, 1920))
    tiles = [_fits(words) for words in (3 * 32**2, 3 * 64**2)]
    moved = [gemm_traffic(size, size, size, tile).words for tile in tiles]
    reads = [words - size**2 for words in moved]
    return ChoiceQuestion(
        "root",
        "“Four times the room in a managed buffer halves the words of A and B that a large product reads.” "
        "What is wrong?",
        f"Edges go from {tiles[0]} to {tiles[1]}, and for matrices of {size:,} × {size:,} the reads from "
        f"{reads[0]:,} to "
        f"{reads[1]:,}: the edge is the square root of the room.",
        in_app=False,
        choices=(
            Choice("Four times the room give a quarter", "By how much does the edge of a square tile grow when "
                                                         "its room "
                   "grows fourfold?", reads[0] > 3 * reads[1]),
            Choice("Reads do not depend on the room", "Move the buffer in the lab: does the line of the buffer end at "
                   "the same place?", reads[0] == reads[1]),
            Choice(NOTHING, right=reads[0] == 2 * reads[1]),
        ),
    )  # fmt: skip
