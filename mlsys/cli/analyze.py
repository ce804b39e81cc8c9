"""``mlsys analyze`` and ``mlsys compare``: the bottlenecks of a network on one device or several."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mlsys.cli.calibrate import calibration_option
from mlsys.cli.common import (
    WrongUsage,
    checked_picture,
    one_form,
    print_csv,
    print_record,
    say,
    say_overrides,
    speak_plainly,
)
from mlsys.cli.networks import format_options, network_arguments, network_options
from mlsys.cli.parameters import Output, Whole, complete_device, complete_devices, complete_model
from mlsys.files import together


def _model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--software",
        "--setting",
        "software",
        help='Software that runs the network: "eager", "eager network on GPU", …; by default the typical software for '
        "such work on such a device, or the software that its calibration measured. Unknown names list the known ones. "
        "--setting is a deprecated name of this option.",
    )(command)
    command = click.option(
        "--fusion/--no-fusion",
        default=True,
        show_default=True,
        help="Whether to fuse operators, as a compiler does; eager software on GPUs does not.",
    )(command)
    precision = "Of every value and of the arithmetic; by default fp16, or that of a config.json."
    return network_options(precision)(format_options(command))


@click.command()
@click.argument("model", shell_complete=complete_model)
@click.option(
    "--device",
    "name",
    required=True,
    help="A device of the catalogue, such as A100.",
    shell_complete=complete_device,
)
@_model_options
@calibration_option
@click.option("--top", type=Whole(min=1), default=10, show_default=True, help="Number of operators listed as text.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per operator.")
@click.option("--html", "page_file", type=Output(), help="Write one self-contained HTML file.")
@click.option("--figure", type=Output(), help="Write the roofline with every layer: .png, .svg, .pdf.")
@speak_plainly
def analyze(
    model: str,
    name: str,
    software: str | None,
    fusion: bool,
    top: int,
    as_json: bool,
    as_csv: bool,
    page_file: Path | None,
    figure: Path | None,
    **options: Any,
) -> None:
    """Estimate the time of MODEL on a device by operator, and suggest what to fix first.

    MODEL is any network that `mlsys flops` accepts: the name of a network, a `package.module:factory`, the config.json
    of a transformers model, or an ONNX file. The least time is that of the roofline; the estimate comes from a model
    fitted to published measurements (`mlsys validate` reports its errors). The range is an 80 % interval, with the
    reason for its width; `mlsys calibrate` narrows it. Gains of changes are upper bounds. For microcontrollers, boards
    and GPUs the energy of a pass is estimated too: time multiplied by power under load.

    \b
        mlsys analyze resnet50 --device A100 --batch 32
        mlsys analyze llama-3-8b --device RTX_4090 --phase decode --software "llama.cpp llm decode"
    """  # noqa: D301
    from mlsys.api.analyze import analyze as analyzed
    from mlsys.models.analysis.record import operator_rows
    from mlsys.models.user_overrides import user_overrides

    one_form(as_json, as_csv)
    if figure is not None:
        checked_picture(figure)
    analysis = analyzed(name, model, software=software, fusion=fusion, **network_arguments(options))
    twin = analysis.twin
    overrides = user_overrides([twin], estimates=True, settings=[analysis.setting])
    with together() as files:
        if page_file is not None:
            from mlsys.cli.analysis_page import analysis_page

            files.text(page_file, analysis_page(analysis, twin, overrides))
        if figure is not None:
            from mlsys.viz.analysis import analysis_figure
            from mlsys.viz.style import save_figure

            save_figure(analysis_figure(analysis, twin), figure, files)
    if as_json:
        print_record(analysis.record(), overrides)
    elif as_csv:
        print_csv(operator_rows(analysis), overrides=overrides)
    else:
        say(analysis.explain(top))
        say_overrides(overrides)
        for written in filter(None, (page_file, figure)):
            say(f"written: {written}", err=True)


@click.command()
@click.argument("model", shell_complete=complete_model)
@click.option(
    "--devices",
    "names",
    required=True,
    help="Names separated by commas: A100,H100,T4.",
    shell_complete=complete_devices,
)
@_model_options
@calibration_option
@click.option("--json", "as_json", is_flag=True, help="A JSON list, one object per device.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per device.")
@click.option("--figure", type=Output(), help="Write the estimates with their ranges: .png, .svg, .pdf.")
@speak_plainly
def compare(
    model: str,
    names: str,
    software: str | None,
    fusion: bool,
    as_json: bool,
    as_csv: bool,
    figure: Path | None,
    **options: Any,
) -> None:
    """Estimate MODEL on several devices: least time, estimate, rate and bottleneck.

    Speed is relative to the first device, by the estimates, with its own 80 % range: errors common to two machines
    cancel. If that range contains 1, the difference is not significant; otherwise, if the ranges of the two times
    overlap, the faster device is only probably faster. Ranges of times assume that one source measures all devices;
    `mlsys analyze` gives the wider range of a single device.
    """
    from mlsys.api.compare import compare as compared
    from mlsys.models.user_overrides import user_overrides

    one_form(as_json, as_csv)
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if figure is not None:
        checked_picture(figure)
    if not wanted:
        raise WrongUsage("--devices must be names separated by commas, such as A100,H100,T4")
    comparison = compared(wanted, model, software=software, fusion=fusion, **network_arguments(options))
    analyses = comparison.analyses
    overrides = user_overrides(
        [each.twin for each in analyses], estimates=True, settings=[each.setting for each in analyses]
    )
    if figure is not None:
        from mlsys.viz.analysis import comparison_figure
        from mlsys.viz.style import save_figure

        with together() as files:
            save_figure(comparison_figure(list(analyses)), figure, files)
        say(f"written: {figure}", err=True)
    if as_json:
        print_record(comparison.record(), overrides)
    elif as_csv:
        print_csv([{**row, "notes": "; ".join(row["notes"])} for row in comparison.rows()], overrides=overrides)
    else:
        say(comparison.explain())
        say_overrides(overrides)
