"""``mlsys grade``: scores, feedback and grade files from what students handed in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlsys.cli.common import WrongUsage, progress, say, say_json, speak_plainly
from mlsys.cli.parameters import FILE, Finite, OutputFolder
from mlsys.errors import UnreadableError
from mlsys.inputs import read_json

if TYPE_CHECKING:
    from mlsys.grading import Execution, Gradebook, Policy
    from mlsys.grading.folder import SubmittedFile

_RECORD = "grades.json"


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=OutputFolder(), help="Folder for feedback and grade files, outside of FOLDER.")
@click.option(
    "--due", metavar="TIME", help="Deadline in ISO 8601, such as 2026-11-30T23:59+01:00; UTC without an offset."
)
@click.option("--lab", metavar="NAME", help="Grade this lab alone, such as 01-amdahl.")
@click.option("--roster", type=FILE, help="Students expected: the gradebook of Canvas or Moodle as CSV.")
@click.option("--key", "key_file", type=FILE, help="YAML file of further accepted answers, points, and dropped items.")
@click.option("--credit", metavar="SHARES", help="Credit for a right answer by attempt; by default 1,0.8,0.6,0.4.")
@click.option(
    "--hide-answers", is_flag=True, help="Leave the right answers out of the feedback, while others still work."
)
@click.option(
    "--run", "is_run", is_flag=True, help="Run the notebooks as well, in a sandbox without network; scores stay."
)
@click.option(
    "--run-seconds", type=Finite(min=1, max=86_400), default=None, help="Limit for each notebook; by default 120."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object with every file and item.")
@speak_plainly
def grade(
    folder: Path,
    out: Path | None,
    due: str | None,
    lab: str | None,
    roster: Path | None,
    key_file: Path | None,
    credit: str | None,
    hide_answers: bool,
    is_run: bool,
    run_seconds: float | None,
    as_json: bool,
) -> None:
    """Grade the hand-in files (.json) and notebooks (.ipynb) of labs in FOLDER.

    Scores are recomputed from the answers, with the numbers that each student got. Notebooks are read, not run; links
    are not followed and archives not unpacked. Each file gets one row: a score, or the reason why it has none. Of
    several files of one student for one lab, the one handed in last counts.

    --run also runs the cells of each notebook from the first to the last: do they run, do they print what is stored,
    and do they answer the lab in code? Each notebook runs alone in a sandbox (bubblewrap, Linux), without network or
    other files, and with limits of time, memory, disk, processes and output. The result is a column of its own and
    changes no score.

    --out receives index.html (distribution, most missed items, similar files), students/ (one page of feedback each),
    canvas.csv, moodle.csv, files.csv, items.csv and grades.json. Run again, with another --key or more files, it
    reports which scores changed.

    \b
    A key changes which answers count as right:
    01-amdahl:
      profile: {accept: [88], tolerance: 0.01}
      banner: {points: 2}
      five: {drop: true}
    """  # noqa: D301
    from mlsys.grading import grade as graded
    from mlsys.grading import read_key, read_roster

    if hide_answers and out is None:
        raise WrongUsage("--hide-answers changes the feedback, which needs --out")
    if out is not None and _is_within(out, folder):
        raise WrongUsage(f"--out must lie outside of {folder}, whose files are graded")
    if lab is not None:
        _check_lab(lab)
    if run_seconds is not None and not is_run:
        raise WrongUsage("--run-seconds limits notebooks that are run, which needs --run")
    book = graded(
        folder,
        due=due,
        lab=lab,
        policy=_policy(credit),
        key=read_key(key_file) if key_file else None,
        roster=read_roster(roster) if roster else None,
        progress=_shown_progress,
        run=_runner(run_seconds, (folder, *([out] if out else ()))) if is_run else None,
    )
    changes = [] if out is None else book.changes(_record_in(out))
    if out is not None:
        _write(book, out, changes, answers=not hide_answers)
    if as_json:
        say_json({**book.record(), "changes": changes})
        return
    _say_summary(book, changes)
    if out is not None:
        say(f"\nOpen {out / 'index.html'}; upload {out / 'canvas.csv'} or {out / 'moodle.csv'}")


def _runner(seconds: float | None, hidden: Sequence[Path]) -> Callable[[SubmittedFile], Execution]:
    """Return the function that runs a notebook, after a look at what it needs."""
    import ipykernel  # noqa: F401
    import nbclient  # noqa: F401
    import psutil  # noqa: F401

    from mlsys.grading import Limits, Sandbox, execute

    limits, sandbox = Limits() if seconds is None else Limits(seconds=seconds), Sandbox(hidden)
    return lambda found: execute(found, sandbox, limits)


def _shown_progress(found: Sequence[SubmittedFile]) -> Iterable[SubmittedFile]:
    with progress(found, "Grading") as shown:
        yield from shown


def _check_lab(lab: str) -> None:
    from mlsys.errors import did_you_mean
    from mlsys.labs import LABS

    if lab not in LABS:
        raise WrongUsage(f"--lab: no lab {lab!r}.{did_you_mean(lab, LABS)} Known: {', '.join(LABS)}")


def _policy(credit: str | None) -> Policy:
    from mlsys.grading import Policy

    if credit is None:
        return Policy()
    try:
        return Policy(tuple(float(share) for share in credit.split(",")))
    except ValueError as error:
        raise WrongUsage(f"--credit must be shares from 0 to 1 such as 1,0.8,0.5, got {credit!r} ({error})") from None


def _is_within(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        return False


def _record_in(out: Path) -> dict[str, Any]:
    """Return the record of the last grading in a folder; empty if there is none that can be read."""
    try:
        data = read_json(out / _RECORD)
    except UnreadableError:
        return {}
    return data if isinstance(data, dict) else {}


def _write(book: Gradebook, out: Path, changes: Sequence[dict[str, Any]], *, answers: bool) -> None:
    from mlsys.files import together
    from mlsys.grading import canvas_csv, files_csv, items_csv, moodle_csv, pages

    with together() as files:
        for name, page in pages(book, changes, answers=answers).items():
            files.text(out / name, page, folders=True)
        for name, text in (("canvas.csv", canvas_csv), ("moodle.csv", moodle_csv), ("files.csv", files_csv),
                           ("items.csv", items_csv)):  # fmt: skip
            files.text(out / name, text(book), folders=True)
        files.text(out / _RECORD, json.dumps(book.record(), indent=1, ensure_ascii=False) + "\n", folders=True)


def _say_summary(book: Gradebook, changes: Sequence[dict[str, Any]]) -> None:
    counts = book.counts
    say(f"{len(book.rows):,} files: {counts['scored']} scored, {counts['replaced']} replaced by a newer file, "
        f"{counts['refused']} refused")  # fmt: skip
    for lab in book.labs:
        summary = book.summary(lab)
        missing = book.missing.get(lab, ())
        say(f"\nLab {lab}: {summary['students']} students, median {summary['median']:.0f} %, "
            f"mean {summary['mean']:.0f} %{f', {len(missing)} missing' if missing else ''}")  # fmt: skip
        most = max(book.distribution(lab))
        for tenth, count in enumerate(book.distribution(lab)):
            if count:
                say(f"  {10 * tenth:>3}–{10 * (tenth + 1):<3} % {'█' * max(1, round(30 * count / most))} {count}")
    missed = [each for each in book.questions() if each.mean < 1][:5]
    if missed:
        say("\nMost missed")
        for each in missed:
            say(
                f"  {each.lab} {each.id}: mean {100 * each.mean:.0f} %, {each.missed} of {each.students} without points"
            )
    late = [row for row in book.scored if row.late]
    if late:
        say(f"\nLate: {len(late)} of {len(book.scored)}")
    for changed in changes:
        points = f"{changed['before']:g} to {changed['after']:g} points ({', '.join(changed['items'])})"
        say(f"Changed: {changed['student']}, lab {changed['lab']}: {points}")
    if book.shared:
        say("\nShared seeds and texts (there are innocent reasons)")
        for pair in book.shared:
            say(f"  {pair.lab}: same {pair.what}: {', '.join(pair.students)}")
    ran = [row for row in book.rows if row.run is not None]
    if ran:
        say(f"\nRun, not scored: {sum(row.run.outcome == 'ran' for row in ran if row.run)} of {len(ran)} notebooks "
            "from the first cell to the last")  # fmt: skip
        for row in [row for row in ran if row.run and (row.run.outcome != "ran" or row.run.answers)][:20]:
            say(f"  {row.file}: {row.run.text() if row.run else ''}")
    refused = [row for row in book.rows if row.outcome == "refused"]
    if refused:
        say("\nRefused")
        for row in refused[:20]:
            say(f"  {row.file}: {row.notes[0]}")
        if len(refused) > 20:
            say(f"  and {len(refused) - 20} more; --out lists all in files.csv")
