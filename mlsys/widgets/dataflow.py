"""The lab on dataflows. Every number in a question or an answer is counted here by the model."""

from __future__ import annotations

from mlsys.mapping import DATAFLOWS, conv_space
from mlsys.models.dataflow import order_words
from mlsys.viz.views.dataflow import FLOWS, DataflowScene, least, words_of
from mlsys.viz.views.view import number, percent, times
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider
from mlsys.widgets.questions import Choice, ChoiceQuestion, NumberQuestion, Question

__all__ = ["DataflowLab"]

_SIZES = tuple(2**power for power in range(13))
_TILES = (4, 8, 16, 32, 64, 128, 256)
_M, _K, _N, _TILE = 32, 256, 512, 32
_WIDTH, _EDGE = 4096, 128  # one row against a square of this width, on an array of this edge


def _name(flow: str) -> str:
    return DATAFLOWS[flow][0].capitalize()


class DataflowLab(Lab):
    """Predict, explore and check what moves when inputs, weights or partial sums stay.

    Examples
    --------
    >>> lab = DataflowLab()
    >>> lab.predict("Weight stationary")
    >>> lab.view.values["least"]
    'os'
    """

    id = "lab-06-dataflow"
    title = "Lab 6: Which operand should stay?"
    purpose = (
        "While loops run, an array can keep one of three operands where it is: inputs, weights or partial sums. "
        "The others stream past. Find out which one should stay, for which shapes it matters, "
        "and for which it does not."
    )
    scenario = {"m": _M, "k": _K, "n": _N, "tile": _TILE}  # noqa: RUF012

    def _prediction(self) -> Question:
        words = words_of(_M, _K, _N, _TILE)
        totals = ", ".join(f"{_name(flow).lower()} {words.total(flow):,}" for flow in FLOWS)
        again = words.parts["ws"][2] / words.parts["os"][2]
        why = (
            f"words moved: {totals}. A partial sum that has to leave before it is finished goes out and comes back, "
            f"here {times(again)} the words that finished sums take; that outweighs what the others save."
        )
        right = least(words)
        return ChoiceQuestion(
            "prediction",
            f"A layer multiplies {_M} rows of {_K} inputs by {_K} × {_N} weights, in tiles of {_TILE} × {_TILE}. "
            "Which dataflow moves the fewest words?",
            choices=tuple(
                Choice(
                    _name(flow),
                    (
                        f"You predicted it, and so it is: {why}"
                        if flow == right
                        else f"It is {_name(right).lower()}: {why}"
                    ),
                    flow == right,
                )
                for flow in FLOWS
            ),
        )

    def _controls(self) -> tuple[Control, ...]:
        sizes = [(f"{size:,}", size) for size in _SIZES]
        return (
            slider("m", "Workload", "Rows of the input, M", sizes, _M, "Batch, tokens or output pixels"),
            slider("k", "Workload", "Length of the sum, K", sizes, _K, "Inputs that one output adds up"),
            slider("n", "Workload", "Columns of the weights, N", sizes, _N, "Outputs for each row"),
            choice("flow", "Mapping", "What stays", [(_name(f), f) for f in FLOWS], "ws", "The operand that is kept"),
            slider(
                "tile", "Hardware", "Edge of the tile that stays", [(str(t), t) for t in _TILES], _TILE,
                "Rows and columns of the array",
            ),
        )  # fmt: skip

    def _make_scene(self) -> DataflowScene:
        return DataflowScene()

    def _parameters(self, **values: object) -> dict[str, object]:
        return values

    def _questions(self) -> tuple[Question, ...]:
        return (_batch_one(), _short_sum(), _reuse(), _larger_tile(), _thirty_six(), _perfect())


def _batch_one() -> Question:
    words = words_of(1, _WIDTH, _WIDTH, _EDGE)
    totals = [words.total(flow) for flow in FLOWS]
    spread, share = max(totals) / min(totals) - 1, _WIDTH**2 / max(totals)
    sum_ = (
        f"They differ by {percent(spread)}: at least {percent(share)} of the words are weights, and with one row "
        "each weight is used once. There is no reuse for a dataflow to take."
    )
    return ChoiceQuestion(
        "batch-one",
        f"Set M = 1, K = N = {_WIDTH:,} and a tile of {_EDGE}. How much does the choice of dataflow matter?",
        choices=(
            Choice("Weight stationary moves least by far", sum_, words.total("ws") < 0.8 * min(totals[1:])),
            Choice("Output stationary moves least by far", sum_, words.total("os") < 0.8 * totals[0]),
            Choice("Hardly at all", sum_, spread < 0.02),
        ),
    )


def _short_sum() -> Question:
    words = words_of(256, 32, 512, 32)
    totals = ", ".join(f"{_name(flow).lower()} {words.total(flow):,}" for flow in FLOWS)
    sum_ = (
        f"Now {totals}. When the whole sum fits into one tile no partial sum is interrupted, "
        "and keeping sums gains nothing; weights and inputs still do."
    )
    return ChoiceQuestion(
        "short-sum",
        "Set M = 256, K = 32, N = 512 and a tile of 32. Which dataflow moves most?",
        choices=tuple(
            Choice(_name(flow), sum_, words.total(flow) == max(words.total(each) for each in FLOWS)) for flow in FLOWS
        ),
    )


def _reuse() -> Question:
    rows = 64

    def explain(given: float, right: bool) -> str:
        said = "Right" if right else f"You gave {number(given)}"
        return f"{said}: each weight meets every row once, so it is used M = {rows} times, whatever K and N are."

    return NumberQuestion(
        "reuse",
        f"A product has M = {rows}, K = 1,024 and N = 2,048. How many times is each weight used?",
        answer=float(rows),
        unit="times",
        tolerance=0.0,
        explain=explain,
    )


def _larger_tile() -> Question:
    small, large = (words_of(1024, 1024, 1024, tile).total("os") for tile in (32, 64))
    sum_ = (
        f"From {small:,} to {large:,} words, {times(small / large)} fewer for four times the room: "
        "words fall with the edge of the tile, which is the square root of its room."
    )
    return ChoiceQuestion(
        "larger-tile",
        "Set M = K = N = 1,024, output stationary, and take a tile of 64 instead of 32. What becomes of the words?",
        choices=(
            Choice("About a half", sum_, 1.8 < small / large < 2.2),
            Choice("About a quarter, like the room", sum_, 3.6 < small / large < 4.4),
            Choice("The same", sum_, small == large),
        ),
    )


def _thirty_six() -> Question:
    space = conv_space(1, 1, 16, 6, 6, 3, 3)
    kept, again = order_words(space, "krspq"), order_words(space, "pqkrs")
    saving = again["weight"] / kept["weight"]
    sum_ = (
        f"Weights fall from {again['weight']:,} to {kept['weight']:,} words, but partial sums rise from "
        f"{again['output']:,} to {kept['output']:,}: all together {sum(kept.values()):,} against "
        f"{sum(again.values()):,}. The order that spares weights moves more."
    )
    return ChoiceQuestion(
        "thirty-six",
        f"A text says: 'Keeping each weight until all outputs have used it fetches weights {times(saving)} less often, "
        f"so the order k, r, s, p, q moves {times(saving)} fewer words than p, q, k, r, s.' What is wrong?",
        choices=(
            Choice("Nothing", sum_, sum(again.values()) > 30 * sum(kept.values())),
            Choice("It forgets the partial sums", sum_, sum(kept.values()) > sum(again.values())),
            Choice("It forgets the inputs", f"Those move equally often. {sum_}", kept["input"] != again["input"]),
        ),
        in_app=False,
    )


def _perfect() -> Question:
    token, layer = words_of(1, _WIDTH, _WIDTH, _EDGE), words_of(_M, _K, _N, _TILE)
    over = token.total("os") / token.compulsory
    sum_ = (
        f"With one row output stationary moves {times(over)} what must move at all: there it is as good as perfect, "
        f"and so are the others. For the layer of {_M} rows it moves {times(layer.total('os') / layer.compulsory)} "
        "what must move. The sentence is right where there is reuse, and empty where there is none."
    )
    return ChoiceQuestion(
        "perfect",
        "A text says: 'No dataflow is perfect: whichever operand stays, the other two cost traffic, "
        "so for generating one token at a time the choice is a painful compromise.' What is wrong?",
        choices=(
            Choice("One row has no reuse, so nothing is compromised", sum_, over < 1.02),
            Choice(
                "Weight stationary is perfect there, the others are not",
                sum_,
                token.total("os") > 1.1 * token.total("ws"),
            ),
            Choice("Nothing", sum_, over > 1.5),
        ),
        in_app=False,
    )
