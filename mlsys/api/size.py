"""``mlsys.size``: memory, latency, rate and cost of a language model, on a system if one is given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mlsys.choices import Phase
from mlsys.errors import ArgumentError
from mlsys.mapping.parallel import Layout
from mlsys.models.inference.arguments import option_name, request_of
from mlsys.models.inference.limits import Limits, request_rate
from mlsys.models.inference.result import Sizing
from mlsys.models.inference.search import Search, search
from mlsys.models.inference.sizing import Ranking, size_model
from mlsys.models.inference.speculative import checked_draft
from mlsys.unit_checks import checked_number, nonnegative, positive
from mlsys.units import Quantity
from mlsys.workloads.transformer_config import load_decoder
from mlsys.workloads.zoo.decoder import Decoder

if TYPE_CHECKING:
    from mlsys.hardware import System
    from mlsys.hardware.device import Device


def size(
    model: str | Path | Decoder,
    on: System | Device | str | None = None,
    *,
    sequence: int | None = None,
    batch: int = 1,
    prompt: int | None = None,
    output: int | None = None,
    phase: Phase | None = None,
    weight_format: str | None = None,
    kv_format: str | None = None,
    precision: str | None = None,
    layout: Layout | None = None,
    tp: int | None = None,
    pp: int | None = None,
    ep: int | None = None,
    dp: int | None = None,
    replicas: int = 1,
    nodes: int | None = None,
    rank: Ranking = "latency",
    usable: float = 0.9,
    chunk: int = 8192,
    windows: bool = True,
    software: str | None = None,
    draft: str | Path | Decoder | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    rent: Quantity | None = None,
    grid: str | None = None,
    option: str = "`{}`",
) -> Sizing:
    """Return memory, latency, rate, cost and carbon of a language model, as the command ``mlsys size`` does.

    Parameters
    ----------
    model
        The name of a language model, a ``config.json``, its folder, or a checkpoint's file: what
        :func:`mlsys.workloads.transformer_config.load_decoder` takes; or a decoder.
    on
        A system or a device, or the name of one; without it the answer has what needs no machine.
    sequence, prompt, output
        Tokens of each sequence, or of its prompt and its answer; with ``sequence`` alone prompts and caches both have
        as many, by default 2048.
    batch
        Sequences that one copy of the model decodes at once.
    phase
        ``"prefill"`` or ``"decode"`` alone; by default both.
    weight_format, kv_format
        Formats in which weights and cache are stored, such as ``"fp8"`` or ``"q4_k_m"``; by default the model's own,
        or 16 bits.
    precision
        Number format of the arithmetic; by default that of the weights where the chip multiplies it, or 16 bits.
    layout, tp, pp, ep, dp
        How one copy of the model is split: all of it, or sizes that are fixed while the others vary.
    replicas
        Copies of the model side by side.
    nodes
        Nodes of the system; by default as it is.
    rank
        What layouts are ranked by: ``"latency"`` or ``"throughput"``.
    usable
        Part of each chip's memory that weights, cache and activations may fill, above 0 and up to 1. By default 0.9, as
        vLLM's ``gpu_memory_utilization``; the rest is left to the runtime and to fragmentation.
    chunk
        Most tokens of a prompt that one pass processes.
    windows
        Whether local layers keep only their window of the cache.
    software
        Software that is timed, such as ``"llama.cpp"``; by default what usually runs such passes on such a chip.
    draft, draft_tokens, acceptance
        Of speculative decoding: the small model, the tokens that it drafts at a time, and the probability that one of
        them is accepted, which depends on the two models and on the text. Its weights, in its own format, and its cache
        lie on the same chips.
    rent
        Rent of one chip, USD/hour; by default the recorded one.
    grid
        Country whose electricity is used; by default the mean of the world.
    option
        How an error writes the name of an argument.

    Returns
    -------
    Sizing
        Its ``record()`` is what ``mlsys size --json`` prints.

    Raises
    ------
    UnknownNameError
        If there is no such model, system, number format or software.
    ArgumentError
        If an argument does not go with the model or the system, or needs a system and none is given.

    Examples
    --------
    >>> answer = size("llama-3-8b", sequence=8192, kv_format="fp8")
    >>> f"{answer.weight_bytes / 1e9:.2f} GB, {answer.kv_cache_bytes / 2**20:g} MiB"
    '16.06 GB, 512 MiB'
    """
    decoder = load_decoder(model, encoders=True)
    system = None
    if on is not None:
        from mlsys.hardware import as_system

        system = as_system(on, nodes)
    else:
        _refuse_without_system(
            option, nodes=nodes, phase=phase, precision=precision, software=software, rent=rent, grid=grid,
            draft=draft, draft_tokens=draft_tokens, acceptance=acceptance,
        )  # fmt: skip
    drafting = checked_draft(
        decoder, None if draft is None else load_decoder(draft), draft_tokens, acceptance, phase=phase, option=option
    )
    request = request_of(
        decoder, "size", option, sequence=sequence, prompt=prompt, output=output, batch=batch, phase=phase,
        replicas=replicas, weight_format=weight_format, kv_format=kv_format, precision=precision, usable=usable,
        chunk=chunk, windows=windows, software=software, draft=drafting,
    )  # fmt: skip
    _check_rent("size", rent)
    return size_model(
        decoder, system, request, layout=layout, tp=tp, pp=pp, ep=ep, dp=dp, rank=rank, rent=rent, region=grid
    )


def _refuse_without_system(option: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(
                f"size(): {option_name(option, name)} needs a system. Give {option_name(option, 'on')}, such as "
                "'DGX_H100', or omit it"
            )


def _check_rent(where: str, rent: Quantity | None) -> None:
    if rent is not None:
        checked_number(where, "rent", rent, nonnegative("USD/hour"), {})


def find_systems(
    model: str | Path | Decoder,
    limits: str,
    *,
    requests: Quantity | str | None = None,
    among: str | None = None,
    sequence: int | None = None,
    prompt: int | None = None,
    output: int | None = None,
    weight_format: str | None = None,
    kv_format: str | None = None,
    precision: str | None = None,
    tp: int | None = None,
    pp: int | None = None,
    ep: int | None = None,
    dp: int | None = None,
    usable: float = 0.9,
    chunk: int = 8192,
    windows: bool = True,
    software: str | None = None,
    rent: Quantity | None = None,
    grid: str | None = None,
    option: str = "`{}`",
) -> Search:
    """Return the systems and layouts on which a language model meets limits, as ``mlsys size --find`` does.

    Parameters
    ----------
    model, sequence, prompt, output, weight_format, kv_format, precision, tp, pp, ep, dp
        As for :func:`size`.
    limits
        With commas between them: ``TTFT`` and ``TPOT`` in seconds, ``cost`` in USD for a million tokens, ``chips``, and
        ``rate`` of each sequence in 1/s, such as ``"TPOT<30 ms, TTFT<1 s, rate>20 1/s"``.
    requests
        Requests that arrive, 1/s, or a text such as ``"5/s"``: as many copies are counted as answer them. By default
        one copy.
    among
        Names of systems or devices with commas; by default all systems of the catalogue.
    usable, chunk, windows, software, rent, grid, option
        As for :func:`size`.

    Returns
    -------
    Search
        The best layout of each system, the cheapest first.

    Raises
    ------
    UnknownNameError
        If there is no such model, system or number format.
    ArgumentError
        If a limit cannot be read, or requests are given without the length of their answers.

    Examples
    --------
    >>> found = find_systems("llama-3-8b", "TPOT<20 ms", among="A100,H100", sequence=2048).found
    >>> sorted(each.system for each in found)
    ['A100_80GB', 'H100_SXM']
    """
    from mlsys.hardware import as_system, systems

    decoder = load_decoder(model, encoders=True)
    wanted = Limits.parse(limits, "--find" if option.startswith("--") else "`limits`")
    request = request_of(
        decoder, "find_systems", option, sequence=sequence, prompt=prompt, output=output, weight_format=weight_format,
        kv_format=kv_format, precision=precision, usable=usable, chunk=chunk, windows=windows, software=software,
    )  # fmt: skip
    rate = None
    if requests is not None:
        requests = request_rate(requests) if isinstance(requests, str) else requests
        rate = float(checked_number("find_systems", "requests", requests, positive("1/s"), {}))
        if not request.tokens.output:
            raise ArgumentError(
                f"{option.format('requests')} needs the length of an answer: give {option.format('output')}"
            )
    names = [name.strip() for name in among.split(",") if name.strip()] if among else list(systems.ids)
    _check_rent("find_systems", rent)
    return search(
        decoder,
        [as_system(name) for name in names],
        wanted,
        request,
        words=limits,
        requests_per_second=rate,
        rent=rent,
        grid=grid,
        sizes={"tp": tp, "pp": pp, "ep": ep, "dp": dp},
    )
