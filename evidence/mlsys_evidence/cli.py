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

    BlindRows = dict[int, tuple[Row, ...]]


MOST_DOUBTS = 5


@click.command()
@click.option(
    "--data",
    type=FILE,
    help="Measurements of your own, a CSV such as `mlsys measure` writes; by default the shipped ones.",
)
@click.option(
    "--blind-evaluation",
    is_flag=False,
    flag_value="all",
    metavar="[NUMBER]",
    help="Evaluate the models on sources that the fit never saw, and report their first predictions: all such "
    "evaluations, or the one with this number.",
)
@click.option("--exam", is_flag=False, flag_value="all", hidden=True, help="Deprecated name of --blind-evaluation.")
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
    data: Path | None,
    blind_evaluation: str | None,
    exam: str | None,
    as_json: bool,
    csv_path: Path | None,
    figures: Path | None,
    refit: bool,
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

    evaluations = _blind_rows(exam if blind_evaluation is None else blind_evaluation)
    if evaluations and (data is not None or refit):
        raise WrongUsage("--blind-evaluation has rows of its own, which are in no fit: omit --data and --refit")
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
    rows = read_rows(data) if data else [row for own in evaluations.values() for row in own] or shipped_rows()
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
            say(f"and {len(result) - MOST_DOUBTS} more such rows", err=True)
    overrides = user_overrides(estimates=True)
    if csv_path is not None:
        write_text(csv_path, csv_text(with_user_overrides(_records(comparison, evaluations), overrides)))
    if figures is not None:
        from mlsys_evidence.evaluate.pictures import save_all

        for path in save_all(comparison, figures):
            say(path, err=True)
    if as_json:
        say_json(comparison.summary() | (_first(comparison, evaluations) if evaluations else {}), overrides)
    else:
        _print(comparison, evaluations, shipped=data is None and not evaluations, user_rows=data is not None)
        say_overrides(overrides)


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


def _blind_rows(requested: str | None) -> dict[int, tuple[Row, ...]]:
    """Return the rows of the requested blind evaluation, or of each one for ``all``."""
    from mlsys_evidence import blind_evaluation_rows, completed_blind_evaluations

    if requested is None:
        return {}
    completed = {str(number): number for number in completed_blind_evaluations()}
    if requested != "all" and requested not in completed:
        raise WrongUsage(
            f"--blind-evaluation takes a number ({', '.join(completed)}), or none for all: got {short(requested)}"
        )
    return {number: blind_evaluation_rows(number) for name, number in completed.items() if requested in ("all", name)}


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


def _records(validation: Validation, evaluations: BlindRows) -> list[dict[str, object]]:
    """Return the records of all rows; those of blind evaluations with the number of theirs."""
    number_of_row = {row.id: number for number, rows in evaluations.items() for row in rows}
    return [
        record | ({"blind_evaluation": number_of_row[str(record["id"])]} if number_of_row else {})
        for record in validation.records()
    ]


def _both(validation: Validation, evaluations: BlindRows) -> dict[str, tuple[Score, Score]]:
    """Return the scores now and at first, of all blind evaluations together and of each."""
    from mlsys_evidence import score
    from mlsys_evidence.evaluate.blind_evaluation import first_answers

    first = {number: first_answers(number) for number in evaluations}
    whole = (score(validation.predictions), score(each for own in first.values() for each in own))
    parts = {
        str(number): (score(each for each in validation.predictions if each.row in rows), score(first[number]))
        for number, rows in ((number, frozenset(own)) for number, own in evaluations.items())
    }
    return {"all": whole} | parts


def _lines(validation: Validation, reason: str) -> str:
    """Return the lines of a file whose rows are not expressible for this reason, in words."""
    lines = [each.row.line for each in validation.predictions if each.reason == reason]
    more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
    return f" (line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines[:3]))}{more})"


def _first(validation: Validation, evaluations: BlindRows) -> dict[str, object]:
    """Return the scores of the first predictions, and both scores of each blind evaluation, as the report has them."""
    (_, first), *parts = ((asdict(now), _level(first)) for now, first in _both(validation, evaluations).values())
    each = {
        str(number): now | {"first_answers": result} for number, (now, result) in zip(evaluations, parts, strict=True)
    }
    return {"first_answers": first, "blind_evaluations": each}


def _level(first: Score) -> dict[str, object]:
    """Return a score of first answers: bounds were not kept with them."""
    return {name: value for name, value in asdict(first).items() if "violations" not in name}


def _print_blind_evaluations(validation: Validation, evaluations: BlindRows) -> None:
    for name, (now, first) in reversed(_both(validation, evaluations).items()):
        if name == "all" or len(evaluations) > 1:
            named = name if name == "all" else f"blind evaluation {name}"
            say(_line(named, now))
            say(_line(f"{named}, as first answered", first).rpartition(" ")[0].rstrip())


def _print(validation: Validation, evaluations: BlindRows, shipped: bool, user_rows: bool) -> None:
    from mlsys_evidence import score
    from mlsys_evidence.fit.refit import held_out_scores

    heads = f"{'':<44} {'rows':>5} {'done':>5}  median     p90    bias    in 2× inside  width beaten"
    say(heads)
    for name, part in validation.scores(lambda each: f"{each.row.device_class}: {each.kind}").items():
        say(_line(name, part))
    if evaluations:
        _print_blind_evaluations(validation, evaluations)
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
                where = _lines(validation, reason) if user_rows and key == "not_expressible" else ""
                say(f"{count:>5}  {reason}{where}")
    worst = validation.worst(5)
    if worst:
        say("\nFurthest off")
    for each in worst:
        what = each.row.model or each.row.seq_or_shape
        say(f"{_times(each.ratio):>7} × time  {each.row.device}: {each.row.workload}, {what}")
