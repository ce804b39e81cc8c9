"""Language models as Transformers NeuronX compiles them: one graph of fixed shapes, shared out among NeuronCores.

What it computes is larger than what a token needs, as its code says (aws-neuron/transformers-neuronx@0623de20, of
April 2024, which is 0.10; paths below ``src/transformers_neuronx``):

- ``bucket.py`` (``token_sizes``, ``find``): a step is compiled for 128, 256, 512, ... positions, up to the most that
  were requested, and runs in the smallest of them that holds the tokens so far; keys and values of all its positions
  are read, and those beyond the tokens are masked (``layers/attention.py``, ``mask``). Prompts are padded likewise.
- ``decoder.py`` (``DecoderLayer.to_neuron``): heads of queries are padded to as many on each core. Heads of keys and
  values stay apart where the cores divide them; else each is repeated until every head of queries has its own
  (``check_gqa_fallback``: "identical to an MHA model"), and padded with them.
- ``mistral/hlo.py``: a window only masks.
- ``hlo.py`` (``canonicalize_lhs_rhs_dtype``): weights of 8 bits are converted before the product, one pass of an engine
  over all of them; ``add_lm_head`` quantises nothing.
- ``layers/attention.py`` (``mask``, ``context``, ``context_combined``): scores are masked, converted, brought to their
  largest, subtracted, exponentiated, summed and divided or converted back, each an operator of its own.
- ``llama/hlo.py`` (``layer``), ``hlo.py`` (``rms_norm``, ``all_reduce_sum``): behind each sum over all cores every one
  of them adds and normalises the whole width of the model, in FP32 between two conversions.

From release 2.19 on (aws-neuron/transformers-neuronx@c8d6bdc0, of July 2024, which is 0.11):

- ``utils.py`` (``get_qkv_padding``): where all queries of a core share one head of keys, this is repeated until every
  core has its own, and no further.
- ``layers/attention.py`` (``flash_attention``), ``llama/hlo.py``: a single prompt of 4,096 tokens or more attends in
  one kernel, which leaves out what a causal mask hides and keeps its scores on the chip.

An engine takes one number in each of 128 lanes a cycle ("Data-path Width", general/nki/trainium_inferentia2_arch.rst
of aws-neuron-sdk@0b2735a3): the scores of a token are one row for each sequence and head of a core, which leaves most
lanes idle, and those of a prompt fill them.
"""

import math
from dataclasses import replace

import numpy as np

from mlsys.models.estimate import MATMUL, VECTOR, Kernel, Work
from mlsys.models.estimate.lowering import Format, concatenated
from mlsys.models.estimate.work import STREAMED
from mlsys.workloads.zoo.language import LanguageModel
from mlsys_evidence.typed_rows import TypedRow

SMALLEST_BUCKET = 128
OF_JULY_2024, SHORTEST_OF_KERNEL = (2, 19), 4096
LANES = 128
# Passes of an engine, and how often what it passes over crosses the memory where that does not stay on the chip. Over
# scores: written by a product, read and written by the passes, read by a product. Over the width, for each half of a
# block: six of a normalisation and an addition; written by a product, read twice and written by the addition, read and
# written by the normalisation, read by a product.
OVER_SCORES, OVER_WIDTH = (7.0, 4.0), (7.0, 7.0)


def compiled_for_neuron(row: TypedRow) -> bool:
    """Return whether a row is of a language model that Transformers NeuronX compiled."""
    return row.has("Transformers NeuronX")


def since_july_2024(row: TypedRow) -> bool:
    """Return whether a row's release is of July 2024 or later, or not named."""
    return not row.released or row.released >= OF_JULY_2024


def in_one_kernel(row: TypedRow, batch: int, queries: int) -> bool:
    """Return whether a prompt attends in one kernel, whose scores stay on the chip."""
    return since_july_2024(row) and batch == 1 and queries >= SHORTEST_OF_KERNEL


def bucket_of(tokens: int, most: int) -> int:
    """Return the positions that a step is compiled for, whose keys and values it reads.

    Parameters
    ----------
    tokens
        So far, the new one included.
    most
        Positions that the program was compiled for at most.

    Examples
    --------
    >>> [bucket_of(tokens, most=1152) for tokens in (100, 129, 640, 1100)]
    [128, 256, 1024, 1152]
    """
    return min(max(most, tokens), max(SMALLEST_BUCKET, 1 << (tokens - 1).bit_length()))


def positions_of(row: TypedRow, tokens: int) -> int:
    """Return the positions of the bucket that a row's step runs in."""
    return bucket_of(tokens, int(row.get("most_positions", tokens)))


def on_cores(model: LanguageModel, cores: int, sparing: bool = False) -> LanguageModel:
    """Return a model as it is shared out: as many heads on each core, keys and values repeated where they are too few.

    Parameters
    ----------
    model
        As it was trained.
    cores
        That share each layer.
    sparing
        Whether heads of keys are repeated until each core has its own, where that is enough, not each head of queries.

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> llama = language_model("llama-3-8b")
    >>> [(each.heads, each.kv_heads) for cores in (8, 24, 32) for each in [on_cores(llama, cores)]]
    [(32, 8), (48, 48), (32, 32)]
    >>> large = language_model("llama-3-70b")
    >>> [on_cores(large, 32, sparing).kv_heads for sparing in (False, True)]
    [64, 32]
    """
    heads = cores * math.ceil(model.heads / cores)
    kv_heads = model.kv_heads if model.kv_heads % cores == 0 else heads
    if sparing and model.kv_heads < cores and cores % model.kv_heads == 0 and heads % model.kv_heads == 0:
        kv_heads = cores
    ffn = cores * math.ceil(model.ffn / cores)
    return replace(model, heads=heads, kv_heads=kv_heads, ffn=ffn, window=0)


def beside_products(
    model: LanguageModel, batch: int, queries: int, keys: int, cores: int, fmt: Format, one_kernel: bool = False
) -> Work:
    """Return the passes of engines over what lies between the products: over scores, and over the width of the model.

    Parameters
    ----------
    model
        As :func:`on_cores` returns it.
    batch, queries, keys
        Sequences, new tokens of each, and positions that these are held against.
    cores
        That share the heads, and each normalise and add the whole width of every token.
    fmt
        Number formats.
    one_kernel
        Whether prompts attend in one kernel, to half of the scores, none of which crosses the memory.
    """
    rows = batch * queries * model.heads / cores
    lanes = LANES * math.ceil(rows / LANES) / (2 if one_kernel else 1)
    size = 0.0 if one_kernel else cores * rows * keys * fmt.value
    values = cores * batch * queries * model.hidden
    scores = _passes(*OVER_SCORES, cores * lanes * keys, size, model.layers)
    return Work.of([scores, _passes(*OVER_WIDTH, values, values * fmt.value, 2 * model.layers)])


def _passes(passes: float, crossings: float, numbers: float, size: float, times: float) -> Kernel:
    """Return some passes of an engine, as a kernel for each time that what they pass over crosses the memory."""
    return Kernel(VECTOR, passes / crossings * numbers, size, count=crossings * times, ranks=STREAMED)


def widened_weights(work: Work, fmt: Format, vocabulary: int) -> Work:
    """Return the kernels with weights that an engine converts before the product which takes them.

    Parameters
    ----------
    work
        Kernels of a pass whose weights are all as narrow as ``fmt`` has them.
    fmt
        Number formats.
    vocabulary
        Columns of the classifier, whose weights stay as wide as values are.
    """
    if fmt.weight >= fmt.value:
        return work
    columns, row_of = work.columns.copy(), Work.FIELDS.index
    product = (work["kind"] == MATMUL) & (work["weights"] > 0)
    head = product & (work["n"] == vocabulary)
    more = np.where(head, work["weights"] * (fmt.value / fmt.weight - 1), 0.0)
    columns[row_of("moved")] += more
    columns[row_of("weights")] += more
    here = product & ~head
    columns[row_of("moved"), here] -= work["weights"][here]
    columns[row_of("weights"), here] = 0.0
    converting = [
        Kernel(VECTOR, narrow / fmt.weight, narrow, narrow, count=count, ranks=STREAMED)
        for narrow, count in zip(work["weights"][here].tolist(), work["count"][here].tolist(), strict=True)
    ]
    return concatenated(Work(columns), Work.of(converting))
