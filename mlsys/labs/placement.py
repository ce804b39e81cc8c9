"""The lab on placement. Every number in a question or an answer is planned here."""

from functools import cache, partial
from itertools import pairwise

from mlsys.formatting import significant
from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.planner.placement import example
from mlsys.planner.placement.costs import Placed, price
from mlsys.tables import Table
from mlsys.viz.views.placement import MEMORY, pipeline_of, scenario_of
from mlsys.viz.views.view import number, percent, times

MEMORIES = (512, 1024, 1300, 1800, 2048, 2300, 2560, MEMORY)
SPEEDS = (3.0, 5.0, 6.0, 7.0)
"""Speeds of the NPU that the questions ask about."""
_TRANSFERS = ((22.0, 14.0, 0.14), (18.0, 15.0, 0.13), (24.0, 16.0, 0.11), (21.0, 14.0, 0.15))  # MB, GB/s, ms
_BUDGETS = (  # link divided by, MB in the NPU, speed of the NPU, mJ; several plans come within a tenth of the best
    (8, 1400, 0.75, 65), (8, 1900, 0.75, 65), (8, 2200, 0.75, 55), (8, 2200, 1.25, 52),
    (16, 1900, 0.75, 52), (16, 2200, 0.75, 65), (16, 2200, 1.25, 52), (32, 2200, 0.75, 65), (32, 1900, 0.75, 70),
)  # fmt: skip
SMALL, SLOW = 1800, 1 / 32
_ON_NPU = ((0.25, 1), (0.25, 2), (1.0, 8), (1.0, 16), (2.0, 16), (2.0, 32))
"""Speeds of the NPU, and divisors of the bandwidth, for which it keeps its stages or loses them."""
_LATE = (1.0, 2.0, 3.0)
"""Speeds of the NPU at which slow links make the fastest device for each stage a bad choice."""
_SAVED = ((1.0, 32), (2.0, 32), (1.0, 16), (2.0, 16), (0.25, 8))
"""Speeds of the NPU, and divisors of the bandwidth, for which the least energy takes more time, or the same."""
_LOST = (0.2, 0.6, 0.9)  # of what the NPU saves: ends of the ranges that the prediction offers


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    link, memory, npu = _small(draw)
    usual, small = pipeline_of(link, npu=npu), pipeline_of(link, memory, npu).best
    links = {0.25: ", and the links have a quarter of its bandwidth", 0.5: ", and the links have half of its bandwidth"}
    speed = _speed(npu)
    kept = [stage.stage for stage in small.stages if stage.choice.device == "npu"]
    return ChoiceQuestion(
        "prediction",
        f"The NPU is {speed}{links.get(link, '')}. With {MEMORY:,} MB in it the fastest plan runs four stages in a row "
        f"on the NPU and the others on the GPU, and takes {_ms(usual.best)}; the GPU alone takes {_ms(usual.gpu)}. "
        f"Now the NPU has {memory:,} MB, and the four no longer fit together. How long does the fastest plan take?",
        f"{_ms(small)}: {', '.join(kept) or 'no stage'} on the NPU, everything else on the GPU, with "
        f"{small.switches} changes of device. A stage that leaves takes its gain along, and where it stood between "
        "two that stay, it costs two more transfers.",
        choices=tuple(
            Choice(f"{low:.3g} ms to {high:.3g} ms", right=low <= float(small.latency) < high)
            for low, high in ranges(draw)
        ),
    )


def ranges(draw: Draw) -> tuple[tuple[float, float], ...]:
    """Return the ranges of time, in milliseconds, that the prediction offers."""
    link, _, npu = _small(draw)
    usual = pipeline_of(link, npu=npu)
    least, most = float(usual.best.latency), float(usual.gpu.latency)
    ends = [significant(least + share * (most - least), 2) for share in _LOST]
    return tuple(pairwise((significant(least, 3), *ends, significant(most, 3))))


def _small(draw: Draw) -> tuple[float, int, float]:
    """Return links, memory and speed of the NPU in the prediction."""
    divisor, npu = draw.pick("predicted link", (4, 2, 1)), draw.pick("predicted npu", (1.0, 2.0, 3.0))
    return 1 / divisor, draw.pick("predicted memory", (512, 1024, SMALL, 2560)), npu


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    link, memory, npu = _small(draw)
    return {"link": link, "memory": memory, "npu": npu, "goal": "latency"}


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    factories = (_half, _slow_links, _faster, _frugal, _energy, _units, _each_fastest, _never_slower)
    return tuple(make(draw) for make in factories)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task: a plan within an energy budget."""
    divisor, memory, speed, energy = draw.pick("budget", _BUDGETS)
    scenario = scenario_of(1 / divisor, memory, speed)
    return (
        Design(
            "plan",
            f"The links have 1/{divisor} of the example's bandwidth, the NPU has {memory:,} MB and {speed:g} times the "
            f"example's speed, and one image may take {energy} mJ. Place the seven stages by hand so that the pipeline "
            "takes the least time. The tables on this page say what stages and links of the example cost.",
            tuple(
                Knob(stage.name, stage.name.capitalize(), tuple((o.device.upper(), o.device) for o in stage.choices))
                for stage in scenario.stages
            ),
            partial(_placed, divisor, memory, speed, energy),
        ),
    )


def costs() -> tuple[Table, Table]:
    """Return what each stage costs on each device of the example, and what each link does.

    Examples
    --------
    >>> stages, links = costs()
    >>> stages.rows[2][-1]
    '7.4 ms, 8.1 mJ, 1240 MB'
    """
    data, names = example(), ("cpu", "gpu", "npu")
    rows = []
    for stage in data["stages"]:
        profiles = [stage["profiles"].get(name) for name in names]
        cells = [
            f"{each['latency_ms']:g} ms, {each['energy_mj']:g} mJ, {each['memory_mb']:g} MB" if each else "—"
            for each in profiles
        ]
        rows.append([stage["name"], f"{stage['output_mb']:g}", *cells])
    hops = [
        [f"{hop['from'].upper()} to {hop['to'].upper()}", f"{hop['latency_ms']:g}", f"{hop['bandwidth_gb_s']:g}",
         f"{hop['energy_mj_per_mb']:g}"]
        for hop in data["links"]
    ]  # fmt: skip
    heads = ("stage", "output, MB", *(name.upper() for name in names))
    return (
        Table("Time, energy and memory of each stage by device, in the example", heads, rows),
        Table("Links of the example", ("from, to", "wait, ms", "bandwidth, GB/s", "energy, mJ/MB"), hops),
    )


def _placed(divisor: int, memory: int, speed: float, energy: int, **devices: str) -> Built:
    return _planned(divisor, memory, speed, energy, tuple(devices.items()))


@cache
def _planned(divisor: int, memory: int, speed: float, energy: int, devices: tuple[tuple[str, str], ...]) -> Built:
    scenario, where = scenario_of(1 / divisor, memory, speed), dict(devices)
    placed = price(
        scenario,
        [next(option for option in s.choices if option.device == where[s.name]) for s in scenario.stages],
    )
    assert placed is not None  # every link of the example is there
    held = float(placed.memory.get("npu", 0))
    faults = (
        (held > memory, f"The stages on the NPU take {held:,.0f} MB, more than {memory:,} MB."),
        (placed.energy > energy, f"That is more than {energy} mJ."),
    )
    fault = next((text for broken, text in faults if broken), "")
    return Built(float(placed.latency), f"The plan takes {_ms(placed)} and {_mj(placed)}.", fault)


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    whole, small, slow = pipeline_of(), pipeline_of(memory=SMALL), pipeline_of(link=SLOW)
    return WrapUp(
        (
            Finding(
                f"The best plan takes {_ms(whole.best)}, {times(float(whole.gpu.latency / whole.best.latency))} as "
                f"fast as the GPU alone, with {whole.best.switches} changes of device.",
                "from mlsys.planner.placement import example, plan\nfloat(plan(example()).best.latency)",
            ),
            Finding(
                f"With {SMALL:,} MB in the NPU it changes device {small.best.switches} times and takes "
                f"{_ms(small.best)}.",
                f"from mlsys.viz.views.placement import pipeline_of\npipeline_of(memory={SMALL}).best.switches",
            ),
            Finding(
                f"Over links of 1/32 of the bandwidth the fastest device for each stage takes {_ms(slow.fastest)}; "
                f"the best plan stays on the GPU, {_ms(slow.best)}.",
            ),
        ),
        (
            "A stage costs its run and the way its data take; only their sum can be compared.",
            "A stage that has to leave a device between two that stay costs two more transfers.",
            "Time and energy part when moving is slow but cheap: say which one you want.",
        ),
    )


def _speed(npu: float) -> str:
    return "as fast as in the example" if npu == 1 else f"{npu:g} times as fast as in the example"


def _ms(placed: Placed) -> str:
    return f"{number(float(placed.latency))} ms"


def _mj(placed: Placed) -> str:
    return f"{number(float(placed.energy))} mJ"


def _situation(npu: float, divisor: int) -> str:
    links = f"the links to 1/{divisor} of their bandwidth" if divisor > 1 else "the links to their full bandwidth"
    return f"Set the speed of the NPU to × {npu:g} and {links}"


def _half(draw: Draw) -> Question:
    npu, divisor = draw.pick("half", _ON_NPU)
    placed = pipeline_of(1 / divisor, npu=npu)
    kept = [stage.stage for stage in placed.best.stages if stage.choice.device == "npu"]
    own = next(s.choice.latency for s in pipeline_of().best.stages if s.stage == "backbone")
    gpu = next(s.choice.latency for s in placed.gpu.stages if s.stage == "backbone")
    if kept:
        why = f"all on the GPU would take {_ms(placed.gpu)}, and what the four save there pays for both transfers."
    elif npu < 1:
        why = (
            f"on the NPU the backbone alone would take {number(float(own) / npu)} ms, on the GPU it takes "
            f"{number(float(gpu))} ms, and the other stages fare alike."
        )
    else:
        why = f"with the four on the NPU it would take {_ms(placed.fastest)}: the transfers cost more than they save."
    return ChoiceQuestion(
        "half",
        f"{_situation(npu, divisor)}, with {MEMORY:,} MB in the NPU. Which stages does the plan for the least time run "
        "on the NPU?",
        f"{len(kept) or 'None'}: the plan takes {_ms(placed.best)}; {why}",
        setting={"npu": npu, "link": 1 / divisor, "memory": MEMORY, "goal": "latency"},
        choices=(
            Choice("None of them", "Compare the best plan with all on the GPU, the lowest bar.", not kept),
            Choice("The same four as in the example", "What do the four save against the GPU at this speed, and what "
                   "do the two transfers cost over these links?", len(kept) == 4),
            Choice("Only the longest, the backbone", "How long does the backbone take on either device? And how many "
                   "transfers does one stage need, how many do four in a row?", kept == ["backbone"]),
        ),
    )  # fmt: skip


def _slow_links(draw: Draw) -> Question:
    npu = draw.pick("slow links", _LATE)
    slow = pipeline_of(link=SLOW, npu=npu)
    late = float(slow.fastest.latency / slow.best.latency) - 1
    return ChoiceQuestion(
        "slow-links",
        f"{_situation(npu, 32)}. How much longer than the best plan takes a pipeline that gives each stage to the "
        "device that runs it fastest?",
        f"{percent(late)}: {_ms(slow.fastest)} against {_ms(slow.best)}. The rule leaves the transfers out, and two of "
        "them alone take longer than the NPU saves.",
        setting={"link": SLOW, "npu": npu, "memory": MEMORY, "goal": "latency"},
        choices=(
            Choice("It is no longer", "Read the two upper bars of the lower chart.", late <= 0),
            Choice("By less than a tenth", "Divide the two upper bars of the lower chart.", 0 < late < 0.1),
            Choice("Between a tenth and a quarter", "What do the two transfers take at this bandwidth, and what does "
                   "the NPU save?", 0.1 <= late <= 0.25),
            Choice("More than a third", "How much of the GPU's time do the stages save on the NPU, at its speed?",
                   late > 1 / 3),
        ),
    )  # fmt: skip


def _faster(draw: Draw) -> Question:
    speed = draw.pick("faster", SPEEDS)
    usual, four = pipeline_of(), pipeline_of(npu=speed)
    gain = float(usual.best.latency / four.best.latency)
    return NumberQuestion(
        "four-times",
        f"Make the NPU {speed:g} times as fast, at the example's links and memory. How many times as fast is "
        "the pipeline?",
        f"{times(gain)}: {_ms(usual.best)} becomes {_ms(four.best)}. What runs on the GPU, and the transfers, take as "
        "long as before: Amdahl's law holds for pipelines as well.",
        setting={"npu": speed, "link": 1.0, "memory": MEMORY, "goal": "latency"},
        answer=gain,
        unit="times",
        tolerance=0.05,
        hint="Divide the two times of the best plan. Which parts of the time line did not shrink?",
        slips=((speed, "That would be so if every stage ran on the NPU and no data moved."),),
    )


def _frugal(draw: Draw) -> Question:
    speed, link = draw.pick("least energy npu", SPEEDS), draw.pick("frugal link", (2, 4, 8, 16))
    placed = pipeline_of(npu=speed, link=1 / link, goal="efficiency")
    usual = pipeline_of(link=1 / link)
    return NumberQuestion(
        "frugal",
        f"Ask for the least energy, with an NPU {speed:g} times as fast and links at 1/{link} of their bandwidth. How "
        "many milliseconds does the plan take?",
        f"{_ms(placed.best)}, for {_mj(placed.best)}; the fastest plan for the NPU of the example takes "
        f"{_ms(usual.best)} and {_mj(usual.best)}.",
        setting={"npu": speed, "link": 1 / link, "memory": MEMORY, "goal": "efficiency"},
        answer=float(placed.best.latency),
        unit="ms",
        tolerance=0.02,
        hint="Set the four controls as the question says, and read the sentence below the picture.",
        slips=((float(placed.best.energy), "That is its energy in millijoules."),),
    )


def _energy(draw: Draw) -> Question:
    npu, divisor = draw.pick("least energy", _SAVED)
    quick, frugal = (pipeline_of(1 / divisor, npu=npu, goal=goal).best for goal in ("latency", "efficiency"))
    same = quick.energy == frugal.energy
    solution = (
        f"Both plans run the same four stages on the NPU, in {_ms(quick)} and for {_mj(quick)}: the NPU is fast enough "
        "to pay for the transfers, and it spends less energy on each of its stages."
        if same else
        f"The plan goes back to the NPU: {_mj(frugal)} instead of {_mj(quick)}, in {_ms(frugal)} instead of "
        f"{_ms(quick)}. In this example moving data is slow but cheap, and the NPU spends less on each stage."
    )  # fmt: skip
    return ChoiceQuestion(
        "energy",
        f"{_situation(npu, divisor)}, and ask for the least energy instead of the least time. What changes?",
        solution,
        setting={"link": 1 / divisor, "goal": "efficiency", "npu": npu, "memory": MEMORY},
        choices=(
            Choice("Nothing: the fastest plan is the most frugal", "Set either goal and compare the millijoules.",
                   same),
            Choice("Less energy for more time", "Set either goal and compare the times of the two plans.",
                   quick.energy > frugal.energy and frugal.latency > quick.latency),
            Choice("Less energy and less time", "Could a plan be faster than the fastest?",
                   frugal.latency < quick.latency),
        ),
    )  # fmt: skip


def _units(draw: Draw) -> Question:
    megabytes, rate, wait = draw.pick("units", _TRANSFERS)
    right, wrong = wait + megabytes / rate, wait + megabytes / rate / 1000
    return ChoiceQuestion(
        "units",
        f"A text says: “The resized image is {megabytes:g} MB and the link carries {rate:g} GB/s after a wait of "
        f"{wait:g} ms, so the transfer takes {wrong:.3f} ms.” What is wrong?",
        f"A megabyte over a gigabyte a second takes a millisecond, not a microsecond: {wait:g} + {megabytes:g} / "
        f"{rate:g} = {right:.3g} ms, {times(right / wrong)} the printed time.",
        in_app=False,
        choices=(
            Choice("The milliseconds: it divided by 1,000 once more", right=right > 10 * wrong),
            Choice("The wait belongs to both directions", "The data go one way here.", abs(right - 2 * wait) < 0.01),
            Choice(NOTHING, "How long does 1 MB take at 1 GB/s?", abs(right - wrong) < 0.01),
        ),
    )


def _each_fastest(draw: Draw) -> Question:
    npu = draw.pick("each fastest", _LATE)
    near, slow = pipeline_of(npu=npu), pipeline_of(link=SLOW, npu=npu)
    return ChoiceQuestion(
        "each-fastest",
        f"A text says of an NPU that is {_speed(npu)}: “Profile every stage on every device and give it to the "
        "fastest: no placement can be faster.” What is wrong?",
        f"It forgets the links. At the example's the rule happens to be right, {_ms(near.fastest)}; at 1/32 of their "
        f"bandwidth it takes {_ms(slow.fastest)} where {_ms(slow.best)} are possible.",
        in_app=False,
        choices=(
            Choice("Stages must not be profiled one by one", "What would be missing if each is timed on its own?",
                   near.best.latency > near.fastest.latency),
            Choice("It leaves out the way of the data", right=slow.best.latency < slow.fastest.latency),
            Choice(NOTHING, "Try slow links, at a 32nd of their bandwidth.", slow.best.latency >= slow.fastest.latency),
        ),
    )  # fmt: skip


def _never_slower(draw: Draw) -> Question:
    """Return the question about a correct statement."""
    npu, divisor = draw.pick("never slower", (1.0, 2.0, 3.0)), draw.pick("never slower link", (1, 2, 4))
    ladder = [pipeline_of(1 / divisor, size, npu).best.latency for size in MEMORIES]
    falls = all(more <= less for less, more in pairwise(ladder))
    links = "the example's links" if divisor == 1 else f"links of 1/{divisor} of the example's bandwidth"
    return ChoiceQuestion(
        "never-slower",
        f"A text says of an NPU that is {_speed(npu)}, over {links}: “More memory in the NPU never makes the best plan "
        "slower, though it may leave it as it is.” What is wrong?",
        f"Every plan that fits still fits when there is more room. From {MEMORIES[0]:,} to {MEMORY:,} MB the best "
        f"one goes from {float(ladder[0]):.4g} to {float(ladder[-1]):.4g} ms, in steps.",
        in_app=False,
        choices=(
            Choice("A larger memory is slower", "The scenario has no such cost. What does more room forbid?",
                   not falls),
            Choice("Each megabyte makes it faster", "Move the memory's slider from 2,048 to 2,300 MB.",
                   len(set(ladder)) == len(ladder)),
            Choice(NOTHING, right=falls and len(set(ladder)) < len(ladder)),
        ),
    )  # fmt: skip
