"""The lab on tiling. Every number in a question or an answer is computed or simulated here."""

from __future__ import annotations

from mlsys import Hardware
from mlsys.models.tiling import gemm_lower_bound, gemm_tile_words, gemm_traffic, largest_square_tile, tile_sizes
from mlsys.units import Q_
from mlsys.viz.tiling import lru_cliff, lru_curve
from mlsys.viz.views.tiling import TilingScene
from mlsys.viz.views.view import number, times
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider
from mlsys.widgets.questions import Choice, ChoiceQuestion, NumberQuestion, Question

__all__ = ["TilingLab"]

_SIZE, _WORDS = 64, 1024
_SIZES = (32, 48, 64)
_EDGES: tuple[int, ...] = (1, 2, 4, 6, 8, 10, 12, 16, 18, 20, 24, 28, 30, 31, 32, 40, 48, 64)
_CAPACITIES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
_LINES = (1, 4, 16)


def _misses(tile: int, words: int = _WORDS, line_words: int = 1) -> int:
    """Return the words that an LRU cache moves for the product of the lab."""
    return lru_curve(_SIZE, tile, line_words).at(Q_(4 * words, "byte")) * line_words


def _fits(words: int, buffers: int = 1) -> int:
    return largest_square_tile(Q_(4 * words, "byte"), Q_(4, "byte"), buffers)


class TilingLab(Lab):
    """Predict, explore and check how large a tile should be.

    Examples
    --------
    >>> lab = TilingLab()
    >>> lab.predict("19, the first with three tiles too large")
    >>> lab.view.values["cache"]
    36542
    """

    id = "lab-05-tiling"
    title = "Lab 5: How large should a tile be?"
    purpose = (
        "A product cut into tiles moves fewer words the larger the tiles are, until they no longer fit. "
        "Find out where that is: for a buffer that a program manages, and for a cache that manages itself."
    )
    scenario = {"size": _SIZE, "tile": 30, "buffers": 1, "words": _WORDS, "line_words": 1}  # noqa: RUF012 (read only)

    def _prediction(self) -> Question:
        three, cliff, square = _fits(_WORDS) + 1, lru_cliff(_WORDS) + 1, 33
        words = {
            three: f"{three}, the first with three tiles too large",
            cliff: f"{cliff}, where one tile and a few rows are too large",
            square: f"{square}, the first with a single tile too large",
        }
        at = {edge: _misses(edge) for edge in (three, cliff - 1, cliff, square)}
        because = (
            f"at {three} the cache moves {at[three]:,} words, at {cliff - 1} still {at[cliff - 1]:,}, "
            f"at {cliff} suddenly {at[cliff]:,}. What must fit is a tile of B with two rows of A and one of C."
        )
        jumps = at[cliff] > 5 * at[cliff - 1] and at[three] < 2 * at[cliff - 1]
        return ChoiceQuestion(
            "prediction",
            f"A product of {_SIZE} × {_SIZE} matrices runs through a cache of {_WORDS:,} words that evicts "
            "what was used "
            "longest ago. From which tile edge on do its misses explode?",
            choices=tuple(
                Choice(
                    text,
                    (
                        f"You predicted {edge}, and so it is: "
                        if edge == cliff
                        else f"You predicted {edge}; it is {cliff}: "
                    )
                    + because,
                    edge == cliff and jumps,
                )
                for edge, text in words.items()
            ),
        )

    def _controls(self) -> tuple[Control, ...]:
        return (
            slider(
                "size", "Workload", "Edge of the matrices (words)", [(f"{n}", n) for n in _SIZES], 48,
                "All three matrices are square",
            ),
            slider(
                "tile", "Mapping", "Tile edge (words)", [(f"{t}", t) for t in _EDGES], 4,
                "All three tiles are square; a tile is cut to the matrix",
            ),
            choice("buffers", "Mapping", "Buffering", [("Single", 1), ("Double", 2)], 1,
                   "Double: the next tiles arrive while these are used"),
            slider(
                "words", "Hardware", "Buffer or cache (words)", [(f"{s:,}", s) for s in _CAPACITIES], 256,
                "Room of the managed buffer and of the cache alike",
            ),
            slider(
                "line_words", "Hardware", "Line of the cache (words)", [(f"{b}", b) for b in _LINES], 16,
                "Words that come and go together",
            ),
        )  # fmt: skip

    def _make_scene(self) -> TilingScene:
        return TilingScene()

    def _questions(self) -> tuple[Question, ...]:
        return (_double(), _equal_room(), _best(), _lines(), _shared_memory(), _three_tiles(), _bound())


def _double() -> Question:
    words = 4096
    single, double = _fits(words), _fits(words, 2)
    sum_ = (
        f"Single-buffered, three tiles of {single} take {gemm_tile_words(single):,} words; double-buffered, six of "
        f"{double} take {gemm_tile_words(double, 2):,} and six of {double + 1} would take "
        f"{gemm_tile_words(double + 1, 2):,}"
    )
    return NumberQuestion(
        "double",
        f"Give the buffer {words:,} words and double-buffer. What is the largest edge of a square tile that fits?",
        answer=double,
        unit="words",
        tolerance=0.0,
        explain=lambda given, right: f"{sum_}." if right else f"{sum_}; you gave {number(given)}.",
    )


def _equal_room() -> Question:
    tile = 16
    words = gemm_tile_words(tile)
    buffer, cache = gemm_traffic(_SIZE, _SIZE, _SIZE, tile).words, _misses(tile, words)
    enough = int(lru_curve(_SIZE, tile).smallest_capacity(buffer).m_as("byte")) // 4
    sum_ = (
        f"The buffer moves {buffer:,} words. A cache of {words} moves {cache:,}, {times(cache / buffer)}: it "
        "keeps finished "
        f"tiles as faithfully as needed ones, and takes {enough:,} words for the buffer's traffic."
    )
    return ChoiceQuestion(
        "equal-room",
        f"Tiles of {tile} fill a managed buffer of {words} words exactly. A cache of as many words runs the "
        "same loops. "
        "Does it move as little?",
        choices=(
            Choice("Yes: the same words are in use", sum_, cache == buffer),
            Choice("No, it moves more", sum_, cache > buffer),
            Choice("No, it moves less, since it keeps what is used", sum_, cache < buffer),
        ),
    )


def _best() -> Question:
    words = 512
    found = {tile: _misses(tile, words) for tile in _EDGES}
    best = min(found, key=lambda tile: found[tile])
    others = [tile for tile in (12, 32, 64) if tile != best]
    listed = ", ".join(f"{tile}: {found[tile]:,}" for tile in sorted({best, *others}))
    sum_ = f"Words moved by tile: {listed}. The cliff of {words} words lies past {lru_cliff(words)}."
    return ChoiceQuestion(
        "best",
        f"Set the matrices to {_SIZE}, the cache to {words} words and lines of one word. Which of these tiles "
        "moves least?",
        choices=tuple(Choice(f"{tile}", sum_, tile == best) for tile in sorted({best, *others})),
    )


def _lines() -> Question:
    small, large, line = 10, 16, 16
    one = {tile: _misses(tile) for tile in (small, large)}
    lined = {tile: _misses(tile, line_words=line) for tile in (small, large)}
    sum_ = (
        f"In lines of one word tiles of {small} move {one[small]:,} words and tiles of {large} {one[large]:,}; "
        "in lines of "
        f"{line}, {lined[small]:,} and {lined[large]:,}. Rows of {small} words straddle lines and bring words that "
        "belong to other tiles."
    )
    return ChoiceQuestion(
        "lines",
        f"Give a cache of {_WORDS:,} words lines of {line} words. Whose traffic grows more: that of tiles of "
        f"{small} or of "
        f"{large}?",
        choices=(
            Choice(f"Tiles of {small}", sum_, lined[small] / one[small] > lined[large] / one[large]),
            Choice(f"Tiles of {large}", sum_, lined[small] / one[small] < lined[large] / one[large]),
        ),
    )


def _shared_memory() -> Question:
    """Ask about tiles for double buffering, printed from the formula for single buffering."""
    chip = Hardware.Cloud.H100
    single, double = (tile_sizes(chip, "fp16", buffers)["L1"] for buffers in (1, 2))
    room = chip.level("L1").usable
    sum_ = (
        f"Three tiles of {single} fill the {number(room)} KiB; with double buffering six must fit, which "
        f"leaves {double}. "
        f"Six of {single} would need {number(gemm_tile_words(single, 2) * 2 / 1024)} KiB."
    )
    return ChoiceQuestion(
        "shared-memory",
        f"“{number(room)} KiB of shared memory take half-precision tiles of {single} × {single}; double-buffer them to "
        "overlap loads with arithmetic.” What is wrong?",
        in_app=False,
        choices=(
            Choice("The tiles fit only without double buffering", sum_, double < single),
            Choice("Tiles must be powers of two", f"Powers of two are handy, not needed. {sum_}"),
            Choice("Nothing", sum_),
        ),
    )


def _three_tiles() -> Question:
    words = 2048
    fits, larger = _fits(words), 40
    at = {tile: _misses(tile, words) for tile in (fits, larger)}
    sum_ = (
        f"Simulated, tiles of {fits} move {at[fits]:,} words and tiles of {larger} {at[larger]:,}. The cliff "
        "of an LRU cache "
        f"lies at T² + 3T, past {lru_cliff(words)}; 3T² is the rule for a managed buffer."
    )
    return ChoiceQuestion(
        "three-tiles",
        f"“In a cache of {words:,} words tiles must not exceed {fits}, since three of them must fit; "
        f"tiles of {larger} would thrash.” What is wrong?",
        in_app=False,
        choices=(
            Choice("The rule is one for managed buffers; the cache does better with the larger tile", sum_,
                   at[larger] < at[fits]),
            Choice("The tiles would have to be smaller still", sum_),
            Choice("Nothing", sum_, at[larger] > at[fits]),
        ),
    )  # fmt: skip


def _bound() -> Question:
    """Ask about 2MNK/√S + MN, which some schedules of a short reduction go below."""
    m, n, k, room = 512, 256, 32, 1024
    quoted = round(2 * m * n * k / room**0.5 + m * n)
    tile = (1, 30, k)
    least, safe = gemm_traffic(m, n, k, tile, "nmk").words, gemm_lower_bound(m, n, k, room)
    sum_ = (
        f"Hold {tile[1]} whole columns of B, {gemm_tile_words(tile):,} words with what streams past: every row "
        "of A comes "
        f"once for them, and {least:,} words move in all, below the quoted {quoted:,}. The larger of "
        "everything once and "
        f"2MNK/√S − 2S is safe: {safe:,}."
    )
    return ChoiceQuestion(
        "bound",
        f"“No schedule of a {m} × {n} product with a reduction of {k} moves fewer than {quoted:,} words through "
        f"{room:,} words of memory, by 2MNK/√S + MN.” What is wrong?",
        in_app=False,
        choices=(
            Choice("That formula is an estimate, not a bound, and short reductions go below it", sum_,
                   safe <= least < quoted),
            Choice("The bound must count every matrix once", f"It must, and does. {sum_}"),
            Choice("Nothing", sum_, least >= quoted),
        ),
    )  # fmt: skip
