"""Memory of one chip in training, by part: weights, gradients, optimiser state, activations, buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlsys.choices import AttentionKernel, Optimizer, Recompute
from mlsys.formulas import training_bytes_per_parameter
from mlsys.mapping.parallel import Layout
from mlsys.models.training.layers import Tokens, expert_tensor_shares
from mlsys.models.training.schedule import live_micro_batches
from mlsys.unit_checks import plain_arguments
from mlsys.workloads.zoo.decoder_layer import DecoderLayer

if TYPE_CHECKING:
    from mlsys.models.training.partition import Partition
    from mlsys.workloads.zoo.decoder import Decoder

STATES: dict[Optimizer, int] = {"adam": 8, "adam-8bit": 2, "momentum": 4, "sgd": 0}
"""Bytes that each update rule keeps for a parameter, without the master weight."""
_MASTER = 4


@dataclass(frozen=True)
class Recipe:
    """Bytes of a weight, its gradient, its master copy and the optimiser's state.

    Attributes
    ----------
    weight, gradient, optimizer
        Bytes of one weight, one gradient, and the optimiser's state with the master weight.
    """

    weight: int
    gradient: int
    optimizer: int

    @property
    def total(self) -> int:
        """Bytes for each parameter without sharding."""
        return self.weight + self.gradient + self.optimizer


@plain_arguments
def recipe(optimizer: Optimizer, element: int, gradient: int) -> Recipe:
    """Return the bytes for each parameter: a 16-bit weight has a master copy, an FP32 weight is its own.

    Examples
    --------
    >>> recipe("adam", 2, 2).total, recipe("adam", 2, 4).total
    (16, 18)
    """
    return Recipe(element, gradient, STATES[optimizer] + (_MASTER if element < _MASTER else 0))


@dataclass(frozen=True)
class Shards:
    """Parameters on one chip of a pipeline stage: those that all data-parallel chips share, and those of its experts.

    Attributes
    ----------
    dense, experts
        Parameters on one chip.
    dense_ranks, expert_ranks
        Chips that hold the same, among which ZeRO shards their states.
    """

    dense: float
    experts: float
    dense_ranks: int
    expert_ranks: int

    def bytes(self, stage: int, states: Recipe) -> dict[str, float]:
        """Return the bytes of weights, gradients and optimiser state on one chip under a stage of ZeRO."""

        def kept(weight: int, gradient: int, optimizer: int) -> float:
            parts = ((self.dense, self.dense_ranks), (self.experts, self.expert_ranks))
            each = training_bytes_per_parameter.bare
            return float(sum(count * each(stage, ranks, weight, gradient, optimizer) for count, ranks in parts))

        return {
            "weights": kept(states.weight, 0, 0),
            "gradients": kept(0, states.gradient, 0),
            "optimizer": kept(0, 0, states.optimizer),
        }


def layer_shards(layer: DecoderLayer, hidden: int, layout: Layout) -> tuple[float, float]:
    """Return a layer's parameters on one chip: dense ones and those of experts."""
    experts = sum(matrix.elements for matrix in layer.matrices(hidden) if matrix.operator.startswith("experts"))
    everything = layer.parameters(hidden)
    return (everything - experts) / layout.tp, experts / (layout.ep * expert_tensor_shares(layout))


def layer_activations(
    layer: DecoderLayer,
    hidden: int,
    tokens: Tokens,
    layout: Layout,
    *,
    element: int = 2,
    attention: AttentionKernel = "flash",
    sequence_parallel: bool = False,
    dropout: bool = False,
    recompute: Recompute = "none",
) -> float:
    """Return the bytes that a layer keeps for the backward pass of one micro-batch on one chip.

    For a GPT with dropout these are :func:`mlsys.formulas.layer_activation_bytes`; gated blocks, grouped heads,
    latents and experts count as their tensors do.
    """
    shares = layout.tp if sequence_parallel else 1
    if recompute == "full":
        return tokens.here * hidden * element / shares
    mask = 1 if dropout else 0
    # Inputs of both normalisations and of the products behind them; masks of both residual branches.
    between = hidden * ((2 + 2) * element + 2 * mask) / shares
    within = 0.0
    if not layer.attends:
        within += 4 * hidden * element / layout.tp
    else:
        keys = (layer.latent + layer.rotary) * layout.tp if layer.latent else 0
        widths = layer.heads * (layer.key_width + layer.value_width)
        widths += (layer.heads if layer.latent else layer.kv_heads) * (layer.key_width + layer.value_width)
        within += (widths + keys) * element / layout.tp
        if attention == "standard" and recompute != "selective":
            scores = layer.heads * tokens.length / layout.tp
            within += scores * (element + (element + 1 if dropout else 0))
    wide = 3 if layer.gated else 2
    within += (layer.shared_ffn if layer.experts else layer.ffn) * wide * element / layout.tp
    if layer.experts:
        visits = layer.active_experts / layout.tp
        within += visits * (layer.ffn * wide + 2 * hidden * expert_tensor_shares(layout)) * element
    return tokens.here * (between + within)


def loss_buffers(model: Decoder, tokens: Tokens, layout: Layout, element: int) -> float:
    """Return the bytes of the logits and their FP32 copy, which the last stage holds for one micro-batch."""
    return tokens.here * model.vocabulary / layout.tp * (element + 4) if model.head else 0.0


def stage_memory(partition: Partition, stage: int) -> dict[str, float]:
    """Return the bytes on one chip of a stage, by part."""
    layout, options, model = partition.layout, partition.options, partition.model
    layers = partition.stages[stage]

    def kept(layer: DecoderLayer, recompute: Recompute) -> float:
        return layer_activations(
            layer, model.hidden, partition.tokens, layout, element=partition.chip.element, attention=options.attention,
            sequence_parallel=options.sequence_parallel, dropout=options.dropout, recompute=recompute,
        )  # fmt: skip

    live = live_micro_batches(options.schedule, stage, layout.pp, options.micro_batches, options.chunks)
    activations = live * sum(count * kept(layer, options.recompute) for layer, count in layers)
    if options.recompute == "full":
        # One layer at a time holds all of its activations while its backward pass runs.
        activations += max((kept(layer, "none") for layer, _ in layers), default=0.0)
    buffers = 0.0
    if options.zero == 3:
        # The layer at work and the next one are gathered.
        largest = max((sum(partition.shards[layer]) for layer, _ in layers), default=0.0)
        buffers = 2 * largest * options.states.weight
    last = stage == layout.pp - 1
    return {
        **partition.stage_shards(stage).bytes(options.zero, options.states),
        "activations": activations,
        "logits": loss_buffers(model, partition.tokens, layout, partition.chip.element) if last else 0.0,
        "buffers": buffers,
    }
