"""``mlsys.serve_sim``: a language-model server, simulated request by request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsys.choices import Preemption, Routing
from mlsys.errors import ArgumentError
from mlsys.mapping.parallel import Layout
from mlsys.models.inference.arguments import option_name
from mlsys.models.inference.plan import learned_positions
from mlsys.models.serving.answer import ServingResult
from mlsys.models.serving.decoder_steps import SERVER_EFFICIENCY, ServedModel, served_model
from mlsys.models.serving.objectives import Objectives
from mlsys.models.serving.requests import Requests, poisson_requests
from mlsys.models.serving.settings import ServerSettings
from mlsys.models.serving.simulate import Progress, check_fits, simulate
from mlsys.models.serving.static import static_batching
from mlsys.models.serving.steps import TabulatedSteps
from mlsys.models.serving.traces import read_trace
from mlsys.provenance import recording, used_facts
from mlsys.unit_checks import Argument, checked_count, checked_number, nonnegative, positive
from mlsys.unit_checks import efficiency as fraction_reached
from mlsys.units import Q_, Quantity
from mlsys.workloads.transformer_config import load_decoder
from mlsys.workloads.zoo.decoder import Decoder

if TYPE_CHECKING:
    from mlsys.hardware import Device, System

_DEFAULT_SECONDS = Q_(60.0, "s")


def serve_sim(
    model: str | Path | Decoder,
    on: System | Device | str,
    *,
    rate: Quantity | None = None,
    prompt: int | None = None,
    output: int | None = None,
    seconds: Quantity | None = None,
    count: int | None = None,
    trace: str | Path | Requests | None = None,
    columns: Mapping[str, str] | None = None,
    seed: int = 0,
    slo: str | Objectives | None = None,
    tp: int | None = None,
    pp: int | None = None,
    replicas: int | None = None,
    routing: Routing = "round-robin",
    nodes: int | None = None,
    max_batch: int = 256,
    token_budget: int = 8192,
    block_size: int = 16,
    blocks: int | None = None,
    chunked_prefill: bool = True,
    preemption: Preemption = "recompute",
    watermark: float = 0.01,
    shared_prefix: int = 0,
    prefix_store: int | None = None,
    weight_format: str | None = None,
    kv_format: str | None = None,
    precision: str | None = None,
    usable: float = 0.9,
    efficiency: float = SERVER_EFFICIENCY,
    overhead: Quantity | None = None,
    software: str | None = None,
    buckets: Sequence[int] | None = None,
    progress: Progress | None = None,
    option: str = "`{}`",
) -> ServingResult:
    """Return latency, goodput and utilisation of a language-model server, as ``mlsys serve-sim`` does.

    Parameters
    ----------
    model
        What :func:`mlsys.size` takes.
    on
        A system or a device, or the name of one.
    rate, prompt, output, seconds, count, seed
        Requests that arrive as a Poisson process, 1/s; tokens of each prompt and output, by default 1024 and 256; the
        time during which they arrive, by default 60 s, or their number; and the seed.
    trace, columns
        A trace file, or requests, in place of the Poisson process; with ``rate``, its arrival times are stretched to
        that rate. The names of the trace's columns, if it is no known trace:
        see :func:`mlsys.models.serving.read_trace`.
    slo
        Latency to meet, such as ``"TTFT<1 s, TPOT<50 ms"``.
    tp, pp, replicas, routing, nodes
        Tensor and pipeline parallelism of a replica; by default the fewest chips that leave room for the cache.
        Number of replicas, by default as many as the system holds, and how requests are assigned to them.
    max_batch, token_budget, block_size, blocks, chunked_prefill, preemption, watermark, shared_prefix
        As of :class:`mlsys.models.serving.ServerSettings`; ``blocks`` by default what fits in memory.
    prefix_store
        Tokens that the store of prefixes holds, for a trace that states the blocks of its prompts (``hash_ids``); by
        default all. What it holds of a prompt is loaded and not computed. See
        :meth:`mlsys.models.serving.Requests.with_store`.
    weight_format, kv_format, precision, usable, software
        As of :func:`mlsys.size`.
    efficiency
        Speed of iterations relative to the estimates of steps that are timed alone, above 0 and up to 1; by default
        :data:`mlsys.models.serving.decoder_steps.SERVER_EFFICIENCY`, which is fitted to published throughputs.
    overhead
        Time that the host adds to each iteration, s; by default none beyond what the estimate of a step contains.
    buckets
        Prompt lengths of static batching, which is then simulated beside, on one replica at its share of the requests.
    progress
        Called now and then with the share of the requests that has arrived.
    option
        How an error writes the name of an argument.

    Returns
    -------
    ServingResult
        Its ``record()`` is what ``mlsys serve-sim --json`` prints, its ``rows()`` what ``--csv`` prints.

    Raises
    ------
    UnknownNameError
        If there is no such model, system or number format.
    ArgumentError
        If an argument does not go with the others, the model does not fit, or a request never fits in the cache.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> service = serve_sim("llama-3-8b", "H100", rate=Q_(5, "1/s"), prompt=512, output=64, seconds=Q_(20, "s"))
    >>> service.bound_by, service.good is None
    ('decode', True)
    """
    from mlsys.hardware import as_system

    requests = _requests(rate, prompt, output, seconds, count, trace, columns, seed, option)
    requests = _with_store(requests, prefix_store, shared_prefix, option)
    objectives = Objectives.parse(slo) if isinstance(slo, str) else slo
    system = as_system(on, nodes)
    decoder = load_decoder(model)
    host = 0.0 if overhead is None else float(checked_number("serve_sim", "overhead", overhead, nonnegative("s"), {}))
    share = checked_number("serve_sim", "usable", usable, fraction_reached(), {})
    speed = checked_number("serve_sim", "efficiency", efficiency, fraction_reached(), {})
    layout = None
    if tp is not None or pp is not None:
        layout = Layout(tp=1 if tp is None else tp, pp=1 if pp is None else pp)
    with recording() as seen:
        served = served_model(
            system, decoder, layout=layout, weight_format=weight_format, kv_format=kv_format, precision=precision,
            usable=share, software=software,
        )  # fmt: skip
        copies = _replicas(served, replicas, option)
        settings = ServerSettings(
            max_batch, token_budget, blocks or 1, block_size, chunked_prefill, preemption, 0.0, watermark, copies,
            routing, shared_prefix,
        )  # fmt: skip
        if blocks is None:
            settings = replace(settings, blocks=served.blocks(settings))
        if preemption == "swap":
            settings = replace(settings, swap_seconds=served.block_bytes(settings) / _host_bandwidth(system))
        check_fits(requests, settings)
        longest = int((requests.prompt + requests.output).max())
        positions = learned_positions(decoder)
        if positions and longest > positions:
            raise ArgumentError(
                f"serve_sim(): {decoder.name} has learned positions for {positions} tokens, got a request of {longest}."
                f" Give shorter {option.format('prompt')} or {option.format('output')}"
            )
        steps = served.steps(settings, longest, host, speed)
        low, high = served.scale(settings, longest)
    run = simulate(requests, steps, settings, progress=progress)
    ends = [simulate(requests, _scaled(steps, factor), settings) for factor in (low, high)]
    static = None
    if buckets is not None and (shared_prefix or requests.found is not None):
        raise ArgumentError(
            f"{option.format('buckets')} cannot be combined with shared prefixes: static batches compute whole prompts"
        )
    if buckets is not None:
        own = slice(None, None, copies)
        part = Requests(requests.arrival[own], requests.prompt[own], requests.output[own])
        static = static_batching(part, steps, batch=max_batch, buckets=buckets)
    return ServingResult(
        decoder.name,
        f"{system.name}, {copies} × {served.layout}" if copies > 1 else f"{system.name}, {served.layout}",
        requests.name,
        run,
        ends[1],
        ends[0],
        objectives,
        static,
        copies * served.layout.chips,
        _assumptions(served, settings, requests, host, speed, layout is None),
        tuple(sorted(used_facts(*seen.values()), key=lambda fact: fact.name)),
    )


def _requests(
    rate: Quantity | None,
    prompt: int | None,
    output: int | None,
    seconds: Quantity | None,
    count: int | None,
    trace: str | Path | Requests | None,
    columns: Mapping[str, str] | None,
    seed: int,
    option: str,
) -> Requests:
    if trace is None:
        if columns is not None:
            raise ArgumentError(f"{option.format('columns')} applies to a trace. Give {option.format('trace')}")
        if rate is None:
            raise ArgumentError(
                f"serve_sim(): give the rate of the requests, such as rate=Q_(5, '1/s'), or {option.format('trace')}"
            )
        if seconds is None and count is None:
            seconds = _DEFAULT_SECONDS
        return poisson_requests(
            rate, 1024 if prompt is None else prompt, 256 if output is None else output, seconds=seconds, count=count,
            seed=seed,
        )  # fmt: skip
    for name, value in (("prompt", prompt), ("output", output), ("seconds", seconds), ("count", count)):
        if value is not None:
            raise ArgumentError(
                f"{option.format(name)} applies to Poisson arrivals; a trace has its own. Omit it or the trace"
            )
    if isinstance(trace, Requests):
        if columns is not None:
            raise ArgumentError(f"{option.format('columns')} applies to a trace file")
        requests = trace
    else:
        requests = read_trace(trace, columns)
    if rate is None:
        return requests
    return requests.at_rate(float(checked_number("serve_sim", "rate", rate, positive("1/s"), {})))


def _with_store(requests: Requests, store: int | None, shared: int, option: str) -> Requests:
    """Return requests with what a store of prefixes holds of their prompts, if their trace states their blocks."""
    name = option_name(option, "prefix_store")
    if requests.prefixes is None:
        if store is not None:
            raise ArgumentError(
                f"{name} is for traces that state the blocks of their prompts, such as Mooncake's hash_ids. "
                f"Leave it out, or give {option_name(option, 'shared_prefix')}"
            )
        return requests
    if shared:
        raise ArgumentError(
            f"{option_name(option, 'shared_prefix')} does not go with a trace that states the blocks of its prompts. "
            "Leave it out"
        )
    if store is not None:
        store = int(checked_number("serve_sim", "prefix_store", store, Argument("", low=0, whole=True), {}))
    return requests.with_store(store)


def _replicas(served: ServedModel, replicas: int | None, option: str) -> int:
    most = served.system.chips // served.layout.chips
    if replicas is None:
        return max(most, 1)
    copies = checked_count("serve_sim", "replicas", replicas)
    if copies > most:
        raise ArgumentError(
            f"{option.format('replicas')}: {served.system.name} has {served.system.chips} chips, and "
            f"{copies} × {served.layout} need {copies * served.layout.chips}. Give at most {most}"
        )
    return copies


def _host_bandwidth(system: System) -> float:
    host = getattr(system, "host", None)
    if host is None:
        raise ArgumentError(f"serve_sim(): swapping needs a link to the host, and none is recorded for {system.name}")
    return float(host.bandwidth.m_as("byte/s"))


def _scaled(steps: TabulatedSteps, factor: float) -> TabulatedSteps:
    return replace(steps, seconds=steps.seconds * factor, pair_seconds=steps.pair_seconds * factor)


def _assumptions(
    served: ServedModel, settings: ServerSettings, requests: Requests, host: float, speed: float, chosen: bool
) -> tuple[str, ...]:
    prompts = "share iterations with decoding" if settings.chunked_prefill else "run alone, before decoding sequences"
    lines: list[Any] = [
        f"continuous batching: at most {settings.max_batch} sequences and {settings.token_budget} tokens an iteration; "
        f"prompts {prompts}",
        f"{settings.blocks:,} cache blocks of {settings.block_size} tokens on each replica; "
        + {
            "recompute": "if none is free, the latest sequence is recomputed later",
            "swap": f"without a free one the latest sequence is swapped, {settings.swap_seconds:.3g} s a block",
            "reserve": "reserved for the whole output at admission",
        }[settings.preemption],
        f"iterations run at {speed:.0%} of the speed that mlsys size estimates for steps timed alone; tokenisation and "
        "the network to clients take no time",
        f"{host:.3g} s of host time per iteration" if host else "no host time besides that of a step",
    ]
    if settings.shared_prefix:
        lines.append(
            f"every prompt begins with the same {settings.shared_prefix:,} tokens; each replica holds their "
            f"{settings.shared_blocks:,} full blocks from the start"
        )
    if requests.found is not None and requests.prefixes is not None:
        lines.append(
            f"prompts begin with what earlier ones of the trace left, in blocks of {requests.prefixes.block} tokens: "
            "one store for all replicas, from which loading takes no time"
        )
    if chosen:
        lines.append(f"layout {served.layout}: the fewest chips that leave room for the cache")
    if served.layout.pp > 1:
        lines.append("prompts pass the stages one after the other; only decoding is pipelined")
    if requests.left_out:
        lines.append(f"{requests.left_out:,} rows of the trace without output tokens are left out")
    return (*lines, *served.formats.notes)
