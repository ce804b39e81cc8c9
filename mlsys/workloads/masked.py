"""Masked attention of decoder language models: counted products, and those left by a causal mask."""

from collections.abc import Iterable

from mlsys.workloads.operator import Operator
from mlsys.workloads.totals import AttentionCount


def causal_attention(operators: Iterable[Operator]) -> AttentionCount | None:
    """Return the products of attention over a prompt, dense and under a causal mask; None without attention.

    Layers with a sliding window are counted with every key in it.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> causal_attention(load("gpt2", sequence=4))
    AttentionCount(dense=589824, unmasked=368640)
    """
    from mlsys.workloads.zoo.decoder_pass import scores_computed

    dense = unmasked = 0
    for operator in operators:
        shape = operator.shape
        if operator.kind == "attention" and shape.get("queries", 0) > 1 and operator.products is not None:
            queries, keys = shape["queries"], shape["keys"]
            seen = shape.get("pairs", queries * keys)
            window = seen // queries if seen < queries * keys else 0
            flops = int(operator.product_flops.m_as("FLOP"))
            dense += flops
            unmasked += flops * scores_computed(queries, keys, window, True) // seen
    return AttentionCount(dense, unmasked) if dense else None
