"""Sizing: memory, latency, rate, money and carbon of a language model on a system, with its layouts ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from mlsys.errors import ArgumentError
from mlsys.mapping.parallel import Layout, layouts
from mlsys.models.inference.exchange import joins
from mlsys.models.inference.formats import formats_on
from mlsys.models.inference.money import Money, hour_of
from mlsys.models.inference.placed import Placed, memory_of
from mlsys.models.inference.plan import InferenceRequest
from mlsys.models.inference.result import Sizing
from mlsys.provenance import traced
from mlsys.unit_checks import checked_choice, checked_count
from mlsys.units import Quantity
from mlsys.workloads.zoo.decoder import Decoder

if TYPE_CHECKING:
    from mlsys.hardware import System

Ranking = Literal["latency", "throughput"]
"""What layouts are ranked by: time between tokens at the requested batch, or tokens per second and chip at the most."""
_NONE = Money()


@traced
def size_model(
    model: Decoder,
    system: System | None,
    request: InferenceRequest,
    *,
    layout: Layout | None = None,
    tp: int | None = None,
    pp: int | None = None,
    ep: int | None = None,
    dp: int | None = None,
    rank: Ranking = "latency",
    rent: Quantity | None = None,
    region: str | None = None,
) -> Sizing:
    """Return the sizing of a language model on a system, or of the model alone.

    Parameters
    ----------
    model
        A decoder language model.
    system
        A system; None for what needs none.
    request
        Lengths, batch, formats and copies.
    layout
        How one copy is split; None ranks all layouts that ``system`` has the chips for.
    tp, pp, ep, dp
        Sizes that are fixed while the others vary.
    rank
        ``"latency"``: least time between tokens at the requested batch, fewer chips first where it is the same;
        ``"throughput"``: most tokens per second and chip at the largest batch that fits.
    rent
        Rent of one chip, USD/hour, instead of the recorded one.
    region
        Grid whose carbon intensity counts; None for the world's mean.

    Raises
    ------
    ArgumentError
        If a layout does not divide the model or needs more chips than there are.
    UnknownNameError
        If a number format is unknown, or the chip lacks the requested one.
    """
    checked_choice("size", "rank", rank, get_args(Ranking))
    if layout is not None and any(size is not None for size in (tp, pp, ep, dp)):
        raise ArgumentError("size(): give either `layout` or its sizes tp, pp, ep and dp, not both")
    model = request.tokens.read_by(model)
    if request.draft is not None:
        pp = _together(pp, layout)
    if system is None:
        chosen = layout or _stated(tp, pp, ep, dp)
        chosen.check(model)
        return _alone(model, chosen, request)
    if layout is not None or (tp is not None and pp is not None and ep is not None):
        wanted = layout or _stated(tp, pp, ep, dp)
        wanted.check(model, system)
        found: tuple[Layout, ...] = (wanted,)
    else:
        found = tuple(each for each in layouts(model, system, tp=tp, pp=pp, ep=ep, dp=dp) if joins(system, each))
        if not found:
            _stated(tp, pp, ep, dp).check(model, system)
            raise ArgumentError(f"no layout of {model.name} has the sizes that are fixed. Leave some of them out")
    copies = request.replicas
    found = tuple(each for each in found if each.chips * copies <= system.chips)
    if not found:
        raise ArgumentError(
            f"{copies} copies of {model.name} need more than the {system.chips} chips of {system.name}. "
            "Give fewer replicas, or more nodes"
        )
    formats = formats_on(system.device, model, request.weight_format, request.kv_format, request.precision)
    placed = [Placed(system, model, each, formats, request) for each in found]
    fitting = [each for each in placed if each.fits]
    if not fitting:  # what comes nearest: the others cannot be better
        placed = sorted(placed, key=lambda each: (each.per_chip.needed, each.chips))[:1]
    ranked = sorted(fitting or placed, key=_key(rank))
    best = ranked[0]
    rates = best.rates if best.holds_a_layer else None
    money = _NONE if rates is None else hour_of(system, rent, region).at(rates.tokens_per_second, best.chips)
    assumptions = _assumptions(best, money, bool(fitting))
    return Sizing(
        model.name,
        system.name,
        _words(request),
        model,
        request,
        best.layout,
        best.chips,
        best.memory_model.in_all(request.tokens.cached, request.batch, request.tokens.begins),
        best.per_chip,
        best.capacity,
        tuple(ranked),
        rates,
        money,
        assumptions,
    )


def _together(pp: int | None, layout: Layout | None) -> int:
    """Return the one pipeline stage that drafting needs: others would stand still meanwhile."""
    stages = layout.pp if layout is not None else 1 if pp is None else pp
    if stages != 1:
        raise ArgumentError(
            f"size(): a draft model is not modelled with pipeline stages, which would wait for it; pp is {stages}. "
            "Leave it at 1"
        )
    return stages


def _stated(tp: int | None, pp: int | None, ep: int | None, dp: int | None) -> Layout:
    """Return the layout of the given sizes; by default 1, and ``dp`` as many copies as ``ep`` spans beyond ``tp``."""
    given = (("tp", tp), ("pp", pp), ("ep", ep))
    sizes = {name: 1 if size is None else checked_count("size", name, size) for name, size in given}
    return Layout(**sizes, dp=max(1, sizes["ep"] // sizes["tp"]) if dp is None else dp)


def _key(rank: str) -> Any:
    if rank == "latency":
        return lambda each: (_seconds(each), each.chips)
    return lambda each: (-each.at(max(1, min(each.largest_batch, 4096))).tokens_per_second / each.chips, each.chips)


def _seconds(placed: Placed) -> float:
    one = placed.rates.tpot or placed.rates.ttft
    return 0.0 if one is None else one.seconds


def _alone(model: Decoder, layout: Layout, request: InferenceRequest) -> Sizing:
    memory = memory_of(model, layout, request)
    tokens = request.tokens
    return Sizing(
        model.name,
        "",
        _words(request),
        model,
        request,
        layout,
        layout.chips * request.replicas if layout != Layout() else None,
        memory.in_all(tokens.cached, request.batch, tokens.begins),
        memory.per_chip(tokens.cached, request.batch, tokens.begins),
        None,
        (),
        None,
        _NONE,
        _memory_assumptions(model, request),
    )


def _memory_assumptions(model: Decoder, request: InferenceRequest) -> tuple[str, ...]:
    local = any(layer.window for layer in model.layer_list)
    own = getattr(model, "assumed", ())
    left = getattr(model, "left_out", ())
    stored = request.weight_format or (str(model.quantization) if model.quantization is not None else "16 bits")
    return (
        f"weights in {stored}, cache in {request.kv_format or model.cache_format or '16 bits'}",
        *(
            ["local layers keep their window of the cache" if request.windows else "local layers keep all tokens"]
            if local
            else []
        ),
        f"a pass processes at most {request.chunk} tokens of a prompt",
        *(f"assumed, as the configuration does not say: {words}" for words in own),
        *([f"its language model alone, without {', '.join(left)}"] if left else []),
        *_encoder_words(model, request),
    )


def _encoder_words(model: Decoder, request: InferenceRequest) -> list[str]:
    """Return what the encoder of a model reads, in words; nothing without one."""
    if model.encoder is None:
        return []
    if not request.tokens.encoded:
        return [
            f"the encoder reads {model.encoder.tokens} positions for each sequence, whatever its length; prompt and "
            "sequence are those of the decoder"
        ]
    return [
        f"the encoder reads the prompt, {model.encoder.tokens} tokens, in one pass; the decoder begins with one token "
        "and caches its own, and the prompt's keys and values of cross-attention"
    ]


def _assumptions(best: Placed, money: Money, fits: bool) -> tuple[str, ...]:
    request, layout, model = best.request, best.layout, best.model
    context = getattr(model, "context", 0)
    texts = [
        *([] if fits else [_unfit(best)]),
        *_memory_assumptions(model, request),
        f"weights, cache and activations fill at most {request.usable:.0%} of a chip's memory",
        *best.formats.notes,
        "time to first token is that of one prompt on an idle system; queues are for `mlsys serve-sim`",
    ]
    if request.draft is not None:
        texts += _draft_words(best)
    if any(layer.selects for layer in model.layer_list):
        texts.append("the indexer of sparse attention is computed with all its heads on each chip, in the same format")
    if layout.tp > 1:
        kinds = dict.fromkeys(model.layer_list)
        if any(layer.latent for layer in kinds):
            texts.append("the latent of attention is stored on every chip of a tensor-parallel group")
        elif any(layer.kv_heads < layout.tp and layer.attention_kind != "none" for layer in kinds):
            texts.append("key-value heads are fewer than chips: each is stored on several")
        if any(getattr(layer, "recurrence", None) is not None or layer.convolution for layer in kinds):
            texts.append("recurrent layers and convolutions are not divided by tensor parallelism")
    if layout.pp > 1:
        texts.append(f"groups of sequences follow each other through the {layout.pp} stages")
    if layout.ep > 1:
        texts.append("tokens choose experts at random, all alike; the busiest group of chips sets the pace")
    if layout.chips > 1:
        texts.append("messages between chips do not overlap with computation")
    if context and request.tokens.sequence > context:
        texts.append(f"the model is made for {context} tokens, fewer than the {request.tokens.sequence} requested")
    return (*texts, *money.notes)


def _draft_words(best: Placed) -> list[str]:
    """Return how a draft model is counted, in words."""
    draft, times = best.request.draft, best.draft_times
    if draft is None or times is None:
        return []
    where = "split as the model is" if times.layout.tp == best.layout.tp else "whole on each chip"
    return [
        f"{draft.model.name} drafts {draft.tokens} tokens at a time on the same chips, {where}, each accepted with "
        f"probability {draft.acceptance:g} whatever the others; it reads the prompt before the first token"
    ]


def _unfit(best: Placed) -> str:
    """Return the assumption about times where the model does not fit."""
    if best.holds_a_layer:
        return "it does not fit: times are as if it did"
    return "it does not fit, nor do the weights of a single layer: there are no times"


def _words(request: InferenceRequest) -> str:
    tokens = request.tokens
    lengths = f"{tokens.prompt} + {tokens.output} tokens" if tokens.output else f"{tokens.sequence} tokens"
    phase = f"{request.phase} of " if request.phase else ""
    return f"{phase}batch {request.batch}, {lengths}"
