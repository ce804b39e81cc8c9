"""The file that a student hands in: one JSON file for each lab, with a checksum against accidents.

The format is version 1 of ``mlsys-lab``::

    {"format": "mlsys-lab", "version": 1, "lab": "01-amdahl", "student": "…", "seed": "…",
     "started": "2026-01-31T09:00:00+00:00", "handed_in": "2026-01-31T09:45:00+00:00",
     "questions": {id: {"attempts": [{"at": …, "answer": …, "correct": true}], "solution_shown": false}},
     "claims": {id: {"attempts": […], "solution_shown": false}},
     "design": {id: {"choice": {…}, "score": 0.93, "reason": "…"}},
     "measurements": {…}, "checksum": "…"}

The checksum guards against a cut or edited file, not against forgery: :mod:`mlsys.grading`, which reads the files,
recomputes every answer.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlsys.files import write_text

__all__ = ["FORMAT", "VERSION", "Answer", "Attempt", "DesignAnswer", "HandIn", "checksum"]

FORMAT, VERSION = "mlsys-lab", 1


@dataclass(frozen=True)
class Attempt:
    """One answer to a question: when it was given, what it was, and whether the lab called it correct."""

    at: str
    answer: str | float
    correct: bool


@dataclass(frozen=True)
class Answer:
    """All attempts at one question, in order, and whether its solution was shown."""

    attempts: tuple[Attempt, ...] = ()
    solution_shown: bool = False


@dataclass(frozen=True)
class DesignAnswer:
    """The answer to a design task: what was chosen, the score that the lab gave, and the reason in words."""

    choice: Mapping[str, Any]
    score: float
    reason: str = ""


@dataclass(frozen=True)
class HandIn:
    """What a student hands in for one lab.

    Attributes
    ----------
    lab, student, seed
        Name of the lab, name or id as typed, and the seed of the questions.
    started, handed_in
        Times in ISO 8601, with their offset.
    questions, claims
        Answers by question.
    design
        Answers by design task.
    measurements
        Records measured on the student's machine, by name.
    """

    lab: str
    student: str
    seed: str
    started: str
    handed_in: str
    questions: Mapping[str, Answer] = field(default_factory=dict)
    claims: Mapping[str, Answer] = field(default_factory=dict)
    design: Mapping[str, DesignAnswer] = field(default_factory=dict)
    measurements: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the file's content as plain data, with its checksum."""
        record = {
            "format": FORMAT,
            "version": VERSION,
            **{name: getattr(self, name) for name in ("lab", "student", "seed", "started", "handed_in")},
            "questions": {name: _answer_record(answer) for name, answer in self.questions.items()},
            "claims": {name: _answer_record(answer) for name, answer in self.claims.items()},
            "design": {
                name: {"choice": dict(given.choice), "score": given.score, "reason": given.reason}
                for name, given in self.design.items()
            },
            "measurements": dict(self.measurements),
        }
        return {**record, "checksum": checksum(record)}

    def text(self) -> str:
        """Return the text of the file."""
        return json.dumps(self.record(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def write(self, path: str | Path) -> Path:
        """Write the file, and return its path."""
        return write_text(path, self.text())


def checksum(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record's canonical JSON: sorted keys, no spaces, ASCII, without ``checksum``.

    Examples
    --------
    >>> checksum({"b": 1, "a": "é"}) == checksum({"a": "é", "b": 1, "checksum": "any"})
    True
    """
    kept = {name: value for name, value in record.items() if name != "checksum"}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _answer_record(answer: Answer) -> dict[str, Any]:
    attempts = [{"at": each.at, "answer": each.answer, "correct": each.correct} for each in answer.attempts]
    return {"attempts": attempts, "solution_shown": answer.solution_shown}
