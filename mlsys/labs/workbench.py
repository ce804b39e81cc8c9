"""Formulas of the workbench of the lab "find the error": named fields in, a sentence with the result out."""

from collections.abc import Callable
from dataclasses import dataclass

from mlsys.formulas import (
    amdahl_speedup,
    arithmetic_peak,
    conv2d_macs,
    decode_rate_ceiling,
    gemm_macs,
    kv_cache_bytes,
    training_time,
)
from mlsys.labs.typed import read_number
from mlsys.units import Q_
from mlsys.viz.words import number

__all__ = ["FORMULAS", "Blank", "Formula"]

_GIB = 2**30 / 1e9


@dataclass(frozen=True)
class Blank:
    """A field of a formula: its label with the unit, and the value it begins with."""

    label: str
    value: float
    whole: bool = False


@dataclass(frozen=True)
class Formula:
    """A formula with its fields; ``compute`` returns a sentence from their values.

    Examples
    --------
    >>> FORMULAS["amdahl"].answer("50", "10")
    'The whole becomes 1.82 times as fast.'
    >>> FORMULAS["amdahl"].answer("50", "0")
    Traceback (most recent call last):
        ...
    ValueError: Speedup of that part must be above 0
    """

    label: str
    function: str
    blanks: tuple[Blank, ...]
    compute: Callable[..., str]

    def answer(self, *typed: str) -> str:
        """Return the result in words.

        Raises
        ------
        ValueError
            If a field holds no number above 0, or no whole one where one is needed; the message names it.
        """
        values: list[float] = []
        for blank, text in zip(self.blanks, typed, strict=True):
            value = read_number(text)
            if not value > 0:
                raise ValueError(f"{blank.label} must be above 0")
            if blank.whole and value != int(value):
                raise ValueError(f"{blank.label} must be a whole number")
            values.append(int(value) if blank.whole else value)
        return self.compute(*values)


def _macs(macs: float) -> str:
    return f"{number(macs / 1e6)} million MACs, {number(2 * macs / 1e6)} MFLOP."


def _size(gb: float) -> str:
    return f"{number(gb)} GB, which is {number(gb / _GIB)} GiB or {number(8 * gb)} Gbit."


def _training(billions: float, tokens: float, chips: int, rate: float) -> str:
    time = training_time(Q_(billions, "Gparam"), tokens * 1e9, chips, Q_(rate, "TFLOP/s"))
    return f"{number(time.m_as('day'))} days."


FORMULAS: dict[str, Formula] = {
    "amdahl": Formula(
        "Speedup of the whole", "amdahl_speedup",
        (Blank("Share of the time (%)", 60), Blank("Speedup of that part", 5)),
        lambda share, gain: f"The whole becomes {number(amdahl_speedup(share / 100, gain))} times as fast.",
    ),
    "transfer": Formula(
        "Time to move data", "message_time", (Blank("Size (GB)", 20), Blank("Rate (GB/s)", 50)),
        lambda size, rate: f"{number(1e3 * size / rate)} ms at best; at {number(rate)} Gbit/s it would be "
        f"{number(8e3 * size / rate)} ms.",
    ),
    "weights": Formula(
        "Size of weights", "weight_bytes", (Blank("Parameters (billion)", 10), Blank("Bits for each", 16)),
        lambda billions, bits: _size(billions * bits / 8),
    ),
    "convolution": Formula(
        "Work of a convolution", "conv2d_macs",
        (Blank("Channels in", 32, True), Blank("Channels out", 64, True), Blank("Pixels a side, out", 30, True),
         Blank("Edge of the filter", 3, True)),
        lambda inside, out, side, edge: _macs(float(conv2d_macs(1, inside, out, side, side, edge, edge).m_as("MAC"))),
    ),
    "product": Formula(
        "Work of a dense layer", "gemm_macs",
        (Blank("Rows", 64, True), Blank("Inputs", 1000, True), Blank("Outputs", 1000, True)),
        lambda rows, inside, out: _macs(float(gemm_macs(rows, out, inside).m_as("MAC"))),
    ),
    "cache": Formula(
        "Size of a key-value cache", "kv_cache_bytes",
        (Blank("Layers", 32, True), Blank("Key-value heads", 8, True), Blank("Width of a head", 128, True),
         Blank("Tokens", 1000, True), Blank("Bytes of an element", 2)),
        lambda layers, heads, width, tokens, size: _size(
            kv_cache_bytes(layers, heads, width, tokens, Q_(size, "byte")).m_as("GB")
        ),
    ),
    "token": Formula(
        "Token rate of one user", "decode_rate_ceiling", (Blank("Weights (GB)", 20), Blank("Bandwidth (GB/s)", 1000)),
        lambda size, rate: f"{number(decode_rate_ceiling(Q_(size, 'GB'), Q_(rate, 'GB/s')))} token/s at most.",
    ),
    "training": Formula(
        "Time of a training run", "training_time",
        (Blank("Parameters (billion)", 5), Blank("Tokens (billion)", 100), Blank("Chips", 10, True),
         Blank("Rate kept up by each (TFLOP/s)", 100)),
        _training,
    ),
    "array": Formula(
        "Peak of an array of multipliers", "arithmetic_peak",
        (Blank("Cells a side", 10, True), Blank("Clock (GHz)", 1)),
        lambda edge, clock: f"{number(arithmetic_peak(edge**2, Q_(1, 'MAC/cycle'), Q_(clock, 'GHz')).m_as('TFLOP/s'))} "
        "TOP/s, two operations for each MAC.",
    ),
    "power": Formula(
        "Power of a stream", "", (Blank("Energy (pJ for each bit)", 5), Blank("Rate (TB/s)", 1)),
        lambda energy, rate: f"{number(8 * energy * rate)} W.",
    ),
}  # fmt: skip
"""Formulas by name; ``function`` is the one in ``mlsys.formulas`` that computes the same."""
