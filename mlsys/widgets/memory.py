"""The lab on the memory wall. Every number in a question or an answer is computed here."""

from __future__ import annotations

from mlsys import Hardware
from mlsys.formulas import bytes_in_flight, flight_time, kv_cache_bytes
from mlsys.hardware import Device
from mlsys.models.access import strided_access
from mlsys.units import Q_
from mlsys.viz.views.memory import MemoryScene, memory_view
from mlsys.viz.views.roofline import device_name
from mlsys.viz.views.view import number, percent, times
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider
from mlsys.widgets.questions import Choice, ChoiceQuestion, NumberQuestion, Question

__all__ = ["MemoryLab"]

_WARPS: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 48, 64)
_STRIDES = (1, 2, 4, 8, 16, 32)
_PRECISIONS = ("fp64", "fp32", "fp16", "int8")
_NONE = "none"
_LINE = 128  # bytes that a warp of four-byte words asks for


def _machines() -> dict[str, Device]:
    """Return the NVIDIA GPUs whose memory's latency and number of units are recorded, by short name."""
    chosen = {
        device_name(device): device
        for device in Hardware.Cloud
        if device.vendor == "NVIDIA" and device.level()._latency is not None and "units" in device._chip
    }
    return dict(sorted(chosen.items()))


def _needed_warps(device: Device) -> float:
    """Return how many warps must have one line in flight on each unit."""
    level = device.level()
    flying = bytes_in_flight(level.bandwidth, level.latency).m_as("byte")
    return float(flying / device.chip("units").m_as("") / _LINE)


class MemoryLab(Lab):
    """Predict, explore and check what keeps a memory busy.

    Examples
    --------
    >>> lab = MemoryLab()
    >>> lab.predict("8")
    >>> lab.view.values["bound by"]
    'latency'
    """

    id = "lab-03-memory-wall"
    title = "Lab 3: What keeps a memory busy?"
    purpose = (
        "A memory has a bandwidth and a latency, and a program gets the first only if it asks for enough "
        "while it waits for the second. Find out how much is enough, what a stride wastes, "
        "and what a newer machine changes."
    )
    scenario = {"warps": 32, "stride": 1, "precision": "fp32", "device": "A100"}  # noqa: RUF012 (read only)

    def __init__(self) -> None:
        self.machines = _machines()
        super().__init__()

    def _prediction(self) -> Question:
        chip = Hardware.Cloud.A100
        level, needed = chip.level(), _needed_warps(chip)
        right = f"about {needed:.0f}"
        because = (
            f"{number(level.bandwidth)} GB/s for {number(level.latency)} ns are "
            f"{number(bytes_in_flight(level.bandwidth, level.latency).to('kB'))} kB in flight, or "
            f"{number(needed)} lines of "
            f"{_LINE} bytes on each of {chip.chip('units').magnitude:.0f} units."
        )
        choices = tuple(
            Choice(
                text,
                (f"You predicted {text}, and so it is: " if text == right else f"You predicted {text}; it is {right}: ")
                + because,
                text == right,
            )
            for text in ("1", "8", right, "512")
        )
        return ChoiceQuestion(
            "prediction",
            f"Each warp of an A100 loads one line of {_LINE} bytes from memory and waits for it. How many "
            "warps must wait "
            "on each multiprocessor at any time for the memory to deliver its full bandwidth?",
            choices=choices,
        )

    def _controls(self) -> tuple[Control, ...]:
        names = list(self.machines)
        return (
            slider(
                "stride", "Workload", "Stride between lanes (elements)", [(f"{s}", s) for s in _STRIDES], 2,
                "How many elements apart neighbouring lanes of a warp read",
            ),
            choice("precision", "Workload", "Element", [(p.upper(), p) for p in _PRECISIONS], "fp32",
                   "Format of what each lane reads"),
            slider(
                "warps", "Mapping", "Loads in flight on each unit (warps)", [(f"{w}", w) for w in _WARPS], 1,
                "How many warps wait for one load each",
            ),
            choice("device", "Hardware", "Machine", names, "A100", "The machine in front"),
            choice("other", "View", "Compare with", [_NONE, *names], _NONE, "A second machine, dashed, behind"),
        )  # fmt: skip

    def _make_scene(self) -> MemoryScene:
        return MemoryScene()

    def _parameters(self, **values: object) -> dict[str, object]:
        device, other = (str(values.pop(name)) for name in ("device", "other"))
        second = None if other == _NONE else self.machines[other]
        return {**values, "device": self.machines[device], "other": second}

    def _questions(self) -> tuple[Question, ...]:
        return (_in_flight(), _stride(), _next_chip(), _wider(), _distance(), _stacked(), _kv_cache())


def _in_flight() -> Question:
    chip = Hardware.Cloud.H100
    level = chip.level()
    flying = bytes_in_flight(level.bandwidth, level.latency).m_as("kB")
    sum_ = f"{number(level.bandwidth)} GB/s times {number(level.latency)} ns is {number(flying)} kB"
    return NumberQuestion(
        "in-flight",
        "Choose the H100. How many kilobytes must be in flight on the whole machine for the full bandwidth?",
        answer=flying,
        unit="kB",
        tolerance=0.03,
        explain=lambda given, right: f"{sum_}." if right else f"{sum_}; you gave {number(given)}.",
    )


def _stride() -> Question:
    four, two = (strided_access(8, Q_(width, "byte")) for width in (4, 2))
    sum_ = (
        f"At stride 8 a warp of FP32 touches {four.sectors} sectors of 32 bytes and uses "
        f"{percent(four.efficiency)}; in FP16 "
        f"{two.sectors} sectors, and still {percent(two.efficiency)}: half the sectors for half the bytes."
    )
    return ChoiceQuestion(
        "stride",
        "At stride 8 and many warps, you halve the elements from FP32 to FP16. "
        "What happens to the useful bandwidth, in bytes for each second?",
        choices=(
            Choice("It doubles", sum_, bool(two.efficiency > four.efficiency)),
            Choice("It stays", sum_, bool(two.efficiency == four.efficiency)),
            Choice("It halves", sum_, bool(two.efficiency < four.efficiency)),
        ),
    )


def _next_chip() -> Question:
    old, new, warps = Hardware.Cloud.A100, Hardware.Cloud.H100, 8
    before, after = (memory_view(chip, warps).values["moved"] for chip in (old, new))
    gain, bandwidth = (after / before).m_as(""), (new.memory_bw / old.memory_bw).m_as("")
    sum_ = (
        f"With {warps} loads on each unit both wait for latency: {number(before)} and {number(after)} GB/s, "
        f"{times(gain)}. "
        f"The H100 has more units and a slightly shorter latency; its {times(bandwidth)} bandwidth goes unused."
    )
    return ChoiceQuestion(
        "next-chip",
        f"A program keeps {warps} loads in flight on each unit, stride 1, FP32. How much more bandwidth does "
        "it get when "
        "it moves from an A100 to an H100?",
        choices=(
            Choice(f"{times(bandwidth)}, as the bandwidths", sum_, abs(gain - bandwidth) < 0.01),
            Choice(f"{times(gain)}", sum_, gain < 0.9 * bandwidth),
            Choice("None: latency did not change", sum_, abs(gain - 1) < 0.01),
        ),
    )


def _wider() -> Question:
    chip, warps = Hardware.Cloud.A100, 16
    narrow, wide = (memory_view(chip, warps, precision=p).values for p in ("fp32", "fp64"))
    gain = (wide["useful"] / narrow["useful"]).m_as("")
    sum_ = (
        f"In FP32 {number(narrow['in flight'])} kB are in flight, in FP64 {number(wide['in flight'])} kB: each "
        "warp asks for "
        f"twice as much while it waits, and gets {times(gain)}. No warp was added."
    )
    return ChoiceQuestion(
        "wider",
        f"With {warps} warps on each unit of an A100 at stride 1, each lane loads eight bytes instead of four. "
        "What happens to the bandwidth?",
        choices=(
            Choice("It doubles: twice the bytes are in flight", sum_, gain > 1.5),
            Choice("It stays: there are as many warps", sum_, gain < 1.2),
        ),
    )


def _distance() -> Question:
    level = Hardware.Cloud.A100.level()
    way = flight_time(Q_(5, "cm"), 0.5)
    share = (way / level.latency).m_as("")
    sum_ = (
        f"Five centimetres at half the speed of light take {number(way.to('ps'))} ps, {percent(share)} of the "
        f"{number(level.latency)} ns. The rest is queues, tags, the controller, and rows being closed, opened "
        "and sensed."
    )
    return ChoiceQuestion(
        "distance",
        "“Main memory is slow because it is far from the processor: electrical signals need time.” What is wrong?",
        in_app=False,
        choices=(
            Choice("The way explains less than a hundredth of the latency", sum_, share < 0.01),
            Choice(
                "Signals on a board are slower than half the speed of light", f"Somewhat, not a hundred times. {sum_}"
            ),
            Choice("Nothing", sum_),
        ),
    )


def _stacked() -> Question:
    gpu, cpu = Hardware.Cloud.A100.level(), Hardware.CPU.Xeon_8480.level()
    wait, speed = (gpu.latency / cpu.latency).m_as(""), (gpu.bandwidth / cpu.bandwidth).m_as("")
    sum_ = (
        f"As its processor sees it, the HBM of an A100 answers after {number(gpu.latency)} ns, the DDR5 of a "
        "Xeon after "
        f"{number(cpu.latency)} ns: {times(wait)} later, with {times(speed)} the bandwidth."
    )
    return ChoiceQuestion(
        "stacked",
        "“HBM sits beside the chip, so a load from it takes less time than one from DDR.” What is wrong?",
        in_app=False,
        choices=(
            Choice("It buys bandwidth and energy, not latency", sum_, wait > 1),
            Choice("HBM does not sit beside the chip", f"It does. {sum_}"),
            Choice("Nothing", sum_, wait < 1),
        ),
    )


def _kv_cache() -> Question:
    sizes = [kv_cache_bytes(32, 32, 128, tokens, Q_(2, "byte")).m_as("GB") for tokens in (2048, 4096)]
    scores = [32 * tokens**2 * 2 / 1e9 for tokens in (2048, 4096)]
    sum_ = (
        f"From 2,048 to 4,096 tokens the cache grows from {number(sizes[0])} to {number(sizes[1])} GB, "
        f"{times(sizes[1] / sizes[0])}; the scores of one layer, if written down, from {number(scores[0])} to "
        f"{number(scores[1])} GB, {times(scores[1] / scores[0])}."
    )
    return ChoiceQuestion(
        "kv-cache",
        "“The key-value cache grows with the square of the context.” What is wrong?",
        in_app=False,
        choices=(
            Choice("It grows in proportion; the attention scores grow with the square", sum_, sizes[1] == 2 * sizes[0]),
            Choice("It does not grow at all", sum_),
            Choice("Nothing", sum_),
        ),
    )
