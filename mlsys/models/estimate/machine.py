"""Snapshot of a machine for the calibrated model, with defaults for values that are not on record.

Recorded values come from :mod:`mlsys.hardware.view`, so recorders and what-ifs see each of them. The
few numbers in their place are this model's own, and :attr:`Snapshot.assumed` names those it used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.hardware.technology import Technology
from mlsys.hardware.view import LevelView, MachineView
from mlsys.models.estimate.mcu import instructions, requantised_at_once
from mlsys.precision import PRECISIONS
from mlsys.provenance import as_recorded, comparing

# Formats that a product falls back to where a machine has no unit for its own:
# integers and narrow floats are widened, never narrowed.
_WIDER = {
    "int1": ("int4", "int8", "fp16", "bf16", "fp32"),
    "int4": ("int8", "fp16", "bf16", "fp32"),
    "fp4": ("fp8", "fp16", "bf16", "fp32"),
    "fp6": ("fp8", "fp16", "bf16", "fp32"),
    "fp8": ("fp16", "bf16", "fp32"),
    "int8": ("int16", "fp16", "bf16", "fp32"),
    "int16": ("fp32", "fp16", "bf16"),
    "fp16": ("bf16", "fp32", "int16"),
    "bf16": ("fp16", "fp32", "int16"),
    "tf32": ("fp32", "bf16", "fp16"),
    "fp32": ("tf32", "fp64", "bf16", "fp16"),
    "fp64": (),
}


# Part of a copy's rate at which products read weights from HBM. Of the largest matrices with up to 16 rows an A100
# attains 0.82 of the peak, an H100 0.81 to 0.85, an H200 and a B200 0.82 (vLLM, SGLang, TensorRT-LLM), cards with GDDR
# 0.9, as copies do on either: stacks take more bytes in flight than a loop that also multiplies keeps.
READ_FROM_STACKS = 0.9
# Schedulers of vector units as wide as they issue, a warp each cycle: every load of an operand takes the place of a
# multiplication. Those of Volta, Turing and GA100 are half as wide, and issue the loads in between; Maxwell and Pascal
# issue two at once (recalled). The same product of FP32 by cuBLAS attains 0.97 of an A100's peak, and of an RTX 4070
# Ti's 0.82 at its base clock and 0.73 at its boost clock (Yinghan-Li/YHs_Sample, issue 4): the middle. In blocks of
# 128 x 128 layers attain 0.76 of an H100's peak and 0.97 of a V100's, batches 0.94 of an A100's (sitar-lab/NeuSight).
ONE_FOR_ALL, LEFT_TO_MULTIPLY = r"GA10[2-7B]|Ada|Hopper|Blackwell", 0.8
# Kinds of machines whose peak is what their power pays for: the maker states both together (a Cloud AI 100 does 149
# TOPS at 12 W and 363 at 69 W, of which the energy of an A100's operation would pay for a seventh and a third). A GPU's
# peak is that of a clock which dense products do not keep.
ONE_CLOCK = ("NPU", "TPU")
# Multipliers along one edge of a neural processor's usual array: an array of T × T takes T values
# of each operand a cycle, so that what lies beside it delivers a byte for every T operations in bytes, whatever the
# main memory does. Arrays of phones have edges of 32 (recalled), those of servers 128. Of a chip whose main memory is
# its host's the reuse in its SRAM is unknown (an Edge TPU); the link decides.
USUAL_EDGE = 64.0
# Defaults for values that are not on record.
USUAL_NODE, USUAL_CLOCK, MATRIX_OVER_VECTOR = 7.0, 1e9, 16.0
NO_VECTORS = f"vector units of 1/{MATRIX_OVER_VECTOR:.0f} of the matrix rate"


@dataclass(frozen=True)
class Unread:
    """A number that is read on first use."""

    of: Callable[[], float]


def read_now(value: Any) -> Any:
    """Return a number, reading it now if it is unread."""
    return value.of() if type(value) is Unread else value


@dataclass(frozen=True)
class Snapshot:
    """The rates of one machine, or of a share of it, in one number format.

    A rate of a device is read when it is used, under the what-ifs active then: a recorder sees the facts that a model
    uses, and no others.

    Attributes
    ----------
    name, computes_in
        The machine, and the format whose peak counts.
    matmul, vector
        Dense peak rates of matrix products and of element-wise work, FLOP/s.
    bandwidth
        Of the main memory, byte/s.
    cache, cache_bandwidth
        Capacity of the last level before the main memory, byte, and its rate, byte/s;
        zero where there is none, or none is known. A neural processor's is that which feeds its multipliers.
    units, clock
        Streaming multiprocessors, compute units or cores, and cycles per second.
    power
        Thermal design power, W; infinite where unknown, and where the peak is what it pays for.
    link, link_of_many
        Fastest link to a peer, and among more than two, which no bridge joins; byte/s in one direction, zero for none.
    array
        Rows of one systolic array; 1 for machines that have none.
    node
        Name of the process in nm, which is no length but orders generations; 7 where unknown.
    bits
        Bits of the compute format: 19 for TF32, the width that its multipliers process.
    each_cycle, over_vector
        Kind of unit that multiplies: FLOP per cycle of one unit, as if on 16 bits, and the matrix rate over the vector
        rate, infinite where no vector rate is on record. Part of the design: a what-if on a rate keeps the kind of
        unit.
    team, joining
        Threads that share the layers of one sample and wait for each other, and the factor by which starting and
        joining them lengthens each launch; 1 for others. See :mod:`mlsys.models.estimate.thread_scaling`.
    reading
        Fraction of a copy's rate at which products read their weights: below 1 from HBM.
    issuing
        Fraction of a vector unit's issue slots left to a product's multiplications; 1 where it issues faster than it
        multiplies.
    controller
        Instructions per cycle of each microcontroller core, for cores that do the multiplications themselves; 0 for
        other machines. Part of the design, too.
    requantised
        Results that such a core requantises and stores at a time.
    assumed
        Defaults that were used in place of recorded values, in words.
    """

    name: str
    computes_in: str
    matmul: float
    vector: float
    bandwidth: float
    cache: float
    cache_bandwidth: float
    units: float
    clock: float
    power: float
    link: float
    array: float
    node: float
    bits: float
    each_cycle: float = 0.0
    over_vector: float = 1.0
    controller: float = 0.0
    requantised: float = 1.0
    reading: float = 1.0
    issuing: float = 1.0
    team: float = 1.0
    joining: float = 1.0
    link_of_many: float = 0.0
    assumed: tuple[str, ...] = ()

    def __getattribute__(self, name: str) -> Any:
        return read_now(object.__getattribute__(self, name))

    def __getstate__(self) -> dict[str, Any]:
        """Return the machine as plain numbers at their current values, for pickling."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def changed(self, **rates: Any) -> Snapshot:
        """Return the machine with other rates: numbers, or functions without arguments that are evaluated on use.

        The kind of its units is unchanged; call :meth:`designed` on the result to derive it from the new rates.
        """
        other = object.__new__(Snapshot)
        other.__dict__.update(self.__dict__)
        other.__dict__.update({name: Unread(rate) if callable(rate) else rate for name, rate in rates.items()})
        return other

    def designed(self) -> Snapshot:
        """Return the machine with the kind of its units derived from its recorded rates."""

        @cache
        def each_cycle() -> float:
            with as_recorded():
                return self.matmul * self.bits / 16 / (self.units * self.clock)

        @cache
        def over_vector() -> float:
            if NO_VECTORS in self.assumed:
                return float("inf")
            with as_recorded():
                return self.matmul / self.vector

        return self.changed(each_cycle=each_cycle, over_vector=over_vector)

    def as_numbers(self) -> Snapshot:
        """Return the machine as plain numbers at their current values."""
        return replace(self)

    def on_one_core(self) -> Snapshot:
        """Return a microcontroller restricted to one core, as interpreters use it; other machines unchanged."""
        if not self.controller:
            return self
        with comparing():
            cores = self.units
        return self.share(1 / cores) if cores > 1 else self

    def share(self, compute: float, bandwidth: float = 1.0) -> Snapshot:
        """Return the machine with a share of its units and of its bandwidth.

        Parameters
        ----------
        compute, bandwidth
            Above 0, at most 1.
        """
        for argument, value in (("compute", compute), ("bandwidth", bandwidth)):
            if not 0 < value <= 1:
                raise ArgumentError(
                    f"share(): `{argument}` must be a fraction above 0 and at most 1, got {value!r}. "
                    "Give the part of the machine that works, such as 1/4 for one core of four"
                )
        return self.changed(
            matmul=lambda: self.matmul * compute,
            vector=lambda: self.vector * compute,
            units=lambda: max(1.0, self.units * compute),
            bandwidth=lambda: self.bandwidth * bandwidth,
            cache_bandwidth=lambda: self.cache_bandwidth * compute,
        )


def snapshot(machine: MachineView) -> Snapshot:
    """Return the snapshot of a machine, for products in the view's precision.

    Parameters
    ----------
    machine
        A view; the view of a vector unit leaves the matrix units idle, as FP32 code without TF32 does.

    Raises
    ------
    ArgumentError
        If the device has no main-memory bandwidth on record, or no peak in a wide enough format.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware import view
    >>> a100 = snapshot(view(Hardware.Cloud.A100, "fp16"))
    >>> f"{a100.matmul / 1e12:.0f} TFLOP/s, {a100.bandwidth / 1e9:.0f} GB/s, {a100.units:.0f} units"
    '312 TFLOP/s, 2039 GB/s, 108 units'
    >>> v100 = snapshot(view(Hardware.Cloud.V100, "bf16"))
    >>> v100.computes_in, v100.assumed
    ('fp16', ())
    """
    main = machine.main
    if not main.has("bandwidth"):
        raise ArgumentError(
            f"snapshot(): `machine` {machine.name} has no bandwidth of its {main.name} on record, and no time "
            "of a transfer follows without. Add it, with its source, to the device's YAML file"
        )
    computes_in, matmul = _matmul(machine)
    shared = _shared(machine)
    wired = {link.kind: partial(link.require, "bandwidth") for link in machine.links if link.has("bandwidth")}
    links = list(wired.values())
    among_many = [read for kind, read in wired.items() if "bridge" not in kind]
    vectors = _vectors(machine)
    bits = 19.0 if computes_in == "tf32" else float(PRECISIONS[computes_in])

    def feeding() -> float:
        recorded = (_last(shared).bandwidth or 0.0) if shared else 0.0
        with as_recorded(), comparing():
            borrowed = bool(shared and links) and main.require("bandwidth") <= _largest(links)()
        if recorded or machine.device.kind != "NPU" or borrowed:
            return recorded
        return matmul() * bits / 8 / USUAL_EDGE

    limited = machine.has("tdp") and machine.device.kind not in ONE_CLOCK
    read: dict[str, Any] = {
        "matmul": matmul,
        "vector": (lambda: _largest(vectors)()) if vectors else lambda: matmul() / MATRIX_OVER_VECTOR,
        "bandwidth": lambda: main.require("bandwidth"),
        "cache": (lambda: _last(shared).require("capacity")) if shared else 0.0,
        "cache_bandwidth": feeding,
        "units": (lambda: machine.require("units")) if machine.has("units") else 1.0,
        "clock": (lambda: machine.require("clock")) if machine.has("clock") else USUAL_CLOCK,
        "power": (lambda: machine.require("tdp")) if limited else float("inf"),
        "link": (lambda: _largest(links)()) if links else 0.0,
        "link_of_many": (lambda: _largest(among_many)()) if among_many else 0.0,
        "node": (lambda: machine.require("node")) if machine.has("node") else USUAL_NODE,
    }
    matrix = machine.unit != "vector" and machine.has_rate(computes_in, "matrix")

    read["controller"] = lambda: 0.0 if matrix else instructions(machine, matmul)
    missing = {
        NO_VECTORS: bool(vectors),
        "1 unit": machine.has("units"),
        f"a clock of {USUAL_CLOCK / 1e9:.0f} GHz": machine.has("clock"),
        "no limit of power": machine.has("tdp"),
        f"a process of {USUAL_NODE:.0f} nm": machine.has("node"),
    }
    rates: dict[str, Any] = {name: Unread(value) if callable(value) else value for name, value in read.items()}
    stacked = machine.device.kind == "GPU" and main.technology is Technology.HBM
    return Snapshot(
        name=machine.name,
        computes_in=computes_in,
        array=float(machine.systolic_array.rows) if machine.systolic_array else 1.0,
        reading=READ_FROM_STACKS if stacked else 1.0,
        requantised=requantised_at_once(machine, bits),
        issuing=LEFT_TO_MULTIPLY if re.search(ONE_FOR_ALL, machine.device.architecture) else 1.0,
        bits=bits,
        assumed=tuple(words for words, recorded in missing.items() if not recorded),
        **rates,
    ).designed()


def _matmul(machine: MachineView) -> tuple[str, Callable[[], float]]:
    """Return the compute format of products, and a function that reads their rate."""
    wanted = machine.precision
    wider = (wanted, *_WIDER[wanted])
    for candidate in wider:
        rate = replace(machine, precision=candidate)
        if rate.has("rate"):
            return candidate, partial(rate.require, "rate")
    if machine.unit is not None:
        return _matmul(replace(machine, unit=None))
    if wanted in ("fp16", "bf16", "int16") and machine.has_rate("int8"):
        return wanted, lambda: (machine.rate_of("int8") or 0.0) / 2  # an 8-bit unit takes at least two passes
    raise ArgumentError(
        f"snapshot(): `machine` {machine.name} has no rate for {wanted}; it has {', '.join(machine.precisions)}; "
        f"tried {', '.join(wider)} of {', '.join(PRECISIONS)}"
    )


def _vectors(machine: MachineView) -> list[Callable[[], float]]:
    """Return functions that read the rates of element-wise work: FP32 if on record, else all of the vector units."""
    names = ["fp32"] if machine.has_rate("fp32", "vector") else machine.precisions
    rates = (replace(machine, precision=name, unit="vector") for name in names)
    return [partial(rate.require, "rate") for rate in rates if rate.has("rate")]


def _shared(machine: MachineView) -> list[LevelView]:
    """Return the on-chip levels shared by all units; a microcontroller has none in front of its SRAM."""
    if machine.device.kind == "MCU":
        return []
    return [level for level in (*machine.outer, *machine.inner) if level.scope == "device" and level.has("capacity")]


def _last(shared: Sequence[LevelView]) -> LevelView:
    """Return the largest of the given levels, the last before the main memory."""
    with comparing():
        return shared[0] if len(shared) == 1 else max(shared, key=lambda level: level.require("capacity"))


def _largest(rates: Sequence[Callable[[], float]]) -> Callable[[], float]:
    """Return a function that reads the highest of some rates; the others are only compared with it."""
    with comparing():
        return rates[0] if len(rates) == 1 else max(rates, key=lambda read: read())
