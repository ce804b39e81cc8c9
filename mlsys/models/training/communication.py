"""Communication of a training step: exposed seconds, and bytes that one chip sends, by axis of the layout."""

from __future__ import annotations

from mlsys.formulas import all_gather_traffic_factor
from mlsys.models.training.memory import Shards
from mlsys.models.training.partition import Partition
from mlsys.workloads.zoo.decoder_layer import DecoderLayer

_PIECES = 4
"""Pieces into which overlapped tensor parallelism divides a product; the first piece's communication is exposed."""


def layer_communication(partition: Partition, layer: DecoderLayer) -> dict[str, tuple[float, float]]:
    """Return the exposed seconds of tensor, expert and context parallelism for one micro-batch, by pass."""
    cost, groups = partition.costs[layer], partition.groups
    tensor = 2 * groups.tensor.reduce(cost.tensor_bytes / 2)
    expert = 2 * groups.expert.exchange(cost.expert_bytes / 2, max(1, layer.active_experts))
    if partition.options.overlap == "all":
        tensor = max(tensor / _PIECES, tensor - cost.products[0])
        expert = max(expert / _PIECES, expert - cost.products[0] - cost.attention[0])
    context = (groups.context.ranks - 1) * groups.context.send(cost.context_bytes)
    return {
        "tensor communication": (tensor, tensor),
        "expert communication": (expert, expert),
        "context communication": (max(0.0, context - cost.attention[0]), max(0.0, 2 * context - cost.attention[1])),
    }


def sharded_weights(partition: Partition, layer: DecoderLayer, forward: float, backward: float) -> tuple[float, float]:
    """Return the exposed seconds of ZeRO-3 for one layer and micro-batch, forward and backward.

    The weights are gathered for both passes and the gradients scattered after the backward one, beside ``forward`` and
    ``backward`` seconds of computation.
    """
    dense, experts = partition.shards[layer]
    shards, states = Shards(dense, experts, 1, 1), partition.options.states
    gather, scatter = _shared(partition, shards, states.weight), _shared(partition, shards, states.gradient)
    if partition.options.overlap == "none":
        return gather, gather + scatter
    return max(0.0, gather - forward), max(0.0, gather + scatter - backward)


def message_seconds(partition: Partition) -> float:
    """Return the exposed seconds of messages for one micro-batch and direction, over all chunks of a stage."""
    if partition.layout.pp == 1 or partition.options.overlap == "all":
        return 0.0
    return partition.options.chunks * partition.groups.pipeline.send(partition.message_bytes())


def gradient_reduction(partition: Partition, shards: Shards, forward: float, backward: float) -> float:
    """Return the exposed seconds of sharing gradients and weights once in a step (ZeRO 0 to 2)."""
    options = partition.options
    if options.zero == 3:
        return 0.0
    weight, gradient = options.states.weight, options.states.gradient
    scatter = _shared(partition, shards, gradient)
    gather = _shared(partition, shards, weight if options.zero else gradient)
    if options.overlap == "none":
        return scatter + gather
    if options.zero:
        return max(0.0, scatter - backward) + max(0.0, gather - forward)
    return max(0.0, scatter + gather - backward)


def _shared(partition: Partition, shards: Shards, size: int) -> float:
    """Return the seconds of a gather, or a scatter, of ``size`` bytes for each parameter over data-parallel chips."""
    groups = partition.groups
    return groups.data.gather(shards.dense * size) + groups.expert_data.gather(shards.experts * size)


def sent_bytes(partition: Partition, stage: int) -> dict[str, float]:
    """Return the bytes that a chip of a stage sends in one step, by axis."""
    options, groups, shards = partition.options, partition.groups, partition.stage_shards(stage)
    layers, passes = partition.stages[stage], options.micro_batches
    runs = 3 if options.recompute == "full" else 2
    ring = all_gather_traffic_factor.bare
    weight, gradient = options.states.weight, options.states.gradient
    each = ((shards.dense, groups.data.ranks), (shards.experts, groups.expert_data.ranks))
    if options.zero == 3:
        data = passes * sum(size * (2 * weight + gradient) * ring(ranks) for size, ranks in each)
    else:
        second = weight if options.zero else gradient
        data = sum(size * (gradient + second) * ring(ranks) for size, ranks in each)
    tensor = sum(2 * count * partition.costs[layer].tensor_bytes for layer, count in layers)
    expert = sum(
        count * sum(groups.expert.exchanged(partition.costs[layer].expert_bytes, max(1, layer.active_experts)))
        for layer, count in layers
    )
    context = sum(3 * count * partition.costs[layer].context_bytes for layer, count in layers)
    return {
        "tensor": passes * runs * tensor * ring(groups.tensor.ranks),
        "pipeline": passes * 2 * options.chunks * partition.message_bytes(),
        "data": data,
        "expert": passes * runs * expert,
        "context": passes * context * (groups.context.ranks - 1),
    }
