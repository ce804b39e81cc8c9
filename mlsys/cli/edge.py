"""``mlsys edge``: compress a network for a device, and measure the cost."""

import json
import re
from pathlib import Path
from typing import Any

import click

from mlsys.cli.common import one_form, print_csv, progress, refuse_unused, say, speak_plainly
from mlsys.cli.edge_arena import arena_command
from mlsys.cli.networks import network_arguments, network_options
from mlsys.cli.parameters import Input, OutputFolder, QuantityType, complete_model

_EXAMPLE = "mlsys edge run --example > digits.yaml"


@click.group()
def edge() -> None:
    """Prune a network, quantise it, lower the clock: accuracy, time, energy and memory of each variant.

    `mlsys edge run --example` writes a configuration to start from.
    """


def _folder(config: Path, output: Path | None) -> Path:
    return output if output is not None else config.with_name(f"{config.stem}-results")


@edge.command("run")
@click.argument("config", required=False, type=Input(example=_EXAMPLE))
@click.option("--output", type=OutputFolder(), help="Folder of results; by default CONFIG-results.")
@click.option("--example", is_flag=True, help="Print an example configuration with every key.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of configurations, with an example of each key.")
@speak_plainly
def run_command(config: Path | None, output: Path | None, example: bool, schema: bool) -> None:
    """Train the network of CONFIG, a YAML file, and evaluate and time every variant of it.

    The folder of results appears once it is complete. A run that was stopped resumes when the same command is given
    again.
    """
    if (config is not None) + example + schema != 1:
        raise ValueError("give one of CONFIG, --example, --schema. Write e.g. mlsys edge run --example > digits.yaml")
    if example or schema:
        refuse_unused("applies to CONFIG; --example and --schema only print", ("output",))
        from mlsys.edge.config import example_config as data
        from mlsys.edge.schema import SCHEMA

        say(_yaml(data()) if example else json.dumps(SCHEMA, indent=1, ensure_ascii=False))
        return
    assert config is not None
    from mlsys.cli.edge_page import write_reports
    from mlsys.edge.config import Config
    from mlsys.edge.run import EdgeRun, run

    read, folder = Config.load(config), _folder(config, output)
    if EdgeRun(read, folder).finished:
        say(f"{folder} holds all results of this configuration already; nothing was done", err=True)
        return
    EdgeRun(read, folder).check()
    with progress(range(len(read.variants)), "variants") as bar:
        steps = iter(bar)
        run(read, folder, write=write_reports, on_progress=lambda done, count, variant: next(steps, None))
    _tell(read, folder)
    say(f"written: {folder}", err=True)


@edge.command("report")
@click.argument("config", type=Input(example=_EXAMPLE))
@click.option("--output", type=click.Path(path_type=Path), help="Folder of results; by default CONFIG-results.")
@click.option(
    "--format", "kind", type=click.Choice(("text", "csv", "markdown", "html", "json")), default="text",
    show_default=True, help="Output format.",
)  # fmt: skip
@speak_plainly
def report_command(config: Path, output: Path | None, kind: str) -> None:
    """Print the results of a finished run of CONFIG; nothing is trained or timed again."""
    from mlsys.edge.config import Config
    from mlsys.edge.points import point_columns, points_of
    from mlsys.edge.run import machine_of, measured_of

    read, folder = Config.load(config), _folder(config, output)
    measured = measured_of(read, folder)
    if kind in ("markdown", "html"):
        from mlsys.cli.edge_page import report_files

        name = "report.md" if kind == "markdown" else "report.html"
        say(report_files(read, measured, machine_of(folder))[name].decode(), nl=False)
        return
    points = points_of(read, measured)
    if kind == "csv":
        print_csv((point.record(read) for point in points), point_columns(read))
    elif kind == "json":
        report = {
            "name": read.name,
            "machine": machine_of(folder),
            "points": [point.record(read) for point in points],
        }
        say(json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        _tell(read, folder)


def _tell(config: Any, folder: Path) -> None:
    """Print the Pareto front of a finished run, and its main findings."""
    from mlsys.edge.points import points_of
    from mlsys.edge.run import measured_of
    from mlsys.tables import Table

    points = points_of(config, measured_of(config, folder))
    accepted = sum(point.accepted for point in points)
    rows = [
        (
            str(point.measured.variant),
            f"{point.clock.scale:g}",
            f"{100 * point.objectives[0]:.2f}",
            *(f"{value:.4g}" for value in point.objectives[1:3]),
            f"{point.objectives[3] / 1e6:.4g}",
        )
        for point in points
        if point.pareto
    ]
    columns = ("variant", "clock", "right, %", "time, ms", "energy, mJ", "memory, MB")
    title = f"{config.name}: {accepted} of {len(points)} points accepted, {len(rows)} of them Pareto-optimal"
    say(str(Table(title, columns, rows)))
    causes = [point for point in points if point.measured.failed]
    for failure in dict.fromkeys(f"{point.measured.variant}: {point.measured.failed}" for point in causes):
        say(f"failed: {failure}")


@edge.command("layers")
@click.argument("model", shell_complete=complete_model)
@network_options("Number format of every value; by default fp32, or that of a factory or an ONNX file.")
@click.option("--latency", type=QuantityType("s"), help="Measured time of the batch, such as '4.87 ms'.")
@click.option(
    "--bandwidth", type=QuantityType("byte/s"), help="Main-memory bandwidth, such as '12.8 GB/s'; with --latency."
)
@click.option("--peak", type=QuantityType("FLOP/s"), help="Peak of the machine, such as '50 GFLOP/s'; with --latency.")
@click.option("--all", "every", is_flag=True, help="Include operators without weights, such as pooling.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per layer.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@speak_plainly
def layers_command(
    model: str, latency: Any, bandwidth: Any, peak: Any, every: bool, as_csv: bool, as_json: bool, **options: Any
) -> None:
    """Print weights, activations, traffic and operations of each layer of MODEL.

    MODEL is any network that `mlsys flops` accepts. With --latency and --bandwidth also the fraction of the memory
    bandwidth that a measured time attains, for three ways of counting the bytes.
    """
    from mlsys.api.edge import edge_layers
    from mlsys.edge.layers import LAYER_COLUMNS, SUMMARY_COLUMNS
    from mlsys.tables import Table
    from mlsys.workloads.used_sizes import sizes_in_words

    one_form(as_json, as_csv)
    answer = edge_layers(
        model, latency=latency, bandwidth=bandwidth, peak=peak, every=every, **network_arguments(options)
    )
    if as_csv:
        print_csv((row.record() for row in answer.layers), LAYER_COLUMNS)
        return
    if as_json:
        say(json.dumps(answer.record(), indent=1, ensure_ascii=False))
        return
    work, rows, summary, totals, samples = answer.network, answer.layers, answer.summary, answer.totals, answer.samples
    columns = [name.replace("_", " ") for name in LAYER_COLUMNS]
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row.record().values()] for row in rows]
    say(str(Table(f"{work.name}: {len(rows)} layers", columns, cells)))
    say(
        f"\nWeights and outputs of the layers: {totals['bytes']:,} B; {totals['macs']:,} MAC. "
        f"For each sample of {samples}: {totals['bytes'] / samples:,.6g} B, {totals['macs'] / samples:,.6g} MAC."
    )
    if summary:
        columns = [name.replace("_", " ") for name in SUMMARY_COLUMNS]
        shown = [[f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row.record().values()]
                 for row in summary]  # fmt: skip
        say("\n" + str(Table("Bytes counted in three ways, over the time", columns, shown)))
    say(f"\n{sizes_in_words(work)}")


@edge.command("clock")
@click.option(
    "--point",
    "points",
    multiple=True,
    metavar="CLOCK,TIME,ENERGY[,VOLTAGE]",
    help="One inference at one clock, such as '168 MHz, 145 ms, 18 mJ'; give it at least twice.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@speak_plainly
def clock_command(points: tuple[str, ...], as_json: bool) -> None:
    """Separate static from dynamic energy by timing one inference at several clocks, and find the best clock.

    The voltage is relative to that at the highest clock; by default it is the same at all clocks.
    """
    from mlsys.api.edge import edge_clock

    read = [_power_point(text) for text in points]
    if len(read) < 2:
        raise ValueError(
            "give --point at least twice. Write e.g. mlsys edge clock --point '168 MHz, 145 ms, 18 mJ' "
            "--point '80 MHz, 305 ms, 24 mJ'"
        )
    answer = edge_clock(read)
    if as_json:
        say(json.dumps(answer.record(), indent=1))
        return
    split, best, law, top = answer.split, answer.best, answer.law, answer.top
    say(f"static {split.static:.4g~P}, dynamic {split.dynamic:.4g~P} per inference")
    for point in read:
        leak = (split.static * point.time).to("mJ")
        say(
            f"{point.clock.to('MHz'):.4g~P}: {point.time.to('ms'):.4g~P}, {point.energy.to('mJ'):.4g~P}, "
            f"{point.power:.3g~P}, energy × time {point.energy_delay:.3g~P}; "
            f"static {leak:.3g~P}, {float(leak / point.energy):.0%}"
        )
    say(f"least energy among these: {best.scale * top.to('MHz'):.4g~P}, {law.energy(best):.4g~P}")


def _power_point(text: str) -> Any:
    from mlsys.amounts import amount, parsed_number
    from mlsys.edge.clock import PowerPoint

    if comma := re.search(r"\d+,\d+", text):
        number = comma[0].replace(",", ".")
        raise ValueError(
            f"--point {text[:60]!r}: {comma[0]!r} has a comma within a number. Write {number}: commas only separate "
            "clock, time, energy and voltage"
        )
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (3, 4):
        raise ValueError(f"--point must be CLOCK,TIME,ENERGY[,VOLTAGE], such as '168 MHz, 145 ms, 18 mJ', got {text!r}")
    voltage = 1.0
    if len(parts) == 4:
        try:
            voltage = parsed_number(parts[3])
        except ValueError:
            raise ValueError(
                f"--point: the voltage relative to that at the highest clock must be a number, got {parts[3][:60]!r}"
            ) from None
    try:
        clock, time, energy = (amount(part, unit) for part, unit in zip(parts, ("Hz", "s", "J"), strict=False))
        return PowerPoint(clock, time, energy, voltage)
    except ValueError as error:
        raise ValueError(f"--point {text[:60]!r}: {error}") from None


def _yaml(data: dict[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(data, sort_keys=False, default_flow_style=None, allow_unicode=True, width=110)).rstrip()


edge.add_command(arena_command)
