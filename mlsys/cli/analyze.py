"""``mlsys analyze`` and ``mlsys compare``: where a network's time goes, on one device or several."""

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
from mlsys.cli.networks import network_arguments, network_options
from mlsys.cli.parameters import Output, Whole, complete_device, complete_devices, complete_model
from mlsys.files import together


def _model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--software",
        "--setting",
        "software",
        help='Software that runs the network: "eager", "eager network on GPU", …; by default what usually runs such '
        "work on such a device, or what a calibration of it measured. A wrong name is answered by a list. "
        "--setting is its old name.",
    )(command)
    command = click.option(
        "--fusion/--no-fusion",
        default=True,
        show_default=True,
        help="Whether operators share kernels, as a compiler arranges it; not under eager software on GPUs.",
    )(command)
    return network_options("Of every value and of the arithmetic; by default fp16, or what a config.json says.")(
        command
    )


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
@click.option("--top", type=Whole(min=1), default=10, show_default=True, help="Operators listed as text.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line for each operator.")
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
    """Say where the time of MODEL goes on a device, operator by operator, and what to fix first.

    MODEL is what `mlsys flops` takes: the name of a network, a `package.module:factory`, the config.json
    of a transformers model, or an ONNX file. The least time is the roofline's, the estimate that of the
    model fitted to published measurements (`mlsys validate` shows how wrong it is). The range is made to hold
    four measurements in five, and says what makes it wide; `mlsys calibrate` narrows it. What a change would
    gain is an upper limit. Of microcontrollers, boards and GPUs the energy of a pass is told, too: time
    multiplied by power at work.

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
    help="Names with commas: A100,H100,T4.",
    shell_complete=complete_devices,
)
@_model_options
@calibration_option
@click.option("--json", "as_json", is_flag=True, help="A JSON list, one object for each device.")
@click.option("--csv", "as_csv", is_flag=True, help="One line for each device.")
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
    """Estimate MODEL on several devices side by side: least time, estimate, rate and what holds it back.

    Speed is that of the estimate, over the first device's, with its own 80 % range: what is common to two machines
    cancels. Where that range holds 1, which device is faster cannot be told; where it does not, but the ranges of the
    two times overlap, the answer is a probable one. Ranges of times are for one who measures all devices alike;
    `mlsys analyze` tells the wider one of a device alone.
    """
    from mlsys.api.compare import compare as compared
    from mlsys.models.user_overrides import user_overrides

    one_form(as_json, as_csv)
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if figure is not None:
        checked_picture(figure)
    if not wanted:
        raise WrongUsage("--devices must be names with commas, such as A100,H100,T4")
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
