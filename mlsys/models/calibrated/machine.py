"""What the calibrated model reads of a machine, and what it takes for granted where nothing is recorded.

Recorded values come from :mod:`mlsys.hardware.view`, so recorders and what-ifs see each of them. The
few numbers in their place are this model's own, and :attr:`Snapshot.assumed` names those it used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlsys.errors import ArgumentError
from mlsys.hardware.view import MachineView
from mlsys.precision import PRECISIONS

__all__ = ["Snapshot", "snapshot"]

# Where a machine has no unit for a format, the product runs on the next one that it has:
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


# In the place of what is not recorded.
USUAL_NODE, USUAL_CLOCK, MATRIX_OVER_VECTOR = 7.0, 1e9, 16.0


@dataclass(frozen=True)
class Snapshot:
    """The numbers of one machine, or of a share of it, in one number format, under the what-ifs that hold.

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
        zero where there is none, or none is known.
    units, clock
        Streaming multiprocessors, compute units or cores, and cycles per second.
    power
        Thermal design power, W; infinite where unknown.
    link
        Fastest link to a peer, byte/s in one direction; zero where there is none.
    array
        Rows of one systolic array; 1 for machines that have none.
    node
        Name of the process in nm, which is no length but orders generations; 7 where unknown.
    bits
        Of the format it computes in: 19 for TF32, whose multipliers see no more.
    assumed
        What was taken for granted for want of a recorded value, in words.
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
    assumed: tuple[str, ...] = ()

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
        return replace(
            self,
            matmul=self.matmul * compute,
            vector=self.vector * compute,
            units=max(1.0, self.units * compute),
            bandwidth=self.bandwidth * bandwidth,
            cache_bandwidth=self.cache_bandwidth * compute,
        )


def snapshot(machine: MachineView, *, peers: bool = True) -> Snapshot:
    """Return what the calibrated model reads of a machine, for products in its precision.

    Parameters
    ----------
    machine
        A view; one of the vector unit leaves the matrix units idle, as FP32 code without TF32 does.
    peers
        Whether it speaks to others; if not, no link is read.

    Raises
    ------
    ArgumentError
        If the twin has no bandwidth of the main memory, or no peak wide enough.

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
    assumed: list[str] = []

    def or_else(amount: float | None, otherwise: float, words: str) -> float:
        if amount is None:
            assumed.append(words)
        return otherwise if amount is None else amount

    main = machine.main
    if not main.has("bandwidth"):
        raise ArgumentError(
            f"snapshot(): `machine` {machine.name} has no bandwidth of its {main.name} on record, and no time "
            "of a transfer follows without. Add it, with its source, to the device's YAML file"
        )
    computes_in, matmul = _matmul(machine)
    cache, cache_bandwidth = _cache(machine)
    vector = or_else(
        _vector(machine), matmul / MATRIX_OVER_VECTOR, f"vector units of 1/{MATRIX_OVER_VECTOR:.0f} of the matrix rate"
    )
    return Snapshot(
        name=machine.name,
        computes_in=computes_in,
        matmul=matmul,
        vector=vector,
        bandwidth=main.require("bandwidth"),
        cache=cache,
        cache_bandwidth=cache_bandwidth,
        units=or_else(machine.units, 1.0, "1 unit"),
        clock=or_else(machine.clock, USUAL_CLOCK, f"a clock of {USUAL_CLOCK / 1e9:.0f} GHz"),
        power=or_else(machine.tdp, float("inf"), "no limit of power"),
        link=max((link.bandwidth or 0.0 for link in machine.links), default=0.0) if peers else 0.0,
        array=float(machine.systolic_array.rows) if machine.systolic_array else 1.0,
        node=or_else(machine.node, USUAL_NODE, f"a process of {USUAL_NODE:.0f} nm"),
        bits=19.0 if computes_in == "tf32" else float(PRECISIONS[computes_in]),
        assumed=tuple(assumed),
    )


def _matmul(machine: MachineView) -> tuple[str, float]:
    """Return the format that products run in, and their rate."""
    wanted = machine.precision
    wider = (wanted, *_WIDER[wanted])
    for candidate in wider:
        rate = machine.rate_of(candidate, machine.unit)
        if rate is not None:
            return candidate, rate
    if machine.unit is not None:
        return _matmul(replace(machine, unit=None))
    if wanted in ("fp16", "bf16", "int16") and (integer := machine.rate_of("int8")):
        return wanted, integer / 2  # a unit for 8 bits takes two passes at least
    raise ArgumentError(
        f"snapshot(): `machine` {machine.name} has no rate for {wanted}; it has {', '.join(machine.precisions)}; "
        f"tried {', '.join(wider)} of {', '.join(PRECISIONS)}"
    )


def _vector(machine: MachineView) -> float | None:
    """Return the rate of element-wise work: that of FP32, or else the highest of the vector units."""
    rate = machine.rate_of("fp32", "vector")
    rates = (machine.rate_of(name, "vector") for name in machine.precisions) if rate is None else (rate,)
    return max((each for each in rates if each is not None), default=None)


def _cache(machine: MachineView) -> tuple[float, float]:
    """Return capacity and rate of the last level on the chip that all units share."""
    shared = [level for level in (*machine.outer, *machine.inner) if level.scope == "device" and level.has("capacity")]
    if not shared:
        return 0.0, 0.0
    last = max(shared, key=lambda level: level.require("capacity"))
    return last.require("capacity"), last.bandwidth or 0.0
