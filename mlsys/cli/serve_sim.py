"""``mlsys serve-sim``: a language-model server, simulated request by request."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import click

from mlsys.choices import Preemption, Routing
from mlsys.cli.common import WrongUsage, one_form, print_csv, print_record, progress, say, speak_plainly
from mlsys.cli.parameters import Finite, Input, Output, QuantityType, Whole, complete_model, complete_system
from mlsys.files import together

_STEPS = 1000  # of the progress bar


@click.command(name="serve-sim")
@click.argument("model", shell_complete=complete_model)
@click.option(
    "--on", "name", required=True, help="A system such as DGX_H100, or a device such as A100.",
    shell_complete=complete_system,
)  # fmt: skip
@click.option("--requests", "rate", metavar="RATE", help="Arrival rate, such as '5/s'; a trace is stretched to it.")
@click.option("--prompt", type=Whole(min=1), help="Tokens of each prompt; by default 1024.")
@click.option("--output", type=Whole(min=1), help="Tokens of each answer; by default 256.")
@click.option("--seconds", type=QuantityType("s"), help="Time during which requests arrive; by default '60 s'.")
@click.option("--count", type=Whole(min=1), help="Number of requests, in place of --seconds.")
@click.option("--seed", type=Whole(min=0), default=0, show_default=True, help="Random seed of the arrivals.")
@click.option("--trace", type=Input(), help="CSV or .jsonl: Azure 2023, Mooncake, vidur, BurstGPT, or with --columns.")
@click.option("--columns", metavar="A,P,O", help="Columns of the trace: arrival in seconds, prompt and output tokens.")
@click.option("--slo", help="Latency limits, such as 'TTFT<1 s, TPOT<50 ms'; also E2E.")
@click.option("--tp", type=Whole(min=1), help="Tensor parallelism; by default the fewest chips with room for a cache.")
@click.option("--pp", type=Whole(min=1), help="Pipeline parallelism.")
@click.option("--replicas", type=Whole(min=1), help="Copies of the model; by default as many as the system holds.")
@click.option(
    "--routing", type=click.Choice(get_args(Routing)), default="round-robin", show_default=True,
    help="How requests are assigned to replicas.",
)  # fmt: skip
@click.option("--nodes", type=Whole(min=1), help="Number of nodes; by default that of the system.")
@click.option("--max-batch", type=Whole(min=1), default=256, show_default=True, help="Maximum sequences per replica.")
@click.option(
    "--token-budget", type=Whole(min=1), default=8192, show_default=True, help="Maximum tokens per iteration."
)
@click.option("--block-size", type=Whole(min=1), default=16, show_default=True, help="Tokens per cache block.")
@click.option("--blocks", type=Whole(min=1), help="Cache blocks per replica; by default as many as fit in memory.")
@click.option(
    "--chunked-prefill/--no-chunked-prefill", default=True, show_default=True,
    help="Whether chunks of prompts share iterations with decoding sequences.",
)  # fmt: skip
@click.option(
    "--preemption", type=click.Choice(get_args(Preemption)), default="recompute", show_default=True,
    help="If no block is free: recompute the latest sequence or swap it; or reserve blocks at admission.",
)  # fmt: skip
@click.option(
    "--watermark", type=Finite(min=0, max=1, max_open=True), default=0.01, show_default=True,
    help="Fraction of the blocks that admission leaves free.",
)  # fmt: skip
@click.option("--shared-prefix", type=Whole(min=0), default=0, show_default=True,
              help="Tokens of a prefix that all prompts share; its blocks are cached once.")  # fmt: skip
@click.option("--prefix-store", type=Whole(min=0), metavar="TOKENS",
              help="Tokens of earlier prompts kept for a trace with hash_ids; by default all.")  # fmt: skip
@click.option("--weight-format", help="Format of the stored weights: fp16, fp8, int4, …; by default the model's own.")
@click.option("--kv-format", help="Format of the stored cache: fp16, fp8, …; by default the model's own, or 16 bits.")
@click.option(
    "--precision",
    help="Format of the arithmetic; by default that of the weights if the chip supports it, else 16 bits.",
)
@click.option(
    "--usable", type=Finite(min=0, min_open=True, max=1), default=0.9, show_default=True,
    help="Fraction of each chip's memory that may be filled.",
)  # fmt: skip
@click.option(
    "--efficiency",
    type=Finite(min=0, min_open=True, max=1),
    default=0.82,
    show_default=True,
    help="Speed of iterations relative to steps timed alone; fitted to published throughputs.",
)
@click.option("--overhead", type=QuantityType("s"), help="Host time per iteration, such as '2 ms'.")
@click.option("--software", help="Software to estimate; by default the typical one for the device.")
@click.option("--buckets", help="Also simulate static batching with these prompt lengths, such as 512,1024.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per request.")
@click.option("--html", "page_file", type=Output(), help="Write one self-contained HTML file.")
@speak_plainly
def serve_sim(
    model: str,
    name: str,
    rate: str | None,
    columns: str | None,
    buckets: str | None,
    as_json: bool,
    as_csv: bool,
    page_file: Path | None,
    **options: Any,
) -> None:
    """Simulate a server of MODEL: latency percentiles, goodput, tokens/s and cache blocks under a load.

    Requests arrive as a Poisson process or from a trace. Every iteration of every replica is simulated: continuous
    batching, chunked prefill, blocks of the key-value cache and preemption. The same requests give the same result.

    \b
        mlsys serve-sim llama-3-8b --on H100 --requests 10/s --prompt 1024 --output 256 --slo 'TTFT<1 s, TPOT<50 ms'
        mlsys serve-sim llama-3-70b --on DGX_H100 --weight-format fp8 --trace FILE.csv --csv
    """  # noqa: D301
    from mlsys.api.serve_sim import serve_sim as simulated
    from mlsys.models.inference.limits import request_rate

    one_form(as_json, as_csv)
    with _progress() as reached:
        result = simulated(
            model, name, rate=None if rate is None else request_rate(rate), option="--{}", progress=reached,
            columns=_columns(columns), buckets=_buckets(buckets),
            **options,
        )  # fmt: skip
    if page_file is not None:
        from mlsys.cli.serve_sim_page import serving_page

        with together() as files:
            files.text(page_file, serving_page(result))
    if as_json:
        print_record(result.record())
    elif as_csv:
        print_csv(result.rows())
    else:
        say(result.explain())
        if page_file is not None:
            say(f"written: {page_file}", err=True)


def _columns(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(names) != 3 or not all(names):
        raise WrongUsage(f"--columns must be three names separated by commas: arrival, prompt, output; got {text!r}")
    return dict(zip(("arrival", "prompt", "output"), names, strict=True))


def _buckets(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise WrongUsage(f"--buckets must be whole numbers separated by commas, such as 512,1024; got {text!r}")
    return sizes


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[float], None]]:
    """Yield a function of the share of the requests that has arrived, which moves a bar on a terminal."""
    with progress(range(_STEPS), "requests") as bar:
        done = 0

        def reached(share: float) -> None:
            nonlocal done
            steps = int(share * _STEPS)
            bar.update(steps - done)
            done = steps

        yield reached
