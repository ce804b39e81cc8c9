"""Numbers of a lab's questions, drawn for each student from a seed that anyone can recompute."""

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

__all__ = ["LONGEST_NAME", "Draw", "same_student", "seed_of"]

LONGEST_NAME = 120
"""Characters that count in the name or id of a student."""
_SEED_DIGITS = 16
_Value = TypeVar("_Value")


def same_student(student: str) -> str:
    """Return a name or id as it enters the seed: without case, outer blanks and repeated blanks.

    Examples
    --------
    >>> same_student("  Ada   LOVELACE ")
    'ada lovelace'
    """
    return " ".join(unicodedata.normalize("NFKC", student[:LONGEST_NAME]).casefold().split())


def seed_of(lab: str, student: str = "") -> str:
    """Return the seed of a student's questions in a lab: 16 hexadecimal digits of a SHA-256 digest.

    Without a student it is the seed of the printed pages and of the labs on the web.

    Examples
    --------
    >>> seed_of("01-amdahl", "Ada Lovelace") == seed_of("01-amdahl", " ada lovelace")
    True
    >>> seed_of("01-amdahl")
    'a83869d8d9ff7c76'
    """
    text = f"mlsys-lab\n{lab}\n{same_student(student)}"
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:_SEED_DIGITS]


@dataclass(frozen=True)
class Draw:
    """The values that one student gets in one lab.

    Each value depends on the seed and on its key alone, so that a new question leaves the values of the others.

    Attributes
    ----------
    lab
        Name of the lab, such as ``"01-amdahl"``.
    student
        Name or id; empty for the printed pages.
    offered
        The values that each key was drawn from, by key.

    Examples
    --------
    >>> Draw("01-amdahl", "Ada").pick("batch", (12, 20, 28)) in (12, 20, 28)
    True
    """

    lab: str
    student: str = ""
    offered: dict[str, tuple[object, ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def seed(self) -> str:
        """The seed of the student in this lab."""
        return seed_of(self.lab, self.student)

    def pick(self, key: str, values: Sequence[_Value]) -> _Value:
        """Return one of ``values``, always the same for one seed and one key."""
        self.offered[key] = tuple(values)
        digest = hashlib.sha256(f"{self.seed}\n{key}".encode()).digest()
        return values[int.from_bytes(digest[:8], "big") % len(values)]
