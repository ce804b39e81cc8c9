"""Energy meters: a shunt with an INA226, and the energy counters of an x86 CPU (RAPL).

References
----------
Texas Instruments, INA226 data sheet SBOS547: shunt register ±81.92 mV in steps of 2.5 µV, bus register in steps of 1.25
mV; calibration 0.00512 / (current step × shunt); a step of power is 25 steps of current; a new reading arrives after
averages × (shunt conversion + bus conversion).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlsys.errors import ArgumentError
from mlsys.formatting import significant
from mlsys.unit_checks import checked_number, plain_fields, positive
from mlsys.units import Q_, Quantity

_SHUNT_STEP, _BUS_STEP, _FULL_SCALE = 2.5e-6, 1.25e-3, 32768 * 2.5e-6
_AVERAGES = (1, 4, 16, 64, 128, 256, 512, 1024)
_CONVERSIONS_US = (140, 204, 332, 588, 1100, 2116, 4156, 8244)
_RANGES = Path("/sys/class/powercap")
_SENSORS = Path("/sys/class/hwmon")


@dataclass(frozen=True)
class INA226:
    """A current monitor with its shunt and settings.

    Attributes
    ----------
    shunt
        Resistance, Ω.
    averages
        Samples averaged in each reading: 1, 4, 16, 64, 128, 256, 512 or 1024.
    conversion
        Microseconds of each conversion, for shunt and bus voltage alike: 140 to 8,244 in eight steps.

    Examples
    --------
    >>> meter = INA226(shunt=0.1)
    >>> print(meter.full_scale, meter.current_step, meter.power_step)
    0.8192 A 25 µA 625 µW
    >>> print(INA226(0.1, averages=128, conversion=1100).update_time)
    281.6 ms
    """

    shunt: float
    averages: int = 4
    conversion: int = 140

    def __post_init__(self) -> None:
        plain_fields(self)
        checked_number("INA226", "shunt", Q_(self.shunt, "ohm"), positive("ohm"), {})
        for name, value, known in (
            ("averages", self.averages, _AVERAGES), ("conversion", self.conversion, _CONVERSIONS_US),
        ):  # fmt: skip
            if value not in known:
                raise ArgumentError(
                    f"INA226(): `{name}` must be one of {', '.join(map(str, known))}, got {value!r}. "
                    f"Write e.g. {name}={known[1]}"
                )

    @property
    def full_scale(self) -> Quantity:
        """Largest current that it can measure, A."""
        return Q_(significant(_FULL_SCALE / self.shunt, 12), "A")

    @property
    def current_step(self) -> Quantity:
        """Current of one step of the shunt register, µA: no setting resolves finer."""
        return Q_(significant(_SHUNT_STEP / self.shunt * 1e6, 12), "uA")

    @property
    def power_step(self) -> Quantity:
        """Power of one step of its power register where the current register has its finest step, µW."""
        return Q_(significant(25 * self.current_step.m_as("uA"), 12), "uW")

    @property
    def update_time(self) -> Quantity:
        """Time from one new reading to the next, ms."""
        return Q_(significant(self.averages * 2 * self.conversion / 1e3, 12), "ms")

    def calibration(self, current_step: float) -> int:
        """Return the value of its calibration register for a given current step, A.

        Examples
        --------
        >>> INA226(shunt=0.002).calibration(0.001)
        2560
        """
        checked_number("calibration", "current_step", Q_(current_step, "A"), positive("A"), {})
        value = int(round(0.00512 / (current_step * self.shunt), 6))
        if not 1 <= value < 1 << 15:
            raise ArgumentError(
                f"calibration(): `current_step` of {current_step:g} A needs {value} in a register of 15 bits. "
                f"Write e.g. current_step={_SHUNT_STEP / self.shunt:g}"
            )
        return value

    def read(self, shunt_register: int, bus_register: int, current_step: float) -> tuple[float, float, float]:
        """Return current, A, load voltage, V, and power, W, from the raw registers.

        Examples
        --------
        >>> INA226(shunt=0.002).read(8000, 9584, 0.001)
        (10.0, 11.98, 119.8)
        """
        if not -32768 <= shunt_register <= 32767 or not 0 <= bus_register <= 32767:
            raise ArgumentError(
                f"read(): registers must be signed 16-bit values, got {shunt_register} and {bus_register}"
            )
        current = int(shunt_register * self.calibration(current_step) / 2048)
        power = abs(current) * bus_register // 20000
        return current * current_step, bus_register * _BUS_STEP, power * 25 * current_step

    @staticmethod
    def power_of(drop: float, shunt: float, load: float) -> float:
        """Return the power of a load, W, from the shunt's voltage, V, its resistance, Ω, and the load's voltage, V."""
        checked_number("power_of", "shunt", Q_(shunt, "ohm"), positive("ohm"), {})
        return drop / shunt * load


class Rapl:
    """Energy meter of an x86 CPU (RAPL), if the system exposes it.

    Attributes
    ----------
    reason
        Why it is unavailable; empty if it is available.
    """

    def __init__(self, folder: Path = _RANGES) -> None:
        self._zones = [
            path for path in sorted(folder.glob("intel-rapl:*")) if path.name.count(":") == 1
        ] if folder.is_dir() else []  # fmt: skip
        self.reason = ""
        try:
            self.read()
        except OSError as error:
            self.reason = f"RAPL cannot be read: {error.strerror}"
        if not self._zones:
            self.reason = "the system exposes no energy meter of the CPU (no RAPL in /sys/class/powercap)"

    def read(self) -> tuple[int, ...]:
        """Return the counters of all packages, µJ."""
        return tuple(int((zone / "energy_uj").read_text()) for zone in self._zones)

    def spent(self, before: Sequence[int], after: Sequence[int]) -> float:
        """Return the energy between two readings, mJ, allowing for counter wrap-around."""
        total = 0
        for zone, first, last in zip(self._zones, before, after, strict=True):
            turn = int((zone / "max_energy_range_uj").read_text()) + 1
            total += (last - first) % turn
        return total / 1e3
