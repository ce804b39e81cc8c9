"""Rules that derive prices from published figures, in pJ, pJ/byte and pJ/bit/mm.

Each rule gives the price and its uncertainty range. Facts are read lazily, so the provenance of a price at
7 nm lists only the 7 nm column.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from mlsys._facts import PUBLISHED
from mlsys.frozen import FrozenDict
from mlsys.provenance import Fact, read
from mlsys.units import Quantity, Unit, number_in, ureg

OLD, NEW = 45.0, 7.0
"""The two process nodes with published energies, nm."""
WORD = 4.0
"""Bytes of the word that register and SRAM prices refer to."""

_SPAN = math.log(OLD / NEW)
_KIB = 1024.0
_REGISTERS = 1.0  # KiB: a memory this small is priced as a register file
# Formats: family, and width in bits for the arithmetic.
_WIDTHS = {
    "fp64": ("FP", 64), "fp32": ("FP", 32), "tf32": ("FP", 19), "fp16": ("FP", 16), "bf16": ("FP", 16),
    "fp8": ("FP", 8), "fp6": ("FP", 6), "fp4": ("FP", 4),
    "int16": ("INT", 16), "int8": ("INT", 8), "int4": ("INT", 4), "int1": ("INT", 1),
}  # fmt: skip
_KNOWN = {"FP": (16, 32), "INT": (8, 32)}

Number = Callable[[], float]
Range = tuple[float, float]


_UNITS = {"_PJ_PER_BIT_MM": ureg.Unit("pJ/bit/mm"), "_PJ_PER_BIT": ureg.Unit("pJ/bit"), "_PJ": ureg.Unit("pJ")}
_RATIO = ureg.Unit("")


def _unit_of(name: str) -> Unit:
    return next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), _RATIO)


class Reader:
    """Lazy reader of facts, in the unit that their names end in; it records which facts were read.

    ``factors`` scale some of them, to find out which facts an end of a range depends on.
    """

    def __init__(self, factors: Mapping[str, float] | None = None) -> None:
        self.facts: dict[str, Quantity] = {}
        self.factors = factors or {}

    def __call__(self, name: str) -> float:
        """Return the value of a fact, under the active what-ifs."""
        if name not in self.facts:
            self.facts[name] = read(PUBLISHED[name])
        return number_in(self.facts[name], _unit_of(name)) * self.factors.get(name, 1.0)

    def later(self, name: str) -> Number:
        """Return a function that reads the fact when called."""
        return lambda: self(name)


class Rule(NamedTuple):
    """One kind of price: functions for its value, its range and its description."""

    value: Callable[..., float]
    reach: Callable[..., Range]
    words: Callable[..., str]


# --- from node to node ----------------------------------------------------------------


def _power(old: float, new: float) -> float:
    return math.log(old / new) / _SPAN


def _scaled(old: Number, new: Number, node: float, beyond: Number | None = None) -> float:
    """Return a price, ``old`` at 45 nm and ``new`` at 7 nm, at another node; ``beyond`` is the exponent outside."""
    if node in (OLD, NEW):
        return old() if node == OLD else new()
    if NEW < node < OLD:
        return float(new() * (node / NEW) ** _power(old(), new()))
    near, base = (NEW, new) if node < NEW else (OLD, old)
    return float(base() * (node / near) ** (_power(old(), new()) if beyond is None else beyond()))


def _between_columns(at_old: Number, at_new: Number, node: float) -> Range:
    """Return the range of a price: from the nearest column's value to scaling twice as steep as the power law."""
    if node in (OLD, NEW):  # the other column says nothing about a published one
        published = at_old() if node == OLD else at_new()
        return published, published
    old, new = at_old(), at_new()
    near, base = (NEW, new) if node * node < OLD * NEW else (OLD, old)
    steep = base * (node / near) ** (2 * _power(old, new))
    if NEW <= node <= OLD:
        steep = min(max(steep, min(old, new)), max(old, new))
    return min(base, steep), max(base, steep)


# --- arithmetic -----------------------------------------------------------------------


def _columns(get: Reader, kind: str, precision: str) -> tuple[Number, Number]:
    """Return the price of an addition or multiplication at 45 and at 7 nm, as lazy readers."""
    family, bits = _WIDTHS[precision]
    narrow, wide = _KNOWN[family]

    def published(what: str, column: str) -> Number:
        return get.later(f"ENERGY_{kind}_{what}{column}_PJ")

    if precision == "bf16":  # at 45 nm by the same ratio to FP16 as at 7 nm
        new, old16, new16 = published("BF16", "_7NM"), published("FP16", ""), published("FP16", "_7NM")
        return lambda: old16() * new() / new16(), new
    if bits in (narrow, wide):
        return published(f"{family}{bits}", ""), published(f"{family}{bits}", "_7NM")
    share = math.log(bits / narrow) / math.log(wide / narrow)

    def at(column: str) -> Number:
        small, large = (published(f"{family}{width}", column) for width in (narrow, wide))
        return lambda: small() * (large() / small()) ** share

    return at(""), at("_7NM")


def _operation_reach(get: Reader, node: float, kind: str, precision: str) -> Range:
    family, bits = _WIDTHS[precision]
    narrow, wide = _KNOWN[family]
    old, new = _columns(get, kind, precision)
    low, high = _between_columns(old, new, node)
    if precision != "bf16" and bits not in (narrow, wide):
        near = f"{family}{narrow if bits * bits < narrow * wide else wide}"
        beside = _between_columns(
            get.later(f"ENERGY_{kind}_{near}_PJ"), get.later(f"ENERGY_{kind}_{near}_7NM_PJ"), node
        )
        wider = bits / float(near.removeprefix(family))
        ends = [end * factor for end in beside for factor in (wider, wider**2)]
        low, high = min(low, *ends), max(high, *ends)
    return low, high


def _mac(get: Reader, node: float, precision: str) -> float:
    return sum(_scaled(*_columns(get, kind, precision), node) for kind in ("MUL", "ADD"))


def _mac_reach(get: Reader, node: float, precision: str) -> Range:
    low, high = _operation_reach(get, node, "MUL", precision)
    least, most = _operation_reach(get, node, "ADD", precision)
    wide = get.later("ENERGY_ADD_FP32_PJ"), get.later("ENERGY_ADD_FP32_7NM_PJ")
    if _WIDTHS[precision][0] == "INT":
        wide = get.later("ENERGY_ADD_INT32_PJ"), get.later("ENERGY_ADD_INT32_7NM_PJ")
    return low + least, high + max(most, _scaled(*wide, node))


def _mac_words(precision: str) -> str:
    family, bits = _WIDTHS[precision]
    narrow, wide = _KNOWN[family]
    if precision == "bf16":
        how = "published at 7 nm; at 45 nm by the same ratio to FP16"
    elif bits in (narrow, wide):
        how = "published at 45 and 7 nm"
    else:
        how = f"{precision} is not published: power law in the width through {family}{narrow} and {family}{wide}"
    return f"{how}; 32-bit accumulation is the high end"


# --- memories on the chip ----------------------------------------------------------------

# Arrays by KiB, with their facts at 45 and at 7 nm; below the smallest, a register file is used.
_ARRAYS = (
    (8.0, "ENERGY_SRAM_L1_PJ", "ENERGY_SRAM_8KB_7NM_PJ"),
    (32.0, "ENERGY_SRAM_32KB_PJ", "ENERGY_SRAM_32KB_7NM_PJ"),
    (1024.0, "ENERGY_SRAM_L2_PJ", "ENERGY_SRAM_1MB_7NM_PJ"),
)
_LEAST, _LARGEST = _ARRAYS[0][0], _ARRAYS[-1][0]
_REGISTER_WORDS = (
    "published at 45 nm; scaled by the geometric mean of the published table, in a range from an 8-bit addition to "
    "an 8 KiB array"
)


def _register_columns(get: Reader) -> tuple[Number, Number]:
    old, shrink = get.later("ENERGY_REG_PJ"), get.later("ENERGY_SHRINK_45_TO_7NM")
    return old, lambda: old() / shrink()


def _register(get: Reader, node: float) -> float:
    return _scaled(*_register_columns(get), node)


def _register_reach(get: Reader, node: float) -> Range:
    old, new = _register_columns(get)
    if node == OLD:
        return old(), old()
    logic = _power(get("ENERGY_ADD_INT8_PJ"), get("ENERGY_ADD_INT8_7NM_PJ"))
    array = _power(get(_ARRAYS[0][1]), get(_ARRAYS[0][2]))
    ends = (*_between_columns(old, new, node), *(old() * (node / OLD) ** slope for slope in (logic, array)))
    return min(ends), max(ends)


def _sram_columns(get: Reader, size: float) -> tuple[Number, Number, Number]:
    """Return the price of an array of ``size`` KiB at both nodes, and the exponent beyond them."""
    points = [(at, get.later(old), get.later(new)) for at, old, new in _ARRAYS]
    _, smallest, smallest_new = points[0]

    def steep(old: Number, new: Number) -> Number:
        return lambda: _power(old(), new())

    flat = steep(smallest, smallest_new)
    if size < _LEAST:
        points.insert(0, (_REGISTERS, *_register_columns(get)))
    for at, old, new in points:
        if at == size:
            return old, new, flat
    if size > _LARGEST:
        return *points[-1][1:], flat
    (small, old, new), (large, more, more_new) = next(
        pair for pair in itertools.pairwise(points) if pair[0][0] < size < pair[1][0]
    )
    share = math.log(size / small) / math.log(large / small)

    def mixed(small_energy: Number, large_energy: Number) -> Number:
        return lambda: small_energy() * (large_energy() / small_energy()) ** share

    own = steep(old, new)
    beyond = flat if size > _LEAST else lambda: own() + share * (flat() - own())
    return mixed(old, more), mixed(new, more_new), beyond


def _sram(get: Reader, node: float, size: float) -> float:
    if size <= _REGISTERS * _KIB:
        return _register(get, node)
    old, new, beyond = _sram_columns(get, size / _KIB)
    return _scaled(old, new, node, beyond)


def price_grows(size: float) -> bool:
    """Return whether the price per word of an SRAM of ``size`` bytes depends on its size."""
    return _REGISTERS * _KIB < size <= _LARGEST * _KIB


def _sram_reach(get: Reader, node: float, size: float) -> Range:
    if size <= _REGISTERS * _KIB:
        return _register_reach(get, node)
    old, new, beyond = _sram_columns(get, size / _KIB)
    value = _scaled(old, new, node, beyond)
    low, high = _between_columns(old, new, node)
    *smallest, _ = _sram_columns(get, _LEAST)
    cheaper = get("ENERGY_SRAM_8KB_14NM_PJ") / _scaled(smallest[0], smallest[1], 14.0)
    farther = math.sqrt(max(size / _KIB / _LARGEST, 1.0))
    return min(low, value) * min(cheaper, 1.0), max(high, value) * farther


def _sram_words(size: float) -> str:
    if size <= _REGISTERS * _KIB:
        return f"priced as a register file: {_REGISTER_WORDS}"
    larger = "; a larger memory is made of such arrays" if size > _LARGEST * _KIB else ""
    return f"power law in the capacity through the published 8 KiB, 32 KiB and 1 MiB{larger}"


# --- memories beside the chip --------------------------------------------------------------

# By kind of memory: the facts of its price and of both ends of its range, and a description.
_BESIDE = {
    "HBM": (
        "ENERGY_HBM2_PJ_PER_BIT",
        "ENERGY_HBM2_PJ_PER_BIT",
        "ENERGY_HBM2_MOST_PJ_PER_BIT",
        "HBM2, used for all HBM",
    ),
    "GDDR5": ("ENERGY_GDDR5_PJ_PER_BIT", "ENERGY_GDDR6_PJ_PER_BIT", "ENERGY_DRAM_64BIT_MOST_PJ", "GDDR5"),
    "GDDR": ("ENERGY_GDDR6_PJ_PER_BIT", "", "", "GDDR6, used for all GDDR but GDDR5"),
    "LPDDR": (
        "ENERGY_LPDDR_PJ_PER_BIT",
        "ENERGY_LPDDR4_LEAST_PJ_PER_BIT",
        "ENERGY_LPDDR4_MOST_PJ_PER_BIT",
        "DRAM with an improved interface, used for all LPDDR",
    ),
    "DDR": ("ENERGY_DRAM_ACCESS_PJ", "ENERGY_LPDDR_PJ_PER_BIT", "ENERGY_DRAM_64BIT_MOST_PJ", "DDR3, used for all DDR"),
}
_SAME = {"stacked DRAM": "HBM"}


def _beside(technology: str, generation: str) -> tuple[str, bool]:
    """Return the kind of memory whose price is used, and whether that is the technology itself."""
    if technology == "GDDR" and generation.startswith("5"):
        return "GDDR5", True
    kind = _SAME.get(technology, technology)
    return (kind, technology in _BESIDE) if kind in _BESIDE else ("DDR", False)


def _a_byte(get: Reader, name: str) -> float:
    """Return a fact about a bit, a 32-bit or a 64-bit word in pJ/byte."""
    if name.endswith("_PER_BIT"):
        return get(name) * 8.0
    return get(name) / (8.0 if "64BIT" in name else WORD)


def _dram(get: Reader, node: float, technology: str, generation: str) -> float:
    return _a_byte(get, _BESIDE[_beside(technology, generation)[0]][0])


def _dram_reach(get: Reader, node: float, technology: str, generation: str) -> Range:
    own, low, high, _ = _BESIDE[_beside(technology, generation)[0]]
    if low:
        return _a_byte(get, low), _a_byte(get, high)
    origin = PUBLISHED[own]._origin
    spread = 8.0 * ((origin.uncertainty or 0.0) if isinstance(origin, Fact) else 0.0)
    return _a_byte(get, own) - spread, _a_byte(get, own) + spread


def _dram_words(technology: str, generation: str) -> str:
    kind, own = _beside(technology, generation)
    return f"published for {_BESIDE[kind][-1]}" + ("" if own else f"; assumed, as the memory is {technology}")


# --- wires -------------------------------------------------------------------------------------


def _wire(get: Reader, node: float) -> float:
    return get("ENERGY_WIRE_PJ_PER_BIT_MM")


def _wire_reach(get: Reader, node: float) -> Range:
    return get("ENERGY_WIRE_LEAST_PJ_PER_BIT_MM"), get("ENERGY_WIRE_MOST_PJ_PER_BIT_MM")


RULES: FrozenDict[str, Rule] = FrozenDict(
    {
        "mac": Rule(_mac, _mac_reach, _mac_words),
        "register": Rule(_register, _register_reach, lambda: _REGISTER_WORDS),
        "sram": Rule(_sram, _sram_reach, _sram_words),
        "dram": Rule(_dram, _dram_reach, _dram_words),
        "wire": Rule(_wire, _wire_reach, lambda: "published without a node; wire energy per millimetre hardly scales"),
    }
)
