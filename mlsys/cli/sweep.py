"""``mlsys sweep``: all combinations of networks, devices, batches and formats, or of models, systems and layouts."""

import json
from pathlib import Path
from typing import Any

import click

from mlsys.cli.common import (
    PICTURES,
    WrongUsage,
    checked_picture,
    one_form,
    progress,
    say,
    say_overrides,
    speak_plainly,
)
from mlsys.cli.parameters import FILE, Finite, Output, OutputFolder, Whole

_INTERRUPTED = 130


@click.command()
@click.argument("spec", required=False, type=FILE)
@click.option("--out", type=OutputFolder(), help="Folder of results; by default SPEC.sweep.")
@click.option("--jobs", type=Whole(min=1), help="Number of processes; by default as many as pay off.")
@click.option("--scheduler", metavar="ADDRESS", help="Run on the workers of this Dask scheduler.")
@click.option("--seconds", type=Finite(min=0.1), help="Time limit; prints the points done so far. Repeat to resume.")
@click.option(
    "--show",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Print the summary of a finished folder.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object with every point.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per point.")
@click.option("--figure", type=Output(), help=f"Draw rates and Pareto fronts: {', '.join(PICTURES)}.")
@speak_plainly
def sweep(
    spec: Path | None,
    out: Path | None,
    jobs: int | None,
    scheduler: str | None,
    seconds: float | None,
    show: Path | None,
    as_json: bool,
    as_csv: bool,
    figure: Path | None,
) -> None:
    """Evaluate every point of the sweep described by the YAML file SPEC, and store the results in a folder.

    SPEC lists networks and devices,

    \b
    models: [resnet50, {model: llama-3-8b, phase: [prefill, decode], sequence: 1024}]
    devices: [A100, {class: edge, since: 2020}]
    batches: [1, 8, 64]
    precisions: [fp16, int8]
    fusion: [on, off]
    settings: [eager network]

    or, for language models sized as by `mlsys size`,

    \b
    models: [llama-3-70b, path/to/config.json]
    systems: [DGX_H100, {system: DGX_B200, nodes: [1, 2]}, A100]
    tp: [1, 2, 4, 8]
    batches: [1, 32, 128]
    lengths: [8192, {prompt: 1000, output: 500}]
    weight_formats: [fp16, fp8]

    and pp, ep, dp, replicas, phases, kv_formats, precisions, rank; sizes that are left out are
    searched, and the result is that of the layout ranked first.

    Models are networks that `mlsys flops` accepts, devices are names or criteria of `mlsys devices` (with class: cloud,
    cpu, edge, mobile, tiny or generic); the other keys are optional. A device that cannot run a point has a row with
    the reason.

    The folder contains results.parquet and results.csv. A sweep that was stopped, by Ctrl-C (exit code 130) or
    otherwise, resumes when the same command is given again.
    """  # noqa: D301
    if (spec is None) == (show is None):
        raise WrongUsage("give either SPEC.yaml or --show FOLDER")
    one_form(as_json, as_csv)
    if jobs and scheduler:
        raise WrongUsage("--jobs counts processes on this machine; --scheduler uses its own workers. Give one of them")
    if show is not None and (out or jobs or scheduler or seconds):
        raise WrongUsage("--show only reads: omit --out, --jobs, --scheduler and --seconds")
    if figure is not None:
        checked_picture(figure)
    table = _shown(show) if show is not None else _swept(spec, out, jobs, scheduler, seconds)
    if figure is not None:
        from mlsys.viz.style import save_figure
        from mlsys.viz.sweep import figure_of

        save_figure(figure_of(table), figure)
        say(f"written: {figure}", err=True)
    overrides = table.provenance.get("user_overrides", "")
    if as_json:
        say(json.dumps(table.record(), indent=1, ensure_ascii=False))
    elif as_csv:
        say(table.csv(), nl=False)
    else:
        say(table.explain())
        say_overrides([overrides] if overrides else [])
    if len(table) and not any(error is None for error in table.columns["error"]):
        raise ValueError(f"none of the {len(table):,} points has an answer. The first: {table.columns['error'][0]}")


def _shown(folder: Path) -> Any:
    from mlsys.sweep import load_results

    return load_results(folder)


def _swept(path: Path | None, out: Path | None, jobs: int | None, scheduler: str | None, seconds: float | None) -> Any:
    from mlsys.sweep import load_spec
    from mlsys.sweep import sweep as evaluate

    assert path is not None
    spec = load_spec(path)
    folder = out or Path(f"{path.stem}.sweep")
    with progress(range(spec.points), "points", show_pos=True) as bar:

        def tell(done: int, all_points: int) -> None:
            bar.length = all_points
            bar.update(done - bar.pos)

        try:
            table = evaluate(
                spec,
                folder,
                jobs=jobs,
                scheduler=scheduler,
                progress=tell,
                note=lambda text: say(text, err=True),
                seconds=seconds,
            )
        except KeyboardInterrupt:
            say(f"\nstopped at {bar.pos:,} of {bar.length or 0:,} points; repeat the command to resume", err=True)
            raise SystemExit(_INTERRUPTED) from None
    if "stopped" not in table.provenance:
        say(f"written: {folder / 'results.parquet'}, {folder / 'results.csv'}", err=True)
    return table
