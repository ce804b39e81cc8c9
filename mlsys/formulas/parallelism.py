"""Parallel training: idle time of pipelines, bytes between chips, and speedup with exposed communication."""

from typing import cast

import numpy as np

from mlsys.unit_checks import Argument, count, fraction, nonnegative, positive, quantity_function

_SIZE = positive("byte")


@quantity_function("", stages=count(), micro_batches=count(), chunks=count())
def pipeline_bubble_over_ideal(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """Return the idle time of a pipeline over the time of its work, (p − 1)/(v·m).

    Narayanan et al. call this the bubble fraction. It is not a share of the step, which is
    :func:`pipeline_bubble_share`; the two are often taken for each other.

    Parameters
    ----------
    stages
        Stages of the pipeline, of equal time.
    micro_batches
        Micro-batches of a step.
    chunks
        Model chunks on each stage: 1 for GPipe and 1F1B, more for the interleaved schedule.

    Returns
    -------
    Quantity
        Pure number.

    References
    ----------
    D. Narayanan et al., SC21, arXiv:2104.04473, section 2.2.

    Examples
    --------
    >>> print(pipeline_bubble_over_ideal(4, 8), f"{pipeline_bubble_over_ideal(8, 64, 4).magnitude:.4f}")
    0.375 0.0273
    """
    return (stages - 1) / (chunks * micro_batches)


@quantity_function("", stages=count(), micro_batches=count(), chunks=count())
def pipeline_bubble_share(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """Return the share of a pipeline's step in which a stage idles, (p − 1)/(v·m + p − 1).

    This is the bubble that GPipe states. Over the time of the work alone it is :func:`pipeline_bubble_over_ideal`.

    Parameters
    ----------
    stages, micro_batches, chunks
        As of :func:`pipeline_bubble_over_ideal`.

    Returns
    -------
    Quantity
        Pure number below 1.

    References
    ----------
    Y. Huang et al., GPipe, arXiv:1811.06965, section 2.3.

    Examples
    --------
    >>> print(f"{pipeline_bubble_share(4, 8).magnitude:.1%}", f"{pipeline_bubble_share(8, 32).magnitude:.1%}")
    27.3% 17.9%
    """
    return (stages - 1) / (chunks * micro_batches + stages - 1)


@quantity_function(
    "byte",
    sequence=count(),
    batch=count(),
    hidden=count(),
    tensor_parallel=count(),
    element_size=_SIZE,
    forward_passes=count(),
)
def tensor_parallel_layer_bytes(
    sequence: int, batch: int, hidden: int, tensor_parallel: int, element_size: float = 2.0, forward_passes: int = 1
) -> float:
    """Return the bytes that a chip sends in one direction for the tensor parallelism of a layer and micro-batch.

    Two all-reduces of the activations go with each forward and two with the backward pass; each sends
    2·(t − 1)/t of the data in a ring. Sequence parallelism replaces an all-reduce by a reduce-scatter and an
    all-gather of the same bytes.

    Parameters
    ----------
    sequence, batch, hidden
        Tokens of a sequence, sequences of a micro-batch, and width of the model.
    tensor_parallel
        Chips that share the layer.
    element_size
        Bytes of a value.
    forward_passes
        2 if the forward pass is recomputed.

    Returns
    -------
    Quantity
        byte.

    References
    ----------
    M. Shoeybi et al., Megatron-LM, arXiv:1909.08053, section 3.

    Examples
    --------
    >>> print(f"{tensor_parallel_layer_bytes(2048, 1, 12288, 8).to('MB'):.1f~P}")
    352.3 MB
    """
    reduces = 2 * (forward_passes + 1)
    return reduces * 2 * (tensor_parallel - 1) / tensor_parallel * sequence * batch * hidden * element_size


@quantity_function("byte", weights=positive("byte"), ranks=count(), stage=Argument("", low=0, high=3, whole=True))
def zero_communication_bytes(weights: float, ranks: int, stage: int = 0) -> float:
    """Return the bytes that a chip sends in one step of data-parallel training under a stage of ZeRO.

    Without ZeRO the gradients are all-reduced. Stages 1 and 2 reduce-scatter gradients and all-gather weights, which
    are as many bytes; stage 3 gathers the weights twice, for the forward and the backward pass.

    Parameters
    ----------
    weights
        Bytes of all weights of a chip's model, with gradients in the same format.
    ranks
        Data-parallel chips.
    stage
        Stage of ZeRO, 0 to 3.

    Returns
    -------
    Quantity
        byte: 2·(n − 1)/n of the weights, and 3·(n − 1)/n in stage 3.

    References
    ----------
    S. Rajbhandari et al., ZeRO, arXiv:1910.02054, section 7.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(zero_communication_bytes(Q_(350, "GB"), 8).to("GB"))
    612.5 GB
    """
    passes = np.where(np.asarray(stage) == 3, 3, 2)[()]
    return cast(float, passes * (ranks - 1) / ranks * weights)


@quantity_function("", computation=positive("s"), communication=nonnegative("s"), chips=count(), overlap=fraction())
def data_parallel_speedup(computation: float, communication: float, chips: int, overlap: float = 0.0) -> float:
    """Return the speedup of data-parallel chips, each of which computes and then shares gradients.

    Parameters
    ----------
    computation
        Time that one chip computes in a step, s, however many chips there are (weak scaling); for strong scaling,
        divide the time of one chip by ``chips``.
    communication
        Time of sharing the gradients, s.
    chips
        Number of chips.
    overlap
        Share of the communication that runs while a chip computes. No more is hidden than the computation lasts.

    Returns
    -------
    Quantity
        Pure number up to ``chips``: chips · computation / (computation + exposed communication).

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> for overlap in (0, 1):
    ...     print(f"{data_parallel_speedup(Q_(50, 'ms'), Q_(5.83, 'ms'), 8, overlap).magnitude:.2f}")
    7.16
    8.00
    """
    exposed = communication - np.minimum(overlap * communication, computation)
    speedup: float = chips * computation / (computation + exposed)
    return speedup
