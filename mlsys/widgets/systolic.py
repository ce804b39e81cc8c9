"""The lab on systolic arrays. Every number in a question or an answer is computed here by the model."""

from __future__ import annotations

from mlsys import Hardware
from mlsys.models.systolic import DATAFLOWS, Counts, SystolicArray, count_systolic, energy_baselines
from mlsys.units import Q_
from mlsys.viz.views.systolic import SystolicScene
from mlsys.viz.views.view import number, percent, times
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider
from mlsys.widgets.questions import Choice, ChoiceQuestion, NumberQuestion, Question

__all__ = ["SystolicLab"]

_SIZES = (1, 4, 16, 32, 64, 100, 128, 129, 192, 256, 300, 384, 512, 513, 768, 1024)
_SIDES = (8, 16, 32, 64, 128, 256)
_OVERLAPS = {"none": "nothing", "load": "loading and draining", "full": "everything"}
_SIDE, _WIDTH = 128, 1024


def _layer(batch: int, side: int = _SIDE, dataflow: str = "ws", overlap: str = "load", width: int = _WIDTH) -> Counts:
    """Return the counts of a dense layer of the lab."""
    return count_systolic(batch, width, _WIDTH, side, side, dataflow, overlap=overlap)


class SystolicLab(Lab):
    """Predict, explore and check how much of a systolic array works.

    Examples
    --------
    >>> lab = SystolicLab()
    >>> lab.predict("About half")
    >>> print(f"{lab.view.values['counts'].utilisation:.2%}")
    0.39%
    """

    id = "lab-04-systolic"
    title = "Lab 4: How much of a systolic array works?"
    purpose = (
        "A systolic array multiplies in thousands of places at once, if the product that it is given fills it. "
        "Find out which size of a product fills which side of the array, what a fringe costs, "
        "and which operand it saves you from reading again."
    )

    def __init__(self) -> None:
        layer = {"m": 1, "n": _WIDTH, "k": _WIDTH}
        self.scenario = {**layer, "side": _SIDE, "dataflow": "ws", "overlap": "load", "along": "M"}
        super().__init__()

    def _prediction(self) -> Question:
        counts = _layer(1)
        cycles = counts.folds.fold_cycles - _SIDE
        right = (
            f"One row of activations crosses {_SIDE} rows and {_SIDE} columns of places, {cycles} cycles for each "
            f"fold, and every place multiplies in one of them: {percent(counts.utilisation)}."
        )
        listed = {"Nearly all": 1.0, "About half": 0.5, "About a tenth": 0.1, "Less than a hundredth": 0.005}
        nearest = min(listed, key=lambda text: abs(listed[text] - counts.utilisation))
        return ChoiceQuestion(
            "prediction",
            f"A dense layer of width {_WIDTH:,} runs at batch 1 on an array of {_SIDE} × {_SIDE} places. The weights "
            "stay in the array and are loaded behind the work. What share of its multipliers works, over all cycles?",
            choices=tuple(Choice(text, f"You predicted “{text.lower()}”. {right}", text == nearest) for text in listed),
        )

    def _controls(self) -> tuple[Control, ...]:
        sizes = [(f"{size:,}", size) for size in _SIZES]
        staying = [(text.capitalize(), key) for key, text in DATAFLOWS.items()]
        return (
            slider("m", "Workload", "M: rows of the left operand (the batch)", sizes, 512, "Rows of the product"),
            slider("n", "Workload", "N: columns of the right operand", sizes, 512, "Columns of the product"),
            slider("k", "Workload", "K: length of the reduction", sizes, 512, "Products added into each output"),
            choice(
                "dataflow", "Mapping", "What stays", staying, "ws", "Which operand is held while the others move",
            ),
            choice(
                "overlap", "Mapping", "Hidden behind other work", [(name, key) for key, name in _OVERLAPS.items()],
                "load", "How far one fold may overlap the next",
            ),
            slider("side", "Hardware", "Rows and columns of the array", [(f"{s}", s) for s in _SIDES], _SIDE, "Places"),
            choice("along", "View", "Draw utilisation over", ["M", "N", "K"], "N", "Which size the picture runs along"),
        )  # fmt: skip

    def _make_scene(self) -> SystolicScene:
        return SystolicScene()

    def _questions(self) -> tuple[Question, ...]:
        return (_streamed(), _fringe(), _reuse(), _remedy(), _larger(), _column(), _cores(), _saving())


def _streamed() -> Question:
    rows = 512
    share = 100 * _layer(rows).utilisation
    fold = count_systolic(rows, _SIDE, _SIDE, _SIDE, _SIDE)
    sum_ = (
        f"A fold streams for {rows} cycles and takes {fold.folds.fold_cycles - _SIDE}: {number(share)}%, less the one "
        "load that nothing hides. The rest is the slanted wave that enters and leaves."
    )
    return NumberQuestion(
        "streamed",
        f"Set M = {rows}, N = K = {_WIDTH:,}, {_SIDE} × {_SIDE} places, weight-stationary, loads hidden. "
        "What percentage of the array works?",
        answer=share,
        unit="%",
        tolerance=0.02,
        explain=lambda given, right: sum_ if right else f"{sum_} You gave {number(given)}%.",
    )


def _fringe() -> Question:
    fits, over = (_layer(1024, width=width) for width in (_SIDE, _SIDE + 1))
    ratio = over.cycles / fits.cycles
    sum_ = (
        f"{fits.cycles:,} cycles become {over.cycles:,}, {times(ratio)}: the last column needs a fold of its own, and "
        f"work in the array falls from {percent(fits.mapping_efficiency)} of the places to "
        f"{percent(over.mapping_efficiency)}."
    )
    return ChoiceQuestion(
        "fringe",
        f"N grows from {_SIDE} to {_SIDE + 1} at M = K = {_WIDTH:,}. What happens to the cycles?",
        choices=(
            Choice("They grow by less than a hundredth", sum_, ratio < 1.01),
            Choice("They nearly double", sum_, 1.9 < ratio < 2.1),
            Choice("They grow by half", sum_, 1.4 < ratio < 1.6),
        ),
    )


def _reuse() -> Question:
    counts = _layer(512)
    left, right = counts.macs / counts.sram.ifmap_reads, counts.macs / counts.sram.filter_reads
    sum_ = (
        f"Where weights stay, each activation passes {number(left)} columns, and each weight meets the {number(right)} "
        "rows of the batch: change M and see which of the two moves."
    )
    return ChoiceQuestion(
        "reuse",
        f"Weight-stationary, {_SIDE} × {_SIDE} places, M = 512: which operand is used {_SIDE} times for each read, "
        "whatever the batch?",
        choices=(
            Choice("The weight", sum_, right == _SIDE),
            Choice("The activation", sum_, left == _SIDE),
            Choice("Both", sum_, left == right == _SIDE),
        ),
    )


def _remedy() -> Question:
    cycles = {
        f"An array of {2 * _SIDE} × {2 * _SIDE}": _layer(1, side=2 * _SIDE).cycles,
        "Keeping the outputs in place": _layer(1, dataflow="os").cycles,
        "Letting folds overlap in everything": _layer(1, overlap="full").cycles,
        "64 requests in one batch": _layer(64).cycles / 64,
    }
    best = min(cycles, key=lambda change: cycles[change])
    sum_ = "Cycles for each request: " + "; ".join(f"{change.lower()}, {number(c, 4)}" for change, c in cycles.items())
    return ChoiceQuestion(
        "remedy",
        f"At batch 1 the layer takes {_layer(1).cycles:,} cycles. Which change leaves fewest for each request?",
        choices=tuple(Choice(change, f"{sum_}.", change == best) for change in cycles),
    )


def _larger() -> Question:
    small, large = _layer(64, side=_SIDE), _layer(64, side=2 * _SIDE)
    gain = small.cycles / large.cycles
    sum_ = (
        f"Four times the places are {times(gain)} as fast at batch 64: utilisation falls from "
        f"{percent(small.utilisation)} to {percent(large.utilisation)}, because the wave through the array gets longer."
    )
    return ChoiceQuestion(
        "larger",
        f"At batch 64 and width {_WIDTH:,}, how much faster is an array of twice the side, with four times the places?",
        choices=(
            Choice("Four times", sum_, gain > 3.9),
            Choice("Twice to three times", sum_, 2 <= gain <= 3),
            Choice("No faster", sum_, gain < 1.05),
        ),
    )


def _column() -> Question:
    """S4-182: one weight said to be reused for all multiplications of a column."""
    counts = _layer(300)
    left, right = counts.macs / counts.sram.ifmap_reads, counts.macs / counts.sram.filter_reads
    sum_ = (
        f"At batch 300 a weight that is read is used {number(right)} times, in one place, and an activation "
        f"{number(left)} times, in all places of its row. A column holds {_SIDE} weights, one in each place."
    )
    return ChoiceQuestion(
        "column",
        f"“In a weight-stationary array one weight is reused for all {_SIDE} multiplications of its column.” "
        "What is wrong?",
        in_app=False,
        choices=(
            Choice("A weight serves one place; it is the activation that is shared", sum_, right == 300),
            Choice("It is reused along the row, not the column", sum_),
            Choice("Nothing", sum_),
        ),
    )


def _cores() -> Question:
    """S4-178: two cores with one array each."""
    chip = Hardware.Cloud.TPUv4
    array = SystolicArray.of(chip)
    claimed = SystolicArray(128, 128, clock=array.clock, count=2).peak.to("TFLOP/s")
    sum_ = (
        f"Two arrays would give {number(claimed)} TFLOP/s; the data sheet says "
        f"{number(chip.peak_flops.to('TFLOP/s'))}, which takes {array.count} arrays at {number(array.clock.to('GHz'))} "
        f"GHz: {number(chip.chip('matrix_units_per_unit'))} in each core."
    )
    wrong = abs((array.peak / chip.peak_flops).m_as("") - 1) < 0.01
    return ChoiceQuestion(
        "cores",
        "“A TPU v4 has two cores with one array of 128 × 128 multipliers each.” What is wrong?",
        in_app=False,
        choices=(
            Choice("The arrays are larger", f"They are 128 × 128. {sum_}"),
            Choice("Each core has more arrays", sum_, wrong),
            Choice("Nothing", sum_),
        ),
    )


def _saving() -> Question:
    """S4-172: 233 times, against a machine that nobody builds."""
    *others, array = energy_baselines(mac=Q_(1, "pJ"))
    ratios = [(one.total / array.total).m_as("") for one in others]
    sum_ = (
        f"{number(ratios[0])} is against a machine that fetches even its sums from DRAM. A register for the sum makes "
        f"it {number(ratios[1])}, blocks in SRAM {number(ratios[2])}."
    )
    return ChoiceQuestion(
        "saving",
        f"“A systolic array takes {number(ratios[0])} times less energy for a multiplication than a processor.” "
        "What is wrong?",
        in_app=False,
        choices=(
            Choice("Arithmetic costs more than that", f"With FP32 arithmetic the order stays. {sum_}"),
            Choice("The processor of the comparison has neither registers nor a cache", sum_, ratios[2] < 5),
            Choice("Nothing", sum_),
        ),
    )
