"""Time and bytes of one decoder layer, and of embedding and classifier, on one chip of a parallel layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mlsys.choices import AttentionKernel
from mlsys.mapping.parallel import Layout
from mlsys.models.training.chip import BACKWARD_ATTENTION, FORWARD_ATTENTION, ChipRates
from mlsys.workloads.zoo.decoder_layer import DecoderLayer
from mlsys.workloads.zoo.decoder_pass import scores_computed

if TYPE_CHECKING:
    from mlsys.workloads.zoo.decoder import Decoder

_ROW_PARALLEL = ("attention output", "convolution out", "feed-forward down", "shared expert down", "experts down")
_REPLICATED = ("router", "latent", "query down", "shared expert gate")
_MASTER = 4  # bytes of an accumulated weight gradient


class Product(NamedTuple):
    """A matrix product of a layer on one chip: ``groups`` times (rows × inputs)·(inputs × outputs)."""

    rows: float
    inputs: float
    outputs: float
    groups: float = 1

    @property
    def macs(self) -> float:
        """Multiply-accumulates."""
        return self.rows * self.inputs * self.outputs * self.groups


@dataclass(frozen=True)
class Tokens:
    """What one chip processes in one micro-batch.

    Attributes
    ----------
    sequences, length
        Sequences of the micro-batch, and tokens of each.
    here
        Tokens on one chip: all of them, over context parallelism.
    """

    sequences: int
    length: int
    here: float


@dataclass(frozen=True)
class LayerCost:
    """Seconds, operations and bytes of one layer and micro-batch on one chip.

    Attributes
    ----------
    products, attention, elementwise
        Seconds of the forward and of the backward pass, by kind of work.
    macs, attention_macs
        Multiply-accumulates of the forward pass: of products with weights, and of scores.
    tensor_bytes
        Bytes of the activations that tensor parallelism reduces in a forward pass, both times.
    expert_bytes
        Bytes that a chip exchanges with those of other experts in a forward pass, there and back, once for each visit.
    context_bytes
        Bytes of the keys and values of one chip, which context parallelism passes on.
    """

    products: tuple[float, float]
    attention: tuple[float, float]
    elementwise: tuple[float, float]
    macs: float
    attention_macs: float
    tensor_bytes: float
    expert_bytes: float
    context_bytes: float

    @property
    def forward(self) -> float:
        """Seconds of the forward pass."""
        return self.products[0] + self.attention[0] + self.elementwise[0]

    @property
    def backward(self) -> float:
        """Seconds of the backward pass, without recomputation."""
        return self.products[1] + self.attention[1] + self.elementwise[1]


def expert_tensor_shares(layout: Layout) -> int:
    """Return over how many chips one expert's matrices are split: as ``tp``, as far as ``ep`` leaves chips.

    Examples
    --------
    >>> expert_tensor_shares(Layout(tp=2, ep=4, dp=4)), expert_tensor_shares(Layout(tp=8, ep=8))
    (2, 1)
    """
    available = layout.stage_chips // layout.ep
    return max(size for size in range(1, layout.tp + 1) if layout.tp % size == 0 and available % size == 0)


def products(layer: DecoderLayer, hidden: int, tokens: float, layout: Layout) -> list[Product]:
    """Return the products with weights in a layer's forward pass on one chip; matrices of one operator are one."""
    found: list[Product] = []
    shares, expert_shares = layout.tp, expert_tensor_shares(layout)
    merged: dict[str, list[int]] = {}
    for matrix in layer.matrices(hidden):
        merged.setdefault(matrix.operator, [matrix.inputs, 0, matrix.copies])[1] += matrix.outputs
    for operator, (inputs, outputs, copies) in merged.items():
        routed = operator.startswith("experts")
        split = expert_shares if routed else shares
        ins, outs = (inputs / split, outputs) if operator in _ROW_PARALLEL else (inputs, outputs / split)
        if operator in _REPLICATED:
            ins, outs = inputs, outputs
        if copies > 1 and not routed:  # blocks on the diagonal of one matrix
            found.append(Product(tokens, inputs, outputs, copies / shares))
        elif routed:
            local = copies / layout.ep
            rows = tokens * layer.active_experts * expert_shares / layout.tp
            found.append(Product(rows / local, ins, outs, local))
        else:
            found.append(Product(tokens, ins, outs))
    return found


def layer_cost(
    layer: DecoderLayer,
    hidden: int,
    tokens: Tokens,
    layout: Layout,
    chip: ChipRates,
    *,
    attention: AttentionKernel,
    sequence_parallel: bool,
    dropout: bool,
) -> LayerCost:
    """Return the cost of a layer for one micro-batch on one chip of a layout."""
    work = products(layer, hidden, tokens.here, layout)
    forward = sum(chip.product(each.rows, each.outputs, each.inputs, each.groups) for each in work)
    backward = sum(
        chip.product(each.rows, each.inputs, each.outputs, each.groups)
        + chip.product(each.inputs, each.outputs, each.rows, each.groups, out=2 * _MASTER)
        for each in work
    )
    scores = _scores(layer, tokens, layout, chip, attention, dropout)
    moved = _elementwise_bytes(layer, hidden, tokens.here, layout, chip, sequence_parallel, dropout, work)
    # Chips of one tensor-parallel group hold the same tokens, and each sends its share of them.
    visits = tokens.here * layer.active_experts / layout.tp if layer.experts else 0.0
    kept = 0 if not layer.attends else (layer.cached_elements if layer.latent else layer.cached_elements / layout.tp)
    return LayerCost(
        products=(forward, backward),
        attention=scores[:2],
        elementwise=(chip.stream(moved[0]), chip.stream(moved[1])),
        macs=sum(each.macs for each in work),
        attention_macs=scores[2],
        tensor_bytes=2 * tokens.here * hidden * chip.element,
        expert_bytes=2 * visits * hidden * chip.element,
        context_bytes=tokens.here * kept * chip.element,
    )


def _scores(
    layer: DecoderLayer, tokens: Tokens, layout: Layout, chip: ChipRates, kernel: AttentionKernel, dropout: bool
) -> tuple[float, float, float]:
    """Return the seconds of attention scores forward and backward, and the multiply-accumulates forward."""
    if not layer.attends:
        return 0.0, 0.0, 0.0
    heads = layer.heads / layout.tp
    widths = layer.key_width + layer.value_width
    length = tokens.length
    if kernel == "flash":
        pairs = tokens.sequences * scores_computed(length, length, layer.window, True) / layout.cp
        macs = heads * pairs * widths
        ahead = 2 * macs / (FORWARD_ATTENTION * chip.attention_peak)
        # Backward: the scores again, and the gradients of queries, keys and values, and of probabilities: 5 for 2.
        return ahead, 2 * 2.5 * macs / (BACKWARD_ATTENTION * chip.attention_peak), macs
    batches = heads * tokens.sequences / layout.cp
    one = chip.product(length, length, layer.key_width, batches, wide=True)
    two = chip.product(length, layer.value_width, length, batches, wide=True)
    stored = batches * length * length
    # Softmax reads and writes the scores; dropout reads, writes and stores a mask of one byte. Backward likewise.
    passes = 2 * chip.element + (2 * chip.element + 1 if dropout else 0)
    behind = 3 * chip.element + (2 * chip.element + 1 if dropout else 0)
    return (
        one + two + chip.stream(stored * passes),
        2 * (one + two) + chip.stream(stored * behind),
        batches * length * length * widths,
    )


def _elementwise_bytes(
    layer: DecoderLayer,
    hidden: int,
    tokens: float,
    layout: Layout,
    chip: ChipRates,
    sequence_parallel: bool,
    dropout: bool,
    work: list[Product],
) -> tuple[float, float]:
    """Return the bytes that element-wise kernels move forward and backward, fused as training frameworks do."""
    size = chip.element
    whole = tokens * hidden / (layout.tp if sequence_parallel else 1)
    mask = 1 if dropout else 0
    # Forward: a normalisation reads and writes; the residual sum reads two and writes one. Backward: a normalisation
    # reads two and writes one; the sum of two gradients reads two and writes one.
    forward = whole * (layer.norms * 2 * size + 2 * (3 * size + mask))
    backward = whole * (layer.norms * 3 * size + 2 * (3 * size + mask))
    inner = [(layer.shared_ffn if layer.experts else layer.ffn) / layout.tp * tokens]
    if layer.experts:
        visits = tokens * layer.active_experts / layout.tp
        inner.append(visits * layer.ffn)
        moved = visits * hidden * expert_tensor_shares(layout)
        forward += 4 * moved * size  # permuted for the experts, and back
        backward += 4 * moved * size
    wide = 3 if layer.gated else 2
    forward += sum(inner) * wide * size
    backward += sum(inner) * (wide + (2 if layer.gated else 1)) * size
    if layer.attends:
        rotated = (layer.heads + layer.kv_heads) * layer.head_dim / layout.tp * tokens
        forward += 2 * rotated * size
        backward += 2 * rotated * size
    if chip.peak > chip.attention_peak:
        # Operands of narrow products are cast, and stored transposed for the products of the backward pass.
        cast = size + 2
        forward += cast * sum(each.rows * each.inputs * each.groups for each in work)
        backward += cast * sum(each.rows * each.outputs * each.groups for each in work)
    return forward, backward


def outer_cost(model: Decoder, tokens: Tokens, layout: Layout, chip: ChipRates) -> tuple[float, float, float]:
    """Return the seconds of the classifier and the loss, forward and backward, and its multiply-accumulates."""
    if not model.head:
        return 0.0, 0.0, 0.0
    width, words, rows = model.embedding_width or model.hidden, model.vocabulary / layout.tp, tokens.here
    forward = chip.product(rows, words, width, wide=True)
    backward = chip.product(rows, width, words, wide=True) + chip.product(
        width, words, rows, wide=True, out=2 * _MASTER
    )
    # The loss casts logits to FP32, exponentiates them and writes their gradient.
    logits = rows * words
    loss = chip.stream(logits * (chip.element + 3 * 4)), chip.stream(logits * (2 * 4 + chip.element))
    return forward + loss[0], backward + loss[1], rows * words * width
