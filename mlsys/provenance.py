"""Where a number comes from: facts with a pedigree and the steps that join them.

A :class:`Fact` is a leaf: somebody published a value and we can say who, when
and what it means. A :class:`Step` is a node: an operator or a formula applied
to operands. Quantities carry one of the two, so a result can always be asked
which facts it leans on and by which sum it was reached.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = ["Fact", "Origin", "Step", "perturbed", "read", "recording", "remembered", "unrecorded", "used_facts"]

T = TypeVar("T")

_CONFIDENCE = ("verified", "secondary", "unverified", "derived", "defined", "assumed")


@dataclass(frozen=True)
class Fact:
    """The birth certificate of a number.

    Attributes
    ----------
    name
        Unique name, such as ``"A100_80GB/memory/HBM/bandwidth"``.
    meaning
        What exactly was counted: dense or sparse, per direction or both, which node.
    source
        Who published the value, precise enough to find it again.
    date
        When it was published, ``YYYY``, ``YYYY-MM`` or ``YYYY-MM-DD``.
    uncertainty
        In the fact's own unit; 0 for definitions, None where the source states none.
    confidence
        ``verified`` (the source was read), ``secondary`` (a transcription was read),
        ``unverified`` (from memory, to be confirmed), ``derived``, ``defined`` or
        ``assumed`` (made up for teaching).

    Examples
    --------
    >>> Fact("demo", meaning="peak, dense", source="  ", date="2020")
    Traceback (most recent call last):
        ...
    ValueError: Fact 'demo': `source` must say who published the value, got '  '.
        Write e.g. source="NVIDIA A100 datasheet, 2021"
    """

    name: str
    meaning: str
    source: str
    date: str
    uncertainty: float | None = None
    confidence: str = "verified"

    def __post_init__(self) -> None:
        hints = {
            "name": ("name the value", 'name="ENERGY_DRAM_ACCESS_PJ"'),
            "meaning": ("say what was counted", 'meaning="dense peak, FP16 matrix units"'),
            "source": ("say who published the value", 'source="NVIDIA A100 datasheet, 2021"'),
            "date": ("say when it was published", 'date="2021-06"'),
        }
        for argument, (wanted, example) in hints.items():
            given = getattr(self, argument)
            if not isinstance(given, str) or not given.strip():
                raise ValueError(f"Fact {self.name!r}: `{argument}` must {wanted}, got {given!r}. Write e.g. {example}")
        if self.confidence not in _CONFIDENCE:
            raise ValueError(
                f"Fact {self.name!r}: `confidence` must be one of {', '.join(_CONFIDENCE)}, got {self.confidence!r}."
            )
        if self.uncertainty is not None and not (math.isfinite(self.uncertainty) and self.uncertainty >= 0):
            raise ValueError(
                f"Fact {self.name!r}: `uncertainty` must be a finite number >= 0 in the unit of the value, "
                f"got {self.uncertainty!r}."
            )

    def facts(self) -> tuple[Fact, ...]:
        """Return this fact alone."""
        return (self,)

    def expression(self) -> str:
        """Return the name of the fact."""
        return f"the fact {self.name}"

    def pedigree(self, quantity: Any) -> str:
        """Return the printed birth certificate of ``quantity``."""
        spread = (
            "not stated" if self.uncertainty is None else f"± {self.uncertainty:g}" if self.uncertainty else "exact"
        )
        return (
            f"{self.name} = {quantity:~P}\n  meaning     {self.meaning}\n  uncertainty {spread}\n"
            f"  source      {self.source} ({self.date})\n  confidence  {self.confidence}"
        )


_LONG = 6  # operands; a longer sum is told by its length, a longer call by its first ones
_FIRST = 4


@dataclass(frozen=True, slots=True)
class Step:
    """An operator or a formula applied to operands.

    ``symbol`` is ``×``, ``÷``, ``+``, ``−``, ``^`` or the name of a formula.
    """

    symbol: str
    operands: tuple[Any, ...]
    names: tuple[str, ...] = ()
    _facts: list[tuple[Fact, ...]] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(cls, symbol: str, *operands: Any) -> Step:
        """Make the step of an operator from its operands."""
        return cls(symbol, operands)

    def facts(self) -> tuple[Fact, ...]:
        """Return every fact below this step, each once, in order of appearance."""
        if not self._facts:  # on a stack of its own: a running sum is as deep as it is long
            found: dict[Fact, None] = {}
            seen: set[int] = set()
            waiting: list[Origin] = [self]
            while waiting:
                origin = waiting.pop()
                if isinstance(origin, Fact):
                    found[origin] = None
                elif id(origin) not in seen:
                    seen.add(id(origin))
                    waiting += filter(None, map(origin_of, reversed(origin.operands)))
            self._facts.append(tuple(found))
        return self._facts[0]

    def expression(self) -> str:
        """Return the sum one level deep: ``312 TFLOP/s ÷ 2039 GB/s``."""
        if self.symbol == "+" and len(self.operands) > _LONG:
            return f"the sum of {len(self.operands)} values"
        shown = [_short(operand) for operand in self.operands]
        if self.names:
            inside = [f"{name}={text}" for name, text in zip(self.names, shown, strict=True)]
            if len(inside) > _LONG:
                inside[_FIRST:] = [f"and {len(inside) - _FIRST} more"]
            return f"{self.symbol}({', '.join(inside)})"
        if self.symbol.isidentifier():
            return f"{self.symbol}({', '.join(shown)})"
        return f" {self.symbol} ".join(shown)


Origin = Fact | Step


def origin_of(value: Any) -> Origin | None:
    """Return the origin a quantity carries, or None for anything else."""
    return getattr(value, "_origin", None)


def _short(operand: Any) -> str:
    magnitude = getattr(operand, "magnitude", operand)
    if getattr(magnitude, "ndim", 0):
        return f"[{magnitude.size} values]"
    if isinstance(magnitude, (int, float)) and getattr(operand, "units", None) and not operand.unitless:
        if magnitude and not 1e-2 <= abs(magnitude) < 1e4:
            operand = operand.to_compact()
        return f"{operand.magnitude:.6g} {operand.units:~P}"
    return f"{magnitude:.6g}" if isinstance(magnitude, float) else str(magnitude)


# --- reading facts: who used them, and what if they were different ----------------

_recorders: list[dict[str, Any]] = []
_factors: dict[str, float] = {}


def _factors_from_environment() -> None:
    """Read ``MLSYS_PERTURB="name=1.01,other=0.99"``: the what-if switch of the tests."""
    for item in filter(None, os.environ.get("MLSYS_PERTURB", "").split(",")):
        name, _, factor = item.rpartition("=")
        try:
            _factors[name.strip()] = float(factor)
        except ValueError:
            raise ValueError(
                f'MLSYS_PERTURB must be like "A100_80GB/power/tdp=1.01,other=0.99", got {item!r}'
            ) from None


_factors_from_environment()


def read(quantity: Any) -> Any:
    """Hand out a fact: note that it was used and apply a perturbation, if one is set."""
    fact = quantity._origin
    factor = _factors.get(fact.name)
    if factor is not None:
        changed = quantity.__class__(quantity.magnitude * factor, quantity.units)
        changed._origin = fact
        quantity = changed
    else:
        quantity = quantity.__copy__()
    for recorder in _recorders:
        recorder[fact.name] = quantity
    return quantity


@contextlib.contextmanager
def recording() -> Iterator[dict[str, Any]]:
    """Collect every fact read inside the block, by name.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> with recording() as seen:
    ...     _ = Hardware.Cloud.A100.memory_bw
    >>> list(seen)
    ['A100_80GB/memory/HBM/bandwidth']
    """
    seen: dict[str, Any] = {}
    _recorders.append(seen)
    try:
        yield seen
    finally:
        _recorders[:] = [recorder for recorder in _recorders if recorder is not seen]


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Leave facts that are read inside the block out of every collection around it.

    For a figure over a whole catalogue, which leans on so many facts that naming them says nothing.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> with recording() as seen, unrecorded():
    ...     _ = Hardware.Cloud.A100.memory_bw
    >>> list(seen)
    []
    """
    outside = list(_recorders)
    _recorders.clear()
    try:
        yield
    finally:
        _recorders[:] = outside


def remembered(function: Callable[..., T]) -> Callable[..., T]:
    """Run a function once for each set of arguments, and again while a fact that it read is perturbed.

    For answers over a whole catalogue that take a second; the arguments must be hashable.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> @remembered
    ... def bandwidth(name):
    ...     return Hardware[name].memory_bw.magnitude
    >>> bandwidth("A100")
    2039
    >>> with perturbed("A100_80GB/memory/HBM/bandwidth", 2):
    ...     bandwidth("A100")
    4078
    >>> bandwidth("A100")
    2039
    """
    kept: dict[tuple[Any, ...], tuple[T, frozenset[str]]] = {}

    @functools.wraps(function)
    def answer(*args: Any) -> T:
        if args in kept and not kept[args][1] & _factors.keys():
            return kept[args][0]
        with recording() as seen:
            result = function(*args)
        if not seen.keys() & _factors.keys():
            kept[args] = result, frozenset(seen)
        return result

    return answer


@contextlib.contextmanager
def perturbed(name: str, factor: float) -> Iterator[None]:
    """Multiply the fact ``name`` by ``factor`` wherever it is read inside the block; blocks may nest."""
    before = _factors.get(name)
    _factors[name] = factor if before is None else before * factor
    try:
        yield
    finally:
        if before is None:
            del _factors[name]
        else:
            _factors[name] = before


def used_facts(*quantities: Any) -> tuple[Fact, ...]:
    """Return the facts that the given quantities lean on, each once."""
    found: dict[Fact, None] = {}
    for quantity in quantities:
        origin = origin_of(quantity)
        if origin is not None:
            found.update(dict.fromkeys(origin.facts()))
    return tuple(found)
