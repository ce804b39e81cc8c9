"""The lab on the memory wall. Every number in a question or an answer is computed here."""

import math
from functools import cache, partial

from mlsys import Hardware
from mlsys.formulas import bytes_in_flight, flight_time, kv_cache_bytes
from mlsys.hardware import Device
from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.models.access import strided_access
from mlsys.units import Q_
from mlsys.viz.views.memory import MemoryState
from mlsys.viz.views.view import number, percent, times

_MACHINES = ("V100", "A100", "H100")
_LOADS = {"fp64": 8, "fp32": 4, "fp16": 2, "int8": 1}
_AT_ONCE = (1, 2, 3, 4)
_WAITING = (2, 3, 5, 6, 7, 9, 11, 12, 13, 15, 17, 19, 22, 26)
_LANES = 32
_LINE = 4 * _LANES  # bytes that a warp of four-byte words requests


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    device, precision = _predicted(draw)
    chip, line = Hardware.Cloud[device], _LANES * _LOADS[precision]
    level, needed = chip.level(), _needed_warps(chip, line)
    return NumberQuestion(
        "prediction",
        f"Each lane of a warp loads {_LOADS[precision]} bytes, {line} bytes side by side for the {_LANES} lanes, and "
        f"waits for them. How many such warps must wait on each multiprocessor of the {device} at any time for its "
        "memory to deliver its full bandwidth?",
        f"{number(level.bandwidth)} GB/s for {number(level.latency)} ns are "
        f"{number(bytes_in_flight(level.bandwidth, level.latency).to('kB'))} kB in flight, or {number(needed)} times "
        f"{line} bytes on each of {chip.chip('units').m_as('count'):.0f} units.",
        answer=needed,
        unit="warps",
        tolerance=0.3,
        least=0.1,
    )


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    device, precision = _predicted(draw)
    return {"warps": 8, "stride": 1, "precision": precision, "device": device}


def _predicted(draw: Draw) -> tuple[str, str]:
    """Return the machine and the element of the prediction."""
    return draw.pick("predicted device", ("V100", "H100")), draw.pick("predicted element", ("fp64", "fp32", "fp16"))


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    factories = (_in_flight, _stride, _next_chip, _wider, _distance, _stacked, _kv_cache, _longer)
    return tuple(make(draw) for make in factories)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task: enough bandwidth with the fewest registers."""
    rate, share = draw.pick("rate", (390, 460, 540, 620)), draw.pick("moved share", (0.72, 0.83, 0.93))
    stride, most = draw.pick("layout", (2, 3)), draw.pick("most warps", (13, 15, 19))
    return (
        Design(
            "registers",
            f"Neighbouring lanes of a kernel read elements {stride} apart. It needs {rate} GB/s of useful data, may "
            f"move no "
            f"more than {percent(share)} of the memory's bandwidth, and no more than {most} warps of each unit may "
            f"wait at "
            "once. Every load in flight holds a register until it is answered: choose machine, element, warps and "
            "loads "
            "so that the whole machine holds the fewest bytes of registers for it.",
            (
                Knob("device", "Machine", tuple((name, name) for name in _MACHINES)),
                Knob(
                    "precision",
                    "Element",
                    tuple((f"{size} byte{'' if size == 1 else 's'}", name) for name, size in _LOADS.items()),
                ),
                Knob("loads", "Independent loads of each warp", tuple((f"{loads}", loads) for loads in _AT_ONCE)),
                Knob("warps", "Warps that wait on each unit", tuple((f"{warps}", warps) for warps in _WAITING)),
            ),
            partial(_built, rate, share, stride, most),
        ),
    )


@cache
def _built(
    rate: float, share: float, stride: int, most: int, device: str, precision: str, loads: int, warps: int
) -> Built:
    chip = Hardware.Cloud[device]
    state = MemoryState(chip, warps * loads, stride, precision)
    useful, moved, full = (each.m_as("GB/s") for each in (state.useful, state.moved, chip.memory_bw))
    held = (state.in_flight * state.efficiency).m_as("kB")  # a register takes what the lane wants, not its sector
    summary = (
        f"Registers of {number(held)} kB wait while {number(moved)} GB/s move, {percent(moved / full)} of the "
        f"{device}'s, "
        f"of which {number(useful)} are used."
    )
    faults = (
        (useful < rate, f"{rate} GB/s are wanted."),
        (moved > share * full, f"No more than {percent(share)} may be moved."),
        (warps > most, f"No more than {most} warps may wait."),
    )
    return Built(held, summary, next((text for broken, text in faults if broken), ""))


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    a100, h100, server = Hardware.Cloud.A100, Hardware.Cloud.H100, Hardware.CPU.Xeon_8480.level()
    flying = [bytes_in_flight(chip.level().bandwidth, chip.level().latency).to("kB") for chip in (a100, h100)]
    four, two = (strided_access(8, Q_(width, "byte")) for width in (4, 2))
    way = (flight_time(Q_(5, "cm"), 0.5) / a100.level().latency).to("")
    return WrapUp(
        (
            Finding(
                f"{number(flying[0])} kB must be in flight on an A100, {number(_needed_warps(a100))} warps on each "
                f"unit, and {number(flying[1])} kB on an H100.",
                "from mlsys import Hardware\nfrom mlsys.formulas import bytes_in_flight\n"
                "memory = Hardware.Cloud.A100.level()\n"
                "bytes_in_flight(memory.bandwidth, memory.latency).to('kB')",
            ),
            Finding(
                f"At stride 8 a warp of FP32 touches {four.sectors} sectors and one of FP16 {two.sectors}; "
                f"both use "
                f"{percent(four.efficiency)} of what is moved.",
            ),
            Finding(
                f"Distance explains {percent(way)} of the latency; HBM answers "
                f"{times((a100.level().latency / server.latency).to(''))} as late as the DDR5 of a server.",
            ),
        ),
        (
            "Bandwidth needs bytes in flight: more warps, wider loads or more independent loads each.",
            "A stride wastes what is moved; no amount of parallelism gives it back.",
            "While a program waits for latency, a machine with more bandwidth is worth little to it.",
        ),
    )


def _needed_warps(device: Device, line: int = _LINE) -> float:
    """Return the warps per unit, each with one line of so many bytes in flight, that saturate the bandwidth."""
    level = device.level()
    flying = bytes_in_flight(level.bandwidth, level.latency).m_as("byte")
    return float(flying / device.chip("units").m_as("") / line)


def _in_flight(draw: Draw) -> Question:
    device = draw.pick("in-flight", ("V100", "H100"))
    level = Hardware.Cloud[device].level()
    share = draw.pick("in-flight share", (0.35, 0.55, 0.72, 0.75, 0.85))
    full = bytes_in_flight(level.bandwidth, level.latency).m_as("kB")
    flying = share * full
    return NumberQuestion(
        "in-flight",
        f"Choose the {device}. How many kilobytes must be in flight on the whole machine for {percent(share)} "
        "of its bandwidth?",
        f"{percent(share)} of {number(level.bandwidth)} GB/s times {number(level.latency)} ns is {number(flying)} kB.",
        setting={"device": device},
        answer=flying,
        unit="kB",
        tolerance=0.03,
        hint="Multiply its bandwidth by its latency, both written at the roof, and mind the prefixes.",
        slips=((flying * 1000, "Kilobytes are asked for, not bytes."),
               (flying / 1000, "Kilobytes are asked for, not megabytes."),
               (full, "That much is in flight at the full bandwidth.")),
    )  # fmt: skip


def _stride(draw: Draw) -> Question:
    stride = draw.pick("stride", (6, 22, 24))
    four, two = (strided_access(stride, Q_(width, "byte")) for width in (4, 2))
    return ChoiceQuestion(
        "stride",
        f"At stride {stride} and many warps, you halve the elements from FP32 to FP16. "
        "What happens to the useful bandwidth, in bytes for each second?",
        f"At stride {stride} a warp of FP32 touches {four.sectors} sectors of 32 bytes and uses "
        f"{percent(four.efficiency)} of them; in FP16 {two.sectors} sectors and {percent(two.efficiency)}. "
        "The useful share changes only where neighbouring lanes no longer share a sector.",
        setting={"stride": stride, "precision": "fp16", "warps": 64, "device": "V100"},
        choices=(
            Choice("It doubles", "Half the bytes fit into a sector twice; but do twice as many lanes fall into one?",
                   bool(two.efficiency > four.efficiency)),
            Choice("It stays", "Do as many lanes share a sector as before? Count the sectors for either format.",
                   bool(two.efficiency == four.efficiency)),
            Choice("It halves", "Fewer bytes are wanted, and how many are moved for them? Read the last sentence "
                   "below the picture for either format.", bool(two.efficiency < four.efficiency)),
        ),
    )  # fmt: skip


def _next_chip(draw: Draw) -> Question:
    old, new, warps = Hardware.Cloud.A100, Hardware.Cloud.H100, draw.pick("next-chip", (11, 14, 18))
    before, after = (MemoryState(chip, warps, 1, "fp32").moved for chip in (old, new))
    gain, bandwidth = (after / before).m_as(""), (new.memory_bw / old.memory_bw).m_as("")
    return ChoiceQuestion(
        "next-chip",
        f"A program keeps {warps} loads in flight on each unit, stride 1, FP32. How much more bandwidth does it "
        f"get when "
        "it moves from an A100 to an H100?",
        f"With {warps} loads on each unit both wait for latency: {number(before)} and {number(after)} GB/s, "
        f"{times(gain)}. "
        f"The H100 has more units and a slightly shorter latency; its {times(bandwidth)} bandwidth goes unused.",
        setting={"warps": warps, "stride": 1, "precision": "fp32", "device": "A100", "other": "H100"},
        choices=(
            Choice(f"{times(bandwidth)}, as the bandwidths", "Does either point touch the flat part of its line?",
                   abs(gain - bandwidth) < 0.01),
            Choice(f"{times(gain)}, as units and latencies", right=gain < 0.9 * bandwidth),
            Choice("None: latency did not change", "Compare the latencies at the two roofs, and think of how "
                                                   "many units "
                   "there are.", abs(gain - 1) < 0.01),
        ),
    )  # fmt: skip


def _wider(draw: Draw) -> Question:
    chip, warps = Hardware.Cloud.A100, draw.pick("wider", (13, 17, 19, 22))
    narrow, wide = (MemoryState(chip, warps, 1, p) for p in ("fp32", "fp64"))
    gain = (wide.useful / narrow.useful).m_as("")
    return ChoiceQuestion(
        "wider",
        f"With {warps} warps on each unit of an A100 at stride 1, each lane loads 8 bytes instead of 4. "
        "What happens to the bandwidth?",
        f"In FP32 {number(narrow.in_flight)} kB are in flight, in FP64 {number(wide.in_flight)} kB: each "
        f"warp asks "
        f"for twice as much while it waits, and gets {times(gain)}. No warp was added.",
        setting={"warps": warps, "stride": 1, "precision": "fp64", "device": "A100"},
        choices=(
            Choice("It doubles: twice the bytes are in flight", right=gain > 1.5),
            Choice("It stays: there are as many warps", "The axis below counts bytes, not warps.", gain < 1.2),
        ),
    )  # fmt: skip


def _distance(draw: Draw) -> Question:
    level = Hardware.Cloud.A100.level()
    far = draw.pick("distance", (3.5, 6.5, 7.5))
    way = flight_time(Q_(far, "cm"), 0.5)
    share = (way / level.latency).m_as("")
    return ChoiceQuestion(
        "distance",
        "“Main memory is slow because it is far from the processor: electrical signals need time.” What is wrong?",
        f"{far:g} cm at half the speed of light take {number(way.to('ps'))} ps, {percent(share)} of the "
        f"{number(level.latency)} ns. The rest is queues, tags, the controller, and rows being closed, opened "
        "and sensed.",
        in_app=False,
        choices=(
            Choice("The way explains less than a hundredth of the latency", right=share < 0.01),
            Choice(
                "Signals on a board are slower than half the speed of light",
                "Somewhat. How far would they have to travel to fill the whole latency?",
            ),
            Choice(NOTHING, "Divide a few centimetres by the speed of a signal, and the result by the latency."),
        ),
    )


def _stacked(draw: Draw) -> Question:
    gpu, cpu = Hardware.Cloud.A100.level(), Hardware.CPU.Xeon_8480.level()
    wait, speed = (gpu.latency / cpu.latency).m_as(""), (gpu.bandwidth / cpu.bandwidth).m_as("")
    return ChoiceQuestion(
        "stacked",
        "“HBM sits beside the chip, so a load from it takes less time than one from DDR.” What is wrong?",
        f"As its processor sees it, the HBM of an A100 answers after {number(gpu.latency)} ns, the DDR5 of a "
        f"Xeon after "
        f"{number(cpu.latency)} ns: {times(wait)} as late, with {times(speed)} the bandwidth.",
        in_app=False,
        choices=(
            Choice("It buys bandwidth and energy, not latency", right=wait > 1),
            Choice("HBM does not sit beside the chip", "It does, on the same interposer. What does being near shorten, "
                   "and how long was that?"),
            Choice(NOTHING, "Look at the latencies of the two machines in their data: the shorter way is a small part "
                   "of either.", wait < 1),
        ),
    )  # fmt: skip


def _kv_cache(draw: Draw) -> Question:
    short = draw.pick("kv-cache", (1536, 2560, 3500))
    sizes = [kv_cache_bytes(32, 32, 128, tokens, Q_(2, "byte")).m_as("GB") for tokens in (short, 2 * short)]
    scores = [32 * tokens**2 * 2 / 1e9 for tokens in (short, 2 * short)]
    return ChoiceQuestion(
        "kv-cache",
        "“The key-value cache grows with the square of the context.” What is wrong?",
        f"From {short:,} to {2 * short:,} tokens the cache grows from {number(sizes[0])} to {number(sizes[1])} GB, "
        f"{times(sizes[1] / sizes[0])}; the scores of one layer, if written down, from {number(scores[0])} to "
        f"{number(scores[1])} GB, {times(scores[1] / scores[0])}.",
        in_app=False,
        choices=(
            Choice(
                "It grows in proportion; the attention scores grow with the square",
                right=math.isclose(sizes[1], 2 * sizes[0]),
            ),
            Choice("It does not grow at all", "Each new token leaves a key and a value behind."),
            Choice(
                NOTHING, "How many keys does one more token add, when there are few tokens, and when there are many?"
            ),
        ),
    )


def _longer(draw: Draw) -> Question:
    """Return the question about a correct statement."""
    level = Hardware.Cloud.A100.level()
    now, later = (bytes_in_flight(level.bandwidth, factor * level.latency).to("kB") for factor in (1, 2))
    return ChoiceQuestion(
        "longer",
        "“If the latency of a memory doubled and its bandwidth stayed, a program could still get all of the bandwidth; "
        "it would need twice as many bytes in flight.” What is wrong?",
        f"Bandwidth times latency: from {number(now)} to {number(later)} kB on an A100. A long latency is no loss for "
        "who has enough to ask for.",
        in_app=False,
        choices=(
            Choice("A longer latency lowers the bandwidth", "It lowers what one load gets. What if there are "
                                                            "more of them?"),
            Choice("It would need four times as many", "Bytes in flight are bandwidth times latency. Which of the two "
                   "changed?", bool(later > 3 * now)),
            Choice(NOTHING, right=bool(abs(later / now - 2) < 1e-9)),
        ),
    )  # fmt: skip
