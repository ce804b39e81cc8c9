"""The file that a student hands in: one JSON file for each lab, with a checksum against accidents.

The format is version 1 of ``mlsys-lab``::

    {"format": "mlsys-lab", "version": 1, "lab": "01-amdahl", "student": "…", "seed": "…",
     "started": "2026-01-31T09:00:00+00:00", "handed_in": "2026-01-31T09:45:00+00:00",
     "questions": {id: {"attempts": [{"at": …, "answer": …, "correct": true}], "solution_shown": false}},
     "claims": {id: {"attempts": […], "solution_shown": false}},
     "design": {id: {"choice": {…}, "score": 0.93, "reason": "…"}},
     "measurements": {…}, "checksum": "…"}

The checksum guards against a cut or edited file, not against forgery: whoever marks it recomputes every answer.
"""

import hashlib
import json
import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from mlsys.files import write_text
from mlsys.inputs import read_json
from mlsys.labs.draw import seed_of

__all__ = ["FORMAT", "VERSION", "Answer", "Attempt", "DesignAnswer", "HandIn", "HandInError", "checksum", "read_handin"]

FORMAT, VERSION = "mlsys-lab", 1
MOST_BYTES = 1_000_000
"""Bytes of the largest file that is read."""
_PARTS: dict[str, type] = {
    "format": str, "version": int, "lab": str, "student": str, "seed": str, "started": str, "handed_in": str,
    "questions": dict, "claims": dict, "design": dict, "measurements": dict, "checksum": str,
}  # fmt: skip


class HandInError(ValueError):
    """A file is not a lab that was handed in; the message says why."""


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

    @property
    def seed_fits(self) -> bool:
        """Whether the seed is that of the lab and the student."""
        return self.seed == seed_of(self.lab, self.student)

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


def read_handin(source: str | Path | Mapping[str, Any]) -> HandIn:
    """Return what a file, or a record read from one, hands in.

    Its form and its checksum are checked here; whether its answers are right is not.

    Raises
    ------
    HandInError
        If it cannot be read, is no lab that was handed in, or was changed since.

    Examples
    --------
    >>> mine = HandIn("01-amdahl", "Ada", "0" * 16, "2026-01-31T09:00:00+00:00", "2026-01-31T09:45:00+00:00")
    >>> read_handin(mine.record()) == mine
    True
    >>> read_handin({**mine.record(), "student": "Eve"})
    Traceback (most recent call last):
        ...
    mlsys.labs.handin.HandInError: the checksum does not fit: the file was cut or changed after it was handed in
    """
    record: dict[str, Any] = dict(source) if isinstance(source, Mapping) else _load(Path(source))
    if record.get("format") != FORMAT:
        raise HandInError(f"`format` must be {FORMAT!r}, got {reprlib.repr(record.get('format'))}")
    if record.get("version") != VERSION or isinstance(record["version"], bool):
        raise HandInError(f"version {reprlib.repr(record.get('version'))} of the format; this mlsys reads {VERSION}")
    if set(record) != set(_PARTS):
        wrong = ", ".join(sorted(map(reprlib.repr, set(record) ^ set(_PARTS))))
        raise HandInError(f"missing or unknown parts: {wrong}")
    for name, kind in _PARTS.items():
        if not isinstance(record[name], kind):
            raise HandInError(f"`{name}` must be {_NAMES[kind]}, got {reprlib.repr(record[name])}")
    try:
        fits = record["checksum"] == checksum(record)
    except (ValueError, TypeError, RecursionError) as error:
        raise HandInError(f"the record cannot be written as JSON ({error})") from None
    if not fits:
        raise HandInError("the checksum does not fit: the file was cut or changed after it was handed in")
    for name in ("started", "handed_in"):
        _check_time(f"`{name}`", record[name])
    return HandIn(
        **{name: record[name] for name in ("lab", "student", "seed", "started", "handed_in")},
        questions=_each("questions", record["questions"], _read_answer),
        claims=_each("claims", record["claims"], _read_answer),
        design=_each("design", record["design"], _read_design),
        measurements=record["measurements"],
    )


def _answer_record(answer: Answer) -> dict[str, Any]:
    attempts = [{"at": each.at, "answer": each.answer, "correct": each.correct} for each in answer.attempts]
    return {"attempts": attempts, "solution_shown": answer.solution_shown}


def _load(path: Path) -> dict[str, Any]:
    try:
        record = read_json(path, most=MOST_BYTES, pairs=_once)
    except (OSError, ValueError, RecursionError) as error:
        raise HandInError(f"{path.name}: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(record, dict):
        raise HandInError(f"{path.name} holds no record of a lab")
    return record


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping from its pairs; duplicate keys raise an error, since they are ambiguous."""
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a key stands twice in one mapping")
    return record


def _each(part: str, record: Mapping[str, Any], read: Callable[[str, Any], Any]) -> dict[str, Any]:
    return {name: read(f"`{part}.{name}`", value) for name, value in record.items()}


def _read_answer(where: str, value: Any) -> Answer:
    given = _fields(where, value, attempts=list, solution_shown=bool)
    attempts = []
    for each in given["attempts"]:
        tried = _fields(f"{where}, an attempt,", each, at=str, answer=(str, int, float), correct=bool)
        _check_time(f"{where}.at", tried["at"])
        answer = tried["answer"]
        if isinstance(answer, bool) or (isinstance(answer, float) and not math.isfinite(answer)):
            raise HandInError(f"{where}: {reprlib.repr(answer)} is no answer")
        attempts.append(Attempt(tried["at"], answer, tried["correct"]))
    return Answer(tuple(attempts), given["solution_shown"])


def _read_design(where: str, value: Any) -> DesignAnswer:
    given = _fields(where, value, choice=dict, score=(int, float), reason=str)
    if isinstance(given["score"], bool) or not 0 <= given["score"] <= 1:
        raise HandInError(f"{where}.score must be a number from 0 to 1, got {reprlib.repr(given['score'])}")
    return DesignAnswer(given["choice"], float(given["score"]), given["reason"])


def _fields(where: str, value: Any, **kinds: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(kinds):
        raise HandInError(f"{where} must hold {', '.join(kinds)}, got {reprlib.repr(value)}")
    for name, kind in kinds.items():
        if not isinstance(value[name], kind):
            raise HandInError(f"{where}: `{name}` cannot be {reprlib.repr(value[name])}")
    return value


def _check_time(where: str, text: str) -> None:
    try:
        offset = datetime.fromisoformat(text).utcoffset()
    except ValueError:
        offset = None
    if offset is None:
        raise HandInError(f"{where} must be a time with its offset, such as 2026-01-31T09:00:00+00:00, got {text!r}")


_NAMES = {str: "text", int: "a whole number", dict: "a set of named values"}
