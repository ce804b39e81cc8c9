"""The grading of a folder: one row for each file, scores by student and lab, and what stands out."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mlsys.errors import ArgumentError, UnknownNameError, first_line
from mlsys.escaping import printable
from mlsys.grading.folder import Found, files_in
from mlsys.grading.roster import Person, Roster
from mlsys.grading.rubric import Item, Key, Marker, with_key
from mlsys.grading.score import DEFAULT_POLICY, LabScore, Policy, scored
from mlsys.grading.submissions import Refused, Submission, moment_of, read, student_key

__all__ = ["Alike", "Gradebook", "QuestionStatistics", "Row", "grade"]

_SAME_TEXT = 30
"""Characters from which an identical free text is listed."""


@dataclass(frozen=True)
class Row:
    """What became of one file.

    Attributes
    ----------
    file
        Its path below the folder.
    outcome
        ``"scored"``; ``"replaced"`` by a newer file of the same student and lab; ``"refused"``.
    student, lab
        Empty if the file was refused before they were known.
    submission, score
        What was handed in, and what it earns; None if refused.
    late
        How long after the due date it was handed in; None if in time or unknown.
    notes
        What was noticed, or why it was refused.
    """

    file: str
    outcome: str
    student: str = ""
    lab: str = ""
    submission: Submission | None = None
    score: LabScore | None = None
    late: timedelta | None = None
    notes: tuple[str, ...] = ()

    @property
    def percent(self) -> float | None:
        """Score in percent; None if the file has none."""
        return None if self.score is None else self.score.percent

    def record(self) -> dict[str, Any]:
        """Return the row as plain data."""
        submission, score = self.submission, self.score
        return {
            "file": self.file,
            "outcome": self.outcome,
            "student": self.student,
            "lab": self.lab,
            "points": None if score is None else round(score.points, 6),
            "on_time_points": None if score is None else round(score.on_time, 6),
            "out_of": None if score is None else score.out_of,
            "percent": None if score is None else round(score.percent, 4),
            "handed_in": submission.handed_in.isoformat() if submission and submission.handed_in else None,
            "late_hours": None if self.late is None else round(self.late / timedelta(hours=1), 2),
            "items": {
                f"{each.item.part}.{each.item.id}": {
                    "points": round(each.points, 6), "out_of": each.item.points, "attempts": each.attempts,
                    "late_attempts": each.late, "answer": each.given,
                }
                for each in (score.items if score else ())
            },
            "notes": list(self.notes),
        }  # fmt: skip


@dataclass(frozen=True)
class Alike:
    """Hand-ins that share a seed or a free text. It says nothing about who wrote what, or why."""

    what: str
    shared: str
    lab: str
    students: tuple[str, ...]
    files: tuple[str, ...]


@dataclass(frozen=True)
class QuestionStatistics:
    """How the students of a folder did on one item."""

    lab: str
    part: str
    id: str
    prompt: str
    students: int
    answered: int
    right_first: int
    missed: int
    mean: float
    attempts: float


@dataclass(frozen=True)
class Gradebook:
    """All grades of a folder.

    Attributes
    ----------
    rows
        One for each file, sorted by file.
    alike
        Hand-ins of different students that share a seed or a text.
    due
        The due date; None if none was given.
    roster
        The students who were expected; None if no list was given.
    """

    rows: tuple[Row, ...]
    alike: tuple[Alike, ...] = ()
    due: datetime | None = None
    roster: Roster | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def scored(self) -> tuple[Row, ...]:
        """The rows that count, one for each student and lab."""
        return tuple(row for row in self.rows if row.outcome == "scored")

    @property
    def labs(self) -> tuple[str, ...]:
        """Names of the labs that were handed in."""
        return tuple(sorted({row.lab for row in self.scored}))

    @property
    def students(self) -> dict[str, dict[str, Row]]:
        """Rows that count, by student and lab; keys as :func:`student_key` makes them, in alphabetical order."""
        found: dict[str, dict[str, Row]] = {}
        for row in sorted(self.scored, key=lambda row: student_key(row.student)):
            found.setdefault(self.key_of(row.student), {})[row.lab] = row
        return found

    def key_of(self, student: str) -> str:
        """Return the key of a student: that of the list of students, if it knows the name."""
        person = self.person(student)
        return student_key(student) if person is None else person.key

    def person(self, student: str) -> Person | None:
        """Return the entry of the list of students for a name or id; None if there is none."""
        return None if self.roster is None else self.roster.find(student)

    @property
    def missing(self) -> dict[str, tuple[str, ...]]:
        """Expected students without a hand-in, by lab; empty without a list of students."""
        if self.roster is None:
            return {}
        handed = self.students
        return {
            lab: tuple(person.name for person in self.roster.people if lab not in handed.get(person.key, {}))
            for lab in self.labs
        }

    @property
    def counts(self) -> dict[str, int]:
        """Number of files by outcome."""
        return {kind: sum(row.outcome == kind for row in self.rows) for kind in ("scored", "replaced", "refused")}

    def percents(self, lab: str) -> list[float]:
        """Return the scores of a lab in percent, in ascending order."""
        return sorted(row.score.percent for row in self.scored if row.lab == lab and row.score is not None)

    def distribution(self, lab: str) -> tuple[int, ...]:
        """Return the number of students by tenth of the score: 0 to 10 %, …, 90 to 100 %."""
        tenths = [0] * 10
        for percent in self.percents(lab):
            tenths[min(int(percent // 10), 9)] += 1
        return tuple(tenths)

    def summary(self, lab: str) -> dict[str, float]:
        """Return the number of students, median, quartiles and mean of a lab, in percent."""
        values = self.percents(lab)
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
        return {"students": len(values), "mean": math.fsum(values) / len(values), "lower quartile": low,
                "median": middle, "upper quartile": high}  # fmt: skip

    def questions(self) -> tuple[QuestionStatistics, ...]:
        """Return how each item was answered, the most missed first."""
        found: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
        for row in self.scored:
            for each in row.score.items if row.score else ():
                found[row.lab, each.item.part, each.item.id].append(each)
        statistics_ = []
        for (lab, part, name), scores in found.items():
            answered = [each for each in scores if each.attempts]
            statistics_.append(
                QuestionStatistics(
                    lab,
                    part,
                    name,
                    scores[0].item.prompt,
                    len(scores),
                    len(answered),
                    sum(each.attempts == 1 and each.share >= 1 for each in scores),
                    sum(each.share <= 0 for each in scores),
                    math.fsum(each.share for each in scores) / len(scores),
                    math.fsum(each.attempts for each in answered) / len(answered) if answered else 0.0,
                )
            )
        return tuple(sorted(statistics_, key=lambda each: (each.mean, each.lab, each.id)))

    def record(self) -> dict[str, Any]:
        """Return everything as plain data, for ``--json``."""
        return {
            "due": None if self.due is None else self.due.isoformat(),
            "files": self.counts,
            "labs": {
                lab: {**{key: round(value, 4) for key, value in self.summary(lab).items()},
                      "distribution": list(self.distribution(lab)), "missing": list(self.missing.get(lab, ()))}
                for lab in self.labs
            },
            "questions": [{**vars(each), "mean": round(each.mean, 4), "attempts": round(each.attempts, 3)}
                          for each in self.questions()],
            "alike": [{**vars(each), "students": list(each.students), "files": list(each.files)}
                      for each in self.alike],
            "rows": [row.record() for row in self.rows],
        }  # fmt: skip

    def changes(self, before: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return how scores differ from an earlier record of the same folder.

        Parameters
        ----------
        before
            What :meth:`record` returned then.
        """
        rows = before.get("rows")
        old = {
            (student_key(str(row.get("student"))), row.get("lab")): row
            for row in (rows if isinstance(rows, list) else ())
            if isinstance(row, dict) and row.get("outcome") == "scored"
        }
        changed = []
        for row in self.scored:
            now, then = row.record(), old.get((student_key(row.student), row.lab))
            if then is None:
                continue
            items = then.get("items") or {}
            moved = [name for name, each in now["items"].items() if each["points"] != items.get(name, {}).get("points")]
            moved += [name for name in items if name not in now["items"]]
            if moved or (then.get("points"), then.get("out_of")) != (now["points"], now["out_of"]):
                told = {"before": then.get("points"), "after": now["points"], "items": moved}
                changed.append({"student": row.student, "lab": row.lab, **told})
        return changed


def grade(
    folder: str | Path,
    *,
    due: str | datetime | None = None,
    lab: str | None = None,
    policy: Policy = DEFAULT_POLICY,
    key: Key | None = None,
    roster: Roster | None = None,
    marker: Marker | None = None,
    progress: Callable[[Sequence[Found]], Iterable[Found]] | None = None,
) -> Gradebook:
    """Grade a folder of hand-in files and notebooks of labs.

    Scores are recomputed from the answers with the questions that each student got. Notebooks are read and never run.
    A file that cannot be graded becomes a row with the reason, and of several files of one student for one lab the
    one handed in last counts.

    Parameters
    ----------
    folder
        Folder of the files; folders in it are read too.
    due
        Time in ISO 8601, UTC unless it has an offset: what comes later is marked as late.
    lab
        Grade this lab alone; files of others are refused.
    policy
        What a right answer is worth by attempt.
    key
        Changes to the computed answers, from :func:`read_key`.
    roster
        The students who are expected.
    marker
        What each lab asks; by default the labs of mlsys.
    progress
        Wraps the files while they are read, to show progress.

    Raises
    ------
    ArgumentError
        If ``due`` is no time.
    UnreadableError
        If there is no such folder.
    """
    moment = due if isinstance(due, datetime) or due is None else moment_of(due)
    if due is not None and moment is None:
        raise ArgumentError(f"due: must be a time such as 2026-11-30T23:59+01:00, got {due!r}")
    if moment is not None and moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    if marker is None:
        from mlsys.grading.lab_items import asked

        marker = asked
    _check_key(key or {}, marker)
    found = files_in(folder) if progress is None else progress(list(files_in(folder)))
    rows = [_row(each, moment, lab, policy, key or {}, marker) for each in found]
    book = Gradebook(tuple(rows), (), moment, roster)
    rows = _newest(rows, book)
    return replace(book, rows=tuple(rows), alike=_alike(rows, book))


def _check_key(key: Key, marker: Marker) -> None:
    for lab, changes in key.items():
        try:
            with_key(marker(lab, ""), changes, lab)
        except UnknownNameError:
            raise
        except LookupError:
            raise ArgumentError(f"key: this mlsys has no lab {lab!r}") from None


def _row(found: Found, due: datetime | None, lab: str | None, policy: Policy, key: Key, marker: Marker) -> Row:
    submission = None
    try:
        submission = read(found)
        if lab is not None and submission.lab != lab:
            raise Refused(f"it is the hand-in of lab {submission.lab}; this run grades {lab}")
        items, notes = _items(submission, key, marker)
        score = scored(submission, items, due, policy)
    except Refused as error:
        said = printable(str(error))
    except MemoryError:
        said = "it needs more memory than there is"
    except Exception as error:  # one file never stops the run
        said = f"it could not be graded ({printable(first_line(error))}). Please report this file"
    else:
        late = submission.handed_in - due if due and submission.handed_in and submission.handed_in > due else None
        told = (*submission.notes, *notes, *score.notes, *_odd_times(submission))
        return Row(found.name, "scored", submission.student, submission.lab, submission, score, late, told)
    student, of_lab = (submission.student, submission.lab) if submission else ("", "")
    return Row(found.name, "refused", student, of_lab, notes=(said,))


def _items(submission: Submission, key: Key, marker: Marker) -> tuple[tuple[Item, ...], list[str]]:
    from mlsys.labs import seed_of

    try:
        items = marker(submission.lab, submission.student)
    except LookupError:
        raise Refused(f"this mlsys has no lab {submission.lab!r}") from None
    notes = []
    if submission.seed != seed_of(submission.lab, submission.student):
        notes.append("its seed is not that of this student: the questions of the student named in the file count")
    return with_key(items, key.get(submission.lab, {}), submission.lab), notes


def _odd_times(submission: Submission) -> list[str]:
    start, end = submission.started, submission.handed_in
    times = [each.at for part in (submission.questions, submission.claims) for tries in part.values()
             for each in tries.attempts if each.at]  # fmt: skip
    notes = []
    if start and end and start > end:
        notes.append("it was handed in before it was started, by its own times")
    if end and any(at > end for at in times):
        notes.append("it has attempts after the hand-in, by its own times")
    return notes


def _newest(rows: Sequence[Row], book: Gradebook) -> list[Row]:
    """Mark all but the newest of the files of each student and lab as replaced."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.outcome == "scored":
            groups[book.key_of(row.student), row.lab].append(row)
    told: dict[str, Row] = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        newest = max(group, key=_age)
        others = [row for row in group if row is not newest]
        for row in others:
            same = "the same content as" if _digest(row) == _digest(newest) else "an earlier hand-in than"
            told[row.file] = replace(row, outcome="replaced", notes=(f"{same} {newest.file}, which counts", *row.notes))
        named = ", ".join(row.file for row in others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        told[newest.file] = replace(
            newest, notes=(f"the newest of {len(group)} files of this student; also {named}", *newest.notes)
        )
    return [told.get(row.file, row) for row in rows]


def _age(row: Row) -> tuple[datetime, str]:
    handed_in = row.submission.handed_in if row.submission else None
    return handed_in or datetime.min.replace(tzinfo=UTC), row.file


def _digest(row: Row) -> str:
    return row.submission.digest if row.submission else ""


def _alike(rows: Sequence[Row], book: Gradebook) -> tuple[Alike, ...]:
    """Return hand-ins of different students that share a seed, or a free text word for word."""
    shared: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        submission = row.submission
        if row.outcome == "refused" or submission is None:
            continue
        if submission.seed:
            shared["seed", submission.lab, submission.seed].append(row)
        for design in submission.design.values():
            text = " ".join(design.reason.casefold().split())
            if len(text) >= _SAME_TEXT:
                shared["text", submission.lab, text].append(row)
    alike = []
    for (what, lab, text), group in sorted(shared.items()):
        students = sorted({book.key_of(row.student): row.student for row in group}.values())
        if len(students) > 1:
            files = tuple(dict.fromkeys(row.file for row in group))
            alike.append(Alike(what, text if len(text) <= 120 else text[:120] + "…", lab, tuple(students), files))
    return tuple(alike)
