"""One layout of a model on a system: what it needs, what fits, how fast it is."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from mlsys.hardware.view import view
from mlsys.mapping.parallel import Layout
from mlsys.models.estimate.cache_key import calibration_version
from mlsys.models.inference.formats import Formats, formats_on
from mlsys.models.inference.memory import MemoryModel, MemoryParts
from mlsys.models.inference.phases import InferenceModel, PhaseTime, summed
from mlsys.models.inference.plan import InferenceRequest, learned_positions
from mlsys.models.inference.shard import shard_of
from mlsys.models.inference.speculative import SpeculativeStep, draft_layout, speculative_step
from mlsys.workloads.zoo.decoder import Decoder

if TYPE_CHECKING:
    from mlsys.hardware.system import System


@dataclass(frozen=True)
class Rates:
    """Latency and rate at one batch.

    Attributes
    ----------
    batch
        Sequences that one copy of the model decodes at once.
    ttft, tpot
        Prefill of one prompt, and a step of decoding; None if the phase is not requested.
    tokens_per_second
        Of all copies: tokens generated, or of the prompts if only prefill is requested.
    low, high
        Ends of its range.
    """

    batch: int
    ttft: PhaseTime | None
    tpot: PhaseTime | None
    tokens_per_second: float
    low: float
    high: float


@dataclass(frozen=True)
class Placed:
    """A model under one layout on a system.

    Attributes
    ----------
    system, model, layout, formats, request
        What runs where, and the request.
    """

    system: System
    model: Decoder
    layout: Layout
    formats: Formats
    request: InferenceRequest

    @cached_property
    def memory_model(self) -> MemoryModel:
        """The memory of one copy, with that of its draft model."""
        return memory_of(self.model, self.layout, self.request)

    @cached_property
    def times(self) -> InferenceModel:
        """The times of one copy."""
        return _times(
            self.system, self.model, self.layout, self.formats, self.request.chunk, self.request.software,
            calibration_version(),
        )  # fmt: skip

    @cached_property
    def draft_times(self) -> InferenceModel | None:
        """The times of the draft model; None without one."""
        request = self.request
        if request.draft is None:
            return None
        small = request.draft.model
        formats = formats_on(self.system.device, small, None, request.kv_format, None)
        return _times(
            self.system, small, draft_layout(small, self.layout), formats, request.chunk, request.software,
            calibration_version(),
        )  # fmt: skip

    def speculative(self, batch: int) -> SpeculativeStep | None:
        """Return a round of speculative decoding at a batch; None without a draft model."""
        draft, times = self.request.draft, self.draft_times
        if draft is None or times is None:
            return None
        return speculative_step(
            self.times, times, batch=batch, context=self.request.tokens.context, drafted=draft.tokens,
            acceptance=draft.acceptance,
        )  # fmt: skip

    @property
    def chips(self) -> int:
        """Chips of all copies."""
        return self.layout.chips * self.request.replicas

    @cached_property
    def capacity(self) -> float:
        """Bytes of one chip's main memory."""
        return view(self.system.device).main.require("capacity")

    @property
    def room(self) -> float:
        """Bytes of one chip that may be filled."""
        return self.request.usable * self.capacity

    @cached_property
    def per_chip(self) -> MemoryParts:
        """What the fullest chip needs."""
        tokens = self.request.tokens
        return self.memory_model.per_chip(tokens.cached, self.request.batch, tokens.begins)

    @property
    def fits(self) -> bool:
        """Whether the fullest chip has room for what it needs."""
        return self.per_chip.needed <= self.room

    @cached_property
    def holds_a_layer(self) -> bool:
        """Whether a chip's memory holds the weights of one layer, of experts the active ones: if not, none can run."""
        model, layers = self.model, shard_of(self.model, self.layout).layer_list
        each = float(model.weight_bytes(self.request.weight_format).m_as("byte")) / model.parameters().magnitude
        active = (layer.parameters(model.hidden, layer.active_experts or None) for layer in dict.fromkeys(layers))
        return bool(max(active) * each <= self.capacity)

    @cached_property
    def largest_batch(self) -> int:
        """Most sequences of one copy that fit."""
        tokens = self.request.tokens
        return self.memory_model.largest_batch(tokens.cached, self.room, tokens.begins)

    @cached_property
    def largest_sequence(self) -> int | None:
        """Most tokens of each sequence at the requested batch: by memory, and by learned positions.

        None without a limit.
        """
        most = self.memory_model.largest_sequence(self.room, self.request.batch)
        learned = learned_positions(self.model)
        return most if not learned else learned if most is None else min(most, learned)

    @cached_property
    def prefill(self) -> PhaseTime:
        """Prefill of one prompt on an idle system, by the draft model too."""
        tokens, draft = self.request.tokens.begins, self.draft_times
        own = self.times.prefill(tokens)
        return own if draft is None else summed([own, draft.prefill(tokens)])

    def at(self, batch: int) -> Rates:
        """Return latency and rate at a batch.

        If prompts and answers are requested, a copy spends its time on the prefill of each prompt and on the steps
        that generate the answers, as with continuous batching in a steady state; else it does nothing but decode.
        """
        request, layout = self.request, self.layout
        copies = request.replicas
        if request.phase == "prefill":
            one = self.prefill
            # Prompts follow each other through the stages, and dp of them are processed side by side.
            rate = copies * layout.dp * layout.pp * request.tokens.prompt
            return Rates(batch, one, None, rate / one.seconds, rate / one.high, rate / one.low)
        drafted = self.speculative(batch)
        step = self.times.decode_step(batch, request.tokens.context) if drafted is None else drafted.tpot
        first = None if request.phase == "decode" else self.prefill
        output = request.tokens.output
        if first is None or not output:
            made = copies * batch
            return Rates(batch, first, step, made / step.seconds, made / step.high, made / step.low)
        made = copies * batch * output

        def of(which: str) -> float:
            prompts = batch / layout.dp / layout.pp * float(getattr(first, which))
            return made / (prompts + output * float(getattr(step, which)))

        return Rates(batch, first, step, of("seconds"), of("high"), of("low"))

    @cached_property
    def rates(self) -> Rates:
        """Latency and rate at the requested batch; without numbers where not even one layer fits."""
        if not self.holds_a_layer:
            return Rates(self.request.batch, None, None, *[float("nan")] * 3)
        return self.at(self.request.batch)

    def record(self) -> dict[str, Any]:
        """Return layout, memory and rates as plain data: a line of a table."""
        rates, layout = self.rates, self.layout
        return {
            **layout_record(layout),
            "replicas": self.request.replicas,
            "chips": self.chips,
            "fits": self.fits,
            "needed_bytes_per_chip": self.per_chip.needed,
            "largest_batch": self.largest_batch,
            "ttft_seconds": None if rates.ttft is None else rates.ttft.seconds,
            "tpot_seconds": None if rates.tpot is None else rates.tpot.seconds,
            "tokens_per_second": rates.tokens_per_second if self.holds_a_layer else None,
            "tokens_per_second_per_chip": rates.tokens_per_second / self.chips if self.holds_a_layer else None,
        }


@lru_cache(maxsize=64)
def _times(
    system: System,
    model: Decoder,
    layout: Layout,
    formats: Formats,
    chunk: int,
    software: str | None,
    _calibration: Hashable,
) -> InferenceModel:
    """Return the times of one copy: the same object for the same question, so that its passes are timed once."""
    return InferenceModel(system, model, layout, formats, chunk, software)


def memory_of(model: Decoder, layout: Layout, request: InferenceRequest) -> MemoryModel:
    """Return the memory of one copy of a model under a layout, with that of its draft model."""
    draft = request.draft
    if draft is None:
        return MemoryModel(model, layout, request.weight_format, request.kv_format, request.windows, request.chunk)
    beside = MemoryModel(
        draft.model, draft_layout(draft.model, layout), None, request.kv_format, request.windows, request.chunk
    )
    return MemoryModel(
        model,
        layout,
        request.weight_format,
        request.kv_format,
        request.windows,
        request.chunk,
        draft.tokens + 1,
        beside,
    )


def layout_record(layout: Layout) -> dict[str, int]:
    """Return the sizes of a layout as plain data."""
    return {name: getattr(layout, name) for name in ("tp", "pp", "ep", "dp")}


def batches_up_to(most: int, limit: int = 4096) -> tuple[int, ...]:
    """Return the powers of two up to ``most``, and it itself.

    Examples
    --------
    >>> batches_up_to(12), batches_up_to(0)
    ((1, 2, 4, 8, 12), ())
    """
    most = min(most, limit)
    doubled = [1 << power for power in range(most.bit_length())]
    return tuple(sorted({*(size for size in doubled if size <= most), *([most] if most else [])}))
