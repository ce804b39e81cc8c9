"""What it takes a host to call the operators of a language model one by one, while its GPU runs those before.

A token's operators are small: where Python calls each, the GPU mostly waits for the host, and a token takes as long
as its calls, however few its bytes. How many they are is what the programs' own code says.

- huggingface/transformers, models/llama/modeling_llama.py: a normalisation is eight operators (``LlamaRMSNorm``), the
  rotation of queries and keys ten (``apply_rotary_pos_emb``, ``rotate_half``), keys and values are each appended to the
  cache, gate and up are apart. Lightning-AI/litgpt, litgpt/model.py, and QwenLM's modeling_qwen.py do much the same.
- mit-han-lab/llm-awq, tinychat/models/llama.py, casper-hansen/AutoAWQ, awq/modules/fused, microsoft/DeepSpeed,
  csrc/transformer/inference, hpcaitech/ColossalAI, colossalai/legacy/inference, and vLLM under ``--enforce-eager``: a
  kernel of its own for each normalisation, and for attention with its rotation and cache.
  tinychat/benchmark.py runs that code in FP16, too (``--precision W16A16``): the README's FP16 is it.
- huggingface/accelerate, "Big Model Inference": ``device_map`` puts layers on several GPUs, of which one works at a
  time.
- microsoft/DeepSpeed, csrc/transformer/inference/csrc/pt_binding.cpp (``quantized_gemm``, ``launch_dequantize``), and
  bitsandbytes-foundation/bitsandbytes 0.41, autograd/_functions.py (``matmul_4bit``, of more than one row): a kernel
  before each product writes its weights as 16-bit numbers, which the product reads.
- bitsandbytes 0.41 again, ``MatMul8bitLt``: without outliers a product of 8 bits is eleven operators: a cast, five
  buffers that are cleared, the largest of each row, quantising, reordering, the product, and scaling its result.
"""

import numpy as np

from mlsys.models.estimate import COLLECTIVE, MATMUL, VECTOR, Kernel, Snapshot, Work
from mlsys.models.estimate.eager import GELU_KERNELS, SCORE_KERNELS
from mlsys.models.estimate.lowering import Format, concatenated
from mlsys.models.estimate.work import QUEUED
from mlsys.workloads.zoo.language import LanguageModel
from mlsys_evidence.typed_rows import TypedRow

# Llama 2 7B takes 13.2 s for 511 tokens of 1,425 operators each, in 16 bits on an A100 whose host is an EPYC 7742, and
# 13B, in 1,777 operators, 17.0 s (huggingface/optimum-benchmark, examples/running-llamas): 18.1 and 18.7 microseconds a
# call. Of hosts that are not named, gpt-fast's calls 1,610 operators at 25.5 tokens a second, 24.4 microseconds each
# (pytorch.org/blog/accelerating-generative-ai-2, "Starting Point").
A_CALL = 18.4e-6
# A desktop's core calls faster than a server's: 5.7 GHz (Ryzen 9 7950X) to 3.4 (EPYC 7742 of a DGX A100), and 1.19 and
# 1.13 times the instructions a cycle, as AMD states for the two generations between them.
DESKTOP = 5.7 / 3.4 * 1.19 * 1.13

# Operators of transformers' code: of a normalisation, of rotating queries and keys, of appending to the cache.
RMS_NORM, ROTATION, CACHE = 8, 10, 2
# Of any code: the products that make and leave attention and its kernel, and the two additions of a block; and outside
# the blocks: positions, look-up, last normalisation, logits, and the choice of the next token.
ATTENTION, ADDITIONS, OUTSIDE = 3, 2, 20
# Its experts (models/mixtral/modeling_mixtral.py): nine operators choose, the tokens of each expert are looked up, and
# those that have some take them out, weight what they make of them and add it.
ROUTING, OF_AN_EXPERT = 9, 4
# What a product takes beyond one operator by bitsandbytes: in 8 bits, and of weights of 4 bits, whose kernel a function
# in Python calls that casts the input and makes the output (``Linear4bit``, ``gemv_4bit``).
QUANTISING, OF_FOUR_BITS = 10, 3
# Operations on each number that kernels spend though they only move it: bitsandbytes finds a 4-bit weight's value in a
# tree of fifteen comparisons, all of which a warp takes (csrc/kernels.cu, ``dDequantizeNF4``), and copies of PyTorch
# turn each index into one of every dimension, with a division for each (``CatArrayBatchedCopy`` of ``torch.cat`` in
# aten/src/ATen/native/cuda/Shape.cu, ``OffsetCalculator`` of an expanded tensor's).
OF_A_TREE, OF_AN_INDEX = 30, 64
# Integers that a multiprocessor adds or multiplies each cycle, from Volta to Hopper, whatever it does in FP32 (NVIDIA,
# CUDA C++ programming guide, "Throughput of Native Arithmetic Instructions").
INTEGER_LANES = 64


def calls_of(row: TypedRow, model: LanguageModel, written_out: bool = False) -> float:
    """Return how many operators the program of a row calls for a pass over a model.

    Parameters
    ----------
    row, model
        Whose program it is, and what runs.
    written_out
        Whether the scores of attention are written to memory.
    """
    attention, products = float(ATTENTION), 2 + model.gated
    feed_forward = float(products + 1 + model.gated)
    if not row.has("fused modules"):
        attention += (RMS_NORM - 1) * model.norms if model.norm_size == 1 else 0
        attention += RMS_NORM * model.head_norms + CACHE + (1 + SCORE_KERNELS) * written_out
        attention += ROTATION if not model.positions else 0
        attention += 2 if model.gated else 0  # such code has queries, keys and values apart
        feed_forward += GELU_KERNELS - 1 if model.act == "gelu" else 0
        if model.experts:
            attention += ROUTING + model.experts
            feed_forward += OF_AN_EXPERT
    beside = _beside_a_product(row)
    attention, feed_forward = attention + 2 * beside, feed_forward + beside * products
    block = attention + ADDITIONS + model.norms + max(1, model.active_experts) * feed_forward
    return model.layers * block + OUTSIDE


def _beside_a_product(row: TypedRow) -> int:
    """Return the operators that a product of narrow weights takes beside the one that multiplies."""
    beside = {"bitsandbytes 8-bit": QUANTISING, "bitsandbytes 4-bit": OF_FOUR_BITS}
    return beside.get(row.quantizer, int(row.quantizer == "AutoAWQ GEMM"))  # whose partial sums are added up


def called(
    row: TypedRow, model: LanguageModel, work: Work, passes: float = 1.0, written_out: bool = False
) -> tuple[Work, float]:
    """Return passes over a model as a program runs them, and the seconds in which its host calls their operators.

    Parameters
    ----------
    row, model, written_out
        As of :func:`calls_of`.
    work
        Kernels of the passes: they wait in a queue before the machine, and operators beside them move next to nothing.
    passes
        How many.

    Returns
    -------
    tuple
        The same kernels and no time where nothing is called one by one.
    """
    if not row.has("operators called"):
        return work, 0.0
    calls = passes * calls_of(row, model, written_out)
    small = max(0.0, calls - float(work["count"][work["kind"] != COLLECTIVE].sum()))
    seconds = calls * A_CALL / (DESKTOP if row.row.device_class == "consumer GPU" else 1.0)
    return concatenated(queued_up(work), Work.of([Kernel(VECTOR, 0.0, 0.0, count=small, ranks=QUEUED)])), seconds


def queued_up(work: Work) -> Work:
    """Return kernels that wait before the machine for one another, not for the host, as in a CUDA graph."""
    columns = work.columns.copy()
    columns[Work.FIELDS.index("ranks")] = np.where(work["kind"] != COLLECTIVE, QUEUED, work["ranks"])
    return Work(columns)


def graph_captured(row: TypedRow, step: Work) -> Work:
    """Return the kernels of a token as a program runs them that hands the machine all of them at once.

    vLLM replays a graph that it captured (since 0.2.7, unless eager), as SGLang does; calm is one kernel, whose blocks
    wait for one another (zeux/calm, src/infer.cu, ``cudaLaunchCooperativeKernel``).
    """
    return queued_up(step) if row.launch_mode == "graph" else step


def copied_cache(row: TypedRow, model: LanguageModel, batch: int, context: int, fmt: Format, engine: Snapshot) -> Work:
    """Return the copies of keys and values that a token of transformers' code makes; none of other programs.

    A longer cache is a new one (``torch.cat`` in ``DynamicCache.update``); heads that share keys and values read an
    expanded copy of them (``repeat_kv``), which is made, and read in the place of the cache.
    """
    if not row.has("Transformers") or not row.has("operators called") or model.latent or row.has("fused modules"):
        return Work(np.zeros((len(Work.FIELDS), 0)))
    shared = model.heads // model.kv_heads
    written = 1 + (shared if shared > 1 else 0)
    layer = batch * context * model.kv_heads * model.head_dim
    moved = 2 * written * layer * fmt.value
    fewer = max(1.0, engine.vector / (2 * INTEGER_LANES * engine.units * engine.clock))
    return Work.of([Kernel(VECTOR, fewer * OF_AN_INDEX * written * layer, moved, count=2.0 * model.layers)])


def small_steps(row: TypedRow, model: LanguageModel, rows: int, fmt: Format) -> Work:
    """Return what operators of a prompt move where code has many that another program has one kernel for.

    A normalisation converts to FP32, squares, takes the mean, multiplies, converts back and multiplies with its
    parameters; a rotation turns half of each head round, joins the halves, multiplies twice and adds; a gate is no
    part of its activation. What one kernel for each would move is counted with the network.

    Parameters
    ----------
    row, model
        Whose program it is, and what runs.
    rows
        Tokens.
    fmt
        Number formats.
    """
    if not row.has("operators called") or row.has("fused modules") or model.norm_size != 1 or not model.gated:
        return Work(np.zeros((len(Work.FIELDS), 0)))
    value, layers = fmt.value, float(model.layers)
    turned = 0 if model.positions else (model.heads + model.kv_heads) * model.head_dim
    steps = (
        ((2 * value + 28) * model.hidden, RMS_NORM - 1, layers * model.norms + 1),
        (10 * value * turned, ROTATION, layers),
        (2 * value * model.ffn * max(1, model.active_experts), 1, layers),
    )
    return Work.of(Kernel(VECTOR, 0.0, rows * moved / times, count=times * count) for moved, times, count in steps)


def dequantises(row: TypedRow, fmt: Format, rows: int) -> bool:
    """Return whether a program writes narrow weights as wide ones before each product of so many rows."""
    by_four = row.has("bitsandbytes") and fmt.weight < 1 and rows > 1
    many = row.has("ExLlama") and rows > (32 if row.has("ExLlamaV2") else 8)
    return fmt.weight < fmt.value and (row.has("DeepSpeed") or by_four or many)


def dequantised(row: TypedRow, work: Work, fmt: Format) -> Work:
    """Return products that read weights of 16 bits, which a kernel before each has made of narrower ones."""
    columns, row_of = work.columns.copy(), Work.FIELDS.index
    here = (work["kind"] == MATMUL) & (work["weights"] > 0)
    wide = np.where(here, work["weights"] * fmt.value / fmt.weight, work["weights"])
    columns[row_of("moved")] += wide - work["weights"]
    columns[row_of("weights")] = wide
    making = np.zeros((len(Work.FIELDS), int(here.sum())))
    for name in ("m", "n", "k", "batch", "ranks"):
        making[row_of(name)] = 1.0
    making[row_of("kind")] = VECTOR
    making[row_of("moved")] = (work["weights"] + wide)[here]
    by_tree = row.has("bitsandbytes")
    making[row_of("flops")] = OF_A_TREE * by_tree * (wide / fmt.value)[here]
    making[row_of("count")] = work["count"][here]
    return concatenated(Work(columns), Work(making))
