"""Grade a folder of hand-in files: one row per file, collected in a gradebook."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from mlsys.errors import ArgumentError, first_line
from mlsys.escaping import printable
from mlsys.grading.execute import Execution
from mlsys.grading.folder import MISSHAPEN, SubmittedFile, files_in
from mlsys.grading.gradebook import Gradebook, Row, SharedContent
from mlsys.grading.roster import Roster
from mlsys.grading.rubric import Item, Key, Marker, check_key, with_key
from mlsys.grading.score import DEFAULT_POLICY, Policy, scored
from mlsys.grading.submissions import Submission, UngradableFile, moment_of, parse, read

__all__ = ["grade"]

_SAME_TEXT = 30
"""Characters from which an identical free text is listed."""


def grade(
    folder: str | Path,
    *,
    due: str | datetime | None = None,
    lab: str | None = None,
    policy: Policy = DEFAULT_POLICY,
    key: Key | None = None,
    roster: Roster | None = None,
    marker: Marker | None = None,
    progress: Callable[[Sequence[SubmittedFile]], Iterable[SubmittedFile]] | None = None,
    run: Callable[[SubmittedFile], Execution] | None = None,
) -> Gradebook:
    """Grade a folder of hand-in files and notebooks of labs.

    Scores are recomputed from the answers with the questions that each student got. Notebooks are read, and never run
    unless ``run`` is given; then how they ran stands beside the score, which stays what it is.
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
    run
        Runs the cells of a notebook, such as :func:`mlsys.grading.execute` with a :class:`mlsys.grading.Sandbox`.

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
        from mlsys.grading.lab_items import lab_items

        marker = lab_items
    _check_key(key or {}, marker)
    found = files_in(folder) if progress is None else progress(list(files_in(folder)))
    rows = []
    for each in found:
        row = _row(each, moment, lab, policy, key or {}, marker)
        if run is not None and each.content is not None and each.name.lower().endswith(".ipynb"):
            row = replace(row, run=_with_answers(run(each), policy, key or {}, marker))
        rows.append(row)
    book = Gradebook(tuple(rows), (), moment, roster)
    rows = _newest(rows, book)
    return replace(book, rows=tuple(rows), shared=_shared(rows, book))


def _check_key(key: Key, marker: Marker) -> None:
    from mlsys.grading.lab_items import lab_items
    from mlsys.labs import item_ids

    for lab, changes in key.items():
        try:
            known = {item.id for item in marker(lab, "")} | (item_ids(lab) if marker is lab_items else set())
        except LookupError:
            raise ArgumentError(f"key: this mlsys has no lab {lab!r}") from None
        check_key(known, changes, lab)


def _row(found: SubmittedFile, due: datetime | None, lab: str | None, policy: Policy, key: Key, marker: Marker) -> Row:
    submission = None
    try:
        submission = read(found)
        if lab is not None and submission.lab != lab:
            raise UngradableFile(f"it is the hand-in of lab {submission.lab}; this run grades {lab}")
        items, notes = _items(submission, key, marker)
        score = scored(submission, items, due, policy)
    except UngradableFile as error:
        message = printable(str(error))
    except MemoryError:
        message = "it needs more memory than there is"
    except Exception as error:  # one file never stops the run
        message = f"it could not be graded ({printable(first_line(error))}). Please report this file"
    else:
        late = submission.handed_in - due if due and submission.handed_in and submission.handed_in > due else None
        remarks = (*submission.notes, *notes, *score.notes, *_odd_times(submission))
        return Row(found.name, "scored", submission.student, submission.lab, submission, score, late, remarks)
    student, of_lab = (submission.student, submission.lab) if submission else ("", "")
    return Row(found.name, "refused", student, of_lab, notes=(message,))


def _with_answers(execution: Execution, policy: Policy, key: Key, marker: Marker) -> Execution:
    """Return how a notebook ran, with what the answers of its code come to."""
    answers = []
    for record in execution.work:
        try:
            submission = parse(record)
            score = scored(submission, _items(submission, key, marker)[0], None, policy)
        except (UngradableFile, *MISSHAPEN) as error:
            answers.append(f"its code answers a lab, but {printable(str(error))[:100]}")
            continue
        given = sum(bool(each.attempts) for each in score.items)
        answers.append(
            f"its code answers {given} of {len(score.items)} items of lab {submission.lab} as {submission.student!r}, "
            f"{score.points:.3g} of {score.out_of:g} points, which are not counted"
        )
    return replace(execution, answers="; ".join(answers))


def _items(submission: Submission, key: Key, marker: Marker) -> tuple[tuple[Item, ...], list[str]]:
    from mlsys.labs import seed_of

    try:
        items = marker(submission.lab, submission.student)
    except LookupError:
        raise UngradableFile(f"this mlsys has no lab {submission.lab!r}") from None
    notes = []
    if submission.seed != seed_of(submission.lab, submission.student):
        notes.append("its seed is not that of this student: the questions of the student named in the file count")
    return with_key(items, key.get(submission.lab, {})), notes


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
    replaced: dict[str, Row] = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        newest = max(group, key=_age)
        others = [row for row in group if row is not newest]
        for row in others:
            same = "the same content as" if _digest(row) == _digest(newest) else "an earlier hand-in than"
            replaced[row.file] = replace(
                row, outcome="replaced", notes=(f"{same} {newest.file}, which counts", *row.notes)
            )
        named = ", ".join(row.file for row in others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        replaced[newest.file] = replace(
            newest, notes=(f"the newest of {len(group)} files of this student; also {named}", *newest.notes)
        )
    return [replaced.get(row.file, row) for row in rows]


def _age(row: Row) -> tuple[datetime, str]:
    handed_in = row.submission.handed_in if row.submission else None
    return handed_in or datetime.min.replace(tzinfo=UTC), row.file


def _digest(row: Row) -> str:
    return row.submission.digest if row.submission else ""


def _shared(rows: Sequence[Row], book: Gradebook) -> tuple[SharedContent, ...]:
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
    found = []
    for (what, lab, text), group in sorted(shared.items()):
        students = sorted({book.key_of(row.student): row.student for row in group}.values())
        if len(students) > 1:
            files = tuple(dict.fromkeys(row.file for row in group))
            found.append(
                SharedContent(what, text if len(text) <= 120 else text[:120] + "…", lab, tuple(students), files)
            )
    return tuple(found)
