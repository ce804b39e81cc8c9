"""``mlsys analyze`` and ``mlsys compare``: where a network's time goes, on one device or several."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mlsys.cli.calibrate import calibration_option
from mlsys.cli.common import WrongUsage, checked_picture, one_form, print_csv, print_record, say, say_own, speak_plainly
from mlsys.cli.networks import (
    arithmetic_of,
    as_kernels_if,
    asked_network,
    batch_or_none,
    kernels_used,
    network_options,
    sizes_in_words,
    sizes_used,
)
from mlsys.cli.parameters import Output, Whole, asked_device, complete_device, complete_devices, complete_model
from mlsys.files import together

_PRECISION = "fp16"


def _model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--setting",
        help='Whose software: "eager network on GPU" or another fitted setting; by default what usually runs such '
        "work on such a device, or what a calibration of it measured. A wrong name is answered by a list.",
    )(command)
    command = click.option(
        "--fusion/--no-fusion",
        default=True,
        show_default=True,
        help="Whether operators share kernels, as a compiler arranges it; not under an eager setting of GPUs.",
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
    setting: str | None,
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
        mlsys analyze llama-3-8b --device RTX_4090 --phase decode --setting "llama.cpp llm decode"
    """  # noqa: D301
    from mlsys.models.analysis import analyse
    from mlsys.models.analysis.record import operator_rows
    from mlsys.models.calibrated.usual import setting_of
    from mlsys.models.own import own_numbers

    one_form(as_json, as_csv)
    if figure is not None:
        checked_picture(figure)
    precision = arithmetic_of(model, options, _PRECISION)
    twin = _twin(name, precision)
    work = asked_network(model, options, precision)
    samples = batch_or_none(work)
    whose = setting_of(twin, setting, work.kind, precision)
    kernels = as_kernels_if(fusion, work, whose)
    analysis = analyse(twin, kernels, precision=precision, setting=whose, samples=samples)
    own = own_numbers([twin], estimates=True, asked=[whose])
    with together() as files:
        if page_file is not None:
            from mlsys.cli.analysis_page import analysis_page

            files.text(page_file, analysis_page(analysis, twin, own))
        if figure is not None:
            from mlsys.viz.analysis import analysis_figure
            from mlsys.viz.style import save_figure

            save_figure(analysis_figure(analysis, twin), figure, files)
    if as_json:
        print_record({**_sized(analysis.record(), work), "kernels": kernels_used(work, kernels)}, own)
    elif as_csv:
        print_csv(operator_rows(analysis), own=own)
    else:
        say(f"{analysis.explain(top)}\n{kernels_used(work, kernels)}\n{sizes_in_words(work)}")
        say_own(own)
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
    setting: str | None,
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
    from mlsys.formatting import natural
    from mlsys.models.analysis import analyse
    from mlsys.models.analysis.answer import SAMPLES
    from mlsys.models.analysis.record import analysis_summary
    from mlsys.models.calibrated.ranges import ALL_SOURCES
    from mlsys.models.calibrated.usual import setting_of
    from mlsys.models.own import own_numbers
    from mlsys.tables import Table

    one_form(as_json, as_csv)
    wanted = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if figure is not None:
        checked_picture(figure)
    if not wanted:
        raise WrongUsage("--devices must be names with commas, such as A100,H100,T4")
    precision = arithmetic_of(model, options, _PRECISION)
    twins = [_twin(name, precision) for name in wanted]
    work = asked_network(model, options, precision)
    samples = batch_or_none(work)
    analyses, ran = [], []
    for twin in twins:
        whose = setting_of(twin, setting, work.kind, precision)
        kernels = as_kernels_if(fusion, work, whose)
        ran.append(kernels_used(work, kernels))
        analyses.append(analyse(twin, kernels, precision=precision, setting=whose, samples=samples, source=ALL_SOURCES))
    own = own_numbers(twins, estimates=True, asked=[analysis.setting for analysis in analyses])
    if figure is not None:
        from mlsys.viz.analysis import comparison_figure
        from mlsys.viz.style import save_figure

        with together() as files:
            save_figure(comparison_figure(analyses), figure, files)
        say(f"written: {figure}", err=True)
    if as_json or as_csv:
        lines = [
            {**_sized(analysis_summary(analysis, analyses[0]), work), "kernels": its}
            for analysis, its in zip(analyses, ran, strict=True)
        ]
        if as_json:
            print_record(lines, own)
        else:
            print_csv([{**line, "notes": "; ".join(line["notes"])} for line in lines], own=own)
        return
    heads = (
        "device",
        "at least",
        "estimate",
        "80 % range",
        f"{SAMPLES[work.kind]}/s",
        "energy",
        "speed",
        "of peak",
        "FLOP/byte",
        "ridge",
        "held by",
    )
    table = [
        (
            analysis.device,
            f"{analysis.bound.to_compact():.3g}",
            f"{analysis.estimate.to_compact():.3g}",
            " to ".join(f"{time.to_compact():.3g}" for time in analysis.range),
            natural(analysis.rate.m_as("1/s")),
            f"{analysis.energy.energy.to_compact():.3g}" if analysis.energy else "—",
            _speed(analysis, analyses[0]),
            f"{analysis.utilisation:.0%}",
            f"{analysis.intensity.m_as('FLOP/byte'):.3g}",
            f"{analysis.ridge.m_as('FLOP/byte'):.3g}",
            f"{analysis.held_by} {analysis.share_held_by(analysis.held_by):.0%}",
        )
        for analysis in analyses
    ]
    first = analyses[0]
    say(Table(f"{first.workload}, {first.batch_in_words}, {first.precision}", heads, table))
    software = dict.fromkeys(analysis.setting for analysis in analyses)
    say(f"software: {', '.join(software)}" + ("; --setting names another" if len(software) > 1 else ""))
    for analysis in analyses:
        if analysis.memory.fits is False:
            say(f"{analysis.device}: {analysis.memory}")
    say("ranges are for one who measures all of them alike; `mlsys analyze` tells the wider one of each alone")
    say(sizes_in_words(work))
    for words in dict.fromkeys(ran):
        whose = ", ".join(each.device for each, its in zip(analyses, ran, strict=True) if its == words)
        say(f"{words} ({whose})")
    say_own(own)


def _twin(name: str, precision: str) -> Any:
    """Return the device, once it is known to have a peak in the precision."""
    twin = asked_device(name)
    twin.peak(precision)
    return twin


def _speed(analysis: Any, first: Any) -> str:
    """Return how many times as fast as the first a device is, between what, and whether that tells the two apart."""
    if analysis is first:
        return "1×"
    speed, low, high = analysis.speed_over(first)
    unsure = ", probably: the ranges overlap" if analysis.overlaps(first) else ""
    apart = unsure if analysis.apart_from(first) else ", cannot be told apart"
    return f"{speed:.2f}× ({low:.2g} to {high:.2g}{apart})"


def _sized(record: dict[str, Any], work: Any) -> dict[str, Any]:
    """Return a record with the sizes that the network was made with, and the work of its products."""
    used = sizes_used(work)
    return {**used, **record, "batch": used["batch"], "product_flops": work.product_flops.m_as("FLOP")}
