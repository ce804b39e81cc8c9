"""Scores of attention that cross the memory: libraries that fuse what lies between products, but not attention."""

from mlsys.models.estimate import VECTOR, Kernel, Work
from mlsys.models.estimate.lowering import Format
from mlsys.workloads import Network
from mlsys_evidence.typed_rows import TypedRow

# FasterTransformer fuses attention of heads of one width, in 16 and 8 bits, up to so many tokens (`getAttentionType` of
# layers/attention_layers/BaseAttentionLayer.h).
FUSED_WIDTH, FUSED_TOKENS, FUSED_BYTES = 64, 384, 2


def scores_apart(network: Network, row: TypedRow, fmt: Format, batch: int) -> Work:
    """Return the passes over the scores of attention that is not fused, a kernel for each layer.

    The first product writes them, the softmax reads and writes them, the second product reads them: all padding too.

    Parameters
    ----------
    network
        Of one sample.
    row
        Of which the libraries matter.
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
        if not (fits and row.has("FasterTransformer")):
            scores = batch * sizes["batch"] * sizes["heads"] * sizes["queries"] * sizes["keys"]
            kernels.append(Kernel(VECTOR, flops=0.0, moved=4.0 * scores * fmt.value))
    return Work.of(kernels)
