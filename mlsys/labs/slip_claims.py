"""The claims of the lab "find the error": twelve of twenty for each student, made right or wrong by one slip."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlsys import Hardware, constants
from mlsys.formulas import amdahl_speedup, conv2d_macs, decode_rate_ceiling, kv_cache_bytes, ridge_point, training_time
from mlsys.hardware import view
from mlsys.labs.claimed import KINDS, ClaimQuestion
from mlsys.labs.draw import Draw
from mlsys.units import Q_
from mlsys.viz.words import number

__all__ = ["CLAIMS", "CLOUD", "JUDGED", "RIGHT", "claims"]

JUDGED, RIGHT = 12, 3
"""Claims that a student judges, and how many of them are right."""
CLOUD = ("V100", "A100", "H200", "B200", "MI300X", "L4")
"""Devices of the claims, by short name."""
_NVLINK = ("A100", "H200", "B200")
_CPUS = ("EPYC_7742", "EPYC_9654", "Xeon_8380", "Xeon_8480", "Xeon_6248R")
_GENERATIONS = (("H200", "H100"), ("A100", "V100"), ("B200", "H200"))
(SPARSE, FORMAT, SUSTAINED, BOOST, DIRECTIONS, BITS, MACS, BINARY, PREFIX, MACHINE, BATCH, PART, BASE, POWER) = KINDS
_GIB = 2**30 / 1e9


@dataclass(frozen=True)
class _Made:
    """A claim before it is decided whether the slip is made; ``{}`` in its text stands for the value."""

    text: str
    right: float
    wrong: float
    unit: str
    slip: str
    why: str
    hint: str
    setting: dict[str, Any]


def claims(draw: Draw) -> tuple[ClaimQuestion, ...]:
    """Return the claims of one student; three of the twelve are right.

    Examples
    --------
    >>> drawn = claims(Draw("13-find-the-error", "Ada"))
    >>> len(drawn), sum(not claim.slip for claim in drawn)
    (12, 3)
    """
    left = list(_CLAIMS)
    drawn = [left.pop(left.index(draw.pick(f"claim {nth}", left))) for nth in range(JUDGED)]
    right = drawn[:RIGHT]
    return tuple(_claim(name, made(draw), name not in right) for name, made in _CLAIMS.items() if name in drawn)


def _claim(name: str, made: _Made, wrong: bool) -> ClaimQuestion:
    stated = float(number(made.wrong if wrong else made.right).replace(",", ""))
    why = f"{made.why} {_verdict(made, wrong)}"
    gap = "" if made.unit in ("%", "×") else " "
    return ClaimQuestion(
        name,
        f"“{made.text.format(f'{number(stated)}{gap}{made.unit}')}”",
        why,
        setting=made.setting,
        stated=stated,
        answer=made.right,
        unit=made.unit,
        slip=made.slip if wrong else "",
        hint=made.hint,
    )


def _verdict(made: _Made, wrong: bool) -> str:
    slip = made.slip[0].lower() + made.slip[1:] if made.slip[:3] != "MAC" else made.slip
    if wrong:
        return (
            f"The claim is off by a factor of {number(max(made.wrong / made.right, made.right / made.wrong))}: {slip}."
        )
    return f"The slip to fear here was: {slip}."


def _a(name: str) -> str:
    """Return a name with its article, as it is spoken."""
    return f"{'an' if name[0] in 'AHLM' else 'a'} {name}"


def _peak(draw: Draw) -> _Made:
    name, kind = draw.pick("peak device", ("H200", "B200", "MI300X", "L4")), draw.pick("peak format", ("bf16", "int8"))
    chip, ops = Hardware.Cloud[name], "TOP/s" if kind == "int8" else "TFLOP/s"
    dense, sparse = (chip.peak(kind, sparsity).m_as("TFLOP/s") for sparsity in (None, "2:4"))
    return _Made(
        f"A dense network in {kind.upper()} can ask {_a(name)} for {{}} at most.", dense, sparse, ops, SPARSE,
        f"The {name} computes {number(dense)} {ops} of dense {kind.upper()}; {number(sparse)} hold where two of four "
        "weights are zero and the hardware skips them.",
        "A data sheet prints two peaks for one format. Which weights does each of them ask for?",
        {"device": name, "what": "peak", "precision": kind},
    )  # fmt: skip


def _nvlink(draw: Draw) -> _Made:
    name = draw.pick("link device", _NVLINK)
    one = Hardware.Cloud[name].links["NVLink"].per_direction.m_as("GB/s")
    size = draw.pick("link message", (2.7, 4.8, 7.2))
    return _Made(
        f"The {name} sends {size:g} GB to its neighbour over NVLink in {{}} at best.", size / one * 1e3,
        size / (2 * one) * 1e3, "ms", DIRECTIONS,
        f"NVLink of {_a(name)} carries {number(one)} GB/s in one direction, and a message travels in one: "
        f"{number(size / one * 1e3)} ms.",
        "Which way does the message travel, and what moves the other way meanwhile?",
        {"device": name, "what": "links"},
    )  # fmt: skip


def _weights(draw: Draw) -> _Made:
    billions = draw.pick("weights", (13.5, 27.5, 34.5, 41.5))
    size = 2 * billions
    return _Made(
        f"The weights of a model with {billions:g} billion parameters in BF16 take {{}}.", size, size / _GIB, "GB",
        BINARY, f"Two bytes each are {number(size)} GB, or {number(size / _GIB)} GiB of 2³⁰ bytes.",
        "How many bytes does the unit in the sentence stand for, exactly?",
        {"device": "H200", "what": "capacity"},
    )  # fmt: skip


def _convolution(draw: Draw) -> _Made:
    channels, side = draw.pick("channels", (48, 80, 112)), draw.pick("side", (28, 42, 70))
    macs = float(conv2d_macs(1, channels, 2 * channels, side, side, 3, 3).m_as("MAC")) / 1e6
    return _Made(
        f"A convolution of 3 × 3 from {channels} to {2 * channels} channels, {side} × {side} pixels out, costs {{}} an "
        "image.", 2 * macs, macs, "MFLOP", MACS,
        f"{side}² · 9 · {channels} · {2 * channels} are {number(macs)} million MACs, and a MAC is two operations: "
        f"{number(2 * macs)} MFLOP.",
        "What is counted in the sentence, and how many of them make one multiply-accumulate?",
        {"device": "A100", "what": "peak"},
    )  # fmt: skip


def _sparse_ridge(draw: Draw) -> _Made:
    name, kind = draw.pick("ridge device", ("A100", "H200", "MI300X")), draw.pick("ridge format", ("bf16", "int8"))
    chip = Hardware.Cloud[name]
    dense, sparse = (ridge_point(chip.peak(kind, how), chip.memory_bw).m_as("FLOP/byte") for how in (None, "2:4"))
    return _Made(
        f"On {_a(name)}, a dense layer in {kind.upper()} needs {{}} to be bound by arithmetic.", dense, sparse,
        "FLOP/byte", SPARSE,
        f"Dense peak over bandwidth is {number(dense)} FLOP/byte; {number(sparse)} divide the sparse peak.",
        "A ridge point divides two numbers. Is each of them meant for a dense layer?",
        {"device": name, "what": "ridge", "precision": kind},
    )  # fmt: skip


def _format_ridge(draw: Draw) -> _Made:
    name = draw.pick("tf32 device", ("A100", "H200", "B200", "L4"))
    chip = Hardware.Cloud[name]
    right, wrong = (chip.ridge_point(kind).m_as("FLOP/byte") for kind in ("tf32", "bf16"))
    return _Made(
        f"In TF32 the ridge point of {_a(name)} lies at {{}}.", right, wrong, "FLOP/byte", FORMAT,
        f"In TF32 it is {number(right)}, in BF16 {number(wrong)} FLOP/byte: products of TF32 run at half the rate.",
        "Each number format has a peak of its own. Whose ridge is stated?",
        {"device": name, "what": "ridge", "precision": "tf32"},
    )  # fmt: skip


def _port(draw: Draw) -> _Made:
    gigabits, size = draw.pick("port", (25, 40, 400, 800)), draw.pick("checkpoint", (37, 54, 82))
    right, wrong = 8 * size / gigabits, size / gigabits
    return _Made(
        f"A checkpoint of {size} GB leaves through a port of {gigabits} Gbit/s in {{}} at best.", right, wrong, "s",
        BITS, f"{gigabits} Gbit/s are {number(gigabits / 8)} GB/s, so that {size} GB take {number(right)} s.",
        "In which unit is the size given, and in which one the port?",
        {"device": "L4", "what": "links"},
    )  # fmt: skip


def _sweep_time(draw: Draw) -> _Made:
    name = draw.pick("sweep device", ("V100", "A100", "B200", "MI300X"))
    chip = Hardware.Cloud[name]
    right = (chip.memory_capacity / chip.memory_bw).m_as("s")
    return _Made(
        f"The {name} reads its whole memory of {number(chip.memory_capacity.m_as('GB'))} GB once in {{}} at best.",
        right,
        right * 1e3, "s", PREFIX,
        f"{number(chip.memory_capacity.m_as('GB'))} GB at {number(chip.memory_bw.m_as('GB/s'))} GB/s are "
        f"{number(right * 1e3)} ms, which is {number(right)} s.",
        "Divide gigabytes by gigabytes per second. Which unit comes out?",
        {"device": name, "what": "bandwidth"},
    )  # fmt: skip


def _part(draw: Draw) -> _Made:
    share, gain = draw.pick("part", (0.42, 0.58, 0.67, 0.76)), draw.pick("gain", (2.4, 3.2, 4.6))
    right, wrong = amdahl_speedup(share, gain).m_as(""), 1 - share + share * gain
    return _Made(
        f"Attention takes {number(100 * share)}% of the time and becomes {gain:g}× as fast, so the whole becomes {{}} "
        "as fast.", right, wrong, "×", PART,
        f"1 / ({number(1 - share)} + {number(share)} / {gain:g}) = {number(right)}. Weighting the speedups, "
        f"{number(wrong)}, "
        "averages what does not add; times add.",
        "Add up the times before and after. What is their ratio?",
        {"device": "A100", "what": "plan"},
    )  # fmt: skip


def _shorter(draw: Draw) -> _Made:
    before, after = draw.pick("before", (53, 57, 62, 68)), draw.pick("after", (36, 39, 44))
    right, wrong = 100 * (1 - after / before), 100 * (before / after - 1)
    return _Made(
        f"A step that took {before} ms takes {after} ms: {{}} of the time is saved.", right, wrong, "%", BASE,
        f"{before - after} of {before} ms are {number(right)}%. Of the new time they would be {number(wrong)}%, "
        f"which is "
        "how much faster it runs.",
        "A saving is a share of something. Of what?",
        {"device": "A100", "what": "plan"},
    )  # fmt: skip


def _boost(draw: Draw) -> _Made:
    name = draw.pick("cpu", _CPUS)
    chip = Hardware.CPU[name]
    all_cores, one = view(chip).clock, view(chip).boost
    assert all_cores and one
    right = chip.peak("fp32").m_as("TFLOP/s")
    return _Made(
        f"With all {chip.chip('units').m_as(''):.0f} cores at work, an {chip.name} (all cores "
        f"{number(all_cores / 1e9)} GHz, "
        f"one core up to {number(one / 1e9)} GHz) computes {{}} in FP32 at most.",
        right, right * one / all_cores, "TFLOP/s", BOOST,
        f"With all cores at work the clock is {number(all_cores / 1e9)} GHz, and the peak {number(right)} TFLOP/s.",
        "Which clock holds while all cores work? The library knows the peak at that clock.",
        {"device": "A100", "what": "peak"},
    )  # fmt: skip


def _one_user(draw: Draw) -> _Made:
    name, billions = draw.pick("user device", ("A100", "H200", "MI300X")), draw.pick("user model", (8.5, 13.5, 27.5))
    users = draw.pick("users", (12, 24, 48))
    size = Q_(2 * billions, "GB")
    right, wrong = (
        float(decode_rate_ceiling(size, Hardware.Cloud[name].memory_bw, batch=n).m_as("token/s")) for n in (1, users)
    )
    return _Made(
        f"The {name} serves {users} users of a model with {billions:g} billion parameters in BF16 at once. Weights "
        f"alone "
        "allow each of them {} at most.", right, wrong, "token/s", BATCH,
        f"Each step reads {number(2 * billions)} GB of weights and gives each user one token, so a user gets at most "
        f"{number(right)} token/s; {number(wrong)} are those of all {users} together.",
        "How often are the weights read for one token of one user?",
        {"device": name, "what": "bandwidth"},
    )  # fmt: skip


def _day(draw: Draw) -> _Made:
    most, share = draw.pick("power", (5.6, 8.4, 9.8)), draw.pick("load", (0.37, 0.44, 0.53))
    right, wrong = 24 * most * share, 24 * most
    return _Made(
        f"A server draws {most:g} kW at full load, and {number(100 * share)}% of that on average; it uses {{}} a day.",
        right, wrong, "kWh", SUSTAINED,
        f"24 h of {number(most * share)} kW on average are {number(right)} kWh; {number(wrong)} would be a day at "
        f"full load.",
        "Energy is a power times a time. Which power holds for that long?",
        {"device": "H200", "what": "plan"},
    )  # fmt: skip


def _cache(draw: Draw) -> _Made:
    short, factor = draw.pick("context", (1700, 2900, 3700)), draw.pick("context factor", (3, 4, 6))
    sizes = [kv_cache_bytes(32, 8, 128, tokens, Q_(2, "byte")).m_as("MB") for tokens in (short, short * factor)]
    right, wrong = sizes[1], sizes[0] * factor**2
    return _Made(
        f"The key-value cache of a model takes {number(sizes[0])} MB for {short:,} tokens, and {{}} for "
        f"{short * factor:,}.",
        right, wrong, "MB", POWER,
        f"Each token leaves one key and one value behind, so that {factor} times the tokens take {factor} times the "
        f"room, "
        f"{number(right)} MB. The scores of attention grow with the square.",
        "What does one more token add to the cache, early and late in a text?",
        {"device": "A100", "what": "capacity"},
    )  # fmt: skip


def _resolution(draw: Draw) -> _Made:
    small, factor = draw.pick("pixels", (112, 144, 160)), draw.pick("pixel factor", (1.5, 2.5, 3.0))
    right, wrong = factor**2, factor
    return _Made(
        f"A convolutional network that gets images of {small * factor:.0f} instead of {small} pixels a side does "
        f"{{}} the "
        "work.", right, wrong, "×", POWER,
        f"Every layer slides over {factor:g}² = {number(right)} times as many positions.",
        "An image has two sides. How many positions does a filter visit?",
        {"device": "A100", "what": "peak"},
    )  # fmt: skip


def _hbm_power(draw: Draw) -> _Made:
    flow = draw.pick("flow", (0.85, 1.3, 1.55))
    energy = constants.ENERGY_HBM2_PJ_PER_BIT
    right = (energy * Q_(flow, "TB/s")).m_as("W")
    bit = float(energy.m_as("pJ/bit"))
    return _Made(
        f"Reading HBM2 costs {number(bit)} pJ a bit, so a stream of {flow:g} TB/s takes {{}}.", right, right / 8,
        "W", BITS,
        f"{flow:g} TB/s are {number(8 * flow)} Tbit/s, at {number(bit)} pJ each {number(right)} W.",
        "Multiply an energy by a rate: are both for the same piece of data?",
        {"device": "V100", "what": "bandwidth"},
    )  # fmt: skip


def _training(draw: Draw) -> _Made:
    billions, tokens = draw.pick("trained", (2.7, 6.5, 12.5)), draw.pick("tokens", (260, 340, 430))
    name, chips, share = (
        draw.pick("trainer", ("A100", "H200")),
        draw.pick("chips", (24, 48, 72)),
        draw.pick("mfu", (0.36, 0.41)),
    )
    peak = Hardware.Cloud[name].peak("bf16")
    right, wrong = (
        float(training_time(Q_(billions, "Gparam"), tokens * 1e9, chips, rate).m_as("day"))
        for rate in (share * peak, peak)
    )
    return _Made(
        f"Training {billions:g} billion parameters on {tokens} billion tokens takes {chips} {name}s, which keep up "
        f"{number(100 * share)}% of their dense BF16 peak, {{}}.", right, wrong, "days", SUSTAINED,
        f"6 · {billions:g}e9 · {tokens}e9 FLOP at {number(share)} of {chips} · {number(peak.m_as('TFLOP/s'))} "
        f"TFLOP/s take "
        f"{number(right)} days.",
        "Six operations for each parameter and token. At which rate are they done?",
        {"device": name, "what": "peak", "precision": "bf16"},
    )  # fmt: skip


def _array(draw: Draw) -> _Made:
    edge, clock = draw.pick("edge", (24, 48, 72, 144)), draw.pick("clock", (0.65, 0.85, 1.1))
    right = 2 * edge**2 * clock / 1e3
    return _Made(
        f"A systolic array of {edge} × {edge} cells at {clock:g} GHz reaches {{}} when every cell works in every "
        f"cycle.", right,
        right / 2, "TOP/s", MACS,
        f"{edge}² cells do one MAC a cycle each, two operations: {number(right)} TOP/s.",
        "What does a cell do in one cycle, and how many operations is that?",
        {"device": "A100", "what": "peak", "precision": "int8"},
    )  # fmt: skip


def _generation(draw: Draw) -> _Made:
    name, other = draw.pick("generation", _GENERATIONS)
    right, wrong = (Hardware.Cloud[each].memory_bw.m_as("GB/s") for each in (name, other))
    return _Made(
        f"The memory of {_a(name)} delivers {{}} at most.", right, wrong, "GB/s", MACHINE,
        f"The {name} has {number(right)} GB/s, the {other} {number(wrong)} GB/s.",
        "Look the machine up, with its whole name: the library knows both it and its neighbours.",
        {"device": name, "what": "bandwidth"},
    )  # fmt: skip


def _small_weights(draw: Draw) -> _Made:
    millions = draw.pick("small weights", (11.7, 25.6, 44.5, 60.2))
    return _Made(
        f"Quantised to INT8, the weights of a network with {millions:g} million parameters take {{}}.", millions,
        4 * millions, "MB", FORMAT,
        f"One byte each is {number(millions)} MB; {number(4 * millions)} MB are those of FP32.",
        "How many bytes has one element of the format that the sentence names?",
        {"device": "A100", "what": "capacity"},
    )  # fmt: skip


_CLAIMS: dict[str, Callable[[Draw], _Made]] = {
    "peak": _peak, "nvlink": _nvlink, "weights": _weights, "convolution": _convolution, "sparse-ridge": _sparse_ridge,
    "format-ridge": _format_ridge, "port": _port, "sweep": _sweep_time, "part": _part, "shorter": _shorter,
    "boost": _boost, "one-user": _one_user, "day": _day, "cache": _cache, "resolution": _resolution,
    "hbm-power": _hbm_power, "training": _training, "array": _array, "generation": _generation,
    "small-weights": _small_weights,
}  # fmt: skip
CLAIMS = tuple(_CLAIMS)
"""Names of all claims."""
