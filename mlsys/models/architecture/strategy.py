"""The base class of tiling strategies."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from collections.abc import Mapping as Named
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any, ClassVar

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.view import LevelView, MachineView, view
from mlsys.mapping import Mapping
from mlsys.models.architecture.demand import Demand, PlanCounts, demand_of
from mlsys.models.architecture.plan import TilePlan
from mlsys.models.architecture.spending import Spending
from mlsys.models.energy import Energies
from mlsys.precision import element_size
from mlsys.provenance import Fact, Step, recording
from mlsys.units import Quantity, computed, ureg
from mlsys.workloads.operator import Operator

_BYTE, _SECOND, _NUMBER = ureg.Unit("byte"), ureg.Unit("s"), ureg.Unit("")


@dataclass(frozen=True)
class TilingStrategy(ABC):
    """A strategy for tiling operators on one device.

    Attributes
    ----------
    device
        A device twin with the data that the strategy needs.
    mapping
        Rate, unit and overlap, as for the roofline.
    energies
        Price list of operations and accesses, used if the design power limits a tile; None for the
        price list of the device's process node.
    """

    device: Device
    mapping: Mapping = field(default_factory=Mapping)
    energies: Energies | None = None

    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if self.mapping.level is not None:
            raise ArgumentError(
                f"{type(self).__name__}(): `mapping.level` must be None, got {self.mapping.level!r}: "
                "the strategy maps data to memory levels. Write mapping=Mapping()"
            )
        _ = self.levels, self.machine

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Record the facts read from the device inside the block, as provenance of the results."""
        with recording() as seen:
            yield
        self._read.update(seen)

    @cached_property
    def _read(self) -> dict[str, Quantity]:
        return {}

    @property
    def against(self) -> tuple[Fact, ...]:
        """Every fact read so far: sizes and rates that tiles were chosen by, whether binding or not."""
        return tuple(
            dict.fromkeys(
                fact for quantity in self._read.values() for fact in (quantity.facts if quantity is not None else ())
            )
        )

    def origin(self, model: str, operands: Named[str, Quantity]) -> Step:
        """Return the provenance step of a number with the given operands; other facts read only influenced choices."""
        return Step(model, tuple(operands.values()), tuple(operands), against=self.against)

    def plan(self, operator: Operator) -> TilePlan:
        """Return the tile plan of ``operator``: least time, then fewest bytes, within the strategy.

        Parameters
        ----------
        operator
            The operator; it is tiled by its own shape, independent of its network.

        Raises
        ------
        ArgumentError
            If not even the smallest block fits, or the operator's bytes were counted in another
            element size than that of the chosen rate.
        UnknownNameError
            If the device lacks the precision.
        """
        work = demand_of(operator)
        with self.noting():
            counted = self.counted(work)
        return self.described(operator.name, work, counted)

    def described(self, name: str, work: Demand, counted: PlanCounts) -> TilePlan:
        """Return the counts as a plan with units."""
        again = counted.moved[0] - work.data
        written = work.written
        cut, arithmetic = self._origins(work.precision)

        def in_bytes(amount: float) -> Quantity:
            return computed(amount, _BYTE, cut)

        return TilePlan(
            operator=name,
            strategy=self.name,
            device=self.device.name,
            tile=counted.tile,
            tiles=counted.tiles,
            copies=counted.copies,
            order=counted.order,
            level=counted.level,
            buffer=in_bytes(counted.buffer),
            capacity=in_bytes(counted.capacity),
            block=counted.block,
            block_level=counted.block_level,
            read=in_bytes(work.data - written + again),
            written=in_bytes(written),
            moved=FrozenDict(
                {
                    level.name: in_bytes(moved)
                    for level, moved in zip((self.machine.main, *self.levels), counted.moved, strict=True)
                }
            ),
            launches=1,
            loads=counted.loads,
            waves=counted.waves,
            computing=computed(counted.computing, _SECOND, arithmetic),
            utilisation=counted.utilisation,
        )

    @abstractmethod
    def counted(self, work: Demand) -> PlanCounts:
        """Return the counts of one operator's plan, as plain numbers."""

    @abstractmethod
    def assumptions(self) -> tuple[str, ...]:
        """Return the assumptions of the strategy, in words."""

    @property
    @abstractmethod
    def levels(self) -> tuple[LevelView, ...]:
        """On-chip memory levels that data pass through, outermost first."""

    @cached_property
    def machine(self) -> MachineView:
        """View of the device in its headline precision."""
        return view(self.device)

    @cached_property
    def rooms(self) -> tuple[float, ...]:
        """Usable bytes of one instance of each level in :attr:`levels`."""
        return tuple(level.usable_each or 0.0 for level in self.levels)

    @cached_property
    def speeds(self) -> tuple[float, ...]:
        """Total bandwidth of each level in :attr:`levels`, byte/s; infinite if not recorded."""
        return tuple(inf if speed is None else speed for speed in (level.bandwidth_total for level in self.levels))

    @cached_property
    def main_speed(self) -> float:
        """Bandwidth of the main memory, byte/s."""
        return self.machine.main.require("bandwidth")

    def room_of(self, level: LevelView) -> float:
        """Return the usable bytes of one instance of a level."""
        return level.usable_each or 0.0

    def rates_on_record(self, precision: str) -> dict[str, Quantity]:
        """Return the recorded peaks that determine the compute time in a precision."""
        how = self.mapping
        computes = how.compute_precision or precision
        facts = {"peak": self.device.peak(computes, how.sparsity, how.unit)}
        for name in (computes, "fp32"):
            beside = replace(self.machine, precision=name, unit="vector")
            if beside.has("rate"):
                return facts | {"vector_peak": beside.quantity("rate")}
        return facts

    def _origins(self, precision: str) -> tuple[Step, Step]:
        """Return the provenance of sizes and of the compute time."""
        known: dict[Any, tuple[Step, Step]] = self.__dict__.setdefault("_known_origins", {})
        key = (precision, len(self._read))
        if key not in known:
            known[key] = (
                self.origin("tiles", {}),
                self.origin("tiles", self.rates_on_record(precision)),
            )
        return known[key]

    @cached_property
    def units(self) -> int:
        """Number of cores or multiprocessors; one for a microcontroller without a recorded number."""
        if self.device.kind == "MCU" and not self.machine.has("units"):
            return 1
        return max(1, int(self.machine.require("units")))

    @cached_property
    def spending(self) -> Spending:
        """Prices of bytes and operations on this device, and its power budget."""
        return Spending.on(self.machine, self.levels, self.energies or Energies.of(self.machine))

    def rates(self, precision: str) -> tuple[float, float]:
        """Return the peak rate of matrix products in ``precision``, and the rate of all other operations, FLOP/s."""
        known: dict[str, tuple[float, float]] = self.__dict__.setdefault("_known_rates", {})
        if precision not in known:
            known[precision] = self._rates(precision)
        return known[precision]

    def _rates(self, precision: str) -> tuple[float, float]:
        how = self.mapping
        computes = how.compute_precision or precision
        if element_size(computes) != element_size(precision):
            raise ArgumentError(
                f"plan(): `mapping.compute_precision` is {computes}, but the bytes of the operator were counted in "
                f"{precision}. Make the operator with precision={computes!r}"
            )
        peak = float(self.device.peak(computes, how.sparsity, how.unit).m_as("FLOP/s"))
        lanes = (self.machine.rate_of(name, "vector") for name in (computes, "fp32"))
        vector = next((rate for rate in lanes if rate is not None), self.beside(peak))
        return peak, min(vector, peak)

    def beside(self, peak: float) -> float:
        """Return the rate of operations other than matrix products if no vector peak is recorded, FLOP/s."""
        return peak

    def stream(self, work: Demand, computing: float | None = None) -> PlanCounts:
        """Return the counts of an operator that streams its data once, in chunks of the innermost level."""
        peak, vector = self.rates(work.precision)
        if computing is None:
            computing = work.multiplying / (peak if work.product is None else vector)
            computing += work.beside / vector
        held, whole = self.holding, self.room_of(self.holding)
        room = whole / 2  # one chunk in use, one being loaded
        words = max(work.elements, 1.0)
        share = work.data / words  # bytes moved per element of the result
        chunk = max(1, min(int(words), int(room / max(share, 1e-9))))
        tiles = -(-int(words) // chunk)
        flops = work.multiplying + work.beside
        return PlanCounts(
            (chunk, 1, 1), (tiles, 1, 1), 1, "", held.name, min(2 * chunk * share, whole), whole,
            (chunk, 1, 1), held.name, (work.data,) * (1 + len(self.levels)), 2 * flops, tiles,
            -(-tiles // self.units_at_work), computing,
            min(1.0, flops / (computing * peak)) if computing else 0.0,
        )  # fmt: skip

    @property
    def holding(self) -> LevelView:
        """The level whose instances hold the tiles."""
        return self.levels[-1]

    @property
    def units_at_work(self) -> int:
        """Number of units that process a tile each."""
        return self.units

    def missing(self, what: str, remedy: str) -> ArgumentError:
        """Return the error for a device that lacks data that the strategy needs."""
        return ArgumentError(
            f"{type(self).__name__}(): `device` {self.device.name} has no recorded {what}, which this strategy needs. "
            f"{remedy}"
        )

    def too_small(self, level: LevelView, work: Demand) -> ArgumentError:
        """Return the error for a level too small for any block of a product."""
        product = work.product
        assert product is not None
        return ArgumentError(
            f"plan(): {level.name} of {self.device.name} holds {self.room_of(level):,.0f} byte, too little for the "
            f"smallest block of a product of {product.m} × {product.n} × {product.k} in {work.precision}. "
            "Choose a device with more on-chip memory"
        )
