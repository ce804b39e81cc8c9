"""Design tasks: a few choices, limits to keep, and a score against the best of all choices."""

import itertools
import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

__all__ = ["GOOD", "Built", "Design", "Knob", "Outcome"]

GOOD = 0.9
"""Score from which a design counts as good."""


@dataclass(frozen=True)
class Knob:
    """One choice of a design: its name, its label, and its options as (label, value) pairs."""

    id: str
    label: str
    options: tuple[tuple[str, Any], ...]

    @property
    def values(self) -> tuple[Any, ...]:
        """The values that it offers."""
        return tuple(value for _, value in self.options)


@dataclass(frozen=True)
class Built:
    """Outcome of a design: its cost, and the limit that it breaks.

    Attributes
    ----------
    cost
        Quantity that the task asks to minimise.
    summary
        The outcome in one sentence with its numbers.
    fault
        The limit that it breaks; empty if it meets all.
    """

    cost: float
    summary: str
    fault: str = ""


@dataclass(frozen=True)
class Outcome:
    """The score of a design, 0 if it breaks a limit; whether it keeps all limits; and a sentence about it."""

    score: float
    meets: bool
    feedback: str


@dataclass(frozen=True)
class Design:
    """A design task.

    Attributes
    ----------
    id
        Its name, unique in the lab.
    text
        The task: what to make small, and which limits to keep.
    knobs
        The choices.
    build
        Function from the values of all knobs, by name, to what the design comes to.
    """

    id: str
    text: str
    knobs: tuple[Knob, ...]
    build: Callable[..., Built]

    def accepts(self, choice: object) -> bool:
        """Return whether ``choice`` gives each knob, and no other, one of its values."""
        if not isinstance(choice, Mapping) or set(choice) != {knob.id for knob in self.knobs}:
            return False
        return all(
            any(type(choice[knob.id]) is type(value) and choice[knob.id] == value for value in knob.values)
            for knob in self.knobs
        )

    def choices(self) -> Iterator[dict[str, Any]]:
        """Yield every possible choice, with the last knob varying fastest."""
        for values in itertools.product(*(knob.values for knob in self.knobs)):
            yield dict(zip((knob.id for knob in self.knobs), values, strict=True))

    @cached_property
    def best(self) -> float:
        """The least cost of all choices that keep the limits."""
        built = (self.build(**choice) for choice in self.choices())
        return min(each.cost for each in built if not each.fault)

    def score(self, choice: object) -> Outcome:
        """Return the score of a choice: the best cost over its cost, and 0 for one that breaks a limit.

        A record that is no choice of this task scores 0 as well.
        """
        if not self.accepts(choice):
            return Outcome(0.0, False, f"{reprlib.repr(choice)} is no choice of this task.")
        assert isinstance(choice, Mapping)
        built = self.build(**choice)
        if built.fault:
            return Outcome(0.0, False, f"{built.summary} {built.fault}")
        return Outcome(min(1.0, self.best / built.cost), True, built.summary)
