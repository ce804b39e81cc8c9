"""The lab on systolic arrays. Every number in a question or an answer is computed here by the model."""

from mlsys import Hardware
from mlsys.choices import FoldOverlap, Stationary
from mlsys.labs.design import Design
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.models.systolic import ArrayCounts, SystolicArray, count_systolic, energy_baselines
from mlsys.units import Q_
from mlsys.viz.views.view import number, percent, times

SIDE, WIDTH = 128, 1024


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    counts = _layer(1)
    cycles = counts.folds.fold_cycles - SIDE
    listed = {"Nearly all": 1.0, "About half": 0.5, "About a tenth": 0.1, "Less than a hundredth": 0.005}
    nearest = min(listed, key=lambda text: abs(listed[text] - counts.utilisation))
    return ChoiceQuestion(
        "prediction",
        f"A dense layer of width {WIDTH:,} runs at batch 1 on an array of {SIDE} × {SIDE} processing elements "
        "(PE). The weights stay in the array and are loaded behind the work. What share of its multipliers works, "
        "over all cycles?",
        f"One row of activations crosses {SIDE} rows and {SIDE} columns of PEs, {cycles} cycles for each "
        f"fold, and every PE multiplies in one of them: {percent(counts.utilisation)}.",
        choices=tuple(Choice(text, right=text == nearest) for text in listed),
    )


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    return {"m": 1, "n": WIDTH, "k": WIDTH, "side": SIDE, "dataflow": "ws", "overlap": "load", "along": "M"}


def asked(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    return (_streamed(), _fringe(), _reuse(), _remedy(), _larger(), _column(), _cores(), _saving(), _multiples())


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design tasks of the lab."""
    return ()


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    single, many, chip = _layer(1), _layer(1024), Hardware.Cloud.TPUv4
    array = SystolicArray.of(chip)
    *others, saved = energy_baselines(mac=Q_(1, "pJ"))
    straw, accumulator, blocked = ((machine.total / saved.total).m_as("") for machine in others)
    return WrapUp(
        (
            Finding(
                f"At batch 1 {percent(single.utilisation)} of the array works, at batch 1,024 "
                f"{percent(many.utilisation)}: rows fill it.",
                "from mlsys.models.systolic import count_systolic\n"
                "count_systolic(1024, 1024, 1024, 128, 128, fold_overlap='load').utilisation",
            ),
            Finding(
                f"There an activation that is read is used {number(many.macs / many.sram.ifmap_reads)} times, once "
                f"in every column, and a weight {number(many.macs / many.sram.filter_reads)} times, once for each "
                "row.",
            ),
            Finding(
                f"A TPU v4 has {array.count} arrays, which make {number(array.peak.to('TFLOP/s'))} TFLOP/s; "
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


def _layer(
    batch: int, side: int = SIDE, dataflow: Stationary = "ws", fold_overlap: FoldOverlap = "load", width: int = WIDTH
) -> ArrayCounts:
    """Return the counts of a dense layer of the lab."""
    return count_systolic(batch, width, WIDTH, side, side, dataflow, fold_overlap=fold_overlap)


def _streamed() -> Question:
    rows = 512
    share = 100 * _layer(rows).utilisation
    fold = count_systolic(rows, SIDE, SIDE, SIDE, SIDE)
    return NumberQuestion(
        "streamed",
        f"Set M = {rows}, N = K = {WIDTH:,}, {SIDE} × {SIDE} PEs, weight-stationary, loads hidden. "
        "What percentage of the array works?",
        f"A fold streams for {rows} cycles and takes {fold.folds.fold_cycles - SIDE}: {number(share)}%, less the one "
        "load that nothing hides. The rest is the slanted wave that enters and leaves.",
        setting={"m": rows, "n": WIDTH, "k": WIDTH, "side": SIDE, "dataflow": "ws", "overlap": "load"},
        answer=share,
        unit="%",
        tolerance=0.02,
        most=100,
        hint="Put the sliders there and read the blue number; or count the cycles of one fold, and those that stream.",
        slips=((share / 100, "Percent are asked for, not a share of one."),
               (100, "All PEs have work, but not in all cycles: the wave enters and leaves.")),
    )  # fmt: skip


def _fringe() -> Question:
    fits, over = (_layer(1024, width=width) for width in (SIDE, SIDE + 1))
    ratio = over.cycles / fits.cycles
    return ChoiceQuestion(
        "fringe",
        f"N grows from {SIDE} to {SIDE + 1} at M = K = {WIDTH:,}. What happens to the cycles?",
        f"{fits.cycles:,} cycles become {over.cycles:,}, {times(ratio)}: the last column needs a fold of its own, and "
        f"work in the array falls from {percent(fits.mapping_efficiency)} of the PEs to "
        f"{percent(over.mapping_efficiency)}.",
        setting={"m": 1024, "n": SIDE + 1, "k": WIDTH, "side": SIDE, "dataflow": "ws", "overlap": "load"},
        choices=(
            Choice("They grow by less than a hundredth", "One column is little work. Where does it find "
                                                         "room?", ratio < 1.01),
            Choice("They nearly double", right=1.9 < ratio < 2.1),
            Choice("They grow by half", "Set both sizes and read the number of folds in the "
                                        "sentence.", 1.4 < ratio < 1.6),
        ),
    )  # fmt: skip


def _reuse() -> Question:
    counts = _layer(512)
    left, right = counts.macs / counts.sram.ifmap_reads, counts.macs / counts.sram.filter_reads
    return ChoiceQuestion(
        "reuse",
        f"Weight-stationary, {SIDE} × {SIDE} PEs, M = 512: which operand is used {SIDE} times for each read, "
        "whatever the batch?",
        f"Where weights stay, each activation passes {number(left)} columns, and each weight meets the {number(right)} "
        "rows of the batch: change M and see which of the two moves.",
        setting={"m": 512, "n": WIDTH, "k": WIDTH, "side": SIDE, "dataflow": "ws", "overlap": "load"},
        choices=(
            Choice("The weight", "A weight waits in its PE for the rows to come. How many come?", right == SIDE),
            Choice("The activation", right=left == SIDE),
            Choice("Both", "Change M and read the last sentence below the picture: do both numbers stay?",
                   left == right == SIDE),
        ),
    )  # fmt: skip


def _remedy() -> Question:
    cycles = {
        f"An array of {2 * SIDE} × {2 * SIDE}": _layer(1, side=2 * SIDE).cycles,
        "Keeping the outputs in the PEs": _layer(1, dataflow="os").cycles,
        "Letting folds overlap in everything": _layer(1, fold_overlap="full").cycles,
        "64 requests in one batch": _layer(64).cycles / 64,
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
        f"At batch 1 the layer takes {_layer(1).cycles:,} cycles. Which change leaves fewest for each request?",
        f"Cycles for each request: {listed}.",
        setting={"m": 64, "n": WIDTH, "k": WIDTH, "side": SIDE, "dataflow": "ws", "overlap": "load"},
        choices=tuple(Choice(change, hint, change == best) for change, hint in zip(cycles, hints, strict=True)),
    )


def _larger() -> Question:
    small, large = _layer(64, side=SIDE), _layer(64, side=2 * SIDE)
    gain = small.cycles / large.cycles
    return ChoiceQuestion(
        "larger",
        f"At batch 64 and width {WIDTH:,}, how much faster is an array of twice the side, with four times the PEs?",
        f"Four times the PEs are {times(gain)} as fast at batch 64: utilisation falls from "
        f"{percent(small.utilisation)} to {percent(large.utilisation)}, because the wave through the array gets "
        f"longer.",
        setting={"m": 64, "n": WIDTH, "k": WIDTH, "side": 2 * SIDE, "dataflow": "ws", "overlap": "load"},
        choices=(
            Choice("Four times", "That is the ratio of the peaks. Set both sides and divide the cycles.", gain > 3.9),
            Choice("Twice to three times", right=2 <= gain <= 3),
            Choice("No faster", "Four folds become one, so it is faster. How long does one take on either array?",
                   gain < 1.05),
        ),
    )  # fmt: skip


def _column() -> Question:
    """Return the question about a weight claimed to be reused for all multiplications of a column."""
    counts = _layer(300)
    left, right = counts.macs / counts.sram.ifmap_reads, counts.macs / counts.sram.filter_reads
    return ChoiceQuestion(
        "column",
        f"“In a weight-stationary array one weight is reused for all {SIDE} multiplications of its column.” "
        "What is wrong?",
        f"At batch 300 a weight that is read is used {number(right)} times, in one PE, and an activation "
        f"{number(left)} times, in all PEs of its row. A column holds {SIDE} weights, one in each PE.",
        in_app=False,
        choices=(
            Choice("A weight serves one PE; it is the activation that is shared", right=right == 300),
            Choice("It is reused along the row, not the column", "Something is used along the row. Is it what "
                                                                 "stays, or "
                   "what passes?"),
            Choice(NOTHING, "Step through the small array above: does a weight ever leave its PE?"),
        ),
    )  # fmt: skip


def _cores() -> Question:
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


def _saving() -> Question:
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


def _multiples() -> Question:
    """Return the question about a correct statement."""
    shares = [_layer(rows, width=384).mapping_efficiency for rows in (1, 1024)]
    return ChoiceQuestion(
        "multiples",
        f"“Where weights stay, an array of {SIDE} × {SIDE} PEs gives every PE work if K and N are multiples "
        f"of {SIDE}, "
        "at any batch.” What is wrong?",
        f"With N = 384 and K = {WIDTH:,} {percent(shares[0])} of the PEs have work at batch 1 and "
        f"{percent(shares[1])} "
        "at batch 1,024. Having work is not yet working: how often they multiply depends on the batch.",
        in_app=False,
        choices=(
            Choice("The batch must be a multiple as well", "The batch streams; does it lie along a side of the array?"),
            Choice("It must be a power of two", "Set a size to three times the side, and look at the orange line."),
            Choice(NOTHING, right=shares == [1.0, 1.0]),
        ),
    )  # fmt: skip
