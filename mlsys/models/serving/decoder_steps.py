"""A language model on a system as a server: times of its iterations, and blocks of its cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.hardware.view import view
from mlsys.mapping.parallel import Layout
from mlsys.models.inference.formats import Formats, formats_on
from mlsys.models.inference.memory import MemoryModel
from mlsys.models.inference.phases import InferenceModel
from mlsys.models.inference.words import amount
from mlsys.models.serving.settings import ServerSettings
from mlsys.models.serving.steps import TabulatedSteps, axis_of, geometric_grid
from mlsys.workloads.zoo.decoder import Decoder

if TYPE_CHECKING:
    from mlsys.hardware import System

SERVER_EFFICIENCY = 0.82
"""Speed of the iterations of a busy server relative to the estimates of steps that are timed alone: a fitted constant.

Estimates are fitted to kernels and steps without a scheduler, sampling, quantisation of activations and a clock that
falls under sustained load. The constant is the median, over 70 published throughputs of TensorRT-LLM 1.0 (three
models, five systems, ten lengths), of the published over the simulated rate;
``mlsys_evidence.evaluate.serving`` compares them.
"""
_LEAST_CACHE = 0.2
"""Share of the usable memory that is left for the cache where the layout is not given."""
_CONTEXTS = (1, 1024, 8192, 65536)
"""Tokens of each sequence at which steps of decoding are timed; between them they are linear."""
_PAIRS_AT = 2048


@dataclass(frozen=True)
class ServedModel:
    """One replica of a language model on a system.

    Attributes
    ----------
    system, model, layout, formats
        What runs where, and in which number formats.
    memory
        Bytes by part.
    room
        Bytes of each chip that may be filled.
    software
        Name of the software; None for what usually runs such passes on such a chip.
    """

    system: System
    model: Decoder
    layout: Layout
    formats: Formats
    memory: MemoryModel
    room: float
    software: str | None = None

    def blocks(self, settings: ServerSettings) -> int:
        """Return how many cache blocks fit beside weights, states and activations.

        Raises
        ------
        ArgumentError
            If not a single block fits.
        """
        own, size = self.layout.dp, settings.block_size
        fixed = self.memory.per_chip(1, settings.max_batch, settings.token_budget)
        left = self.room - fixed.weights - fixed.states - fixed.activations
        each = self.memory.kv_cache_per_token_per_chip * size
        blocks = int(left // each) * own if each else 2**40
        if blocks < 1:
            raise ArgumentError(
                f"serve_sim(): {self.model.name} does not fit on {self.system.name} with {self.layout}: weights and "
                f"activations need {amount(fixed.weights + fixed.states + fixed.activations, 'byte')} of the "
                f"{amount(self.room, 'byte')} of a chip that may be filled. Use more chips, such as tp="
                f"{2 * self.layout.tp}, or a narrower weight format"
            )
        return blocks

    def block_bytes(self, settings: ServerSettings) -> float:
        """Return the bytes of one block on one chip."""
        return self.memory.kv_cache_per_token_per_chip * settings.block_size

    def steps(
        self, settings: ServerSettings, longest: int, overhead: float = 0.0, efficiency: float = SERVER_EFFICIENCY
    ) -> TabulatedSteps:
        """Return the times of iterations, tabulated.

        An iteration that only decodes takes the time of a step of decoding. One that also processes prompts runs all
        its tokens through the same products, so that weights are read once: it takes the time of a prompt of as many
        tokens, without the attention of that prompt, plus the attention of the decoding sequences. The attention of
        prompts is linear in the pairs of tokens.

        Parameters
        ----------
        settings
            Token budget and largest batch.
        longest
            Most tokens of a request.
        overhead
            Seconds that the host adds to each iteration.
        efficiency
            Speed relative to the estimates of steps that are timed alone.
        """
        budget = settings.token_budget if settings.chunked_prefill else max(settings.token_budget, longest)
        chunk = budget + settings.max_batch
        times = InferenceModel(self.system, self.model, self.layout, self.formats, chunk, self.software)
        pairs = self._pair_seconds(times, budget)
        tokens = sorted(
            {0.0, 16.0, *(each for each in geometric_grid(budget, 12) if each > 16), float(max(budget, 32))}
        )
        batches = sorted({0.0, *(float(2**power) for power in range(11) if 2**power < settings.max_batch)})
        batches = [*batches, float(max(settings.max_batch, 2))]
        capacity = min(settings.tokens, settings.max_batch * longest) + settings.max_batch
        contexts = [each for each in geometric_grid(capacity, 14) if each == 0 or each >= 64]
        contexts = contexts if len(contexts) > 1 else [0.0, float(max(capacity, 64))]
        reach = [each for each in _CONTEXTS if each < longest] + [max(longest, 2)]
        decoding = np.zeros((len(batches), len(contexts)))
        for j, batch in enumerate(batches[1:], 1):
            timed = [times.decode_step(int(batch), each).seconds for each in reach]
            decoding[j] = _on_line(np.asarray(contexts) / batch, reach, timed)
        linear = {0.0: 0.0}
        dp = self.layout.dp
        table = np.zeros((len(tokens), len(batches), len(contexts)))
        table[0] = decoding
        for i, prompt in enumerate(tokens[1:], 1):
            for j, batch in enumerate(batches):
                rows = float(-(-int(prompt + batch) // dp))
                if rows not in linear:
                    linear[rows] = times.prefill(int(rows)).seconds - pairs * rows * (rows + 1) / 2
                attention = decoding[j] - decoding[j, 0]
                table[i, j] = np.maximum(linear[rows] + attention, decoding[j])
        table /= efficiency
        table[1:] += overhead
        table[0, 1:] += overhead
        return TabulatedSteps(axis_of(tokens), axis_of(batches), axis_of(contexts), table, pairs / dp / efficiency)

    def _pair_seconds(self, times: InferenceModel, budget: int) -> float:
        """Return the seconds of attention for a pair of tokens of a prompt, from chunks with and without a past."""
        rows = min(budget, _PAIRS_AT)
        before = 4 * _PAIRS_AT
        alone, later = (times.prefill(rows, before=each).seconds for each in (0, before))
        return max(later - alone, 0.0) / (rows * before)

    def scale(self, settings: ServerSettings, context: int) -> tuple[float, float]:
        """Return the ends of the range of the time of a step of decoding, as factors of it."""
        times = InferenceModel(self.system, self.model, self.layout, self.formats, settings.token_budget, self.software)
        one = times.decode_step(max(settings.max_batch // 2, 1), context)
        return one.low / one.seconds, one.high / one.seconds


def served_model(
    system: System,
    model: Decoder,
    *,
    layout: Layout | None = None,
    weight_format: str | None = None,
    kv_format: str | None = None,
    precision: str | None = None,
    usable: float = 0.9,
    software: str | None = None,
) -> ServedModel:
    """Return a replica of a model on a system.

    Parameters
    ----------
    system, model
        The system and the model.
    layout
        How a replica is split; by default the fewest chips of tensor parallelism that leave a fifth of the usable
        memory to the cache.
    weight_format, kv_format, precision, software
        As for :func:`mlsys.size`.
    usable
        Part of each chip's memory that may be filled.

    Raises
    ------
    ArgumentError
        If the layout does not divide the model, or no layout of tensor parallelism is large enough.
    """
    formats = formats_on(system.device, model, weight_format, kv_format, precision)
    room = usable * view(system.device).main.require("capacity")
    whole = ServedModel(
        system, model, layout or Layout(), formats, MemoryModel(model, layout or Layout(), weight_format, kv_format),
        room, software,
    )  # fmt: skip
    if layout is not None:
        layout.check(model, system)
        return whole
    found = None
    for tp in (2**power for power in range(system.chips.bit_length())):
        candidate = Layout(tp=tp)
        if tp > system.chips or not candidate.fits(model, system):
            continue
        found = replace(whole, layout=candidate, memory=MemoryModel(model, candidate, weight_format, kv_format))
        if found.memory.per_chip(1).weights <= (1 - _LEAST_CACHE) * room:
            return found
    if found is None:
        raise ArgumentError(f"serve_sim(): no tensor parallelism divides {model.name} over {system.name}. Give pp")
    return found


def _on_line(at: np.ndarray, known: list[int], values: list[float]) -> np.ndarray:
    """Return values interpolated linearly, and extrapolated beyond the last two points."""
    inside: np.ndarray = np.interp(at, known, values)
    if len(known) < 2:
        return inside
    slope = (values[-1] - values[-2]) / (known[-1] - known[-2])
    found: np.ndarray = np.where(at > known[-1], values[-1] + max(slope, 0.0) * (at - known[-1]), inside)
    return found
