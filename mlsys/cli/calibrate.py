"""``mlsys calibrate`` and ``mlsys measure``: adapt the estimates to a machine by ten measurements."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from mlsys.choices import Processor, TimedFormat
from mlsys.cli.common import WrongUsage, progress, say, say_json, speak_plainly
from mlsys.cli.parameters import FILE, Output, complete_devices, requested_device
from mlsys.files import csv_text, write_text

if TYPE_CHECKING:
    from mlsys.calibration.calibrate import Calibration
    from mlsys.hardware import Device

_CLASSES = {"TPU": "TPU-like", "SoC": "edge SoC"}


def _use(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    """Use the calibration file for every estimate of this command only."""
    if path is not None:
        import os

        from mlsys.models.estimate.library import CALIBRATION, calibrated

        before = os.environ.get(CALIBRATION, "")
        os.environ[CALIBRATION] = str(path)
        context.call_on_close(lambda: os.environ.update({CALIBRATION: before}))
        try:
            calibrated("", "")
        except ValueError as error:
            raise click.ClickException(str(error)) from error


calibration_option = click.option(
    "--calibration",
    type=FILE,
    callback=_use,
    expose_value=False,
    help="A file written by `mlsys calibrate`, applied to estimates of its machine. Or set MLSYS_CALIBRATION.",
)


@click.command()
@click.argument("data", type=FILE)
@click.option(
    "--out",
    type=Output(),
    default=Path("calibration.yaml"),
    show_default=True,
    help="File to write the calibration to.",
)
@click.option(
    "--plan",
    "chosen",
    type=Output(),
    help="Select instead of calibrating: DATA lists candidates, and the ten rows to measure are written here.",
)
@click.option("--json", "as_json", is_flag=True, help="The calibration, or the ten rows, as one JSON object.")
@click.pass_context
@speak_plainly
def calibrate(context: click.Context, data: Path, out: Path, chosen: Path | None, as_json: bool) -> None:
    """Fit the model to your own measurements of one machine; ten are enough.

    \b
        mlsys measure --device Xeon_8480    # writes mine.csv
        mlsys calibrate mine.csv            # writes calibration.yaml
        mlsys analyze resnet50 --device Xeon_8480 --precision fp32 --calibration calibration.yaml

    DATA may also be written by hand, with the columns that `mlsys measure` writes: `network` with `batch`, `image` or
    `tokens`, `stack` and `processor`; or `operator` and `elements`. The result is printed and written to a small file
    for --calibration, or for the environment variable MLSYS_CALIBRATION.

    Which ten? List the questions you will ask in the same columns, with empty values: --plan ten.csv selects the ten
    most informative rows and writes them for you to fill in. Without a list, measure some of every software, version
    and number format that you will ask about, from the shortest to the longest, and prefer different networks to
    repetitions; only measured software is calibrated. Measure on a warm machine at a steady clock.
    """  # noqa: D301
    if chosen is not None:
        if context.get_parameter_source("out") is click.core.ParameterSource.COMMANDLINE:
            raise WrongUsage("--plan writes no calibration: omit --out")
        _plan(data, chosen, as_json)
        return
    from mlsys.calibration.calibrate import calibrate_file
    from mlsys.models.estimate.ranges import FOUR_IN_FIVE

    calibration = calibrate_file(data, out)
    if as_json:
        say_json(_record(calibration, out))
        return
    say(
        f"{calibration.rows} measurements of {calibration.device}: "
        f"median error {calibration.before:.0%} before; {calibration.after:.0%} after, on the same rows"
    )
    for sentence in calibration.learned or ("nothing new: the machine behaves like the published ones",):
        say(f"  {sentence}")
    outliers = {name: factor for name, factor in calibration.networks.items() if abs(math.log(factor)) > 0.02}
    if outliers:
        furthest = sorted(outliers.items(), key=lambda item: -abs(math.log(item[1])))[:3]
        say("  further factors of networks: " + ", ".join(f"{name} {factor:.2f} times" for name, factor in furthest))
    formats = {name: factor for name, factor in calibration.formats.items() if abs(math.log(factor)) > 0.02}
    if formats:
        by_format = ", ".join(f"{factor:.2f} times in {name}" for name, factor in sorted(formats.items()))
        say(f"  further factors by number format of a network: {by_format}")
    for factors in calibration.versions.values():
        say(
            "  further factors by version: "
            + ", ".join(f"{factor:.2f} times in {name}" for name, factor in sorted(factors.items()))
        )
    further = math.exp(FOUR_IN_FIVE * calibration.spread)
    say(f"  by these rows alone, 80 % of further measurements should lie within a factor of {further:.2f}")
    for sentence in calibration.untold:
        say(f"  {sentence}")
    for sentence in calibration.doubts:
        say(sentence, err=True)
    ask = f"mlsys analyze resnet50 --device {calibration.device} --precision {next(iter(calibration.formats), 'fp16')}"
    say(f"written: {out}. Next: {ask} --calibration {out}", err=True)


def _record(calibration: Calibration, out: Path) -> dict[str, object]:
    """Return a calibration as plain data."""
    return {
        "device": calibration.device, "rows": calibration.rows, "error_before": calibration.before,
        "error_after": calibration.after, "learned": list(calibration.learned),
        "networks": dict(calibration.networks), "formats": dict(calibration.formats),
        "versions": {name: dict(factors) for name, factors in calibration.versions.items()},
        "spread": calibration.spread, "untold": list(calibration.untold), "doubts": list(calibration.doubts),
        "written": str(out),
    }  # fmt: skip


def _plan(data: Path, out: Path, as_json: bool) -> None:
    from mlsys.calibration.plan import plan_file
    from mlsys.units import Q_

    ten = plan_file(data, out)
    if as_json:
        rows = [{"line": each.line, "seconds": each.seconds, **dict(vars(each.row))} for each in ten]
        say_json({"rows": rows, "written": str(out)})
        return
    say(f"the {len(ten)} most informative of {data}, in this order:")
    for each in ten:
        row = each.row
        batch = f"batch {row.batch}" if row.batch else ""
        what = ", ".join(filter(None, (row.workload, row.model, batch, row.precision, row.seq_or_shape, row.software)))
        say(f"  line {each.line}: {what}; about {Q_(each.seconds, 's').to_compact():.3g~P}")
    say(f"written: {out}. Fill in the column `value`; next: mlsys calibrate {out}", err=True)


@click.command()
@click.option(
    "--device",
    "name",
    required=True,
    help="The device of this machine, as listed by `mlsys devices`.",
    shell_complete=complete_devices,
)
@click.option(
    "--on", type=click.Choice(get_args(Processor)), default="cpu", show_default=True, help="Processor used by PyTorch."
)
@click.option(
    "--precision",
    type=click.Choice(get_args(TimedFormat)),
    default="fp32",
    show_default=True,
    help="Number format of the networks.",
)
@click.option(
    "--out",
    type=Output(),
    default=Path("mine.csv"),
    show_default=True,
    help="File to write the rows to.",
)
@speak_plainly
def measure(name: str, on: Processor, precision: TimedFormat, out: Path) -> None:
    """Take ten measurements of this machine for `mlsys calibrate`, in less than three minutes.

    Networks run in eager PyTorch, each warmed up and timed until there are at least six samples. On a CPU each is
    measured twice and the faster result is used, since background load varies; on a GPU, additions of arrays are timed
    too, to measure its memory. Stop other programs first.
    """
    from mlsys.measure.ten_measurements import COLUMNS, ROUNDS, count_measurements, ten_measurements

    twin = requested_device(name)
    if not _runs(twin, on):
        raise ValueError(f"--device {twin.name} is a {twin.kind}, but --on {on} measures another kind of device")
    group = "datacenter GPU" if twin.kind == "GPU" else _CLASSES.get(twin.kind, twin.kind)
    with progress(range(ROUNDS[on] * count_measurements(on)), "Measurements") as bar:
        rows = ten_measurements(twin.id, group, on, precision, lambda: bar.update(1))
    write_text(out, csv_text(rows, COLUMNS))
    for row in rows:
        what = f"{row['workload']}, {row['model']}, batch {row['batch']}" if row["model"] else row["workload"]
        say(
            f"{what:<50} {row['seq_or_shape']:<42} {row['value']:>8} {row['unit']:<4} "
            f"middle half within {float(row['spread']):.1%}; {row['note']}"
        )
    if len(rows) < count_measurements(on):
        full = ", or its memory was full" if on == "cuda" else ""
        say(
            f"{len(rows)} of {count_measurements(on)} measurements: the three minutes were up{full}. The machine is "
            "slow or busy",
            err=True,
        )
    if on == "cuda" and (other := _other_twin(twin)):
        say(f"PyTorch runs on {other}, but the rows are labelled {twin.name}: is --device right?", err=True)
    restless = sum(float(row["spread"]) > RESTLESS for row in rows)
    if restless:
        say(
            f"{restless} of {len(rows)} measurements scatter by more than {RESTLESS:.0%}: the machine was busy. "
            "Stop other programs and measure again before calibrating",
            err=True,
        )
    held = [float(row["busy"]) for row in rows if row.get("busy")]
    if held and max(held) < STARVED:
        say(
            f"PyTorch's threads had at most {max(held):.0%} of the CPU time: other programs were running. "
            "Stop them and measure again; these measurements include waiting time",
            err=True,
        )
    if twin.kind == "CPU" and (few := _few_threads(twin, int(rows[0].get("threads") or 0))):
        say(few, err=True)
    say(f"written: {out}. Next: mlsys calibrate {out}", err=True)


def _runs(twin: Device, on: Processor) -> bool:
    """Return whether PyTorch can run on a device with this option: a GPU of a system on chip needs CUDA, so NVIDIA."""
    if on == "cuda":
        return twin.kind == "GPU" or (twin.kind == "SoC" and twin.vendor == "NVIDIA")
    return twin.kind in ("CPU", "SoC")


def _few_threads(twin: Device, threads: int) -> str:
    """Return a warning if PyTorch has far fewer threads than the CPU has cores; else an empty string."""
    from mlsys.hardware.view import view

    cores = view(twin, "fp32").units
    if not threads or cores is None or threads >= cores / 2:
        return ""
    return (
        f"PyTorch ran {threads} threads, but {twin.name} has {cores:.0f} cores: the result of `mlsys calibrate` "
        "will hold for that many threads. Is this a virtual machine with a part of that CPU?"
    )


def _other_twin(twin: Device) -> str:
    """Return the name of PyTorch's GPU if it is another device; empty if it is the same or unknown."""
    from mlsys.calibration.named_devices import device_named
    from mlsys.measure.ten_measurements import gpu_name

    name = gpu_name()
    known = device_named(name)
    return name if known is not None and known.id != twin.id else ""


# Interquartile range over the median above which a measurement mainly shows background load.
RESTLESS = 0.25
# CPU share of a large product's threads on an idle machine: they hardly wait for each other.
STARVED = 0.7
