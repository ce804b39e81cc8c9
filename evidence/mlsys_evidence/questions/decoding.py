"""Programs that decode tokens one by one: their kernels, links and hosts.

- mit-han-lab/llm-awq, tinychat/README.md, "Prefilling Speed": flash attention, and sums in FP16 in its products
  (awq/kernels/csrc/quantization_new/gemm/gemm_cuda.cu: mma m16n8k16 f16.f16.f16.f16), at which tensor cores of
  GeForce cards run twice as fast as with sums in FP32, those of other cards no faster (NVIDIA, Ada GPU
  architecture, appendix A).
- casper-hansen/AutoAWQ, README: version 0.1.6; awq_cuda/quantization/gemm_cuda_gen.cu and awq/modules/linear.py of
  that version: each product is written as eight partial sums in FP16, which another kernel adds;
  awq/modules/fused/attn.py: a prompt's scores are written out.
- turboderp/exllama, exllama_ext/cuda_func/q4_matmul.cu, and exllamav2, exllamav2_ext/cuda/q_gemm.cu: products of more
  than 8 rows, or of more than 32, write each matrix out in FP16 and call cublasHgemm, which sums in FP16.
"""

import numpy as np

from mlsys.calibration.engines import summing_in_half
from mlsys.hardware import Device, view
from mlsys.models.estimate import ALL_GATHER, ALL_REDUCE, COLLECTIVE, MATMUL, VECTOR, Kernel, Snapshot, Work
from mlsys.models.estimate.lowering import Format
from mlsys_evidence.questions.stacks import as_ampere
from mlsys_evidence.typed_rows import TypedRow

# One lane of PCIe 3.0, byte/s in one direction, and bytes of a logit.
LANE, LOGIT = 0.985e9, 4.0
# Bytes of a partial sum.
HALF = 2.0
# Operations that a multiprocessor's units do each cycle, as if in 16 bits, where plain loops feed them: vector units
# in FP32 do 256 to 560, matrix units of GeForce cards 512, those of servers 1,024 and more.
EASILY_FED = 700.0


# llama.cpp's own kernels of integers do about as much in a cycle of a multiprocessor on an H100 as on an RTX 4090 and a
# 5090, 450 to 600 operations, however many more its matrix units could (ggml-org/llama.cpp, discussion 15013): they are
# taken as a GeForce card's in FP16, which the fit has a part of. What holds them back is not known.
INTEGERS_EACH_CYCLE = 1024.0
SINCE_MMQ = "2024-06"


def multiplies_integers(row: TypedRow, fmt: Format) -> bool:
    """Return whether llama.cpp multiplies narrow weights as integers, as it does since June 2024 ("MMQ", pull 8075)."""
    return fmt.weight < HALF and not "" < row.dated < SINCE_MMQ


def prompt_program(row: TypedRow, engine: Snapshot, fmt: Format) -> str:
    """Return the kind of program that a prompt went through.

    A library that is called product by product attains more of the peak of small units than of large ones.
    """
    name = row.software
    if name == "llama.cpp" and engine.name.startswith("NVIDIA") and multiplies_integers(row, fmt):
        return "llama.cpp integers"
    return "eager small units" if name == "eager" and engine.each_cycle < EASILY_FED else name


def token_program(row: TypedRow, engine: Snapshot) -> str:
    """Return the kind of program that made tokens: what PyTorch and compilers make of it for ROCm is not CUDA's."""
    name = row.software
    return f"{name} ROCm" if name in ("eager", "compiled") and engine.name.startswith("AMD Instinct") else name


# Bytes that a multiprocessor reads a cycle under llama.cpp's kernel of a vector by a matrix of FP16 until 2025, which
# has one warp for a row, whose lanes take two values at a time (``dequantize_mul_mat_vec``): 54.6 tokens/s of 16.1 GB
# on an A100 (XiongjieDai/GPU-Benchmarks-on-LLM-Inference), over the part of a rate that decoding attains anywhere.
# Cards with GDDR have fewer to read.
ROWS_OF_HALVES = 54.56 * 16.06e9 / (108 * 1.41e9) / 0.91


def read_by_warps(row: TypedRow, twin: Device, fmt: Format, engine: Snapshot) -> Snapshot:
    """Return the engine with the bandwidth that a kernel of few loads in flight draws from it; others as they are."""
    few = row.has("llama.cpp") and fmt.weight == HALF and row.dated < "2025"
    if not few or twin.vendor != "NVIDIA" or twin.kind != "GPU":
        return engine
    return engine.changed(
        bandwidth=lambda: min(engine.bandwidth * engine.reading, ROWS_OF_HALVES * engine.units * engine.clock),
        reading=1.0,
    )


def linked(row: TypedRow, twin: Device, engine: Snapshot) -> Snapshot:
    """Return the engine with the link that the row's machine has to its peers, or to its host."""
    if row.has("linked by PCIe"):
        return engine.changed(link=lambda: _bus(twin), link_of_many=lambda: _bus(twin))
    return engine.changed(link=LANE, link_of_many=LANE) if row.has("one lane of PCIe") else engine


def _bus(twin: Device) -> float:
    """Return the rate of a card's PCIe in one direction."""
    return next(link.require("bandwidth") for link in view(twin).links if "PCIe" in link.name)


def multiplying(row: TypedRow, twin: Device, fmt: Format, engine: Snapshot) -> Snapshot:
    """Return the engine with the rate of its tensor cores as a program's instructions have it.

    Twice as fast where they sum in FP16 on a card that does so at twice the rate, as cuBLAS does for llama.cpp, whose
    own kernels of integers are the same on all cards; after Ampere slower where TensorRT-LLM multiplies weights of
    4 bits, by kernels of Ampere's (see ``stacks.as_ampere``).
    """
    of_a_prompt = row.has("llama.cpp") and row.operation == "prefill"
    if of_a_prompt and twin.vendor == "NVIDIA" and multiplies_integers(row, fmt):
        return engine.changed(matmul=lambda: min(engine.matmul, INTEGERS_EACH_CYCLE * engine.units * engine.clock))
    if of_a_prompt or row.has("TinyChat") or row.has("ExLlama"):
        return summing_in_half(engine, twin)
    return as_ampere(engine) if row.has("TensorRT-LLM") and fmt.weight < 1 else engine


SPLIT = 8


def partial_sums(row: TypedRow, work: Work) -> Work:
    """Return the products' partial sums, and the kernels that add them, where a program writes them to memory.

    AutoAWQ's other kernel, for one row (awq_cuda/quantization/gemv_cuda.cu), sums by itself.
    """
    products = (work["kind"] == MATMUL) & (work["weights"] > 0)
    alone = row.quantizer == "AutoAWQ GEMV" and not (work["m"][products] > 1).any()
    if not row.has("AutoAWQ") or alone or not products.any():
        return Work(np.zeros((len(Work.FIELDS), 0)))
    columns = np.zeros((len(Work.FIELDS), int(products.sum())))
    row_of = Work.FIELDS.index
    columns[row_of("kind")] = VECTOR
    for name in ("m", "n", "k", "batch", "ranks"):
        columns[row_of(name)] = 1.0
    results = (work["m"] * work["n"] * work["batch"])[products]
    columns[row_of("moved")] = 2 * SPLIT * HALF * results
    columns[row_of("count")] = work["count"][products]
    return Work(columns)


def host_and_copies(row: TypedRow, products: float, hidden: float, vocabulary: float, value: float) -> list[Work]:
    """Return what goes to the host, or to the other machines, beside a step's kernels.

    Split by rows, every product takes a call for each other machine, one after the other, and waits for one way
    there and back; copies to different machines overlap.

    Parameters
    ----------
    row, products
        The measurement, and how many matrices a token is multiplied by.
    hidden, vocabulary
        Values of an activation, and logits, of all sequences.
    value
        Bytes of a value.
    """
    works = []
    if row.has("split by rows"):
        there_and_back = Kernel(COLLECTIVE, 0.0, hidden * value, k=ALL_REDUCE, ranks=2, count=products)
        works.append(Work.of([there_and_back, Kernel(VECTOR, 0.0, 0.0, count=products * (row.row.n_devices - 2))]))
    if row.has("one lane of PCIe"):
        # Of an exchange between two, each sends half.
        works.append(Work.of([Kernel(COLLECTIVE, 0.0, 2 * LOGIT * vocabulary, k=ALL_GATHER, ranks=2)]))
    return works


# Seconds in which the host lists a layer's operators, while the machine waits: 0.90 and 1.06 ms for a layer of the two
# models that were measured so.
LISTED = 0.97e-3


def cut_graphs(row: TypedRow, layers: float) -> float:
    """Return the seconds of a step in which the host lists the operators of layers that are no one graph."""
    return LISTED * layers if row.has("graph for each layer") else 0.0


# Seconds between two steps in which the machine waits for vLLM's host, which reads the last tokens, turns them into
# text, schedules the next step and prepares it: "about 4ms of GPU bubble" (vllm-project/vllm, issue 6854, of July
# 2024). Version 0.4.2 on an A100 makes 270, 176 and 80 tokens a second of 0.5, 1.5 and 7 billion parameters, and 0.6.3
# no more than a sixth more (QwenLM, docs/source/benchmark/speed_benchmark.rst@5c4e69c): 2.8 to 3.6 ms beyond their
# bytes. The engine of 0.8 and after plans a step while another runs.
BUBBLE = 3.3e-3
# Part of the bandwidth at which a step reads its bytes: the middle of what decoding attains on GPUs.
READ_BY_A_STEP = 0.91


def in_steps_of_a_server(row: TypedRow, step: Work, engine: Snapshot, steps: float = 1) -> float:
    """Return the seconds that so many steps take at least in a server that plans each one while the machine waits.

    Parameters
    ----------
    row
        Whose program it is; one without a version is taken for an early one.
    step
        Kernels of one step.
    engine
        All machines that run it.
    steps
        How many.
    """
    if not row.has("steps planned in turn"):
        return 0.0
    bytes_read = float((step["moved"] * step["count"])[step["kind"] != COLLECTIVE].sum())
    return steps * (BUBBLE + bytes_read / (READ_BY_A_STEP * engine.reading * engine.bandwidth))
