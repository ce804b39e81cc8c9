"""What an operation and an access cost: one price list for every model.

Two columns are published, 45 nm and 7 nm. Between them a price follows a power of the node's name,
beyond them the same power goes on, and every price says within which range it is to be believed:

- **node**: from the nearest published column a price may stay as it is, or fall twice as steeply as the
  power law says; between the columns it stays between them. Bit cells of SRAM hardly shrink any more:
  beyond the columns every SRAM scales as an array of 8 KiB does, which is the least steep of them.
- **format**: a width that nobody publishes lies on the power law through the two widths that are
  published, and its range reaches from linear to quadratic in the width. A sum of 32 bits is the high end.
- **SRAM**: a power law in the capacity; from 1 MiB on an array is made of smaller ones. The low end is
  what another author gives for 8 KiB at 14 nm; the high end lets a word cross wires as long as a
  larger memory is wide.
- **register**: no figure at 7 nm is published, so that it shrinks as the whole table does.
- **DRAM**: by technology; the chip's node does not matter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from mlsys._facts import PUBLISHED
from mlsys.door import checked_number, positive
from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.precision import precision_name
from mlsys.provenance import Step, read
from mlsys.units import Quantity, Unit, computed, ureg

__all__ = ["PUBLISHED_NODES", "WORD", "Bound", "Energies", "Price"]

Bound = Literal["low", "central", "high"]
PUBLISHED_NODES = (45.0, 7.0)
WORD = 4.0
"""Bytes of the word that the price of a register and of an SRAM is for."""

_OLD, _NEW = PUBLISHED_NODES
_SPAN = math.log(_OLD / _NEW)
_KIB = 1024.0
_REGISTERS = 1.0  # KiB: a memory as small as a register file costs what a register costs
_PJ, _PJ_BYTE, _PJ_WIRE = ureg.Unit("pJ"), ureg.Unit("pJ/byte"), ureg.Unit("pJ/bit/mm")
# Formats: family, and bits that the arithmetic sees.
_WIDTHS = {
    "fp64": ("FP", 64), "fp32": ("FP", 32), "tf32": ("FP", 19), "fp16": ("FP", 16), "bf16": ("FP", 16),
    "fp8": ("FP", 8), "fp6": ("FP", 6), "fp4": ("FP", 4),
    "int16": ("INT", 16), "int8": ("INT", 8), "int4": ("INT", 4), "int1": ("INT", 1),
}  # fmt: skip
_KNOWN = {"FP": (16, 32), "INT": (8, 32)}
# Arrays by KiB: their facts at 45 nm and at 7 nm.
_ARRAYS = (
    (8.0, "ENERGY_SRAM_L1_PJ", "ENERGY_SRAM_8KB_7NM_PJ"),
    (32.0, "ENERGY_SRAM_32KB_PJ", "ENERGY_SRAM_32KB_7NM_PJ"),
    (1024.0, "ENERGY_SRAM_L2_PJ", "ENERGY_SRAM_1MB_7NM_PJ"),
)


class _Band(NamedTuple):
    """A price and its range, in the unit of its facts."""

    value: float
    low: float
    high: float

    def __add__(self, other: object) -> _Band:
        assert isinstance(other, _Band)
        return _Band(*(a + b for a, b in zip(self, other, strict=True)))

    def widened(self, *others: float) -> _Band:
        return _Band(self.value, min(self.low, *others), max(self.high, *others))


@dataclass(frozen=True)
class Price:
    """What one operation, word, byte or bit costs.

    Attributes
    ----------
    value
        The price to reckon with; it carries the facts that it was made of.
    low, high
        The range in which it is to be believed, of the same unit.
    rule
        How it follows from what is published, in words.

    Examples
    --------
    >>> price = Energies.at(16).mac("fp16")
    >>> print(f"{price.value:.2f}, {price.low:.2f} to {price.high:.2f}")
    0.81 pJ, 0.50 pJ to 1.52 pJ
    """

    value: Quantity
    low: Quantity
    high: Quantity
    rule: str

    @property
    def joules(self) -> float:
        """The price in J, or J a byte."""
        return float(self.value.magnitude) * 1e-12


@dataclass(frozen=True)
class Energies:
    """The price list of a chip of one process node.

    Attributes
    ----------
    node
        Name of the process in nm, which is no length but orders generations.
    assumed
        Why this node was taken, where the device has none on record; else empty.
    bound
        Which end of each range is the value: ``"central"``, ``"low"`` or ``"high"``.
    own
        Prices of the reader by format, in place of the published ones.

    Examples
    --------
    >>> for node in (45, 7, 4):
    ...     energies = Energies.at(node)
    ...     print(node, *(f"{energies.mac(name).value:.3g}" for name in ("fp32", "bf16", "fp8", "int8")))
    45 4.6 pJ 0.954 pJ 0.505 pJ 0.23 pJ
    7 1.69 pJ 0.32 pJ 0.156 pJ 0.077 pJ
    4 1.25 pJ 0.231 pJ 0.11 pJ 0.0556 pJ
    >>> print(f"{Energies.at(45).sram(512 * 1024).value:.1f}, {Energies.at(7).dram('HBM2').value:.1f}")
    36.2 pJ, 31.4 pJ/B
    """

    node: float
    assumed: str = ""
    bound: Bound = "central"
    own: FrozenDict[str, Quantity] = field(default_factory=lambda: FrozenDict({}))
    _known: dict[tuple[str, ...], Price] = field(default_factory=dict, init=False, repr=False, compare=False)

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
            Which end of each range to reckon with.
        mac
            Multiply-accumulates by format that cost something else, pJ.
        assumed
            Why this node stands for a device that has none on record.

        Raises
        ------
        ArgumentError, ArgumentUnitError
            If the node is not between 1 and 1,000, the bound is none of the three, or a price has no
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

    def mac(self, precision: str) -> Price:
        """Return the price of a multiply-accumulate, pJ: a multiplication and an addition of one format."""
        name = precision_name(precision)
        if name in self.own:
            mine = self.own[name].to("pJ")
            return Price(mine, mine, mine, "given by the reader")
        return self._price(("mac", name), _PJ)

    def register(self) -> Price:
        """Return the price of a 32-bit word read from or written to a register file, pJ."""
        return self._price(("register",), _PJ)

    def sram(self, capacity: Quantity | float) -> Price:
        """Return the price of a 32-bit word of an SRAM on the chip, pJ.

        Parameters
        ----------
        capacity
            Of the piece that is read, bytes.
        """
        size = capacity.m_as("byte") if isinstance(capacity, Quantity) else capacity
        checked_number("Energies.sram", "capacity", float(size), positive(), {})
        return self._price(("sram", repr(float(size))), _PJ)

    def dram(self, technology: str) -> Price:
        """Return the price of a byte of a memory beside the chip, pJ/byte.

        Parameters
        ----------
        technology
            ``"HBM"``, ``"GDDR"``, ``"LPDDR"`` or ``"DDR"``, with or without its generation; anything else
            counts as DDR, and the rule says so.
        """
        return self._price(("dram", technology.upper()), _PJ_BYTE)

    def wire(self) -> Price:
        """Return the price of a bit over a millimetre of wire on the chip, pJ/bit/mm."""
        return self._price(("wire",), _PJ_WIRE)

    def byte(self, technology: str, capacity: Quantity | float) -> Price:
        """Return the price of a byte of any memory, pJ/byte.

        Parameters
        ----------
        technology
            ``"register"``, ``"SRAM"``, or that of a memory beside the chip.
        capacity
            Of the piece that is read, bytes; of SRAM only does it matter.
        """
        kind = technology.lower()
        if kind not in ("register", "sram"):
            return self.dram(technology)
        word = self.register() if kind == "register" else self.sram(capacity)
        value, low, high = (
            computed(float(each.magnitude) / WORD, _PJ_BYTE, each._origin) for each in (word.value, word.low, word.high)
        )
        return Price(value, low, high, word.rule)

    def assumptions(self) -> tuple[str, ...]:
        """Return what the price list takes for granted, in words."""
        where = (
            "as published"
            if self.node in PUBLISHED_NODES
            else "interpolated between the published 45 and 7 nm"
            if _NEW < self.node < _OLD
            else f"extrapolated from the published {_NEW if self.node < _NEW else _OLD:g} nm"
        )
        end = "" if self.bound == "central" else f", {self.bound} end of the range"
        note = f" ({self.assumed})" if self.assumed else ""
        return (
            f"energies on the chip of {self.node:g} nm{note}, {where}{end}",
            "energies of DRAM by technology, whatever the node; a multiply-accumulate in the format of its operands",
        )

    # --- how a price is made ------------------------------------------------------

    def _price(self, key: tuple[str, ...], unit: Unit) -> Price:
        if key not in self._known:
            rules: dict[str, Callable[..., _Made]] = {
                "mac": _mac,
                "register": _register,
                "sram": _sram,
                "dram": _dram,
                "wire": _wire,
            }
            band, facts, rule = rules[key[0]](self.node, *key[1:])
            origin = Step(f"energy_{key[0]}", tuple(facts.values()), tuple(facts))
            value, low, high = (computed(each, unit, origin) for each in band)
            taken = {"low": low, "central": value, "high": high}[self.bound]
            self._known[key] = Price(taken, low, high, rule)
        return self._known[key]


_Made = tuple[_Band, dict[str, Quantity], str]


def _read(names: Iterable[str]) -> dict[str, Quantity]:
    """Return facts by name, each read once; all are in pJ, pJ/bit or plain."""
    return {name: read(PUBLISHED[name]) for name in names}


def _power(old: float, new: float) -> float:
    return math.log(old / new) / _SPAN


def _scaled(old: float, new: float, node: float, beyond: float | None = None) -> _Band:
    """Return what costs ``old`` at 45 nm and ``new`` at 7 nm at another node; ``beyond`` is the power outside."""
    power = _power(old, new)
    near, base = (_NEW, new) if node * node < _OLD * _NEW else (_OLD, old)
    if _NEW <= node <= _OLD:
        value = base if node == near else new * (node / _NEW) ** power
        steep = min(max(base * (node / near) ** (2 * power), new), old)
    else:
        value = base * (node / near) ** (power if beyond is None else beyond)
        steep = base * (node / near) ** (2 * power)
    return _Band(value, value, value).widened(base, steep) if node != near else _Band(base, base, base)


def _operation(kind: str, precision: str, node: float) -> tuple[_Band, dict[str, Quantity]]:
    """Return the price of an addition or a multiplication, and its facts."""
    family, bits = _WIDTHS[precision]
    narrow, wide = _KNOWN[family]
    names = [f"ENERGY_{kind}_{family}{width}{at}_PJ" for width in (narrow, wide) for at in ("", "_7NM")]
    if precision == "bf16":  # at 45 nm as far below FP16 as at 7 nm
        names = [f"ENERGY_{kind}_{what}_PJ" for what in ("FP16", "FP16_7NM", "BF16_7NM")]
        facts = _read(names)
        old, old7, new = (float(each.magnitude) for each in facts.values())
        return _scaled(old * new / old7, new, node), facts
    if bits in (narrow, wide):
        names = names[:2] if bits == narrow else names[2:]
        facts = _read(names)
        old, new = (float(each.magnitude) for each in facts.values())
        return _scaled(old, new, node), facts
    facts = _read(names)
    narrow_old, narrow_new, wide_old, wide_new = (float(each.magnitude) for each in facts.values())
    share = math.log(bits / narrow) / math.log(wide / narrow)
    band = _scaled(narrow_old * (wide_old / narrow_old) ** share, narrow_new * (wide_new / narrow_new) ** share, node)
    near = narrow if bits * bits < narrow * wide else wide
    beside = _scaled(narrow_old, narrow_new, node) if near == narrow else _scaled(wide_old, wide_new, node)
    factors = (bits / near, (bits / near) ** 2)
    return band.widened(*(end * factor for end in (beside.low, beside.high) for factor in factors)), facts


def _mac(node: float, precision: str) -> _Made:
    family, bits = _WIDTHS[precision]
    multiply, first = _operation("MUL", precision, node)
    add, second = _operation("ADD", precision, node)
    summed, third = _operation("ADD", "fp32", node) if family == "FP" else _sum_of_integers(node)
    band = multiply + _Band(add.value, add.low, max(add.high, summed.value))
    known = precision == "bf16" or bits in _KNOWN[family]
    narrow, wide = (f"{family}{width}" for width in _KNOWN[family])
    rule = (
        "published at 7 nm; at 45 nm as far below FP16 as at 7 nm"
        if precision == "bf16"
        else "published at 45 and 7 nm"
        if known
        else f"no {precision} is published: the power law in the width through {narrow} and {wide}"
    )
    return band, first | second | third, f"{rule}; sums of 32 bits are the high end"


def _sum_of_integers(node: float) -> tuple[_Band, dict[str, Quantity]]:
    facts = _read(("ENERGY_ADD_INT32_PJ", "ENERGY_ADD_INT32_7NM_PJ"))
    old, new = (float(each.magnitude) for each in facts.values())
    return _scaled(old, new, node), facts


def _register(node: float) -> _Made:
    names = ("ENERGY_REG_PJ", "ENERGY_SHRINK_45_TO_7NM", "ENERGY_ADD_INT8_PJ", "ENERGY_ADD_INT8_7NM_PJ")
    facts = _read((*names, *_ARRAYS[0][1:]))
    old, shrink, logic, logic7, array, array7 = (float(each.magnitude) for each in facts.values())
    slopes = (_power(logic, logic7), _power(array, array7))
    band = _scaled(old, old / shrink, node).widened(*(old * (node / _OLD) ** slope for slope in slopes))
    rule = (
        "published at 45 nm; shrinks as the geometric mean of the published table, in a range from an 8-bit "
        "addition to an 8 KiB array"
    )
    return band, facts, rule


def _sram(node: float, capacity: str) -> _Made:
    size = float(capacity) / _KIB
    if size <= _REGISTERS:
        band, facts, rule = _register(node)
        return band, facts, f"as small as a register file: {rule}"
    facts = _read((*(name for row in _ARRAYS for name in row[1:]), "ENERGY_SRAM_8KB_14NM_PJ"))
    points = [(at, float(facts[old].magnitude), float(facts[new].magnitude)) for at, old, new in _ARRAYS]
    least = _power(*points[0][1:])
    if size < points[0][0]:
        more = _read(("ENERGY_REG_PJ", "ENERGY_SHRINK_45_TO_7NM"))
        own, shrink = (float(each.magnitude) for each in more.values())
        points.insert(0, (_REGISTERS, own, own / shrink))
        facts |= more
    old, new, beyond = _between(points, min(size, points[-1][0]), least)
    band = _scaled(old, new, node, beyond)
    first = next(point for point in points if point[0] == _ARRAYS[0][0])
    cheaper = float(facts["ENERGY_SRAM_8KB_14NM_PJ"].magnitude) / _scaled(first[1], first[2], 14.0).value
    farther = math.sqrt(max(size / points[-1][0], 1.0))
    rule = "a power law in the capacity through the published 8 KiB, 32 KiB and 1 MiB" + (
        "; a larger memory is made of such" if size > points[-1][0] else ""
    )
    return _Band(band.value, band.low * min(cheaper, 1.0), band.high * farther), facts, rule


def _between(points: list[tuple[float, float, float]], size: float, least: float) -> tuple[float, float, float]:
    """Return the prices at both nodes of a size between two points, and the power beyond them."""
    for (small, old, new), (large, more, more_new) in itertools.pairwise(points):
        if size <= large:
            share = math.log(size / small) / math.log(large / small)
            beyond = least if small > _REGISTERS else _power(old, new) + share * (least - _power(old, new))
            return old * (more / old) ** share, new * (more_new / new) ** share, beyond
    raise AssertionError("a size beyond the points")


# Technology to the facts of its price, low end and high end, and what the rule says.
_BESIDE = {
    "HBM": ("ENERGY_HBM2_PJ_PER_BIT", "ENERGY_HBM2_PJ_PER_BIT", "ENERGY_HBM2_MOST_PJ_PER_BIT", "HBM2, as all HBM"),
    "GDDR5": ("ENERGY_GDDR5_PJ_PER_BIT", "ENERGY_GDDR6_PJ_PER_BIT", "ENERGY_DRAM_64BIT_MOST_PJ", "GDDR5"),
    "GDDR": ("ENERGY_GDDR6_PJ_PER_BIT", "", "", "GDDR6, as all GDDR but GDDR5"),
    "LPDDR": (
        "ENERGY_LPDDR_PJ_PER_BIT",
        "ENERGY_LPDDR4_LEAST_PJ_PER_BIT",
        "ENERGY_LPDDR4_MOST_PJ_PER_BIT",
        "DRAM with an improved interface, as all LPDDR",
    ),
    "DDR": ("ENERGY_DRAM_ACCESS_PJ", "ENERGY_LPDDR_PJ_PER_BIT", "ENERGY_DRAM_64BIT_MOST_PJ", "DDR3, as all DDR"),
}


def _dram(node: float, technology: str) -> _Made:
    kind = next((name for name in _BESIDE if technology.startswith(name)), "")
    *names, what = _BESIDE[kind or "DDR"]
    facts = _read(name for name in dict.fromkeys(names) if name)
    amounts = {name: _per_byte(name, each) for name, each in facts.items()}
    value = amounts[names[0]]
    if names[1]:
        band = _Band(value, amounts[names[1]], amounts[names[2]])
    else:
        spread = 8.0 * (PUBLISHED[names[0]]._origin.uncertainty or 0.0)  # type: ignore[union-attr]
        band = _Band(value, value - spread, value + spread)
    rule = f"published for {what}"
    return band, facts, rule if kind else f"{rule}; assumed, as the technology is {technology or 'not on record'}"


def _per_byte(name: str, amount: Quantity) -> float:
    """Return a fact about a bit, a 32-bit or a 64-bit word in pJ a byte."""
    number = float(amount.magnitude)
    if name.endswith("_PER_BIT"):
        return number * 8.0
    return number / (8.0 if "64BIT" in name else WORD)


def _wire(node: float) -> _Made:
    names = ("ENERGY_WIRE_PJ_PER_BIT_MM", "ENERGY_WIRE_LEAST_PJ_PER_BIT_MM", "ENERGY_WIRE_MOST_PJ_PER_BIT_MM")
    facts = _read(names)
    value, low, high = (float(each.magnitude) for each in facts.values())
    return _Band(value, low, high), facts, "published at 14 nm; the capacitance of a millimetre hardly changes"
