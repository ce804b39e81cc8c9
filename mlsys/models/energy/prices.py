"""Price lists: energy per operation and per access for a process node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.technology import Technology
from mlsys.hardware.view import LevelView, MachineView, view
from mlsys.models.energy.rules import NEW, OLD, RULES, WORD, Reader, price_grows
from mlsys.precision import precision_name
from mlsys.provenance import Fact, Step
from mlsys.unit_checks import checked_number, positive
from mlsys.units import Quantity, Unit, computed, number_in, ureg

Bound = Literal["low", "central", "high"]
PUBLISHED_NODES = (OLD, NEW)
_PJ, _PJ_BYTE, _PJ_WIRE = ureg.Unit("pJ"), ureg.Unit("pJ/byte"), ureg.Unit("pJ/bit/mm")


@dataclass(frozen=True)
class Price:
    """Energy of one operation, word, byte or bit, with its uncertainty range.

    Attributes
    ----------
    rule
        How it is derived from published figures, in words.

    Examples
    --------
    >>> price = Energies.at(16).mac("fp16")
    >>> print(f"{price.value:.2f}, {price.low:.2f} to {price.high:.2f}")
    0.81 pJ, 0.50 pJ to 1.52 pJ
    """

    rule: str
    _unit: Unit
    _of: Callable[[Bound], tuple[float, dict[str, Quantity], tuple[Fact, ...]]] = field(repr=False)
    _bound: Bound = "central"

    def _end(self, bound: Bound) -> Quantity:
        value, facts, compared = self._of(bound)
        origin = Step("energy", tuple(facts.values()), tuple(facts), against=compared) if facts else None
        return computed(value, self._unit, origin)

    @cached_property
    def value(self) -> Quantity:
        """The price at the chosen bound; its provenance lists the facts it was computed from."""
        return self._end(self._bound)

    @cached_property
    def low(self) -> Quantity:
        """Low end of the uncertainty range."""
        return self._end("low")

    @cached_property
    def high(self) -> Quantity:
        """High end of the uncertainty range."""
        return self._end("high")

    @property
    def joules(self) -> float:
        """Price as a number in J, J/byte or J/bit/mm."""
        return number_in(self.value, self._unit) * 1e-12


@dataclass(frozen=True)
class Energies:
    """The price list of a process node.

    Attributes
    ----------
    node
        Name of the process in nm: a label of the generation, not a length.
    assumed
        Reason for this node if the device has none recorded; else empty.
    bound
        Which value of each range is used: ``"central"``, ``"low"`` or ``"high"``.
    own
        User-supplied prices of a multiply-accumulate by format, which replace the published ones.

    Examples
    --------
    >>> for node in (45, 7, 4):
    ...     energies = Energies.at(node)
    ...     print(node, *(f"{energies.mac(name).value:.3g}" for name in ("fp32", "bf16", "fp8", "int8")))
    45 4.6 pJ 0.954 pJ 0.505 pJ 0.23 pJ
    7 1.69 pJ 0.32 pJ 0.156 pJ 0.077 pJ
    4 1.25 pJ 0.231 pJ 0.11 pJ 0.0556 pJ
    >>> print(f"{Energies.at(45).sram(512 * 1024).value:.1f}, {Energies.at(7).dram(Technology.HBM).value:.1f}")
    36.2 pJ, 31.4 pJ/B
    """

    node: float
    assumed: str = ""
    bound: Bound = "central"
    own: FrozenDict[str, Quantity] = field(default_factory=lambda: FrozenDict({}))
    _node: Quantity | None = field(default=None, repr=False, compare=False)
    _known: dict[tuple[Any, ...], Price] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def at(
        cls, node: float, *, bound: Bound = "central", mac: Mapping[str, Quantity] | None = None, assumed: str = ""
    ) -> Energies:
        """Return the price list of a process node.

        Parameters
        ----------
        node
            Name of the process in nm, 1 to 1,000.
        bound
            Which value of each range to use.
        mac
            Prices of a multiply-accumulate by format that replace the published ones, pJ.
        assumed
            Reason for this node if the device has none recorded.

        Raises
        ------
        ArgumentError, ArgumentUnitError
            If the node is not between 1 and 1,000, the bound is not one of the three, or a price has no
            unit of energy.
        UnknownNameError
            If a format is unknown.
        """
        size = checked_number("Energies.at", "node", node, positive(), {})
        if not 1 <= size <= 1000:
            raise ArgumentError(f"Energies.at(): `node` must be 1 to 1000 nm, got {node!r}. Write e.g. node=7")
        if bound not in ("low", "central", "high"):
            raise ArgumentError(
                f"Energies.at(): `bound` must be 'low', 'central' or 'high', got {bound!r}. Write bound='central'"
            )
        own = {precision_name(name): cost for name, cost in (mac or {}).items()}
        for name, cost in own.items():
            checked_number("Energies.at", f"mac[{name!r}]", cost, positive("pJ"), {})
        return cls(float(size), assumed, bound, FrozenDict(own))

    @classmethod
    def of(
        cls, machine: Device | MachineView, *, bound: Bound = "central", mac: Mapping[str, Quantity] | None = None
    ) -> Energies:
        """Return the price list of a device by its process node.

        Without a recorded node, 45 nm is assumed for a microcontroller and 7 nm for any other chip, and the
        assumptions say so.

        Parameters
        ----------
        machine
            A device twin, or its view.
        bound, mac
            As for :meth:`at`.

        Examples
        --------
        >>> from mlsys import Hardware
        >>> Energies.of(Hardware.Generic.KPU).assumptions()[0]
        'on-chip energies at 7 nm (none on record for Generic KPU: assumed), as published'
        """
        seen = machine if isinstance(machine, MachineView) else view(machine)
        node = seen.node
        if node is not None:
            made = cls.at(node, bound=bound, mac=mac)
            return replace(made, _node=seen.quantity("node"))
        old = seen.device.kind == "MCU"
        return cls.at(OLD if old else NEW, bound=bound, mac=mac, assumed=f"none on record for {seen.name}: assumed")

    def mac(self, precision: str) -> Price:
        """Return the energy of a multiply-accumulate, pJ: a multiplication and an addition in one format."""
        name = precision_name(precision)
        if name in self.own:
            mine = self.own[name]
            return Price(
                "given by the reader", _PJ, lambda _: (float(mine.m_as("pJ")), {"given": mine}, ()), self.bound
            )
        return self._price(_PJ, "mac", name)

    def register(self) -> Price:
        """Return the energy of reading or writing a 32-bit word in a register file, pJ."""
        return self._price(_PJ, "register")

    def sram(self, capacity: Quantity | float, *, of_a_byte: bool = False) -> Price:
        """Return the energy of accessing a 32-bit word in an on-chip SRAM, pJ.

        Parameters
        ----------
        capacity
            Capacity of the array that is accessed, byte.
        of_a_byte
            Whether to return the energy per byte instead, pJ/byte.
        """
        size = capacity.m_as("byte") if isinstance(capacity, Quantity) else capacity
        checked_number("Energies.sram", "capacity", float(size), positive(), {})
        if of_a_byte:
            return self._price(_PJ_BYTE, "sram", float(size), per=WORD)
        return self._price(_PJ, "sram", float(size))

    def dram(self, technology: Technology | None, generation: str = "") -> Price:
        """Return the energy of accessing a byte of off-chip memory, pJ/byte.

        Parameters
        ----------
        technology
            Technology of the memory. Anything but HBM, stacked DRAM, GDDR, LPDDR and DDR is priced as DDR, and
            the rule says so.
        generation
            Generation, such as ``"5X"``: GDDR5 has a price of its own.
        """
        return self._price(_PJ_BYTE, "dram", technology.value if technology else "not on record", generation)

    def wire(self) -> Price:
        """Return the energy of moving a bit over a millimetre of on-chip wire, pJ/bit/mm."""
        return self._price(_PJ_WIRE, "wire")

    def byte(self, level: LevelView) -> Price:
        """Return the energy of reading or writing a byte of a device's memory level, pJ/byte.

        Parameters
        ----------
        level
            Level of a device view: registers, an SRAM of the size of one of its instances, or DRAM.

        Raises
        ------
        UnknownNameError
            If it is an SRAM without a recorded capacity.

        Examples
        --------
        >>> from mlsys import Hardware
        >>> a100 = view(Hardware.Cloud.A100)
        >>> print(*(f"{Energies.of(a100).byte(level).value:.2f}" for level in a100.levels))
        31.36 pJ/B 1.75 pJ/B 1.38 pJ/B 0.10 pJ/B
        """
        technology = level.technology
        if technology is Technology.REGISTER:
            return self._price(_PJ_BYTE, "register", per=WORD)
        if technology is not Technology.SRAM:
            return self.dram(technology, level.generation)
        level.require("capacity")
        capacity, size = level.operands("capacity", each=True), float(level.capacity_each or 0.0)
        return self._price(_PJ_BYTE, "sram", size, per=WORD, operands=capacity)

    def assumptions(self) -> tuple[str, ...]:
        """Return the assumptions of the price list, in words."""
        where = (
            "as published"
            if self.node in PUBLISHED_NODES
            else "interpolated between the published 45 and 7 nm"
            if NEW < self.node < OLD
            else f"extrapolated from the published {NEW if self.node < NEW else OLD:g} nm"
        )
        end = "" if self.bound == "central" else f", {self.bound} end of the range"
        note = f" ({self.assumed})" if self.assumed else ""
        return (
            f"on-chip energies at {self.node:g} nm{note}, {where}{end}",
            "DRAM energies by technology, not by node; a multiply-accumulate in the format of its operands",
        )

    def _price(
        self,
        unit: Unit,
        kind: str,
        *given: float | str,
        per: float = 1.0,
        operands: Mapping[str, Quantity] | None = None,
    ) -> Price:
        """Return a price by its rule, divided by ``per``; its size is computed from ``operands``."""
        key = (kind, per, *given)
        if key not in self._known:
            rule = RULES[kind]
            sized = operands or {}
            flat = kind == "sram" and not price_grows(float(given[0]))

            def ends(bound: Bound, get: Reader) -> float:
                if bound == "central":
                    return rule.value(get, self.node, *given)
                return rule.reach(get, self.node, *given)[bound == "high"]

            def of(bound: Bound) -> tuple[float, dict[str, Quantity], tuple[Fact, ...]]:
                get = Reader()
                value = ends(bound, get)
                beside = dict(sized) if flat and bound == "central" else {}
                if bound != "central":  # an end is the extreme of several candidates: the others are only compared
                    still = [name for name in get.facts if ends(bound, Reader({name: 1 + 1e-6})) == value]
                    beside |= {name: get.facts.pop(name) for name in still}
                more = {"node": self._node} if self._node is not None and kind not in ("dram", "wire") else {}
                sums = {**get.facts, **more, **{name: size for name, size in sized.items() if name not in beside}}
                return value / per, sums, tuple(fact for quantity in beside.values() for fact in quantity.facts)

            self._known[key] = Price(rule.words(*given), unit, of, self.bound)
        return self._known[key]


def static_power(machine: Device | MachineView) -> Quantity | None:
    """Return the recorded idle power of a device, W, or None if none is recorded.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> print(static_power(Hardware.Cloud.TPUv1), static_power(Hardware.Generic.KPU))
    28 W None
    """
    seen = machine if isinstance(machine, MachineView) else view(machine)
    return seen.quantity("idle_power") if seen.has("idle_power") else None
