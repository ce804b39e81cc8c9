"""Hand-ins found in a file: parsed without trust, and never executed."""

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mlsys.escaping import printable
from mlsys.faults import is_number
from mlsys.grading.folder import SubmittedFile, UngradableFile
from mlsys.grading.search import candidates, pairs_once, refuse_constant
from mlsys.labs.draw import same_student as student_key
from mlsys.labs.draw import seed_of
from mlsys.labs.handin import FORMAT, VERSION, checksum

__all__ = ["Attempt", "Design", "Submission", "Tries", "UngradableFile", "moment_of", "parse", "read", "student_key"]

_MOST_ATTEMPTS = 200
_MOST_ITEMS = 200
_MOST_TEXT = 10_000
_MOST_NAME = 200
_ID = re.compile(r"[\w.-]{1,80}")


@dataclass(frozen=True)
class Attempt:
    """One answer: when it was given (None if unknown), what it was, and whether the lab called it right."""

    at: datetime | None
    answer: Any
    claimed: bool | None = None


@dataclass(frozen=True)
class Tries:
    """All attempts at one question, in the order in which they were made."""

    attempts: tuple[Attempt, ...] = ()
    solution_shown: bool = False


@dataclass(frozen=True)
class Design:
    """The answer to a design task: the choice, the reason in words, and the score that the file claims."""

    choice: Any
    reason: str = ""
    claimed: float | None = None


@dataclass(frozen=True)
class Submission:
    """What a student handed in for one lab.

    Attributes
    ----------
    lab, student, seed
        As the file gives them, cleaned of control characters.
    started, handed_in
        Times, in UTC; None if the file does not say.
    questions, claims, design
        Answers by the name of the question, claim or task.
    measurements
        What was measured on the student's machine.
    digest
        SHA-256 of the content without its checksum.
    notes
        What was noticed while reading.
    """

    lab: str
    student: str
    seed: str
    started: datetime | None
    handed_in: datetime | None
    questions: Mapping[str, Tries]
    claims: Mapping[str, Tries]
    design: Mapping[str, Design]
    measurements: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    notes: tuple[str, ...] = ()


def read(found: SubmittedFile) -> Submission:
    """Return the hand-in that a file holds; of several in one notebook, the one handed in last.

    Raises
    ------
    UngradableFile
        If it holds none, or cannot be read.
    """
    if found.content is None:
        raise UngradableFile(found.why)
    try:
        text = found.content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UngradableFile(f"it is not UTF-8 text (byte {error.start})") from None
    if not text.strip():
        raise UngradableFile("it is empty")
    data = _json(text)
    if found.name.lower().endswith(".ipynb"):
        return _of_notebook(text, data)
    if isinstance(data, dict) and isinstance(data.get("cells"), list):
        return _of_notebook(text, data)  # a notebook that was saved under another name
    return parse(data)


def parse(data: object) -> Submission:
    """Return a hand-in from the content of its file.

    Parameters
    ----------
    data
        The decoded JSON.

    Raises
    ------
    UngradableFile
        If it is not the hand-in of a lab.

    Examples
    --------
    >>> parse({"format": "mlsys-lab", "version": 2})
    Traceback (most recent call last):
        ...
    mlsys.grading.folder.UngradableFile: its version is 2; this mlsys grades version 1. Install the mlsys that wrote it
    """
    if not isinstance(data, dict):
        raise UngradableFile("it is JSON, but not the hand-in of a lab. Hand in the file that the lab's button writes")
    if "format" not in data and {"lab", "student", "answers", "designs"} <= set(data):
        return _of_state(data)
    if data.get("format") != FORMAT:
        raise UngradableFile("it is JSON, but not the hand-in of a lab. Hand in the file that the lab's button writes")
    if type(data.get("version")) is not int or data["version"] != VERSION:
        raise UngradableFile(
            f"its version is {_brief(data.get('version'))}; this mlsys grades version {VERSION}. "
            "Install the mlsys that wrote it"
        )
    lab = data.get("lab")
    if not isinstance(lab, str) or not _ID.fullmatch(lab):
        raise UngradableFile(f"it does not name its lab: `lab` is {_brief(lab)}")
    notes: list[str] = []
    student = _name(data.get("student"))
    if not student:
        raise UngradableFile("it names no student: `student` is missing or empty")
    seed = _name(data.get("seed"))
    digest = _digest(data)
    if not isinstance(data.get("checksum"), str):
        notes.append("it has no checksum")
    elif data["checksum"].lower() != digest:
        notes.append("its checksum does not match: it was changed after the lab wrote it")
    measured = data.get("measurements")
    return Submission(
        lab, student, seed, _time(data, "started", notes), _time(data, "handed_in", notes),
        _tries(data, "questions", notes), _tries(data, "claims", notes), _designs(data, notes),
        measured if isinstance(measured, dict) else {}, digest, tuple(notes),
    )  # fmt: skip


def _of_state(data: dict[str, Any]) -> Submission:
    """Return the saved state of a lab as what would have been handed in at the last answer."""
    notes: list[str] = [
        "it is the saved state of a lab, not a hand-in: its last answer counts as the time of handing in"
    ]
    lab, student = data["lab"], _name(data["student"])
    if not isinstance(lab, str) or not _ID.fullmatch(lab):
        raise UngradableFile(f"it does not name its lab: `lab` is {_brief(lab)}")
    if not student:
        raise UngradableFile("it is the saved state of a lab, and names no student")
    answers = _entries(data, "answers", notes)
    renamed = {name: {**value, "solution_shown": value.get("shown")} for name, value in answers}
    tries = _tries({"answers": renamed}, "answers", notes)
    times = [each.at for one in tries.values() for each in one.attempts if each.at]
    lab = lab.removeprefix("lab-")
    return Submission(
        lab, student, seed_of(lab, student), moment_of(data.get("started")), max(times, default=None), tries, tries,
        _designs({"design": data["designs"]}, notes), {}, _digest(data), tuple(notes),
    )  # fmt: skip


def _digest(data: Mapping[str, Any]) -> str:
    try:
        return checksum(data)
    except (ValueError, TypeError, RecursionError):  # what JSON cannot write, such as 1e999
        return ""


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=pairs_once)
    except UngradableFile:
        raise
    except RecursionError:
        raise UngradableFile("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        cut = " It seems to be cut off." if error.pos >= len(text.rstrip()) - 1 else ""
        raise UngradableFile(f"it is not JSON ({error.msg} in line {error.lineno}).{cut} Hand it in again") from None
    except ValueError as error:
        raise UngradableFile(f"it is not JSON ({str(error).partition(';')[0]})") from None


def _of_notebook(text: str, data: Any) -> Submission:
    if not isinstance(data, dict):
        raise UngradableFile("it is not a notebook")
    import nbformat

    wrong = ""
    try:
        read_as: Any = nbformat.reads
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ids of cells that are missing or stand twice
            notebook = read_as(text, as_version=4) if "nbformat" in data else data
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
        nbformat.ValidationError,
    ):
        notebook, wrong = data, "it is not a valid notebook"
    held, faults, damaged = [], [], 0
    for candidate in candidates(notebook):
        if candidate is None:
            damaged += 1
            continue
        try:
            held.append(parse(candidate))
        except UngradableFile as error:
            faults.append(str(error))
    if not held:
        if faults:
            raise UngradableFile(f"the hand-in in this notebook cannot be graded: {faults[0]}")
        if damaged:
            raise UngradableFile("the hand-in in this notebook is damaged. Run the lab's cell and hand in again")
        raise UngradableFile(
            f"{wrong + '; ' if wrong else ''}this notebook holds no hand-in. Hand in the file that the lab's button "
            "writes; a notebook is never run"
        )
    newest = max(held, key=_by_time)
    notes = [wrong] if wrong else []
    others = {(student_key(each.student), each.lab) for each in held} - {(student_key(newest.student), newest.lab)}
    if others:
        notes.append(f"it also holds hand-ins of {len(others)} other students or labs; the newest counts")
    elif len({each.digest for each in held}) > 1:
        notes.append(f"it holds {len({each.digest for each in held})} hand-ins; the newest counts")
    return Submission(**{**vars(newest), "notes": (*newest.notes, *notes)})


def _by_time(submission: Submission) -> datetime:
    return submission.handed_in or datetime.min.replace(tzinfo=UTC)


def _name(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**20:
        value = str(value)
    return " ".join(printable(value[:_MOST_NAME]).split()) if isinstance(value, str) else ""


def _time(data: Mapping[str, Any], key: str, notes: list[str]) -> datetime | None:
    moment = moment_of(data.get(key))
    if moment is None:
        notes.append(f"`{key}` is missing or no time")
    return moment


def moment_of(value: object) -> datetime | None:
    """Return a time given in ISO 8601, in UTC; one without an offset counts as UTC; None if it is no time.

    Examples
    --------
    >>> moment_of("2026-11-30T23:59+01:00")
    datetime.datetime(2026, 11, 30, 22, 59, tzinfo=datetime.timezone.utc)
    """
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _tries(data: Mapping[str, Any], part: str, notes: list[str]) -> dict[str, Tries]:
    found: dict[str, Tries] = {}
    for name, value in _entries(data, part, notes):
        listed = value.get("attempts")
        if not isinstance(listed, list):
            notes.append(f"`{part}.{name}` has no list of attempts; it counts as unanswered")
            continue
        if len(listed) > _MOST_ATTEMPTS:
            notes.append(f"`{part}.{name}` has {len(listed):,} attempts; the first {_MOST_ATTEMPTS} are read")
        attempts = [
            Attempt(
                moment_of(each.get("at")),
                each["answer"],
                claimed if type(claimed := each.get("correct")) is bool else None,
            )
            for each in listed[:_MOST_ATTEMPTS]
            if isinstance(each, dict) and each.get("answer") is not None
        ]
        if len(attempts) < len(listed[:_MOST_ATTEMPTS]):
            notes.append(f"`{part}.{name}` has attempts without an answer, which are left out")
        if all(each.at for each in attempts):
            attempts.sort(key=lambda each: each.at or datetime.min.replace(tzinfo=UTC))
        found[name] = Tries(tuple(attempts), value.get("solution_shown") is True)
    return found


def _designs(data: Mapping[str, Any], notes: list[str]) -> dict[str, Design]:
    found = {}
    for name, value in _entries(data, "design", notes):
        score: Any = value.get("score")
        reason = value.get("reason")
        found[name] = Design(
            value.get("choice"),
            printable(reason[:_MOST_TEXT]).strip() if isinstance(reason, str) else "",
            float(score) if is_number(score) and abs(score) < 1e12 else None,
        )
    return found


def _entries(data: Mapping[str, Any], part: str, notes: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    entries = data.get(part, {})
    if not isinstance(entries, dict):
        notes.append(f"`{part}` is no mapping; it is left out")
        return
    if len(entries) > _MOST_ITEMS:
        notes.append(f"`{part}` has {len(entries):,} entries; the first {_MOST_ITEMS} are read")
    for name, value in list(entries.items())[:_MOST_ITEMS]:
        if not _ID.fullmatch(name) or not isinstance(value, dict):
            notes.append(f"`{part}` has an entry that is no answer: {_brief(name)}")
            continue
        yield name, value


def _brief(value: object) -> str:
    try:
        text = printable(repr(value))
    except (ValueError, RecursionError):
        return "?"
    return "missing" if value is None else text if len(text) <= 60 else text[:57] + "…"
