"""Effect of clock scaling on time and energy: memory time does not scale, and leakage power is always drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.unit_checks import Argument, checked_number, nonnegative, positive
from mlsys.units import Q_, Quantity, ureg

_SCALE = Argument("", low=0.0, low_is_allowed=False, high=1.0)


@dataclass(frozen=True)
class Clock:
    """A clock and its supply voltage, both relative to the reference.

    Attributes
    ----------
    scale
        Clock over the reference clock, above 0 and at most 1.
    voltage
        Supply over that at the reference clock, above 0 and at most 1.

    Raises
    ------
    ArgumentError
        If one of them is out of its range.
    """

    scale: float
    voltage: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("scale", self.scale), ("voltage", self.voltage)):
            checked_number("Clock", name, value, _SCALE, {})


@dataclass(frozen=True)
class ClockLaw:
    r"""Model of the time and energy of one inference at any clock.

    Attributes
    ----------
    core
        Compute time of the core at the reference clock.
    memory
        Main-memory time, independent of the clock.
    static
        Power drawn for the duration of the inference.
    dynamic
        Energy of the core's cycles at the reference voltage, :math:`C V_0^2` times their number.

    Notes
    -----
    At a clock :math:`f` relative to the reference :math:`f_0` and a voltage :math:`V` relative to :math:`V_0`,

    .. math:: t = t_\text{core} f_0/f + t_\text{mem}, \qquad E = P_\text{static} t + E_\text{dyn} (V/V_0)^2 .

    Assumed: the memory keeps its clock, and a waiting core has no dynamic power.

    Raises
    ------
    ArgumentError, ArgumentUnitError
        If a value is negative, not finite or of another unit, or both times are zero.

    References
    ----------
    A. P. Chandrakasan, S. Sheng, R. W. Brodersen, Low-power CMOS digital design, IEEE JSSC 27(4), 1992.

    Examples
    --------
    >>> law = ClockLaw(Q_(8, "ms"), Q_(2, "ms"), Q_(0.5, "W"), Q_(12, "mJ"))
    >>> print(law.time(Clock(1.0)), law.time(Clock(0.5)), law.energy(Clock(0.5)))
    10 ms 18 ms 21 mJ
    """

    core: Quantity
    memory: Quantity
    static: Quantity
    dynamic: Quantity

    def __post_init__(self) -> None:
        for name, unit in (("core", "s"), ("memory", "s"), ("static", "W"), ("dynamic", "J")):
            checked_number("ClockLaw", name, getattr(self, name), nonnegative(unit), {})
        if not (self.core.magnitude or self.memory.magnitude):
            raise ArgumentError("ClockLaw(): `core` and `memory` are both zero. Give the time of the inference")

    @classmethod
    def of(cls, time: Quantity, moved: Quantity, bandwidth: Quantity, static: Quantity, dynamic: Quantity) -> ClockLaw:
        """Return the model of an inference timed at the reference clock.

        Parameters
        ----------
        time
            Measured time.
        moved, bandwidth
            Bytes moved, and the bandwidth of the main memory: the memory time, at most ``time``.
        static, dynamic
            Power that does not depend on the clock, and power of the core at the reference clock.
        """
        whole = checked_number("ClockLaw.of", "time", time, positive("s"), {})
        size = checked_number("ClockLaw.of", "moved", moved, nonnegative("byte"), {})
        rate = checked_number("ClockLaw.of", "bandwidth", bandwidth, positive("byte/s"), {})
        power = checked_number("ClockLaw.of", "dynamic", dynamic, nonnegative("W"), {})
        memory = min(whole, size / rate)
        return cls(Q_(whole - memory, "s"), Q_(memory, "s"), static, Q_((whole - memory) * power, "J"))

    @cached_property
    def _plain(self) -> tuple[float, float, float, float]:
        seconds = float(self.core.m_as("s")), float(self.memory.m_as("s"))
        return *seconds, float(self.static.m_as("W")), float(self.dynamic.m_as("J"))

    def plain(self, clock: Clock) -> tuple[float, float, float]:
        """Return time, s, and static and dynamic energy, J, as floats, for evaluating many points."""
        core, memory, static, dynamic = self._plain
        time = core / clock.scale + memory
        return time, static * time, dynamic * clock.voltage**2

    def time(self, clock: Clock) -> Quantity:
        """Return the time of one inference."""
        return Q_(self.plain(clock)[0], "s").to("ms")

    def static_energy(self, clock: Clock) -> Quantity:
        """Return the static energy: that of leakage and idle power over the time."""
        return Q_(self.plain(clock)[1], "J").to("mJ")

    def dynamic_energy(self, clock: Clock) -> Quantity:
        """Return the dynamic energy: that of the core's cycles."""
        return Q_(self.plain(clock)[2], "J").to("mJ")

    def energy(self, clock: Clock) -> Quantity:
        """Return the energy of one inference."""
        energy: Quantity = self.static_energy(clock) + self.dynamic_energy(clock)
        return energy


def best_clock(law: ClockLaw, clocks: Sequence[Clock]) -> Clock:
    """Return the clock of least energy; of equal ones the highest.

    At constant voltage that is the highest clock: the cycles cost the same, and leakage has less time.

    Examples
    --------
    >>> law = ClockLaw(Q_(8, "ms"), Q_(2, "ms"), Q_(0.5, "W"), Q_(12, "mJ"))
    >>> best_clock(law, [Clock(1.0), Clock(0.5)]), best_clock(law, [Clock(1.0), Clock(0.5, voltage=0.6)])
    (Clock(scale=1.0, voltage=1.0), Clock(scale=0.5, voltage=0.6))
    """
    if not clocks:
        raise ArgumentError("best_clock(): `clocks` is empty. Write e.g. clocks=[Clock(1.0), Clock(0.5)]")
    return min(clocks, key=lambda clock: (sum(law.plain(clock)[1:]), -clock.scale))


@dataclass(frozen=True)
class PowerPoint:
    """Time and energy of one inference at one clock; ``voltage`` is relative to that at the highest clock."""

    clock: Quantity
    time: Quantity
    energy: Quantity
    voltage: float = 1.0

    def __post_init__(self) -> None:
        for name, unit in (("clock", "Hz"), ("time", "s"), ("energy", "J")):
            checked_number("PowerPoint", name, getattr(self, name), positive(unit), {})
        if checked_number("PowerPoint", "voltage", self.voltage, positive(), {}) > 1:
            raise ArgumentError(
                f"PowerPoint(): `voltage` is relative to the highest clock, so at most 1, got {self.voltage!r}. "
                "Write e.g. voltage=0.9"
            )

    @property
    def power(self) -> Quantity:
        """Mean power of the inference."""
        power: Quantity = (self.energy / self.time).to("mW")
        return power

    @property
    def energy_delay(self) -> Quantity:
        """Energy-delay product of the inference."""
        product: Quantity = (self.energy * self.time).to("mJ*s")
        return product


@dataclass(frozen=True)
class SplitEnergy:
    """Static and dynamic energy of one inference, from measurements at several clocks.

    Attributes
    ----------
    static
        Power that does not depend on the clock.
    dynamic
        Energy of the core's cycles, at a voltage of 1.
    core_cycles
        Compute cycles of the core.
    memory
        Time that does not depend on the clock.
    residual
        Largest relative residual of a measured energy; zero for two points.
    """

    static: Quantity
    dynamic: Quantity
    core_cycles: Quantity
    memory: Quantity
    residual: float

    def law(self, reference: Quantity) -> ClockLaw:
        """Return the model of time and energy at any clock up to ``reference``."""
        seconds = self.core_cycles.m_as("cycle") / reference.m_as("Hz")
        return ClockLaw(Q_(seconds, "s").to("ms"), self.memory, self.static, self.dynamic)


def split_energy(points: Sequence[PowerPoint]) -> SplitEnergy:
    r"""Return static power and dynamic energy from measurements of one inference at several clocks.

    Parameters
    ----------
    points
        At least two, at different clocks. More points are fitted by least squares with non-negative parameters.

    Raises
    ------
    ArgumentError
        If there are fewer than two clocks, or the energies do not fit the model: static power or dynamic energy would
        be negative.

    Notes
    -----
    Each point satisfies :math:`E = P_\text{static} t + E_\text{dyn} V^2`; two points determine both parameters.

    Examples
    --------
    >>> fast = PowerPoint(Q_(168, "MHz"), Q_(145, "ms"), Q_(18, "mJ"))
    >>> slow = PowerPoint(Q_(80, "MHz"), Q_(305, "ms"), Q_(24, "mJ"))
    >>> parts = split_energy([fast, slow])
    >>> print(f"{parts.static:.1f}, {parts.dynamic:.2f}; {fast.power:.0f} and {slow.power:.0f}")
    37.5 mW, 12.56 mJ; 124 mW and 79 mW
    """
    clocks = np.array([point.clock.m_as("Hz") for point in points])
    if len(set(clocks.tolist())) < 2:
        raise ArgumentError(f"split_energy(): `points` must have at least two clocks, got {len(set(clocks.tolist()))}")
    times = np.array([point.time.m_as("s") for point in points])
    energies = np.array([point.energy.m_as("J") for point in points])
    squares = np.array([point.voltage**2 for point in points])
    (static, dynamic), residual = _parts(np.stack([times, squares], 1), energies)
    if min(static, dynamic) < 0:
        part = "static power" if static < dynamic else "dynamic energy"
        raise ArgumentError(
            f"split_energy(): `points` would need a negative {part}: between these clocks something else changed, "
            "such as the voltage. Give `voltage` of each point"
        )
    (memory, cycles), _ = _parts(np.stack([np.ones_like(clocks), 1 / clocks], 1), times)
    if memory < 0:  # time grows faster than the clock falls: all of it is compute time
        memory, cycles = 0.0, float(np.sum(times / clocks) / np.sum(1 / clocks**2))
    return SplitEnergy(
        Q_(float(static), "W").to("mW"),
        Q_(float(dynamic), "J").to("mJ"),
        ureg.Quantity(float(cycles), "cycle"),
        Q_(float(memory), "s").to("ms"),
        residual,
    )


def _parts(terms: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the coefficients of two terms: exactly from two rows, else by non-negative least squares."""
    from scipy.optimize import nnls

    if np.linalg.matrix_rank(terms / np.abs(terms).max(axis=0)) < 2:
        raise ArgumentError("split_energy(): `points` are linearly dependent. Give points of another time or voltage")
    if len(values) == 2:
        return np.linalg.solve(terms, values), 0.0
    scale = np.abs(terms).max(axis=0)
    parts = nnls(terms / scale, values)[0] / scale
    return parts, float(np.max(np.abs(terms @ parts - values) / values))
