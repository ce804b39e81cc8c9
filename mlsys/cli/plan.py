"""``mlsys plan``: placement of the stages of a pipeline on devices."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click

from mlsys.choices import Goal, Strategy
from mlsys.cli.common import WrongUsage, checked_picture, refuse_unused, say, speak_plainly
from mlsys.cli.parameters import FILE, Finite, Input, Output, Whole
from mlsys.files import write_text

_FORMATS = ("text", "csv", "html", "json")
_INFEASIBLE, _UNKNOWN = 3, 4


@click.command()
@click.argument("scenario", required=False, type=Input(example="mlsys plan --example --output pipeline.json"))
@click.option(
    "--goal",
    type=click.Choice(get_args(Goal)),
    default="latency",
    show_default=True,
    help="Minimise time, energy, both by --weight, or the time of the busiest device.",
)
@click.option("--top-k", "top", type=Whole(min=1, max=1000), default=1, show_default=True, help="Placements listed.")
@click.option("--weight", type=Finite(0, 1), default=0.5, show_default=True, help="Weight of time, if balanced.")
@click.option("--switch-penalty", type=Finite(min=0), default=0.0, help="Added to the score for every switch.")
@click.option(
    "--strategy",
    type=click.Choice(get_args(Strategy)),
    default="auto",
    show_default=True,
    help="exact proves optimality, beam does not; auto tries exact first.",
)
@click.option("--width", type=Whole(min=1), default=64, show_default=True, help="Width of the beam.")
@click.option(
    "--max-exact-states",
    type=Whole(min=1),
    default=1_000_000,
    show_default=True,
    help="Number of partial placements that a proof may visit.",
)
@click.option("--format", "kind", type=click.Choice(_FORMATS), default="text", show_default=True, help="Output format.")
@click.option(
    "--output", type=Output(folders=True), help="Write to this file, creating folders, instead of the screen."
)
@click.option("--figure", type=Output(folders=True), help="Write a Gantt chart: .png, .svg, .pdf.")
@click.option("--example", is_flag=True, help="Print the scenario of a mobile vision pipeline.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of scenarios, with an example of each field.")
@click.option("--profiles-from", "network", help="Build a scenario of this network from our models; needs --devices.")
@click.option("--devices", help="Devices of the catalogue separated by commas, for --profiles-from.")
@click.option("--batch", type=Whole(min=1), help="For --profiles-from; by default 1.")
@click.option("--precision", help="For --profiles-from; by default fp16, or that of a config.json.")
@click.option("--profiles", "measured", type=FILE, help="CSV of measured profiles for SCENARIO.")
@click.option("--save-scenario", type=Output(folders=True), help="Write the scenario that was built.")
@click.option(
    "--seconds",
    type=Finite(min=0.1),
    help="Time limit; then the best so far with its gap; by default 60.",
)
@speak_plainly
def plan(
    scenario: Path | None,
    kind: str,
    output: Path | None,
    figure: Path | None,
    example: bool,
    schema: bool,
    network: str | None,
    devices: str | None,
    batch: int | None,
    precision: str | None,
    measured: Path | None,
    save_scenario: Path | None,
    seconds: float | None,
    goal: str,
    **options: Any,
) -> None:
    """Place the stages of SCENARIO, a JSON or YAML file, on its devices.

    A stage runs on one device for which it has a profile. Between two devices its input is transferred over a link,
    which costs time and energy, attributed to the receiving stage. Exit code 3: no placement meets the caps, and the
    report names the caps that rule out all of them. Exit code 4: none was found in --seconds.
    """
    given = [name for name, value in (("SCENARIO", scenario), ("--example", example), ("--schema", schema),
                                      ("--profiles-from", network)) if value]  # fmt: skip
    if len(given) != 1:
        raise WrongUsage(
            "give one of SCENARIO, --profiles-from, --example, "
            f"--schema; got {', '.join(given) or 'none'}. "
            "Write e.g. mlsys plan --example --output pipeline.json"
        )
    if figure is not None:
        checked_picture(figure)
    if example or schema:
        refuse_unused("needs a SCENARIO; --example and --schema only print", but=("example", "schema", "output"))
    if scenario is not None:
        refuse_unused("applies to --profiles-from; a SCENARIO specifies it itself", ("devices", "batch", "precision"))
    elif network is not None:
        refuse_unused("applies to a SCENARIO", ("measured",))
    if example or schema:
        from mlsys.planner.placement import example as data
        from mlsys.planner.placement.schema import SCHEMA

        _write(json.dumps(SCHEMA if schema else data(), indent=1, ensure_ascii=False), output)
        return
    from mlsys.api.plan import plan as best
    from mlsys.models.user_overrides import with_user_overrides
    from mlsys.planner.placement.plan import SECONDS
    from mlsys.planner.placement.report import as_csv

    overrides = _overrides_of(network, devices)
    result = best(
        _scenario(scenario, network, devices, batch, precision, measured, save_scenario),
        goal,  # type: ignore[arg-type]
        seconds=seconds or SECONDS,
        progress=_shown,
        **options,
    )
    if kind == "html":
        from mlsys.cli.plan_page import plan_page

        text = plan_page(result, overrides)
    else:
        writers: dict[str, Callable[[Any], str]] = {
            "text": lambda plan_result: "\n".join(
                [plan_result.explain(), *([f"User overrides: {'; '.join(overrides)}"] if overrides else [])]
            ),
            "csv": lambda plan_result: as_csv(plan_result, overrides),
            "json": lambda plan_result: json.dumps(
                with_user_overrides(plan_result.record(), overrides), indent=1, ensure_ascii=False, allow_nan=False
            ),
        }
        text = writers[kind](result)
    _write(text, output)
    if figure is not None and result.placements:
        from mlsys.viz.placement import plan_figure
        from mlsys.viz.style import save_figure

        save_figure(plan_figure(result), figure, folders=True)
        say(f"written: {figure}", err=True)
    if not result.placements:
        for text in result.binding:
            say(f"infeasible: {text}" if result.impossible else text, err=True)
        sys.exit(_INFEASIBLE if result.impossible else _UNKNOWN)


def _shown(best: float, bound: float) -> None:
    if sys.stderr.isatty():
        say(f"searching: best {best:.6g}, none below {max(bound, 0.0):.6g}", err=True)


def _overrides_of(network: str | None, devices: str | None) -> tuple[str, ...]:
    """Return the user overrides behind the profiles, if they come from our models."""
    if network is None or not devices:
        return ()
    from mlsys.hardware import Hardware
    from mlsys.models.user_overrides import user_overrides

    return user_overrides([Hardware[name.strip()] for name in devices.split(",") if name.strip()], estimates=True)


def _scenario(
    path: Path | None,
    network: str | None,
    devices: str | None,
    batch: int | None,
    precision: str | None,
    measured: Path | None,
    save: Path | None,
) -> Any:
    from mlsys.api.plan import scenario as made

    if path is not None:
        scenario = made(path, profiles=measured)
    else:
        if not devices:
            raise WrongUsage(
                "--profiles-from needs --devices. Write e.g. --profiles-from mobilenet-v2 --devices A100,T4"
            )
        assert network is not None
        names = [name.strip() for name in devices.split(",") if name.strip()]
        scenario = made(network, devices=names, batch=batch, precision=precision)
    if save is not None:
        _write(json.dumps(scenario.data, indent=1, ensure_ascii=False), save)
    return scenario


def _write(text: str, output: Path | None) -> None:
    """Write a text to the screen, or to a file atomically."""
    if output is None:
        say(text, nl=not text.endswith("\n"))
        return
    write_text(output, text if text.endswith("\n") else text + "\n", folders=True)
    say(f"written: {output}", err=True)


@click.group()
@click.version_option(package_name="mlsys")
def edge_planner() -> None:
    """Place the stages of a pipeline on the devices of an edge system."""


edge_planner.add_command(plan)
