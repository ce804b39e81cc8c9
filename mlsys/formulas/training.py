"""Training of transformers: operations of a step, utilisation, days for a token budget, bytes of activations.

Counts of operations differ between sources; each formula names its convention. *Model FLOP* are those of one forward
and one backward pass; *hardware FLOP* add what recomputation repeats.
"""

from typing import cast

import numpy as np

from mlsys.unit_checks import Argument, at_least, count, fraction, positive, quantity_function

_SIZE = positive("byte")


@quantity_function(
    "FLOP",
    batch=count(),
    sequence=count(),
    layers=count(),
    hidden=count(),
    vocabulary=count(),
    recomputed=fraction(),
)
def training_step_flops(
    batch: int, sequence: int, layers: int, hidden: int, vocabulary: int, recomputed: float = 0.0
) -> float:
    """Return the operations of one training step of a GPT, by equation 3 of Narayanan et al.

    The equation assumes multi-head attention, a feed-forward block four times as wide as the model, and all scores of
    attention, also those that a causal mask discards. Products alone are counted.

    Parameters
    ----------
    batch, sequence
        Sequences of a step, and tokens of each.
    layers, hidden, vocabulary
        Layers, width of the model, and rows of the classifier.
    recomputed
        Share of the layers' forward pass that the backward pass repeats: 0 gives model FLOP, 1 the hardware FLOP with
        full recomputation, which the paper reports. The classifier is not recomputed.

    Returns
    -------
    Quantity
        FLOP: 24·(3 + recomputed)·B·s·l·h²·(1 + s/(6h)) + 6·B·s·h·V. With full recomputation that is
        96·B·s·l·h²·(1 + s/(6h) + V/(16·l·h)).

    References
    ----------
    D. Narayanan et al., SC21, arXiv:2104.04473, equation 3.

    Examples
    --------
    >>> step = training_step_flops(1536, 2048, 96, 12288, 51200, recomputed=1)
    >>> print(f"{step.magnitude:.4g}", f"{step.m_as('TFLOP') / 1024 / 32:.1f} TFLOP/s on each of 1,024 GPUs in 32 s")
    4.511e+18 137.7 TFLOP/s on each of 1,024 GPUs in 32 s
    """
    tokens = batch * sequence
    layer = 24 * hidden**2 * (1 + sequence / (6 * hidden))
    return tokens * ((3 + recomputed) * layers * layer + 6 * hidden * vocabulary)


@quantity_function(
    "FLOP",
    parameters=positive("param"),
    layers=at_least(0),
    attention_width=at_least(0),
    sequence=at_least(0),
    scores_counted=fraction(),
)
def training_flops_per_token(
    parameters: float,
    layers: int = 0,
    attention_width: int = 0,
    sequence: int = 0,
    scores_counted: float = 1.0,
) -> float:
    """Return the model FLOP of training on one token: 6 for each parameter, and those of attention scores.

    Three conventions are in use: 6·N alone (layers 0); 6·N + 12·l·w·s, which counts all scores (PaLM, llm-foundry);
    and 6·N + 6·l·w·s, which counts the half that a causal mask keeps (Megatron-Bridge, MaxText since 2025). Rates
    and utilisations of different conventions are not comparable at long sequences.

    Parameters
    ----------
    parameters
        Parameters that a token uses, param: of a mixture of experts, the active ones. Sources differ on whether the
        embedding table counts.
    layers, attention_width, sequence
        Layers with attention, query heads times head width, and tokens of a sequence; 0 leaves attention out.
    scores_counted
        Share of the scores that is counted: 1 for all, 1/2 for those of a causal mask.

    Returns
    -------
    Quantity
        FLOP for each token: 6·N + 12·l·w·s·scores_counted.

    References
    ----------
    A. Chowdhery et al., PaLM, arXiv:2204.02311, appendix B.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> token = training_flops_per_token(Q_(540.35, "Gparam"), 118, 48 * 256, 2048)
    >>> print(f"{238.3e3 * token.magnitude / (6144 * 275e12):.3f}")
    0.462
    """
    return 6 * parameters + 12 * layers * attention_width * sequence * scores_counted


@quantity_function("", attained=positive("FLOP/s"), peak=positive("FLOP/s"))
def flops_utilisation(attained: float, peak: float) -> float:
    """Return the share of a dense peak that training attains: MFU of model FLOP, HFU of hardware FLOP.

    Parameters
    ----------
    attained
        FLOP of a step over its time, on one chip, FLOP/s: model FLOP for MFU, and for HFU those with recomputation.
    peak
        Dense peak of one chip in the format of the products, FLOP/s. A brochure's figure with sparsity halves the
        result.

    Returns
    -------
    Quantity
        Pure number; above 1 says that a peak or a count is wrong.

    References
    ----------
    A. Chowdhery et al., PaLM, arXiv:2204.02311, section 4.1 (MFU against HFU).

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.units import Q_
    >>> print(f"{flops_utilisation(Q_(420, 'TFLOP/s'), Hardware.Cloud.H100.peak('bf16')).magnitude:.1%}")
    42.4%
    """
    return attained / peak


@quantity_function(
    "s",
    parameters=positive("param"),
    tokens=positive(),
    chips=count(),
    attained=positive("FLOP/s"),
    flops_per_parameter=positive("FLOP"),
)
def training_time(
    parameters: float, tokens: float, chips: int, attained: float, flops_per_parameter: float = 6.0
) -> float:
    """Return the time of training on a budget of tokens, by equation 4 of Narayanan et al.

    Parameters
    ----------
    parameters
        Parameters that a token uses, param.
    tokens
        Tokens of the whole run.
    chips
        Chips at work.
    attained
        FLOP/s of each chip, by the same count as ``flops_per_parameter``.
    flops_per_parameter
        FLOP for each parameter and token: 6 for model FLOP; 8 for hardware FLOP with full recomputation, as in the
        paper.

    Returns
    -------
    Quantity
        s.

    References
    ----------
    D. Narayanan et al., SC21, arXiv:2104.04473, equation 4.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> run = training_time(Q_(175, "Gparam"), 300e9, 1024, Q_(140, "TFLOP/s"), Q_(8, "FLOP"))
    >>> print(f"{run.to('day'):.1f~P}")
    33.9 day
    """
    return flops_per_parameter * parameters * tokens / (chips * attained)


@quantity_function(
    "byte",
    sequence=count(),
    batch=count(),
    hidden=count(),
    heads=count(),
    tensor_parallel=count(),
    sequence_parallel=count(),
    scores_kept=fraction(),
)
def layer_activation_bytes(
    sequence: int,
    batch: int,
    hidden: int,
    heads: int,
    tensor_parallel: int = 1,
    sequence_parallel: int = 1,
    scores_kept: float = 1.0,
) -> float:
    """Return the activations that a GPT layer keeps for its backward pass, by Korthikanti et al.

    Values have 2 bytes and masks of dropout one. A layer whose input alone is kept, as full recomputation does, needs
    2·s·b·h instead: :func:`checkpoint_bytes`.

    Parameters
    ----------
    sequence, batch
        Tokens of a sequence, and sequences of a micro-batch.
    hidden, heads
        Width of the model, and attention heads; the feed-forward block is four times as wide as the model.
    tensor_parallel
        Chips that share the products of a layer.
    sequence_parallel
        Chips that share the tokens of what lies between the products; equal to ``tensor_parallel`` or 1.
    scores_kept
        Share of attention scores, softmax and dropout that is kept: 0 for selective recomputation, and for fused
        kernels that never store them.

    Returns
    -------
    Quantity
        byte on one chip: s·b·h·(10/p + 24/t + 5·a·s/(h·t)·scores_kept).

    References
    ----------
    V. Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, arXiv:2205.05198, section 4.

    Examples
    --------
    >>> for shares in ((1, 1, 1), (8, 1, 1), (8, 8, 1), (8, 8, 0)):
    ...     print(f"{layer_activation_bytes(2048, 1, 12288, 96, *shares).to('GB'):.3f~P}")
    2.869 GB
    0.579 GB
    0.359 GB
    0.107 GB
    """
    scores = 5 * heads * sequence / (hidden * tensor_parallel) * scores_kept
    return sequence * batch * hidden * (10 / sequence_parallel + 24 / tensor_parallel + scores)


@quantity_function("byte", sequence=count(), batch=count(), hidden=count(), shares=count(), element_size=_SIZE)
def checkpoint_bytes(sequence: int, batch: int, hidden: int, shares: int = 1, element_size: float = 2.0) -> float:
    """Return the input of a layer, which full recomputation keeps instead of the layer's activations.

    Parameters
    ----------
    sequence, batch, hidden
        Tokens of a sequence, sequences of a micro-batch, and width of the model.
    shares
        Chips among which the tokens are divided.
    element_size
        Bytes of a value.

    Returns
    -------
    Quantity
        byte on one chip.

    References
    ----------
    V. Korthikanti et al., arXiv:2205.05198, section 5.

    Examples
    --------
    >>> print(f"{checkpoint_bytes(2048, 1, 12288).to('GB'):.4f~P}")
    0.0503 GB
    """
    return sequence * batch * hidden * element_size / shares


@quantity_function(
    "byte",
    stage=Argument("", low=0, high=3, whole=True),
    ranks=count(),
    weight=_SIZE,
    gradient=_SIZE,
    optimizer=at_least(0, "byte"),
)
def training_bytes_per_parameter(
    stage: int = 0, ranks: int = 1, weight: float = 2.0, gradient: float = 2.0, optimizer: float = 12.0
) -> float:
    """Return the bytes of weight, gradient and optimiser state that a chip keeps for each parameter of its model.

    The usual 16 bytes of Adam in mixed precision are a 16-bit weight and gradient, and an FP32 weight with two FP32
    moments. Megatron-LM keeps and reduces FP32 gradients by default, which makes 18.

    Parameters
    ----------
    stage
        Stage of ZeRO: 0 for none; 1 shards the optimiser state, 2 also the gradients, 3 also the weights.
    ranks
        Data-parallel chips among which states are sharded.
    weight, gradient, optimizer
        Bytes of one weight, one gradient, and the optimiser's state with its master weight.

    Returns
    -------
    Quantity
        byte, for :func:`~mlsys.formulas.weight_bytes`.

    References
    ----------
    S. Rajbhandari et al., ZeRO, arXiv:1910.02054, section 5.

    Examples
    --------
    >>> from mlsys.formulas import weight_bytes
    >>> from mlsys.units import Q_
    >>> for stage in range(4):
    ...     print(f"{weight_bytes(Q_(7.5, 'Gparam'), training_bytes_per_parameter(stage, 64)).to('GB'):.1f~P}", end=" ")
    120.0 GB 31.4 GB 16.6 GB 1.9 GB
    """
    sharded = [np.where(np.asarray(stage) >= first, ranks, 1)[()] for first in (3, 2, 1)]
    return cast(float, weight / sharded[0] + gradient / sharded[1] + optimizer / sharded[2])
