"""Transformer-XL: attention to the segment before as well, by distance."""

from dataclasses import dataclass

from mlsys.workloads.zoo.tape import Tape


@dataclass(frozen=True)
class TransformerXL:
    """The shape of a Transformer-XL; ``tokens`` of a segment are its target length, and its memory is as long."""

    layers: int
    width: int
    heads: int
    inner: int
    tokens: int
    head_dim: int = 64
    vocabulary: int = 267_735


# NVIDIA/DeepLearningExamples at 729963dd, PyTorch/LanguageModeling/Transformer-XL, README.md and pytorch/wt103_*.yaml;
# the words of WikiText-103.
BASE = TransformerXL(layers=16, width=512, heads=8, inner=2048, tokens=192)
LARGE = TransformerXL(layers=18, width=1024, heads=16, inner=4096, tokens=384)


def transformer_xl(tape: Tape, batch: int, tokens: int, shape: TransformerXL) -> None:
    """Dai et al., ACL 2019, as NVIDIA/DeepLearningExamples, pytorch/mem_transformer.py, has it.

    Queries, keys and values are made of the memory and of the segment, which is as long. A score is the sum of two
    products, with the keys and with what stands for their distance, the same for all of a batch. Every token's result
    is compared with all words: without the adaptive softmax, which its code has as an option. The pass over scores
    that unfused attention counts beside the softmax is the mask's.
    """
    rows, seen, width, inner = batch * tokens, 2 * tokens, shape.width, shape.heads * shape.head_dim
    scores = batch * shape.heads * tokens * seen
    tape.embedding("embedding", rows, width, shape.vocabulary * width)
    for layer in range(shape.layers):
        biases = 0 if layer else 2 * inner  # of content and of distance, one for all layers
        tape.dense("query, key, value", batch * seen, width, 3 * inner, False)
        tape.dense("distances", seen, width, inner, False, extra=biases)
        tape.batched("scores of distances", batch * tokens, seen, shape.head_dim, shape.heads)
        tape.ride_along("shift", scores, 0)
        tape.ride_along("scores added and scaled", scores, 1, inputs=2)
        tape.attention("attention", batch, shape.heads, tokens, seen, shape.head_dim)
        tape.dense("attention output", rows, inner, width, False, extra=2 * width)
        tape.add("attention add", rows * width)
        tape.norm_after("attention norm", rows, width)
        tape.dense("feed-forward up", rows, width, shape.inner, extra=2 * width)
        tape.activation("feed-forward relu", rows * shape.inner, "relu")
        tape.dense("feed-forward down", rows, shape.inner, width)
        tape.add("feed-forward add", rows * width)
        tape.norm_after("feed-forward norm", rows, width)
    tape.dense("words", rows, width, shape.vocabulary, tied=True)
