"""The gradebook of a folder: one row for each file, scores by student and lab, and what stands out."""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mlsys.grading.execute import Execution
from mlsys.grading.roster import Person, Roster
from mlsys.grading.score import LabScore
from mlsys.grading.submissions import Submission, student_key

__all__ = ["Gradebook", "QuestionStatistics", "Row", "SharedContent"]


@dataclass(frozen=True)
class Row:
    """Result of grading one file.

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
    run
        How its cells ran; None if they were not run. It changes no score.
    """

    file: str
    outcome: str
    student: str = ""
    lab: str = ""
    submission: Submission | None = None
    score: LabScore | None = None
    late: timedelta | None = None
    notes: tuple[str, ...] = ()
    run: Execution | None = None

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
            "run": None if self.run is None else self.run.record(),
        }  # fmt: skip


@dataclass(frozen=True)
class SharedContent:
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
    shared
        Hand-ins of different students that share a seed or a text.
    due
        The due date; None if none was given.
    roster
        The students who were expected; None if no list was given.
    """

    rows: tuple[Row, ...]
    shared: tuple[SharedContent, ...] = ()
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
    def was_run(self) -> bool:
        """Whether notebooks were run."""
        return any(row.run is not None for row in self.rows)

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
            "shared": [{**vars(each), "students": list(each.students), "files": list(each.files)}
                      for each in self.shared],
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
                change = {"before": then.get("points"), "after": now["points"], "items": moved}
                changed.append({"student": row.student, "lab": row.lab, **change})
        return changed
