"""Transformer-XL: attention to the current and the previous segment, with relative positions."""

from dataclasses import dataclass

from mlsys.workloads.zoo.layer_builder import LayerBuilder


@dataclass(frozen=True)
class TransformerXL:
    """The sizes of a Transformer-XL; ``tokens`` is the length of a segment, and of its memory."""

    layers: int
    width: int
    heads: int
    inner: int
    tokens: int
    head_dim: int = 64
    vocabulary: int = 267_735


# NVIDIA/DeepLearningExamples at 729963dd, PyTorch/LanguageModeling/Transformer-XL, README.md and pytorch/wt103_*.yaml;
# vocabulary of WikiText-103.
BASE = TransformerXL(layers=16, width=512, heads=8, inner=2048, tokens=192)
LARGE = TransformerXL(layers=18, width=1024, heads=16, inner=4096, tokens=384)


def transformer_xl(builder: LayerBuilder, batch: int, tokens: int, shape: TransformerXL) -> None:
    """Append Transformer-XL (Dai et al., ACL 2019; NVIDIA/DeepLearningExamples, pytorch/mem_transformer.py).

    Queries, keys and values are projected from the memory and the segment. A score is the sum of two products, with
    the keys and with the relative position embeddings, which the whole batch shares. The softmax over the vocabulary
    is the full one, not the adaptive softmax that the code offers. The pass over scores that unfused attention
    counts besides the softmax is the mask.
    """
    rows, seen, width, inner = batch * tokens, 2 * tokens, shape.width, shape.heads * shape.head_dim
    scores = batch * shape.heads * tokens * seen
    builder.embedding("embedding", rows, width, shape.vocabulary * width)
    for layer in range(shape.layers):
        biases = 0 if layer else 2 * inner  # of content and of distance, one for all layers
        builder.dense("query, key, value", batch * seen, width, 3 * inner, False)
        builder.dense("distances", seen, width, inner, False, extra=biases)
        builder.batched("scores of distances", batch * tokens, seen, shape.head_dim, shape.heads)
        builder.ride_along("shift", scores, 0)
        builder.ride_along("scores added and scaled", scores, 1, inputs=2)
        builder.attention("attention", batch, shape.heads, tokens, seen, shape.head_dim)
        builder.dense("attention output", rows, inner, width, False, extra=2 * width)
        builder.add("attention add", rows * width)
        builder.norm_after("attention norm", rows, width)
        builder.dense("feed-forward up", rows, width, shape.inner, extra=2 * width)
        builder.activation("feed-forward relu", rows * shape.inner, "relu")
        builder.dense("feed-forward down", rows, shape.inner, width)
        builder.add("feed-forward add", rows * width)
        builder.norm_after("feed-forward norm", rows, width)
    builder.dense("words", rows, width, shape.vocabulary, tied=True)
