"""Stacks of transformer blocks, on one machine or split over several, as FasterTransformer runs them."""

import numpy as np

from mlsys.calibration.case import Case
from mlsys.calibration.values import seconds_each
from mlsys.models.estimate import MATMUL, Work
from mlsys.models.estimate.lowering import concatenated, messages, side_by_side
from mlsys_evidence.questions.network_lookup import batched, built
from mlsys_evidence.questions.networks import between_products, engine_of, shape_of
from mlsys_evidence.questions.scores import scores_apart
from mlsys_evidence.typed_rows import TypedRow

# FasterTransformer drops the padding inside its encoder, and its benchmark in C++ states only the longest
# length: at that length single GPUs would beat their dense peak 1.6 times over. Taken as half full, the
# fastest of them attains four fifths of it.
HALF_FULL = 0.5


def encoder(row: TypedRow) -> Case:
    """Return the case of a stack of transformer blocks, on one machine or split over several."""
    fmt = row.format
    twin, kind, engine = engine_of(row, fmt)
    batch = row.samples()
    padded = shape_of(row)
    shape = dict(padded)
    if "sequence" in shape and row.has("half padding"):
        shape["sequence"] = max(1, round(HALF_FULL * shape["sequence"]))
    tensor, stages = int(row.get("tensor_parallel", 1)), int(row.get("pipeline_parallel", 1))
    piece, turns = down_a_pipeline(batch, padded.get("sequence", 1), stages)
    # TorchScript fuses what is element-wise, unlike PyTorch that runs operator by operator.
    software = row.software
    # TensorFlow runs a stack of blocks as it does any network.
    loops = between_products(row, f"{software} network on {kind}") if software.startswith("TensorFlow") else ""
    work = batched(row.network, fmt, piece, shape=shape, run_as=loops)
    if not loops and row.has("scores apart"):
        work = concatenated(work, scores_apart(built(row.network, **padded), row, fmt, piece))
    if row.has("wide results"):
        work = _wide_results(work)
    if stages > 1:
        work = work.times(turns)
    if tensor > 1:
        blocks, hidden = row.number("layers"), row.number("hidden")
        rows = batch * shape.get("sequence", 1)
        engine = side_by_side(engine, tensor)
        work = concatenated(work, messages(rows * hidden * fmt.value, tensor, 2 * blocks))
    seconds, inverse = seconds_each(row.row, batch * max(1, row.row.n_devices // (tensor * stages)))
    return Case(row.row, "transformer", f"{software} transformer on {kind}", twin, engine, work, seconds, inverse)


# Tokens, padded ones too, of a piece of the batch that FasterTransformer sends down a pipeline (`getLocalBatchSize` of
# src/fastertransformer/utils/nccl_utils.cc).
PIECE_TOKENS = 1024


def down_a_pipeline(batch: int, tokens: int, stages: int) -> tuple[int, float]:
    """Return how many samples at a time go down a pipeline, and how often all layers would run in that time.

    Each machine runs its part of the layers once for each piece, and waits for the first to reach it.

    Parameters
    ----------
    batch, tokens
        Samples, and tokens of each.
    stages
        Machines, or groups of them, one after the other.

    Examples
    --------
    >>> down_a_pipeline(128, 128, 3), down_a_pipeline(128, 1, 3)
    ((8, 6.0), (128, 1.0))
    """
    piece = batch
    if stages > 1:
        piece = batch // stages if batch % stages == 0 else batch
        while piece * tokens > PIECE_TOKENS and piece % 2 == 0:
            piece //= 2
    return piece, (batch / piece + stages - 1) / stages


def _wide_results(work: Work) -> Work:
    """Return the work with sums of 32 bits left by each product of 8-bit integers, and read by what comes next.

    FasterTransformer's first mode of INT8 scales each channel of the weights on its own and leaves the residual
    unquantised, so that its products write INT32; the second writes INT8.
    """
    results = work["m"] * work["n"] * work["batch"]
    return work.changed(moved=work["moved"] + np.where(work["kind"] == MATMUL, 2 * (4 - 1) * results, 0.0))
