"""A model divided over the chips of a layout: groups that communicate, stages, and what each layer costs."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from mlsys.hardware.system import System
from mlsys.mapping.parallel import Layout
from mlsys.models.training.chip import ChipRates, chip_rates
from mlsys.models.training.layers import LayerCost, Tokens, expert_tensor_shares, layer_cost, outer_cost
from mlsys.models.training.memory import Shards, layer_shards
from mlsys.models.training.network import Group, group
from mlsys.models.training.options import StepOptions
from mlsys.models.training.stages import stage_layers
from mlsys.workloads.zoo.decoder import Decoder
from mlsys.workloads.zoo.decoder_layer import DecoderLayer

Stage = tuple[tuple[DecoderLayer, int], ...]
"""Layers of a pipeline stage: each kind with its number."""


class Groups(NamedTuple):
    """Chips with which one chip communicates, by axis of the layout.

    ``data`` holds the chips that share dense parameters, ``expert_data`` those that share the same experts.
    """

    tensor: Group
    context: Group
    data: Group
    pipeline: Group
    expert: Group
    expert_data: Group


class Partition:
    """A model divided over the chips of a system, with the cost of each layer for one micro-batch.

    Attributes
    ----------
    system, model, layout, options
        As given.
    chip
        Rates of one chip.
    tokens
        What one chip processes in one micro-batch.
    groups
        The chips with which one chip communicates.
    stages
        The layers of each pipeline stage.
    kinds
        Number of layers of each kind in the whole model.
    costs, shards
        By kind of layer: the cost of a micro-batch, and the parameters on one chip (dense ones, those of experts).
    classifier
        Seconds of the classifier and the loss, forward and backward, and its multiply-accumulates.
    """

    def __init__(self, system: System, model: Decoder, layout: Layout, options: StepOptions) -> None:
        self.system, self.model, self.layout, self.options = system, model, layout, options
        self.chip: ChipRates = chip_rates(system.device, options.precision)
        sequences = options.micro_batch
        self.tokens = Tokens(sequences, options.sequence, sequences * options.sequence / layout.cp)
        self.groups = _groups(system, layout)
        self.stages = _stages(model, layout.pp, options.chunks)
        self.kinds = Counter(model.layer_list)
        self.costs: dict[DecoderLayer, LayerCost] = {
            layer: layer_cost(
                layer, model.hidden, self.tokens, layout, self.chip,
                attention=options.attention, sequence_parallel=options.sequence_parallel, dropout=options.dropout,
            )
            for layer in self.kinds
        }  # fmt: skip
        self.shards = {layer: layer_shards(layer, model.hidden, layout) for layer in self.kinds}
        self.classifier = outer_cost(model, self.tokens, layout, self.chip)

    def stage_shards(self, stage: int) -> Shards:
        """Return the parameters on one chip of a stage."""
        dense = sum(count * self.shards[layer][0] for layer, count in self.stages[stage])
        experts = sum(count * self.shards[layer][1] for layer, count in self.stages[stage])
        outside = self.model.outside_parameters() / self.layout.tp
        if self.layout.pp > 1:
            # The embedding table is on the first stage and the classifier, a copy of it if tied, on the last.
            table = self.model.vocabulary * (self.model.embedding_width or self.model.hidden) / self.layout.tp
            outside = table if stage in (0, self.layout.pp - 1) else 0.0
        return Shards(dense + outside, experts, self.groups.data.ranks, self.groups.expert_data.ranks)

    def message_bytes(self) -> float:
        """Return the bytes that one chip sends to the next stage for one micro-batch and chunk."""
        if self.layout.pp == 1:
            return 0.0
        return self.tokens.here * self.model.hidden * self.chip.element / self.layout.tp


def _groups(system: System, layout: Layout) -> Groups:
    shares = expert_tensor_shares(layout)
    same_experts = layout.ep * shares
    return Groups(
        tensor=group(system, layout.tp, 1),
        context=group(system, layout.cp, layout.tp),
        data=group(system, layout.dp * layout.cp, layout.tp),
        pipeline=group(system, layout.pp, layout.stage_chips),
        expert=group(system, layout.ep, shares),
        expert_data=group(system, layout.stage_chips // same_experts, same_experts),
    )


def _stages(model: Decoder, stages: int, chunks: int) -> tuple[Stage, ...]:
    found, first = [], 0
    for count in stage_layers(len(model.layer_list), stages, chunks):
        found.append(tuple(Counter(model.layer_list[first : first + count]).items()))
        first += count
    return tuple(found)
