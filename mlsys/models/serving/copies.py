"""Copies of a language model that share the requests of a service, in closed form: load, latency, money and carbon.

The memory, times and rent are those of :func:`mlsys.size`; a request waits as in a queue with a place for every
sequence of every copy. :func:`mlsys.serve_sim` plays the same service request by request.
"""

from dataclasses import dataclass
from functools import cache

from mlsys.errors import ArgumentError
from mlsys.formulas import mmc_wait
from mlsys.hardware.system import System, as_system
from mlsys.mapping.parallel import Layout
from mlsys.models.inference.formats import formats_on
from mlsys.models.inference.money import Money, hour_of
from mlsys.models.inference.placed import Placed
from mlsys.models.inference.plan import InferenceRequest, tokens_of
from mlsys.provenance import remembered, unrecorded
from mlsys.units import Q_
from mlsys.workloads.transformer_config import load_decoder
from mlsys.workloads.zoo.decoder import Decoder

__all__ = ["LOAD", "OUTPUT", "PROMPT", "TTFT", "Copy", "Service", "copy_of", "service_of"]

PROMPT, OUTPUT = 1400, 350
"""Tokens of each prompt and of each answer."""
TTFT = 0.5
"""Limit on the time to first token, s."""
LOAD = 0.85
"""Most of its capacity that a service may use."""


@dataclass(frozen=True)
class Copy:
    """One copy of a model on the chips of a server, at one batch limit; times in seconds, memory in bytes.

    Attributes
    ----------
    weights, per_sequence
        Bytes on the fullest chip: of the weights, and of the cache of one sequence.
    room
        Bytes of a chip that may be filled.
    needed
        Bytes of the fullest chip at the batch.
    most
        Sequences that fit.
    prefill, step
        Prefill of one prompt, and a step of decoding.
    requests
        Requests per second when the batch is full.
    """

    weights: float
    per_sequence: float
    room: float
    needed: float
    most: int
    prefill: float
    step: float
    requests: float


@dataclass(frozen=True)
class Service:
    """Copies of a model that share the requests of a service.

    Attributes
    ----------
    copy
        One of them.
    chips
        Chips of all copies.
    load
        Requests that arrive over requests that all copies can answer.
    ttft
        Prefill and mean wait for a free place in a batch, s; None if the load is 1 or more.
    dollars, kilowatt_hours, grams
        Rent, energy and emissions of a million tokens that are served; the chips are paid and powered all the time.
    fault
        The first limit that it breaks, in words; empty if it keeps all.
    """

    copy: Copy
    chips: int
    load: float
    ttft: float | None
    dollars: float
    kilowatt_hours: float
    grams: float
    fault: str


@remembered
def copy_of(model: str, system: str, tp: int, batch: int) -> Copy:
    """Return one copy of a model on ``tp`` chips of a server.

    Parameters
    ----------
    model, system
        Names in the catalogue.
    tp
        Chips over which each layer is split.
    batch
        Most sequences that it decodes at once.

    Examples
    --------
    >>> copy = copy_of("llama-3-70b", "DGX_H100", 4, 32)
    >>> round(copy.weights / 1e9, 1), copy.most, round(1e3 * copy.step, 1)
    (35.3, 255, 19.6)
    """
    tp, batch = int(tp), int(batch)
    with unrecorded():
        placed = _placed(model, system, tp)
        parts = placed.memory_model
        sequence, prompt = PROMPT + OUTPUT, PROMPT
        one, two = (parts.per_chip(sequence, size, prompt) for size in (1, 2))
        rates = placed.at(batch)
        assert rates.ttft is not None
        assert rates.tpot is not None
        return Copy(
            one.weights,
            two.kv_cache - one.kv_cache,
            placed.room,
            parts.per_chip(sequence, batch, prompt).needed,
            placed.largest_batch,
            rates.ttft.seconds,
            rates.tpot.seconds,
            rates.tokens_per_second / OUTPUT,
        )


@remembered
def _placed(model: str, system: str, tp: int) -> Placed:
    decoder, server = _decoder(model), _system(system)
    layout = Layout(tp=tp)
    layout.check(decoder, server)
    request = InferenceRequest(tokens_of(decoder, None, PROMPT, OUTPUT))
    return Placed(server, decoder, layout, formats_on(server.device, decoder, None, None, None), request)


@cache
def _decoder(model: str) -> Decoder:
    return load_decoder(model)


@cache
def _system(system: str) -> System:
    return as_system(system)


@remembered
def _hour(system: str, region: str) -> Money:
    with unrecorded():
        return hour_of(_system(system), grid=region)


def service_of(
    model: str,
    system: str,
    tp: int = 1,
    replicas: int = 1,
    batch: int = 32,
    rate: float = 9,
    limit: float = 45,
    region: str = "World",
) -> Service:
    """Return a service: its load, latency, cost and emissions, and the first limit that it breaks.

    Parameters
    ----------
    model, system, tp, batch
        As in :func:`copy_of`.
    replicas
        Copies of the model; they may stand on several servers.
    rate
        Requests per second that arrive.
    limit
        Limit on the time between tokens, ms.
    region
        Grid whose electricity is used.

    Raises
    ------
    ArgumentError
        If the number of copies or the rate is not above zero.

    Examples
    --------
    >>> service = service_of("llama-3-70b", "DGX_H100", tp=4, replicas=4)
    >>> service.chips, round(service.load, 2), service.fault
    (16, 0.69, '')
    """
    tp, replicas, batch = int(tp), int(replicas), int(batch)
    if replicas < 1 or not rate > 0:
        raise ArgumentError(f"service_of(): `replicas` and `rate` must be above zero, got {replicas} and {rate}")
    copy, hour = copy_of(model, system, tp, batch), _hour(system, region)
    chips, load = replicas * tp, rate / (replicas * copy.requests)
    ttft = None
    if load < 1:
        lasts = Q_(batch / copy.requests, "s")  # by Little's law
        ttft = copy.prefill + float(mmc_wait(lasts, load, replicas * batch).m_as("s"))
    paid = hour.at(min(rate, replicas * copy.requests) * OUTPUT, chips)
    assert paid.usd_per_million_tokens is not None  # the offered systems have a rent and a power on record
    assert paid.kwh_per_million_tokens is not None
    assert paid.gco2e_per_million_tokens is not None
    faults = (
        (copy.most < 1, "The weights do not fit."),
        (batch > copy.most, f"Only {copy.most} sequences fit."),
        (ttft is None, "More requests arrive than it can answer."),
        (1e3 * copy.step > limit, f"A token may take {limit:g} ms."),
        ((ttft or 0.0) > TTFT, f"The first token may take {1e3 * TTFT:g} ms."),
        (load > LOAD, f"At most {LOAD:.0%} of the capacity may be used."),
    )
    return Service(
        copy,
        chips,
        load,
        ttft,
        paid.usd_per_million_tokens,
        paid.kwh_per_million_tokens,
        paid.gco2e_per_million_tokens,
        next((text for broken, text in faults if broken), ""),
    )
