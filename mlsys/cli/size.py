"""``mlsys size``: memory, latency, rate and cost of a language model, and the systems that meet limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from mlsys.choices import Phase
from mlsys.cli.calibrate import calibration_option
from mlsys.cli.common import (
    WrongUsage,
    one_form,
    print_csv,
    print_record,
    refuse_unused,
    say,
    say_overrides,
    speak_plainly,
)
from mlsys.cli.parameters import Finite, Output, QuantityType, Whole, complete_model, complete_system
from mlsys.files import together


@click.command()
@click.argument("model", shell_complete=complete_model)
@click.option(
    "--on",
    "name",
    help="A system such as DGX_H100, or a device such as A100; without it, only what needs no machine.",
    shell_complete=complete_system,
)
@click.option("--nodes", type=Whole(min=1), help="Number of nodes; by default that of the system.")
@click.option("--sequence", type=Whole(min=1), help="Tokens of each sequence; by default 2048.")
@click.option("--prompt", type=Whole(min=1), help="Tokens of a prompt; the answer is the rest of the sequence.")
@click.option("--output", type=Whole(min=1), help="Tokens of an answer.")
@click.option("--batch", type=Whole(min=1), default=1, show_default=True, help="Sequences decoded at once by one copy.")
@click.option("--phase", type=click.Choice(get_args(Phase)), help="Prefill or decode alone; by default both.")
@click.option(
    "--weight-format", help="Format of the stored weights: fp16, fp8, int4, q4_k_m, …; by default the model's own."
)
@click.option(
    "--kv-format", help="Format of the stored cache: fp16, fp8, q8_0, …; by default the model's own, or 16 bits."
)
@click.option(
    "--precision",
    help="Format of the arithmetic; by default that of the weights if the chip supports it, else 16 bits.",
)
@click.option("--tp", type=Whole(min=1), help="Tensor parallelism; sizes that are left out are searched.")
@click.option("--pp", type=Whole(min=1), help="Pipeline parallelism.")
@click.option("--ep", type=Whole(min=1), help="Expert parallelism.")
@click.option("--dp", type=Whole(min=1), help="Copies of attention that share the experts.")
@click.option("--replicas", type=Whole(min=1), default=1, show_default=True, help="Copies of the model side by side.")
@click.option(
    "--rank",
    type=click.Choice(("latency", "throughput")),
    default="latency",
    show_default=True,
    help="Rank layouts by time per token at --batch, or by tokens/s per chip at the largest batch that fits.",
)
@click.option(
    "--usable",
    type=Finite(min=0, min_open=True, max=1),
    default=0.9,
    show_default=True,
    help="Fraction of each chip's memory that may be filled.",
)
@click.option(
    "--chunk", type=Whole(min=1), default=8192, show_default=True, help="Maximum tokens of a prompt in one pass."
)
@click.option(
    "--windows/--no-windows",
    default=True,
    show_default=True,
    help="Whether layers with local attention cache only their window.",
)
@click.option(
    "--software", help='Software to estimate, such as "llama.cpp"; by default the typical one for the device.'
)
@click.option(
    "--draft",
    metavar="MODEL",
    help="Small model for speculative decoding, on the same chips: its name, or its config.json.",
    shell_complete=complete_model,
)
@click.option("--draft-tokens", type=Whole(min=1), help="Tokens that it drafts for one verification.")
@click.option(
    "--acceptance", type=Finite(min=0, max=1), help="Probability that a drafted token is accepted, such as 0.8."
)
@click.option(
    "--rent", type=QuantityType("USD/hour"), help="Rent of one chip, such as '2 USD/hour'; by default as recorded."
)
@click.option("--grid", help="Country whose electricity is used; by default the world's mean.")
@click.option("--find", "limits", metavar="LIMITS", help="Search systems and layouts: 'TPOT<30 ms, TTFT<1 s'.")
@click.option("--requests", help="With --find: arrival rate of requests, such as '5/s'.")
@calibration_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per layout.")
@click.option("--html", "page_file", type=Output(), help="Write one self-contained HTML file.")
@speak_plainly
def size(
    model: str,
    name: str | None,
    limits: str | None,
    requests: str | None,
    as_json: bool,
    as_csv: bool,
    page_file: Path | None,
    **options: Any,
) -> None:
    """Estimate what MODEL needs: memory by part, whether it fits, latency, rate, cost and carbon; rank layouts.

    MODEL is a decoder language model: its name in the catalogue, its config.json, the folder of one, or a file of
    weights beside one. The layouts are those of one copy of the model; --replicas puts copies side by side. Times are
    the estimates of `mlsys analyze`, with ranges that are meant to contain four measurements in five.

    \b
        mlsys size llama-3-70b --on DGX_H100 --prompt 1000 --output 500 --batch 32
        mlsys size llama-3-70b --weight-format q4_k_m --sequence 32768 --on Workstation_2x_RTX_4090
        mlsys size llama-3-70b --on DGX_H100 --draft llama-3.2-1b --draft-tokens 4 --acceptance 0.8
        mlsys size llama-3-70b --find 'TPOT<30 ms, TTFT<1 s' --requests 5/s --prompt 1000 --output 500
    """  # noqa: D301
    from mlsys.api.size import size as sized
    from mlsys.models.user_overrides import user_overrides

    one_form(as_json, as_csv)
    if limits is not None:
        _find(model, name, limits, requests, as_json, as_csv, page_file, options)
        return
    if requests is not None:
        raise WrongUsage("--requests needs --find, such as --find 'TPOT<30 ms'")
    if name is None:
        needing = ("nodes", "phase", "precision", "rank", "usable", "software", "rent", "grid", "as_csv", "page_file",
                   "draft", "draft_tokens", "acceptance")  # fmt: skip
        refuse_unused("needs a machine; name one with --on", needing)
    sizing = sized(model, name, option="--{}", **options)
    devices = [sizing.best.system.device] if sizing.best is not None else []
    overrides = user_overrides(devices, estimates=bool(devices))
    if page_file is not None:
        from mlsys.cli.size_page import size_page

        with together() as files:
            files.text(page_file, size_page(sizing, overrides))
    if as_json:
        print_record(sizing.record(), overrides)
    elif as_csv:
        print_csv(sizing.layout_rows(), overrides=overrides)
    else:
        say(sizing.explain())
        say_overrides(overrides)
        if page_file is not None:
            say(f"written: {page_file}", err=True)


def _find(
    model: str,
    name: str | None,
    limits: str,
    requests: str | None,
    as_json: bool,
    as_csv: bool,
    page_file: Path | None,
    options: dict[str, Any],
) -> None:
    """Print the systems and layouts that meet limits, the cheapest first."""
    from mlsys.api.size import find_systems

    if page_file is not None:
        raise WrongUsage("--html shows one system: omit --find")
    unused_here = ("batch", "nodes", "replicas", "rank", "phase", "draft", "draft_tokens", "acceptance")
    refuse_unused("plays no part with --find", unused_here)
    for unused in unused_here:
        options.pop(unused)
    found = find_systems(model, limits, requests=requests, among=name, option="--{}", **options)
    if as_json:
        print_record(found.record())
    elif as_csv:
        print_csv(found.rows())
    else:
        say(found.explain())
