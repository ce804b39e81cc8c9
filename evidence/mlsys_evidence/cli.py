"""``mlsys validate``: published measurements beside what the models predict."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlsys.cli.calibrate import calibration_option
from mlsys.cli.common import WrongUsage, checked_picture, progress, say, say_json, say_overrides, speak_plainly
from mlsys.cli.parameters import FILE, Output, OutputFolder
from mlsys.faults import short
from mlsys.files import csv_text, write_text

if TYPE_CHECKING:
    from mlsys.calibration.rows import Row
    from mlsys_evidence import Score, Validation

    Exams = dict[int, tuple[Row, ...]]


MOST_DOUBTS = 5


@click.command()
@click.option(
    "--data",
    type=FILE,
    help="Measurements of your own, a CSV such as `mlsys measure` writes; by default the shipped ones.",
)
@click.option(
    "--exam",
    is_flag=False,
    flag_value="all",
    metavar="[NUMBER]",
    help="Evaluate the models on sources that the fit never saw, and report their first predictions: all such "
    "evaluations, or the one with this number.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
@click.option("--csv", "csv_path", type=Output(), help="Write every row, with its prediction.")
@click.option(
    "--figures",
    type=OutputFolder(),
    help="Folder for plots of measured against predicted values, one per kind of workload.",
)
@calibration_option
@click.option("--refit", is_flag=True, help="Refit the parameters to the shipped measurements; takes minutes.")
@speak_plainly
def validate(
    data: Path | None, exam: str | None, as_json: bool, csv_path: Path | None, figures: Path | None, refit: bool
) -> None:
    """Report the errors of the models against published measurements.

    Prints a line for each class of machine and kind of work. For the shipped measurements it also prints the errors of
    fits from which a whole device or a whole sweep was held out, which is what to expect for a question of your own.
    Nothing is fitted to the measurements in --data.

    \b
    done           rows that the models can express
    median, p90    of the error, relative to the published value
    bias           of the predicted time; positive if it is too slow
    in 2×, inside  rows within a factor of two, and in their 80 % range
    width          median of the range's upper end over its lower end
    beaten         rows faster than the least time, each with its reason below
    """  # noqa: D301
    from mlsys.calibration.rows import read_rows, unread_columns
    from mlsys.calibration.sanity_checks import check_classes
    from mlsys.models.user_overrides import user_overrides, with_user_overrides
    from mlsys_evidence import validate as compare
    from mlsys_evidence.evaluate.sanity_checks import questioned
    from mlsys_evidence.rows import shipped_rows

    if figures is not None:
        checked_picture(figures / "all.png")

    exams = _exams(exam)
    if exams and (data is not None or refit):
        raise WrongUsage("--exam examines rows of its own, which are in no fit: omit --data and --refit")
    if data is not None and csv_path is not None and csv_path.exists() and csv_path.samefile(data):
        raise WrongUsage(f"--csv {csv_path} holds the measurements: choose another place for the predictions")
    if refit:
        if data is not None:
            raise WrongUsage("--refit fits the shipped measurements: omit --data")
        from mlsys_evidence.fit.refit import refit as fit_anew

        fit_anew(lambda items: progress(items, "Settings fitted"))
        _widen_for_sources()
        _refit_powers()
        _repeat_the_study()
    rows = read_rows(data) if data else [row for own in exams.values() for row in own] or shipped_rows()
    if data:
        if unread := unread_columns(data):
            say(f"{data}: line 1: columns that are not read: {', '.join(unread)}", err=True)
        check_classes(rows, str(data))
    comparison = compare(rows)
    if data:
        result = questioned(comparison.predictions, str(data))
        for sentence in result[:MOST_DOUBTS]:
            say(sentence, err=True)
        if len(result) > MOST_DOUBTS:
            say(f"and {len(result) - MOST_DOUBTS} more rows alike", err=True)
    own = user_overrides(estimates=True)
    if csv_path is not None:
        write_text(csv_path, csv_text(with_user_overrides(_records(comparison, exams), own)))
    if figures is not None:
        from mlsys_evidence.evaluate.pictures import save_all

        for path in save_all(comparison, figures):
            say(path, err=True)
    if as_json:
        say_json(comparison.summary() | (_first(comparison, exams) if exams else {}), own)
    else:
        _print(comparison, exams, shipped=data is None and not exams, own=data is not None)
        say_overrides(own)


def _widen_for_sources() -> None:
    """Find how much wider ranges are for unknown sources, and write it."""
    from mlsys.files import together
    from mlsys.models.estimate.ranges import unknown_source_factors
    from mlsys_evidence.fit.sources import save_source_factors

    with together() as files:
        save_source_factors(files)
    unknown_source_factors.cache_clear()


def _refit_powers() -> None:
    """Fit what cards and classes of boards draw under load, and write it."""
    from mlsys.files import together
    from mlsys.models.energy.boards import fitted_powers
    from mlsys_evidence.fit.cards import fit_laws, save_laws_left_out, stored_laws
    from mlsys_evidence.fit.fitted_files import save_powers
    from mlsys_evidence.fit.power import fit_powers

    laws = fit_laws()
    with together() as files:
        save_powers(fit_powers(laws), files)
        save_laws_left_out(laws, files)
    for kept in (fitted_powers, stored_laws):
        kept.cache_clear()


def _repeat_the_study() -> None:
    """Repeat the study of ten measurements with the new fit, and write its results and the excerpts of the rows."""
    from mlsys.files import together
    from mlsys_evidence.evaluate.ten_sample_study import save_ten, study_ten
    from mlsys_evidence.excerpts import save_excerpts

    with (
        progress(study_ten(), "Ten measurements: classes studied") as groups,
        together() as files,
    ):
        save_ten(groups, files)
        save_excerpts(files)


def _exams(asked: str | None) -> dict[int, tuple[Row, ...]]:
    """Return the rows of each examination that is asked for; of all, unless one is named."""
    from mlsys_evidence import examination_rows, held_examinations

    if asked is None:
        return {}
    held = {str(number): number for number in held_examinations()}
    if asked != "all" and asked not in held:
        raise WrongUsage(
            f"--exam takes the number of an examination ({', '.join(held)}), or none for all: got {short(asked)}"
        )
    return {number: examination_rows(number) for name, number in held.items() if asked in ("all", name)}


def _line(name: str, part: Score) -> str:
    if part.median_ape is None:
        return f"{name:<44} {part.rows:>5} {0:>5}       —       —       —       —       —      —"
    return (
        f"{name:<44} {part.rows:>5} {part.expressible:>5} {part.median_ape:>6.1f}% {part.p90_ape:>6.1f}% "
        f"{part.bias:>+6.1f}% {part.within_factor_two:>6.1f}% {part.coverage or 0:>6.1f}% {part.width or 0:>6.2f} "
        f"{part.bound_violations:>5}"
    )


def _times(ratio: float) -> str:
    """Return a ratio to two decimals; one that would come out as nothing, to two digits."""
    return f"{ratio:.2f}" if ratio >= 0.01 else f"{ratio:.2g}"


def _records(validation: Validation, exams: Exams) -> list[dict[str, object]]:
    """Return the records of all rows; of examinations, each with the number of its own."""
    whose = {row.id: number for number, rows in exams.items() for row in rows}
    return [record | ({"examination": whose[str(record["id"])]} if whose else {}) for record in validation.records()]


def _both(validation: Validation, exams: Exams) -> dict[str, tuple[Score, Score]]:
    """Return the scores now and at first, of all examinations together and of each."""
    from mlsys_evidence import score
    from mlsys_evidence.evaluate.blind_evaluation import first_answers

    first = {number: first_answers(number) for number in exams}
    whole = (score(validation.predictions), score(each for own in first.values() for each in own))
    parts = {
        str(number): (score(each for each in validation.predictions if each.row in rows), score(first[number]))
        for number, rows in ((number, frozenset(own)) for number, own in exams.items())
    }
    return {"all": whole} | parts


def _lines(validation: Validation, reason: str) -> str:
    """Return the lines of a file whose rows are not expressible for this reason, in words."""
    lines = [each.row.line for each in validation.predictions if each.reason == reason]
    more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
    return f" (line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines[:3]))}{more})"


def _first(validation: Validation, exams: Exams) -> dict[str, object]:
    """Return what was answered at first, and both scores of each examination, in the words of the report."""
    (_, first), *parts = ((asdict(now), _level(first)) for now, first in _both(validation, exams).values())
    each = {str(number): now | {"first_answers": result} for number, (now, result) in zip(exams, parts, strict=True)}
    return {"first_answers": first, "examinations": each}


def _level(first: Score) -> dict[str, object]:
    """Return a score of first answers: bounds were not kept with them."""
    return {name: value for name, value in asdict(first).items() if "violations" not in name}


def _print_exams(validation: Validation, exams: Exams) -> None:
    for name, (now, first) in reversed(_both(validation, exams).items()):
        if name == "all" or len(exams) > 1:
            named = name if name == "all" else f"examination {name}"
            say(_line(named, now))
            say(_line(f"{named}, as first answered", first).rpartition(" ")[0].rstrip())


def _print(validation: Validation, exams: Exams, shipped: bool, own: bool) -> None:
    from mlsys_evidence import score
    from mlsys_evidence.fit.refit import held_out_scores

    heads = f"{'':<44} {'rows':>5} {'done':>5}  median     p90    bias    in 2× inside  width beaten"
    say(heads)
    for name, part in validation.scores(lambda each: f"{each.row.device_class}: {each.kind}").items():
        say(_line(name, part))
    if exams:
        _print_exams(validation, exams)
    else:
        say(_line("all", score(validation.predictions)))
    if shipped:
        say("\nLeft out of the fit: a whole device, or a whole sweep of one device")
        say(f"{'':<44} {'rows':>5} {'done':>5}  median     p90    bias    in 2× inside  width")
        for name, part in held_out_scores().items():
            say(_line(name, part).rpartition(" ")[0])
    summary = validation.summary()
    for title, key in (
        ("Faster than their bound, and why", "bound_violations_explained"),
        ("Not expressible, and why", "not_expressible"),
    ):
        counts = summary[key]
        assert isinstance(counts, dict)
        if counts:
            say(f"\n{title}")
            for reason, count in counts.items():
                where = _lines(validation, reason) if own and key == "not_expressible" else ""
                say(f"{count:>5}  {reason}{where}")
    worst = validation.worst(5)
    if worst:
        say("\nFurthest off")
    for each in worst:
        what = each.row.model or each.row.seq_or_shape
        say(f"{_times(each.ratio):>7} × time  {each.row.device}: {each.row.workload}, {what}")
