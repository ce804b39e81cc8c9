"""The lab on shrinking a network. Every number in a question or an answer comes from the stored run."""

from functools import partial

from mlsys.edge.clock import PowerPoint, split_energy
from mlsys.edge.points import EdgePoint
from mlsys.edge.schema import FORMATS
from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.units import Q_
from mlsys.viz.views.edge import CLOCKS, CUTS, chosen
from mlsys.viz.views.view import number, percent, times

WHOLE, HOLES, _HALF = "as trained", "90 % of weights zero", "50 % of channels cut"
_BOARDS = (  # clock in MHz, time in ms, energy in mJ, at two clocks of one board
    ((216, 116, 21), (96, 261, 29)), ((150, 165, 17), (75, 330, 23)), ((220, 130, 26), (110, 260, 31)),
)  # fmt: skip
_PREDICTED = (
    "25 % of channels cut", "50 % of channels cut", "75 % of channels cut", "50 % of weights zero", HOLES,
)  # fmt: skip
_CUT = ("25 % of channels cut", "50 % of channels cut", "75 % of channels cut")
_SHARES = {  # of the memory before
    "10% to 25%": (0.1, 0.25), "25% to 45%": (0.25, 0.45), "45% to 75%": (0.45, 0.75), "75% to 90%": (0.75, 0.9),
    "90% to 110%": (0.9, 1.1),
}  # fmt: skip
_SLOW = "half, at 0.8 of the voltage"
_BUDGETS = (  # kB for a network of which one number format does not fit, or only one fits
    (WHOLE, 105), ("25 % of channels cut", 85), ("50 % of channels cut", 59),
    (WHOLE, 77), ("25 % of channels cut", 55), ("50 % of channels cut", 48),
)  # fmt: skip
_HALVED = (WHOLE, "50 % of weights zero", "50 % of channels cut", "75 % of channels cut")
"""What is cut away where FP16 takes less than twice as long as FP32, and where it takes more."""


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    cut, precision = _cut(draw)
    whole, small = _of(WHOLE, precision), _of(cut, precision)
    ratio = small.memory / whole.memory
    kind, amount = CUTS[cut]
    share = percent(amount)
    if kind == "unstructured":
        done, stored = f"The least important {share} of its weights are set to zero", small.measured
        why = (
            "a zero takes as many bytes as any other number. A format that leaves zeros out would store the weights in "
            f"{percent(stored.sparse_bytes / stored.weight_bytes)} of the bytes, but needs other kernels"
        )
    else:
        done = f"The least important {share} of the channels of both its convolutions are cut"
        why = (
            f"weights went from {number(_weights(whole))} to {number(_weights(small))} kB and activations from "
            f"{number(_activations(whole))} to {number(_activations(small))} kB, and the reserve stays"
        )
    return ChoiceQuestion(
        "prediction",
        f"A trained network that reads digits is stored in {precision}. {done}, and it is trained on for a while. How "
        "much of the memory does it then need when it runs?",
        f"{percent(ratio)}: {number(small.memory / 1e3)} kB of {number(whole.memory / 1e3)} kB, as {why}. Right "
        f"answers: {percent(small.objectives[0], 3)}, before {percent(whole.objectives[0], 3)}.",
        choices=tuple(Choice(text, right=low <= ratio < high) for text, (low, high) in _SHARES.items()),
    )


def _cut(draw: Draw) -> tuple[str, str]:
    """Return what is cut away in the prediction, and the number format."""
    return draw.pick("predicted cut", _PREDICTED), draw.pick("predicted format", ("fp32", "fp16", "int8-static"))


def range_of(draw: Draw, answer: str) -> tuple[float, float]:
    """Return the ends, in kilobytes, of the range of memory that a predicted answer means."""
    whole = _of(WHOLE, _cut(draw)[1]).memory / 1e3
    low, high = _SHARES[answer]
    return whole * low, whole * high


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    cut, precision = _cut(draw)
    return {"cut": cut, "precision": precision, "clock": "full", "budget": 100}


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    factories = (_operations, _one_step, _half_format, _set, _clock, _twice, _milliwatts, _highest)
    return tuple(make(draw) for make in factories)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task: a network within a memory that answers well enough."""
    room, right = draw.pick("room", (48, 58, 72, 92, 105)), draw.pick("right", (0.955, 0.965, 0.97))
    return (
        Design(
            "fit",
            f"The network may take {room} kB, and at least {percent(right, 3)} of its answers have to be right. Choose "
            "how it is pruned, its number format and its clock so that an inference takes the least energy.",
            (
                Knob("cut", "What is cut away", tuple((cut, cut) for cut in CUTS)),
                Knob("precision", "Number format", tuple((name, name) for name in FORMATS)),
                Knob("clock", "Clock", tuple((clock, clock) for clock in CLOCKS)),
            ),
            partial(_shrunk, room, right),
        ),
    )


def _shrunk(room: int, right: float, cut: str, precision: str, clock: str) -> Built:
    point = _of(cut, precision, clock)
    accuracy, energy = point.objectives[0], 1e3 * sum(point.energies)
    summary = (
        f"It takes {number(point.memory / 1e3)} kB and {number(energy)} µJ, and {percent(accuracy, 3)} of its answers "
        "are right."
    )
    faults = (
        (point.memory > 1e3 * room, f"That is more than {room} kB."),
        (accuracy < right, f"{percent(right, 3)} are wanted."),
    )
    return Built(energy, summary, next((text for broken, text in faults if broken), ""))


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    whole, holes, half, small = _of(WHOLE), _of(HOLES), _of(_HALF), _of(WHOLE, "int8-static")
    return WrapUp(
        (
            Finding(
                f"As trained the network needs {number(whole.memory / 1e3)} kB; with static INT8 "
                f"{number(small.memory / 1e3)} kB, and as many answers are right.",
                "from mlsys.viz.views.edge import EdgeScene\n"
                "EdgeScene().update('as trained', 'int8-static').values['memory']",
            ),
            Finding(
                f"With half of its channels it computes {percent(half.measured.macs / whole.measured.macs)} of the "
                f"operations in {percent(half.objectives[1] / whole.objectives[1])} of the time.",
            ),
            Finding(
                f"With nine of ten weights at zero it computes as much as before, in "
                f"{percent(holes.objectives[1] / whole.objectives[1])} of the time.",
            ),
        ),
        (
            "Count activations and weights: what is counted as the size of a network is often only the weights.",
            "Cut structures if time and memory count; zeros help only where format and kernels know of them.",
            "A slower clock saves energy only with a lower voltage, and only while leakage is small.",
        ),
    )


def _of(cut: str, precision: str = "fp32", clock: str = "full", budget: float = 100) -> EdgePoint:
    return chosen(cut, precision, clock, budget)[0]


def _activations(point: EdgePoint) -> float:
    return point.measured.activation_bytes / 1e3


def _weights(point: EdgePoint) -> float:
    return point.measured.weight_bytes / 1e3


def _operations(draw: Draw) -> Question:
    cut = draw.pick("operations", (25, 75))
    label, left = f"{cut} % of channels cut", 1 - cut / 100
    whole, half = _of(WHOLE).measured.macs, _of(label).measured.macs
    share = 100 * half / whole
    return NumberQuestion(
        "operations",
        f"{'A quarter' if cut == 25 else 'Three quarters'} of the channels of both convolutions are cut. The "
        "first convolution reads one channel, the second what the first makes, the classifier what the second makes; "
        "they have 112,896, 903,168 and 15,680 "
        "multiply-accumulates. How many per cent of the operations are left?",
        f"The first convolution and the classifier keep {left:g} of their operations, the second keeps {left:g} of its "
        f"inputs and of its outputs, {left**2:g} in all: {half:,} of {whole:,}, {number(share)} %.",
        setting={"cut": label, "precision": "fp32"},
        answer=share,
        unit="%",
        most=100.0,
        hint="Which of the three layers lose inputs and outputs, and which only one of them?",
        slips=((100 * left, "That would be so if each layer lost outputs alone. What does the second one read?"),
               (100 * left**2, "That holds for a layer between two that are cut. What of the first and the last?")),
    )  # fmt: skip


def _one_step(draw: Draw) -> Question:
    cut, budget = draw.pick("one step", _BUDGETS)
    formats = {"FP16": "fp16", "Dynamic INT8": "int8-dynamic", "Static INT8": "int8-static"}
    taken = {name: _of(cut, precision).memory / 1e3 for name, precision in formats.items()}
    fits = [name for name in taken if taken[name] <= budget]
    wanted = fits if len(fits) == 1 else [name for name in taken if name not in fits]
    state = "As trained" if cut == WHOLE else f"With {cut}"
    hints = {
        "FP16": "Every value takes two bytes where it took four. What is half of the bar?",
        "Dynamic INT8": "It stores the weights of the classifier in 8 bits, and leaves what in FP32?",
        "Static INT8": "Every weight and every activation takes one byte where it took four. What of the bar stays?",
    }
    return ChoiceQuestion(
        "one-step",
        f"{state}, the network takes {number(_of(cut).memory / 1e3)} kB in FP32 and does not fit into {budget} kB. "
        f"Only the number format may change. Which one is {'enough' if wanted is fits else 'not enough'}?",
        f"Dynamic INT8 stores the weights of the classifier in 8 bits and leaves convolutions and activations in "
        f"FP32: {number(taken['Dynamic INT8'])} kB. FP16 comes to {number(taken['FP16'])} kB, static INT8 to "
        f"{number(taken['Static INT8'])} kB; {budget} kB are allowed.",
        setting={"cut": cut, "precision": "int8-dynamic", "budget": budget},
        choices=tuple(Choice(name, hint, wanted == [name]) for name, hint in hints.items()),
    )


def _half_format(draw: Draw) -> Question:
    cut = draw.pick("half format", _HALVED)
    whole, half = _of(cut), _of(cut, "fp16")
    ratio = half.objectives[1] / whole.objectives[1]
    return ChoiceQuestion(
        "half-format",
        f"Set “{cut}”. FP16 halves every byte. What did it do to the time of one inference on the processor of this "
        "measurement?",
        f"It took {times(ratio)} the time: {number(half.objectives[1])} ms for {number(whole.objectives[1])} ms. This "
        "library has few kernels for FP16 on a CPU and converts between formats; bytes were not what held it.",
        setting={"cut": cut, "precision": "fp16"},
        choices=(
            Choice("It takes about half the time: half of the bytes move", "Look at how little of the bar is the "
                   "memory's. What could halving it save?", ratio < 0.7),
            Choice("It takes about as long", "The bars differ by more than what is noise here.", 0.7 <= ratio <= 1.2),
            Choice("It takes longer, but less than twice as long", "Set either format, and divide the time with FP16 "
                   "by the other.", 1.2 < ratio < 2),
            Choice("It takes more than twice as long", "Set FP32 as well: how long did this network take with it?",
                   ratio >= 2),
        ),
    )  # fmt: skip


def _set(draw: Draw) -> Question:
    cut, precision = draw.pick("set cut", tuple(CUTS)), draw.pick("set format", FORMATS)
    clock = draw.pick("set clock", ("half", _SLOW))
    point, full = _of(cut, precision, clock), _of(cut, precision)
    energy = 1e3 * sum(point.energies)
    return NumberQuestion(
        "set",
        f"Set “{cut}”, {precision} and the clock “{clock}”. How many microjoules does one inference take?",
        f"{number(energy)} µJ, against {number(1e3 * sum(full.energies))} µJ at the full clock: what switches costs as "
        "much for each cycle at one voltage and less at a lower one, and what leaks flows for longer.",
        setting={"cut": cut, "precision": precision, "clock": clock},
        answer=energy,
        unit="µJ",
        tolerance=0.03,
        hint="Read the energy beside the lowest bar, and mind the prefix: it stands there in millijoules.",
        slips=((energy / 1e3, "Microjoules are asked for, not millijoules."),),
    )


def _clock(draw: Draw) -> Question:
    cut, clock = draw.pick("clock", _CUT), draw.pick("clock voltage", ("half", _SLOW))
    full, half = _of(cut), _of(cut, clock=clock)
    other = _of(cut, clock="half" if clock == _SLOW else _SLOW)
    change, instead = (sum(point.energies) / sum(full.energies) for point in (half, other))
    voltages = ("at the same voltage", "at 0.8 of the voltage")
    voltage, not_it = voltages if clock == "half" else voltages[::-1]
    return ChoiceQuestion(
        "clock",
        f"Set “{cut}” and halve the clock, {voltage}. What happens to the energy of one inference?",
        f"It comes to {percent(change)}: at one voltage a cycle costs the same at every clock, at a lower one less, "
        f"with the square of the voltage; and leakage flows for longer. {not_it.capitalize()} it would come to "
        f"{percent(instead)}.",
        setting={"cut": cut, "precision": "fp32", "clock": clock},
        choices=(
            Choice("It falls to about half", "Half of the power for twice the time: what is their product?",
                   change < 0.6),
            Choice("It changes by less than a twentieth", "Set either clock and compare the energies. How much longer "
                   "does the red part flow?", 0.95 < change < 1.05),
            Choice("It rises by more than a tenth", "Set either clock and compare the energies. What does a cycle "
                   "cost at the lower voltage?", change > 1.1),
        ),
    )  # fmt: skip


def _twice(draw: Draw) -> Question:
    cut, share, gain = draw.pick(
        "twice", (("50 % of weights zero", "Half of the", "twice"), (HOLES, "Nine of ten", "ten times"))
    )
    whole, holes = _of(WHOLE), _of(cut)
    ratio = holes.objectives[1] / whole.objectives[1]
    return ChoiceQuestion(
        "twice",
        f"“{share} weights of this network are zero, so it runs {gain} as fast.” What is wrong?",
        f"Its shapes are what they were, and so are its {whole.measured.macs:,} multiply-accumulates. Measured were "
        f"{number(holes.objectives[1])} ms for {number(whole.objectives[1])} ms, {times(ratio)} the time.",
        in_app=False,
        choices=(
            Choice("The kernels multiply by zeros like by any number", right=ratio > 0.9),
            Choice("Zeros slow a processor down", "A multiplier takes as long for a zero as for any other number."),
            Choice(NOTHING, "Who would have to know that a weight is zero for its product to be left out?"),
        ),
    )


def _milliwatts(draw: Draw) -> Question:
    fast_at, slow_at = draw.pick("milliwatts", _BOARDS)
    fast, slow = (
        PowerPoint(Q_(clock, "MHz"), Q_(time, "ms"), Q_(energy, "mJ")) for clock, time, energy in (fast_at, slow_at)
    )
    split = split_energy([fast, slow])
    return ChoiceQuestion(
        "milliwatts",
        f"“At {fast_at[0]} MHz a microcontroller draws {number(fast.power)} mW, at {slow_at[0]} MHz "
        f"{number(slow.power)} mW: for a network that takes {fast_at[1]} ms and {slow_at[1]} ms the slower clock is "
        "the more efficient one.” What is wrong?",
        f"An inference takes {fast_at[2]} mJ at the higher clock and {slow_at[2]} mJ at the lower: "
        f"{number(split.static)} mW flow whatever the clock, and for longer; "
        f"the {number(split.dynamic)} mJ of the cycles are the same.",
        in_app=False,
        choices=(
            Choice("Less power for much longer is more energy", right=slow.energy > fast.energy),
            Choice("Power falls with the square of the clock", "At one voltage the switching part falls with the "
                   "clock itself. What is multiplied with what for the energy of an answer?"),
            Choice(NOTHING, "Multiply each power by its time."),
        ),
    )  # fmt: skip


def _highest(draw: Draw) -> Question:
    """Return the question about a correct statement."""
    cut, precision = draw.pick("highest", _CUT), draw.pick("highest format", ("fp32", "int8-dynamic", "int8-static"))
    full, half = _of(cut, precision), _of(cut, precision, clock="half")
    return ChoiceQuestion(
        "highest",
f"“With {cut}, in {precision.upper()}: at one voltage, no clock takes less energy for an inference than the "
        "highest one.” What is wrong?",
        f"Cycles cost the same at each clock, and leakage flows for the shortest time at the highest: here "
        f"{number(1e3 * sum(full.energies))} µJ against {number(1e3 * sum(half.energies))} µJ at half of it.",
        in_app=False,
        choices=(
            Choice("The lowest clock takes least: it draws least power", "Power is not energy; for how long does it "
                   "flow?", sum(half.energies) < sum(full.energies)),
            Choice("All clocks take the same: the cycles are the same", "So are their costs. What else flows while "
                   "they take place?"),
            Choice(NOTHING, right=sum(full.energies) < sum(half.energies)),
        ),
    )  # fmt: skip
