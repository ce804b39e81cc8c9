"""What the sources of tokens decoded one by one say of their programs, links and hosts.

- mlc-ai/llm-perf-bench, README: several cards talk over PCIe, not NVLink; its commit of llama.cpp, of October 2023,
  splits each matrix by rows among the cards (layers became the default with ggml-org/llama.cpp pull request 4766).
- geerlingguy/ai-benchmarks, issues 40, 43 and 46 and the README's first footnote: on two computers its cards ran
  llama-bench over Vulkan, 128 tokens, whichever program the column of its table names; one of them has a single
  lane of PCIe, over which the logits of every token go to the processor.
- mit-han-lab/llm-awq, tinychat/README.md, "Prefilling Speed": flash attention, and sums in FP16 in its products
  (awq/kernels/csrc/quantization_new/gemm/gemm_cuda.cu: mma m16n8k16 f16.f16.f16.f16), at which tensor cores of
  GeForce cards run twice as fast as with sums in FP32, those of other cards no faster (NVIDIA, Ada GPU
  architecture, appendix A).
- casper-hansen/AutoAWQ, README: version 0.1.6; awq_cuda/quantization/gemm_cuda_gen.cu and awq/modules/linear.py of
  then: each product is written as eight partial sums in FP16, which another kernel adds; awq/modules/fused/attn.py:
  a prompt's scores are written out.
- turboderp/exllama, exllama_ext/cuda_func/q4_matmul.cu, and exllamav2, exllamav2_ext/cuda/q_gemm.cu: products of more
  than 8 rows, or of more than 32, write each matrix out in FP16 and call cublasHgemm, which sums in FP16.
- huggingface/optimum-habana, models/mixtral/modeling_mixtral.py (sparse_moe_forward, under QUANT_CONFIG) and
  models/gpt_oss/modeling_gpt_oss.py (hidden states repeated for all experts): each token visits every expert.
- The same, models/qwen3_moe and models/deepseek_v2: a step is cut (``htcore.mark_step()``) behind the experts of every
  layer, so that Python lists each layer's operators anew; models/qwen2_moe and models/mixtral hand over one graph.
"""

import re
from dataclasses import replace

import numpy as np

from mlsys.calibration.engines import summing_in_half
from mlsys.calibration.rows import Row
from mlsys.hardware import Device, Hardware, view
from mlsys.models.estimate import ALL_GATHER, ALL_REDUCE, COLLECTIVE, MATMUL, VECTOR, Kernel, Snapshot, Work
from mlsys.models.estimate.lowering import Format
from mlsys_evidence.ingest.stacks import as_ampere

_PROGRAMS = (
    ("Transformers NeuronX", "NeuronX"),
    ("llama.cpp.*2023", "early llama.cpp"), (r"llama\.cpp|ggml", "llama.cpp"), ("Megatron-LM", "Megatron"),
    (r"torch\.compile(?!.*Hugging Face)", "compiled"), ("Genie|RKLLM", "npu runtime"), ("habana", "HPU graphs"),
    ("PyTorch.*ROCm", "eager ROCm"), ("MLC", "MLC"), ("Oct 2023", "early"),
    (r"PyTorch.*(eager|TorchScript|Hugging Face)|(?<!for )Transformers", "eager"),
    ("LitGPT|AutoAWQ|Colossal|vLLM.*eager", "eager"),
)  # fmt: skip
LLAMA_BENCH_TOKENS = 128
# One lane of PCIe 3.0, byte/s in one direction, and bytes of a logit.
LANE, LOGIT = 0.985e9, 4.0
# Bytes of a partial sum.
HALF = 2.0
# Rows of 2,880 weights do not fill Q4_K's blocks of 256: beside its MXFP4 experts (4.25 bits) gpt-oss-20b's file, of
# 11.6 GB (group_data/all.py of ai-benchmarks), is Q5_0 and Q8_0; what a token reads has this many bits a weight.
MIXED_BITS = 5.1


def program(row: Row) -> str:
    """Return the kind of program that ran a language model."""
    if on_vulkan(row):
        return "llama.cpp Vulkan"
    return next((name for word, name in _PROGRAMS if re.search(word, row.software)), "compiled")


# Operations that a multiprocessor's units do each cycle, as if in 16 bits, where plain loops feed them: vector units
# in FP32 do 256 to 560, matrix units of GeForce cards 512, those of servers 1,024 and more.
EASILY_FED = 700.0


# llama.cpp's own kernels of integers do about as much in a cycle of a multiprocessor on an H100 as on an RTX 4090 and a
# 5090, 450 to 600 operations, however many more its matrix units could (ggml-org/llama.cpp, discussion 15013): they are
# taken as a GeForce card's in FP16, which the fit has a part of. What holds them back is not known.
INTEGERS_EACH_CYCLE = 1024.0
_BEFORE_MMQ = r"2023|(Jan|Feb|Mar|Apr|May) 2024"


def multiplies_integers(row: Row, fmt: Format) -> bool:
    """Return whether llama.cpp multiplies narrow weights as integers, as it does since June 2024 ("MMQ", pull 8075)."""
    return fmt.weight < HALF and re.search(_BEFORE_MMQ, row.software) is None


def prompt_program(row: Row, engine: Snapshot, fmt: Format) -> str:
    """Return the kind of program that a prompt went through.

    RKLLM's prompts go through the kernels of Rockchip's runtime of networks; its tokens are read from the memory. The
    first token of TensorRT-LLM waits for its session, which starts every kernel of a prompt from the host. A library
    that is called product by product attains more of the peak of small units than of large ones.
    """
    special = {"RKLLM": "RKNN", "TensorRT-LLM": "TensorRT-LLM"}
    name = next((name for word, name in special.items() if word in row.software), program(row))
    if name == "llama.cpp" and engine.name.startswith("NVIDIA") and multiplies_integers(row, fmt):
        return "llama.cpp integers"
    return "eager small units" if name == "eager" and engine.each_cycle < EASILY_FED else name


def token_program(row: Row, engine: Snapshot) -> str:
    """Return the kind of program that made tokens: what PyTorch and compilers make of it for ROCm is not CUDA's."""
    name = program(row)
    return f"{name} ROCm" if name in ("eager", "compiled") and engine.name.startswith("AMD Instinct") else name


def on_vulkan(row: Row) -> bool:
    """Whether llama-bench ran over Vulkan."""
    return "llama.cpp" in row.software and re.search(r"265K Custom PC|Pi CM5", row.note) is not None


def stored_format(row: Row, fmt: Format) -> Format:
    """Return the format with the bits that the row's file holds, where its name does not say them.

    Pulsar2 keeps weights of a language model in 8 bits and what passes between its layers in 16 ("w8a16 by default":
    AXERA-TECH/ax-llm, README.md).
    """
    if "Pulsar2" in row.software:
        return replace(fmt, computes="int16", value=2)
    return replace(fmt, weight=MIXED_BITS / 8) if on_vulkan(row) and "gpt-oss" in row.model else fmt


def _on_bus(row: Row) -> bool:
    """Whether several cards talk over PCIe, though they might have NVLink."""
    return "Oct 2023" in row.software


# Bytes that a multiprocessor reads a cycle under llama.cpp's kernel of a vector by a matrix of FP16 until 2025, which
# has one warp for a row, whose lanes take two values at a time (``dequantize_mul_mat_vec``): 54.6 tokens/s of 16.1 GB
# on an A100 (XiongjieDai/GPU-Benchmarks-on-LLM-Inference), over the part of a rate that decoding attains anywhere.
# Cards with GDDR have fewer to read.
ROWS_OF_HALVES = 54.56 * 16.06e9 / (108 * 1.41e9) / 0.91


def read_by_warps(row: Row, twin: Device, fmt: Format, engine: Snapshot) -> Snapshot:
    """Return the engine with the bandwidth that a kernel of few loads in flight draws from it; others as they are."""
    few = "llama.cpp" in row.software and fmt.weight == HALF and not re.search("2025|2026", row.software)
    if not few or twin.vendor != "NVIDIA" or twin.kind != "GPU":
        return engine
    return engine.changed(
        bandwidth=lambda: min(engine.bandwidth * engine.reading, ROWS_OF_HALVES * engine.units * engine.clock),
        reading=1.0,
    )


def linked(row: Row, twin: Device, engine: Snapshot) -> Snapshot:
    """Return the engine with the link that the row's machine has to its peers, or to its host."""
    if _on_bus(row):
        return engine.changed(link=lambda: _bus(twin), link_of_many=lambda: _bus(twin))
    return engine.changed(link=LANE, link_of_many=LANE) if _on_one_lane(row) else engine


def _bus(twin: Device) -> float:
    """Return the rate of a card's PCIe in one direction."""
    return next(link.require("bandwidth") for link in view(twin).links if "PCIe" in link.name)


def _on_one_lane(row: Row) -> bool:
    return "one PCIe 2/3 lane" in row.note


def card_of(row: Row, twin: Device) -> Device:
    """Return the twin of the card that talks over PCIe, where the row names the kind with NVLink."""
    return Hardware.Cloud.A100_80GB_PCIe if _on_bus(row) and twin.id == "A100_80GB" else twin


def multiplying(row: Row, twin: Device, fmt: Format, engine: Snapshot) -> Snapshot:
    """Return the engine with the rate of its tensor cores as a program's instructions have it.

    Twice as fast where they sum in FP16 on a card that does so at twice the rate, as cuBLAS does for llama.cpp, whose
    own kernels of integers are the same on all cards; after Ampere slower where TensorRT-LLM multiplies weights of
    4 bits, by kernels of Ampere's (see ``stacks.as_ampere``).
    """
    of_a_prompt = "llama.cpp" in row.software and "prefill" in row.workload
    if of_a_prompt and twin.vendor == "NVIDIA" and multiplies_integers(row, fmt):
        return engine.changed(matmul=lambda: min(engine.matmul, INTEGERS_EACH_CYCLE * engine.units * engine.clock))
    if of_a_prompt or re.search("TinyChat|ExLlama", row.software):
        return summing_in_half(engine, twin)
    return as_ampere(engine) if "TensorRT-LLM" in row.software and fmt.weight < 1 else engine


SPLIT = 8


def partial_sums(row: Row, work: Work) -> Work:
    """Return the products' partial sums, and the kernels that add them, where a program writes them to memory.

    AutoAWQ's other kernel, for one row (awq_cuda/quantization/gemv_cuda.cu), sums by itself.
    """
    products = (work["kind"] == MATMUL) & (work["weights"] > 0)
    alone = "GEMV" in row.software and not (work["m"][products] > 1).any()
    if "AutoAWQ" not in row.software or alone or not products.any():
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


def by_rows(row: Row) -> bool:
    """Whether each matrix is split among the machines by rows, and everything else runs on the first."""
    return row.n_devices > 1 and re.search(r"llama\.cpp.*2023", row.software) is not None


def host_and_copies(row: Row, products: float, hidden: float, vocabulary: float, value: float) -> list[Work]:
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
    if by_rows(row):
        there_and_back = Kernel(COLLECTIVE, 0.0, hidden * value, k=ALL_REDUCE, ranks=2, count=products)
        works.append(Work.of([there_and_back, Kernel(VECTOR, 0.0, 0.0, count=products * (row.n_devices - 2))]))
    if _on_one_lane(row):
        # Of an exchange between two, each sends half.
        works.append(Work.of([Kernel(COLLECTIVE, 0.0, 2 * LOGIT * vocabulary, k=ALL_GATHER, ranks=2)]))
    return works


def visits_every_expert(row: Row) -> bool:
    """Whether shapes are kept fixed by sending each token through every expert."""
    return "habana" in row.software and ("fp8" in row.precision or "gpt-oss" in row.model)


# Seconds in which the host lists a layer's operators, while the machine waits: 0.90 and 1.06 ms for a layer of the two
# models that were measured so.
LISTED = 0.97e-3


def cut_graphs(row: Row, layers: float) -> float:
    """Return the seconds of a step in which the host lists the operators of layers that are no one graph."""
    cut = "habana" in row.software and re.search(r"Qwen3-\d+B-A|DeepSeek-V[23]", row.model)
    return LISTED * layers if cut else 0.0


# Seconds between two steps in which the machine waits for vLLM's host, which reads the last tokens, turns them into
# text, schedules the next step and prepares it: "about 4ms of GPU bubble" (vllm-project/vllm, issue 6854, of July
# 2024). Version 0.4.2 on an A100 makes 270, 176 and 80 tokens a second of 0.5, 1.5 and 7 billion parameters, and 0.6.3
# no more than a sixth more (QwenLM, docs/source/benchmark/speed_benchmark.rst@5c4e69c): 2.8 to 3.6 ms beyond their
# bytes. The engine of 0.8 and after plans a step while another runs.
BUBBLE = 3.3e-3
# Part of the bandwidth at which a step reads its bytes: the middle of what decoding attains on GPUs.
READ_BY_A_STEP = 0.91


def in_steps_of_a_server(row: Row, step: Work, engine: Snapshot, steps: float = 1) -> float:
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
    if not re.search(r"^vLLM(?! (0\.([89]|\d\d)|[1-9]))(?!.*(eager|ROCm))", row.software):
        return 0.0
    bytes_read = float((step["moved"] * step["count"])[step["kind"] != COLLECTIVE].sum())
    return steps * (BUBBLE + bytes_read / (READ_BY_A_STEP * engine.reading * engine.bandwidth))
