"""``mlsys explain compare`` and ``guide``: compare platforms, and choose one for a requirement."""

import json
import statistics
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mlsys.cli.common import WrongUsage, one_form, say, speak_plainly
from mlsys.cli.parameters import Finite, Input, Output
from mlsys.files import write_text

_INFEASIBLE = 3
_OPTIONS = {
    "latency_ms": "--within", "energy_mj": "--energy", "memory_kb": "--memory", "accuracy": "--accuracy",
    "cost_usd": "--cost",
}  # fmt: skip
_LOG = Input(stored=True)


def read_logs(paths: tuple[Path, ...]) -> list[Any]:
    """Return logs from files and from the shipped ones; all errors are reported together."""
    from mlsys.errors import LogFileError, did_you_mean
    from mlsys.measure import read_log, stored_logs

    read: list[Any] = []
    faults: list[str] = []
    for path in paths:
        text = str(path)
        try:
            if text == "stored":
                read += stored_logs().values()
            elif text.startswith("stored:"):
                name = text.removeprefix("stored:")
                if name not in stored_logs():
                    faults.append(f"{text}: unknown log.{did_you_mean(name, stored_logs())}")
                    continue
                read.append(stored_logs()[name])
            else:
                read.append(read_log(path))
        except LogFileError as error:
            faults.append(str(error))
    names = [(log.name, log.platform) for log in read]
    faults += [
        f"duplicate: {name} on {platform}"
        for name, platform in dict.fromkeys(names)
        if names.count((name, platform)) > 1
    ]
    if faults:
        raise LogFileError("\n".join(faults))
    return read


@click.command()
@click.argument("logs", nargs=-1, type=_LOG)
@click.option(
    "--published/--no-published", default=True, show_default=True, help="Include published microcontrollers on DS-CNN."
)
@click.option("--rows", type=Input(), help="CSV of further platforms.")
@click.option("--portability", is_flag=True, help="Predict each published platform from the others.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per platform.")
@speak_plainly
def compare(
    logs: tuple[Path, ...], published: bool, rows: Path | None, portability: bool, as_json: bool, as_csv: bool
) -> None:
    """Compare platforms: LOGS, published microcontrollers, your own rows; print the best of each column."""
    from mlsys.cli.common import print_csv
    from mlsys.measure.recommend.platforms import COLUMNS, winners

    one_form(as_json, as_csv)
    if portability and (logs or rows is not None or as_csv):
        raise WrongUsage("--portability uses the published platforms only: omit LOGS, --rows and --csv")
    if portability:
        _tell_portability(as_json)
        return
    shown = _platforms(logs, published, rows)
    best = winners(shown)
    if as_json:
        record = {"platforms": [asdict(row) | {"power_mw": row.power_mw} for row in shown], "best": best}
        say(json.dumps(record, indent=1, ensure_ascii=False))
    elif as_csv:
        print_csv([{name: _known(getattr(row, name)) for name in (*COLUMNS, "source")} for row in shown])
    else:
        wide = max(len(row.platform) for row in shown)
        say(f"{'platform':<{wide}}  {'ms':>10}  {'mJ':>9}  {'mW':>8}  {'kB':>8}  {'runs apart':>10}")
        for row in shown:
            values = (row.latency_ms, row.energy_mj, row.power_mw, row.memory_kb)
            cells = [("—" if v is None else f"{v:.4g}").rjust(w) for v, w in zip(values, (10, 9, 8, 8), strict=True)]
            spread = "—" if row.between_runs is None else f"{row.between_runs:.1%}"
            say(f"{row.platform:<{wide}}  {'  '.join(cells)}  {spread:>10}")
        for name, platform in best.items():
            say(f"best {name}: {platform}")


def _known(value: Any) -> Any:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else value


def _platforms(logs: tuple[Path, ...], with_published: bool, rows: Path | None) -> list[Any]:
    from mlsys.errors import LogFileError
    from mlsys.measure.recommend.platforms import platform_of, published, read_platforms

    faults: list[str] = []
    platforms: list[Any] = []
    try:
        platforms += map(platform_of, read_logs(logs))
    except LogFileError as error:
        faults.append(str(error))
    if rows is not None:
        try:
            platforms += read_platforms(rows)
        except LogFileError as error:
            faults.append(str(error))
    if with_published:
        platforms += published()
    names = [row.platform for row in platforms]
    faults += [f"duplicate {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1]
    if not platforms and not faults:
        faults.append("nothing to compare: give LOGS, --rows, or --published")
    if faults:
        raise LogFileError("\n".join(faults))
    return platforms


def _tell_portability(as_json: bool) -> None:
    from mlsys.measure.recommend.portability import leave_one_out, published_points

    predictions = leave_one_out(published_points())
    if as_json:
        say(json.dumps([asdict(prediction) | {"error": prediction.error} for prediction in predictions], indent=1))
        return
    for prediction in predictions:
        predicted = (
            f"{prediction.time_ms:.4g} ms, {prediction.error:+.0%}"
            if prediction.error is not None
            else f"refused: {prediction.refused}"
        )
        say(f"{prediction.platform}, {prediction.network}: measured {prediction.measured_ms:.4g} ms; {predicted}")
    errors = [abs(prediction.error) for prediction in predictions if prediction.error is not None]
    say(f"{len(errors)} of {len(predictions)} predicted; the median error is {statistics.median(errors):.0%}")


@click.command()
@click.argument("logs", nargs=-1, type=_LOG)
@click.option("--within", "latency_ms", type=Finite(), help="Latency limit, ms.")
@click.option("--energy", "energy_mj", type=Finite(), help="Energy limit, mJ.")
@click.option("--memory", "memory_kb", type=Finite(), help="Memory limit, kB.")
@click.option("--accuracy", type=Finite(), help="Least accuracy, percent.")
@click.option("--cost", "cost_usd", type=Finite(), help="Cost limit, US dollars.")
@click.option(
    "--published/--no-published", default=True, show_default=True, help="Include published microcontrollers on DS-CNN."
)
@click.option("--rows", type=Input(), help="CSV of platforms.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--markdown", type=Output(folders=True), help="Also write tree and table to this file.")
@speak_plainly
def guide(
    logs: tuple[Path, ...],
    published: bool,
    rows: Path | None,
    as_json: bool,
    markdown: Path | None,
    **limits: float | None,
) -> None:
    """Choose a platform for a requirement, by a decision tree over feasible rows. INFEASIBLE ends with exit code 3."""
    from mlsys.measure.recommend.guide import INFEASIBLE, Requirement
    from mlsys.measure.recommend.guide import guide as best

    faults: list[str] = []
    wanted = None
    try:
        wanted = Requirement(**limits)
    except ValueError as error:
        message = str(error)
        for name, option in _OPTIONS.items():
            message = message.replace(f"Requirement(): `{name}`", option).replace(f"{name}=", f"{option} ")
        faults.append(message)
    try:
        platforms = _platforms(logs, published, rows)
    except ValueError as error:
        faults.append(str(error))
    if faults or wanted is None:
        raise ValueError("\n".join(faults))
    guide = best(platforms, wanted)
    if markdown is not None:
        from mlsys.measure.recommend.guide import as_markdown

        write_text(markdown, as_markdown(guide, platforms), folders=True)
        say(f"written: {markdown}", err=True)
    if as_json:
        say(json.dumps(asdict(guide) | {"wanted": guide.wanted.requested}, indent=1, ensure_ascii=False))
    else:
        say(f"{guide.answer}\n")
        say(f"by {guide.by}, checked in {guide.cells} cells of limits\n\n{guide.tree}\n")
        for name, why in guide.why.items():
            say(f"{name}: {'; '.join(why) or 'feasible'}")
    if guide.answer == INFEASIBLE:
        sys.exit(_INFEASIBLE)
