"""Recommenders, and the networks of the first TPU."""

from itertools import pairwise

from mlsys.workloads.zoo.cnn_builder import CnnBuilder
from mlsys.workloads.zoo.layer_builder import LayerBuilder

# Rows of the 26 tables: Criteo Terabyte with at most 40 million each (MLPerf Training v1, recommendation).
DLRM_ROWS = (
    39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10,
    2208, 11938, 155, 4, 976, 14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36,
)  # fmt: skip
# Look-ups in each table of the multi-hot data set of MLPerf Training v2.1 (DLRM-DCNv2).
DLRM_HOT = (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1)


def dlrm(builder: LayerBuilder, batch: int, crossed: bool = False) -> None:
    """Append DLRM (Naumov et al., arXiv:1906.00091) with the sizes of MLPerf.

    ``crossed`` replaces the dot products by a low-rank cross network of three layers
    (Wang et al. 2021, DCN V2) and looks up several rows per table (multi-hot).
    """
    width = 128

    def mlp(name: str, widths: tuple[int, ...]) -> None:
        for index, (inputs, outputs) in enumerate(pairwise(widths), start=1):
            builder.dense(f"{name} {index}", batch, inputs, outputs)
            builder.activation(f"{name} {index} relu", batch * outputs, "relu")

    mlp("bottom", (13, 512, 256, width))
    for index, (rows, hot) in enumerate(zip(DLRM_ROWS, DLRM_HOT, strict=True), start=1):
        builder.embedding(f"table {index}", batch, width, rows * width, tables=hot if crossed else 1)
    vectors = len(DLRM_ROWS) + 1
    if crossed:
        joined = vectors * width
        for index in range(1, 4):
            builder.dense(f"cross {index} down", batch, joined, 512, bias=False)
            builder.dense(f"cross {index} up", batch, 512, joined)
            builder.ride_along(f"cross {index} multiply", batch * joined, 2, inputs=3)
    else:
        builder.batched("interaction", vectors, vectors, width, batch)
        joined = width + vectors * (vectors - 1) // 2
    mlp("top", (joined, 1024, 1024, 512, 256, 1))


def tpu_dense(builder: LayerBuilder, batch: int, layers: int, weights: int) -> None:
    """Append equal square dense layers whose weights add up to the published total.

    Jouppi et al. (ISCA 2017, table 1) give the layers, the weights and the batch of each network,
    not the widths; a roofline needs only the totals.
    """
    width = round((weights / layers) ** 0.5)
    for index in range(1, layers + 1):
        builder.dense(f"dense {index}", batch, width, width, bias=False)


def tpu_cnn0(net: CnnBuilder) -> None:
    """Append the 16 convolutions of CNN0, whose sizes follow from three published numbers.

    2888 operations per weight byte at batch 8 are 361 uses of a weight per image: 19 × 19, a
    Go board. Eight million weights in 16 layers of 3 × 3 then give 236 channels.
    """
    for index in range(1, 17):
        net.conv(f"conv{index}", 236, 3, norm=False, bias=False)
