"""The lab on systolic arrays. Every number in a question or an answer is computed here by the model."""

from dataclasses import dataclass
from functools import cache, partial

from mlsys import Hardware
from mlsys.choices import FoldOverlap, Stationary
from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.models.systolic import DATAFLOWS, ArrayCounts, SystolicArray, count_systolic, energy_baselines
from mlsys.units import Q_
from mlsys.viz.views.view import number, percent, times

SIDES: tuple[int, ...] = (72, 96)
WIDTHS: tuple[int, ...] = (576, 1152, 1728)
_PES = (24, 36, 48, 60, 80, 120, 160, 180)
_SHAPES = (  # M, N, K and room; at least three arrays come within a tenth of the best
    (14, 600, 250, 6500), (14, 600, 700, 6500), (14, 840, 250, 6500), (22, 600, 250, 4500), (22, 840, 700, 6500),
    (44, 360, 250, 3000), (44, 600, 700, 4500), (44, 600, 1100, 4500), (44, 840, 700, 3000), (44, 840, 1100, 4500),
)  # fmt: skip
_FLOWS: tuple[Stationary, ...] = ("ws", "os", "is")


@dataclass(frozen=True)
class _Array:
    """The square array and the layer of one student."""

    side: int
    width: int

    def layer(
        self,
        batch: int,
        side: int = 0,
        dataflow: Stationary = "ws",
        fold_overlap: FoldOverlap = "load",
        n: int = 0,
    ) -> ArrayCounts:
        """Return the counts of a dense layer."""
        edge = side or self.side
        return count_systolic(batch, n or self.width, self.width, edge, edge, dataflow, fold_overlap=fold_overlap)


def _array(draw: Draw) -> tuple[int, int, _Array]:
    """Return the side of the array, the width of the layer, and both as one."""
    side, width = draw.pick("side", SIDES), draw.pick("width", WIDTHS)
    return side, width, _Array(side, width)


RANGES = {
    "Nearly all": (85.0, 100.0), "About half": (40.0, 60.0), "About a tenth": (6.0, 14.0),
    "Less than a hundredth": (0.0, 1.0),
}  # fmt: skip
"""Utilisation in percent that each answer to the prediction means."""


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    side, width, array = _array(draw)
    counts = array.layer(1)
    cycles = counts.folds.fold_cycles - side
    listed = {"Nearly all": 1.0, "About half": 0.5, "About a tenth": 0.1, "Less than a hundredth": 0.005}
    nearest = min(listed, key=lambda text: abs(listed[text] - counts.utilisation))
    return ChoiceQuestion(
        "prediction",
        f"A dense layer of width {width:,} runs at batch 1 on an array of {side} × {side} processing elements "
        "(PE). The weights stay in the array and are loaded behind the work. What share of its multipliers works, "
        "over all cycles?",
        f"One row of activations crosses {side} rows and {side} columns of PEs, {cycles} cycles for each "
        f"fold, and every PE multiplies in one of them: {percent(counts.utilisation)}.",
        choices=tuple(Choice(text, right=text == nearest) for text in listed),
    )


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    side, width, _ = _array(draw)
    return {"m": 1, "n": width, "k": width, "side": side, "dataflow": "ws", "overlap": "load", "along": "M"}


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    factories = (_streamed, _fringe, _reuse, _remedy, _larger, _column, _cores, _saving, _multiples)
    return tuple(make(draw) for make in factories)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task: the shape of an array for one layer."""
    m, n, k, room = draw.pick("shape", _SHAPES)
    sides = tuple((f"{side}", side) for side in _PES)
    return (
        Design(
            "shape",
            f"Your chip has room for {room:,} PEs, in rows and columns as you like. It runs one layer all day: M = "
            f"{m}, N = {n}, K = {k:,}, with loads hidden behind the work. Choose the array and what stays in it, so "
            "that the layer takes the fewest cycles.",
            (
                Knob("rows", "Rows of the array", sides),
                Knob("columns", "Columns of the array", sides),
                Knob("dataflow", "What stays", tuple((DATAFLOWS[flow].capitalize(), flow) for flow in _FLOWS)),
            ),
            partial(_shaped, room, m, n, k),
        ),
    )


@cache
def _shaped(room: int, m: int, n: int, k: int, rows: int, columns: int, dataflow: Stationary) -> Built:
    counts = count_systolic(m, n, k, rows, columns, dataflow, fold_overlap="load")
    fault = f"That is more than {room:,} PEs." if rows * columns > room else ""
    summary = f"{rows * columns:,} PEs take {counts.cycles:,} cycles, {percent(counts.utilisation)} of them at work."
    return Built(float(counts.cycles), summary, fault)


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    side, width, array = _array(draw)
    rows = 900
    single, many, chip = array.layer(1), array.layer(rows), Hardware.Cloud.TPUv4
    whole = SystolicArray.of(chip)
    *others, saved = energy_baselines(mac=Q_(1, "pJ"))
    straw, accumulator, blocked = ((machine.total / saved.total).m_as("") for machine in others)
    return WrapUp(
        (
            Finding(
                f"At batch 1 {percent(single.utilisation)} of the array works, at batch {rows} "
                f"{percent(many.utilisation)}: rows fill it.",
                "from mlsys.models.systolic import count_systolic\n"
                f"count_systolic({rows}, {width}, {width}, {side}, {side}, fold_overlap='load').utilisation",
            ),
            Finding(
                f"There an activation that is read is used {number(many.macs / many.sram.ifmap_reads)} times, once "
                f"in every column, and a weight {number(many.macs / many.sram.filter_reads)} times, once for each "
                "row.",
            ),
            Finding(
                f"A TPU v4 has {whole.count} arrays, which make {number(whole.peak.to('TFLOP/s'))} TFLOP/s; "
                f"its data "
                f"sheet says {number(chip.peak_flops.to('TFLOP/s'))}.",
                "from mlsys import Hardware\nfrom mlsys.models.systolic import SystolicArray\n"
                "SystolicArray.of(Hardware.Cloud.TPUv4).peak.to('TFLOP/s')",
            ),
            Finding(
                f"Against a machine that fetches everything from DRAM the array saves {times(straw)}, against one "
                f"with a register for the sum {times(accumulator)}, against one that blocks {times(blocked)}.",
            ),
        ),
        (
            "The size that streams should be long, and the two that lie along the array should be multiples of its "
            "side.",
            "A larger array has a higher peak and needs more to reach it; at a small batch it may hardly be faster.",
            "An array saves reads, compared with a machine that does not reuse what it read; ask what the "
            "comparison "
            "was.",
        ),
    )


def _streamed(draw: Draw) -> Question:
    side, width, array = _array(draw)
    rows = draw.pick("streamed", (200, 360, 440, 600))
    share = 100 * array.layer(rows).utilisation
    fold = count_systolic(rows, side, side, side, side)
    return NumberQuestion(
        "streamed",
        f"Set M = {rows}, N = K = {width:,}, {side} × {side} PEs, weight-stationary, loads hidden. "
        "What percentage of the array works?",
        f"A fold streams for {rows} cycles and takes {fold.folds.fold_cycles - side}: {number(share)}%, less the one "
        "load that nothing hides. The rest is the slanted wave that enters and leaves.",
        setting={"m": rows, "n": width, "k": width, "side": side, "dataflow": "ws", "overlap": "load"},
        answer=share,
        unit="%",
        tolerance=0.02,
        most=100,
        hint="Put the sliders there and read the blue number; or count the cycles of one fold, and those that stream.",
        slips=((share / 100, "Percent are asked for, not a share of one."),
               (100, "All PEs have work, but not in all cycles: the wave enters and leaves.")),
    )  # fmt: skip


def _fringe(draw: Draw) -> Question:
    side, width, array = _array(draw)
    fits, over = (array.layer(width, n=n) for n in (side, side + 1))
    ratio = over.cycles / fits.cycles
    return ChoiceQuestion(
        "fringe",
        f"N grows from {side} to {side + 1} at M = K = {width:,}. What happens to the cycles?",
        f"{fits.cycles:,} cycles become {over.cycles:,}, {times(ratio)}: the last column needs a fold of its own, and "
        f"work in the array falls from {percent(fits.mapping_efficiency)} of the PEs to "
        f"{percent(over.mapping_efficiency)}.",
        setting={"m": width, "n": side + 1, "k": width, "side": side, "dataflow": "ws", "overlap": "load"},
        choices=(
            Choice("They grow by less than a hundredth", "One column is little work. Where does it find "
                                                         "room?", ratio < 1.01),
            Choice("They nearly double", right=1.9 < ratio < 2.1),
            Choice("They grow by half", "Set both sizes and read the number of folds in the "
                                        "sentence.", 1.4 < ratio < 1.6),
        ),
    )  # fmt: skip


def _reuse(draw: Draw) -> Question:
    side, width, array = _array(draw)
    rows = draw.pick("reuse", (200, 360, 440, 600))
    counts = array.layer(rows)
    left, right = counts.macs / counts.sram.ifmap_reads, counts.macs / counts.sram.filter_reads
    return ChoiceQuestion(
        "reuse",
        f"Weight-stationary, {side} × {side} PEs, M = {rows}: which operand is used {side} times for each read, "
        "whatever the batch?",
        f"Where weights stay, each activation passes {number(left)} columns, and each weight meets the {number(right)} "
        "rows of the batch: change M and see which of the two moves.",
        setting={"m": rows, "n": width, "k": width, "side": side, "dataflow": "ws", "overlap": "load"},
        choices=(
            Choice("The weight", "A weight waits in its PE for the rows to come. How many come?", right == side),
            Choice("The activation", right=left == side),
            Choice("Both", "Change M and read the last sentence below the picture: do both numbers stay?",
                   left == right == side),
        ),
    )  # fmt: skip


def _remedy(draw: Draw) -> Question:
    side, width, array = _array(draw)
    rows = draw.pick("remedy", (40, 48, 80))
    cycles = {
        f"An array of {2 * side} × {2 * side}": array.layer(1, side=2 * side).cycles,
        "Keeping the outputs in the PEs": array.layer(1, dataflow="os").cycles,
        "Letting folds overlap in everything": array.layer(1, fold_overlap="full").cycles,
        f"{rows} requests in one batch": array.layer(rows).cycles / rows,
    }
    hints = (
        "Fewer folds, but the wave through each gets longer. Set it and read the cycles.",
        "Then one row of outputs lies along one row of PEs. How many of them have work?",
        "That hides the wave behind the next fold; the loads of weights that serve one row remain.",
        "",
    )
    best = min(cycles, key=lambda change: cycles[change])
    listed = "; ".join(f"{change[0].lower()}{change[1:]}, {number(c, 4)}" for change, c in cycles.items())
    return ChoiceQuestion(
        "remedy",
        f"At batch 1 the layer takes {array.layer(1).cycles:,} cycles. Which change leaves fewest for each request?",
        f"Cycles for each request: {listed}.",
        setting={"m": rows, "n": width, "k": width, "side": side, "dataflow": "ws", "overlap": "load"},
        choices=tuple(Choice(change, hint, change == best) for change, hint in zip(cycles, hints, strict=True)),
    )


def _larger(draw: Draw) -> Question:
    side, width, array = _array(draw)
    rows = draw.pick("larger", (40, 48, 80))
    small, large = array.layer(rows), array.layer(rows, 2 * side)
    gain = small.cycles / large.cycles
    return ChoiceQuestion(
        "larger",
        f"At batch {rows} and width {width:,}, how much faster is an array of twice the side, with four times the PEs?",
        f"Four times the PEs are {times(gain)} as fast at batch {rows}: utilisation falls from "
        f"{percent(small.utilisation)} to {percent(large.utilisation)}, because the wave through the array gets "
        f"longer.",
        setting={"m": rows, "n": width, "k": width, "side": 2 * side, "dataflow": "ws", "overlap": "load"},
        choices=(
            Choice("Four times", "That is the ratio of the peaks. Set both sides and divide the cycles.", gain > 3.9),
            Choice("Twice to three times", right=2 <= gain <= 3),
            Choice("No faster", "Four folds become one, so it is faster. How long does one take on either array?",
                   gain < 1.05),
        ),
    )  # fmt: skip


def _column(draw: Draw) -> Question:
    """Return the question about a weight claimed to be reused for all multiplications of a column."""
    side, _, array = _array(draw)
    rows = draw.pick("column", (350, 450, 550))
    counts = array.layer(rows)
    left, right = counts.macs / counts.sram.ifmap_reads, counts.macs / counts.sram.filter_reads
    return ChoiceQuestion(
        "column",
        f"“In a weight-stationary array one weight is reused for all {side} multiplications of its column.” "
        "What is wrong?",
        f"At batch {rows} a weight that is read is used {number(right)} times, in one PE, and an activation "
        f"{number(left)} times, in all PEs of its row. A column holds {side} weights, one in each PE.",
        in_app=False,
        choices=(
            Choice("A weight serves one PE; it is the activation that is shared", right=right == rows),
            Choice("It is reused along the row, not the column", "Something is used along the row. Is it what "
                                                                 "stays, or "
                   "what passes?"),
            Choice(NOTHING, "Step through the small array above: does a weight ever leave its PE?"),
        ),
    )  # fmt: skip


def _cores(draw: Draw) -> Question:
    """Return the question about two cores claimed to have one array each."""
    chip = Hardware.Cloud.TPUv4
    array = SystolicArray.of(chip)
    claimed = SystolicArray(128, 128, clock=array.clock, count=2).peak.to("TFLOP/s")
    wrong = abs((array.peak / chip.peak_flops).m_as("") - 1) < 0.01
    return ChoiceQuestion(
        "cores",
        "“A TPU v4 has two cores with one array of 128 × 128 multipliers each.” What is wrong?",
        f"Two arrays would give {number(claimed)} TFLOP/s; the data sheet says "
        f"{number(chip.peak_flops.to('TFLOP/s'))}, which takes {array.count} arrays at {number(array.clock.to('GHz'))} "
        f"GHz: {number(chip.chip('matrix_units_per_unit'))} in each core.",
        in_app=False,
        choices=(
            Choice("The arrays are larger", "Their side is right. What else makes up a peak rate?"),
            Choice("Each core has more arrays", right=wrong),
            Choice(NOTHING, "Multiply: two arrays, their PEs, two operations, the clock; compare with the peak of the "
                   "chip."),
        ),
    )  # fmt: skip


def _saving(draw: Draw) -> Question:
    """Return the question about savings relative to an unrealistic baseline."""
    *others, array = energy_baselines(mac=Q_(1, "pJ"))
    ratios = [(other.total / array.total).m_as("") for other in others]
    return ChoiceQuestion(
        "saving",
        f"“A systolic array takes {number(ratios[0])} times less energy for a multiplication than a processor.” "
        "What is wrong?",
        f"{number(ratios[0])} is against a machine that fetches even its sums from DRAM. A register for the sum makes "
        f"it {number(ratios[1])}, blocks in SRAM {number(ratios[2])}.",
        in_app=False,
        choices=(
            Choice("Arithmetic costs more than that", "More costly arithmetic weighs on both machines. What "
                                                      "else does the "
                   "comparison assume?"),
            Choice("The processor of the comparison has neither registers nor a cache", right=ratios[2] < 5),
            Choice(NOTHING, "What would a processor have to do for each multiplication to be so far behind?"),
        ),
    )  # fmt: skip


def _multiples(draw: Draw) -> Question:
    """Return the question about a correct statement."""
    side, width, array = _array(draw)
    shares = [array.layer(rows, n=3 * side).mapping_efficiency for rows in (1, 900)]
    return ChoiceQuestion(
        "multiples",
        f"“Where weights stay, an array of {side} × {side} PEs gives every PE work if K and N are multiples "
        f"of {side}, "
        "at any batch.” What is wrong?",
        f"With N = {3 * side} and K = {width:,} {percent(shares[0])} of the PEs have work at batch 1 and "
        f"{percent(shares[1])} "
        "at batch 900. Having work is not yet working: how often they multiply depends on the batch.",
        in_app=False,
        choices=(
            Choice("The batch must be a multiple as well", "The batch streams; does it lie along a side of the array?"),
            Choice("It must be a power of two", "Set a size to three times the side, and look at the orange line."),
            Choice(NOTHING, right=shares == [1.0, 1.0]),
        ),
    )  # fmt: skip
