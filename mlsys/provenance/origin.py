"""Origin of a number: a published fact, or a step that computes it from others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_CONFIDENCE = ("verified", "secondary", "unverified", "derived", "defined", "assumed")


@dataclass(frozen=True)
class Fact:
    """A published value: its name, meaning, source, date and confidence.

    Attributes
    ----------
    name
        Unique name, such as ``"A100_80GB/memory/HBM/bandwidth"``.
    meaning
        Precise definition of the value: dense or sparse, per direction or both, which node.
    source
        Publication of the value, precise enough to find it again.
    date
        Date of publication, ``YYYY``, ``YYYY-MM`` or ``YYYY-MM-DD``.
    uncertainty
        In the unit of the value; 0 for definitions, None if the source states none.
    confidence
        ``verified`` (the source was read), ``secondary`` (a transcription was read),
        ``unverified`` (from memory, to be confirmed), ``derived``, ``defined`` or
        ``assumed`` (made up for teaching, or an assumption that ``source`` explains
        and ``uncertainty`` bounds).

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

    def __hash__(self) -> int:
        return hash(self.name)  # names are unique, and facts are hashed very often

    def facts(self) -> tuple[Fact, ...]:
        """Return this fact alone."""
        return (self,)

    def sets(self) -> tuple[Fact, ...]:
        """Return this fact alone."""
        return (self,)

    def compared(self) -> tuple[Fact, ...]:
        """Return an empty tuple: a fact is not compared with others."""
        return ()

    def expression(self) -> str:
        """Return the name of the fact."""
        return f"the fact {self.name}"

    def describe(self, quantity: object) -> str:
        """Return the printed form of ``quantity``: its value, meaning, uncertainty, source and confidence."""
        uncertainty = (
            "not stated" if self.uncertainty is None else f"± {self.uncertainty:g}" if self.uncertainty else "exact"
        )
        return (
            f"{self.name} = {quantity:~P}\n  meaning     {self.meaning}\n  uncertainty {uncertainty}\n"
            f"  source      {self.source} ({self.date})\n  confidence  {self.confidence}"
        )


_LONG = 6  # operands; for a longer sum only their number is printed, for a longer call only the first ones
_FIRST = 4


@dataclass(frozen=True, slots=True)
class Step:
    """An operator or a formula applied to operands.

    ``symbol`` is ``×``, ``÷``, ``+``, ``−``, ``^`` or the name of a formula.

    Facts influence a result in two ways. Those that *set* it enter its expression. Others are only *compared*:
    their limit was not the binding one, or they decided whether something fits, and a change of them matters only
    if it changes that outcome. ``against`` lists further facts that this step was compared with.
    """

    symbol: str
    operands: tuple[Any, ...]
    names: tuple[str, ...] = ()
    _known: list[tuple[tuple[Fact, ...], tuple[Fact, ...]]] = field(default_factory=list, compare=False, repr=False)
    against: tuple[Fact, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, symbol: str, *operands: Any) -> Step:
        """Return the step of an operator applied to operands."""
        return cls(symbol, operands)

    @classmethod
    def from_facts(cls, symbol: str, words: Mapping[str, str], sets: Iterable[Fact], compared: Iterable[Fact]) -> Step:
        """Return the step of a model that computes with plain numbers, from its labelled arguments and its facts."""
        own = dict.fromkeys(sets)
        rest = tuple(fact for fact in dict.fromkeys(compared) if fact not in own)
        return cls(symbol, tuple(words.values()), tuple(words), _known=[(tuple(own), rest)])

    def facts(self) -> tuple[Fact, ...]:
        """Return every fact below this step without duplicates: first those that set it, then the compared ones."""
        sets, compared = self._below()
        return sets + compared

    def sets(self) -> tuple[Fact, ...]:
        """Return the facts below this step that enter its expression."""
        return self._below()[0]

    def compared(self) -> tuple[Fact, ...]:
        """Return the facts below this step that were only compared and do not enter its expression."""
        return self._below()[1]

    def _below(self) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
        """Return the facts that set this step, and those that are only compared."""
        if not self._known:  # iterative, as a running sum is as deep as it is long
            sets: dict[Fact, None] = {}
            compared = dict.fromkeys(self.against)
            seen: set[int] = {id(self)}
            stack: list[Origin] = list(filter(None, map(origin_of, reversed(self.operands))))
            while stack:
                origin = stack.pop()
                if isinstance(origin, Fact):
                    sets[origin] = None
                elif id(origin) not in seen:
                    seen.add(id(origin))
                    if origin._known:
                        sets |= dict.fromkeys(origin._known[0][0])
                        compared |= dict.fromkeys(origin._known[0][1])
                    else:
                        compared |= dict.fromkeys(origin.against)
                        stack += filter(None, map(origin_of, reversed(origin.operands)))
            self._known.append((tuple(sets), tuple(fact for fact in compared if fact not in sets)))
        return self._known[0]

    def expression(self) -> str:
        """Return the expression one level deep, such as ``312 TFLOP/s ÷ 2039 GB/s``."""
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


def origin_of(value: object) -> Origin | None:
    """Return the origin of a quantity, or None for any other object."""
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


def used_facts(*quantities: Any) -> tuple[Fact, ...]:
    """Return the facts that the given quantities depend on, without duplicates."""
    facts: dict[Fact, None] = {}
    for quantity in quantities:
        origin = origin_of(quantity)
        if origin is not None:
            facts.update(dict.fromkeys(origin.facts()))
    return tuple(facts)
