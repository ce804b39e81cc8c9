"""Scores of attention that cross the memory: libraries that fuse what lies between products, but not attention."""

import re

from mlsys.models.estimate import VECTOR, Kernel, Work
from mlsys.models.estimate.lowering import Format
from mlsys.workloads import Network

# Attention as two batched products of cuBLAS with a softmax between them: DeepSpeed-Inference (microsoft/DeepSpeed,
# csrc/transformer/inference, ``softmax_context``), ONNX Runtime up to 1.12 (contrib_ops/cuda/bert/attention_impl.cu,
# ``QkvToContext``), LightSeq (``launch_attn_softmax``); and TorchScript, which fuses nothing about a product.
_APART = r"FasterTransformer|DeepSpeed|ONNX ?Runtime 1\.(\d|1[0-2])\b|LightSeq|TorchScript"
# FasterTransformer fuses attention of heads of one width, in 16 and 8 bits, up to so many tokens (`getAttentionType` of
# layers/attention_layers/BaseAttentionLayer.h).
FUSED_WIDTH, FUSED_TOKENS, FUSED_BYTES = 64, 384, 2


def writes_scores(software: str) -> bool:
    """Return whether a library leaves scores of attention in the memory, of some shapes at least.

    Parameters
    ----------
    software
        In the words of a row.

    Examples
    --------
    >>> [writes_scores(name) for name in ("DeepSpeed-Inference 0.7.4", "ONNX Runtime 1.17 CUDA", "TensorRT 8.4")]
    [True, False, False]
    """
    return re.search(_APART, software) is not None


def scores_apart(network: Network, software: str, fmt: Format, batch: int) -> Work:
    """Return the passes over the scores of attention that is not fused, a kernel for each layer.

    The first product writes them, the softmax reads and writes them, the second product reads them: all padding too.

    Parameters
    ----------
    network
        Of one sample.
    software
        In the words of a row.
    fmt
        Number formats.
    batch
        Samples.
    """
    kernels = []
    for operator in network.operators:
        sizes = operator.shape
        if operator.kind != "attention":
            continue
        fits = sizes["head_dim"] == FUSED_WIDTH and sizes["keys"] <= FUSED_TOKENS and fmt.value <= FUSED_BYTES
        if not (fits and "FasterTransformer" in software):
            scores = batch * sizes["batch"] * sizes["heads"] * sizes["queries"] * sizes["keys"]
            kernels.append(Kernel(VECTOR, flops=0.0, moved=4.0 * scores * fmt.value))
    return Work.of(kernels)
