"""Rows of language models: prompts, tokens one by one, whole generations, full servers.

What the sources say of their programs, links and hosts:

- mlc-ai/llm-perf-bench, README: several cards talk over PCIe, not NVLink; its commit of llama.cpp, of October 2023,
  splits each matrix by rows among the cards (layers became the default with ggml-org/llama.cpp pull request 4766).
- geerlingguy/ai-benchmarks, issues 40, 43 and 46 and the README's first footnote: on two computers its cards ran
  llama-bench over Vulkan, 128 tokens, whichever program the column of its table names; one of them has a single
  lane of PCIe, over which the logits of every token go to the CPU.
- huggingface/optimum-habana, models/mixtral/modeling_mixtral.py (sparse_moe_forward, under QUANT_CONFIG) and
  models/gpt_oss/modeling_gpt_oss.py (hidden states repeated for all experts): each token visits every expert.
- The same, models/qwen3_moe and models/deepseek_v2: a step is cut (``htcore.mark_step()``) behind the experts of every
  layer, so that Python lists each layer's operators anew; models/qwen2_moe and models/mixtral use one graph.
- mit-han-lab/llm-awq, tinychat/benchmark.py, runs its fused modules in FP16, too (``--precision W16A16``).
"""

import re

from mlsys.calibration.rows import Row
from mlsys_evidence.ingest.draft import Draft
from mlsys_evidence.ingest.reading import whole_number
from mlsys_evidence.ingest.threads import threads
from mlsys_evidence.questions.shapes import usual_name

_PROGRAMS = (
    ("Transformers NeuronX", "NeuronX"),
    ("llama.cpp.*2023", "early llama.cpp"), (r"llama\.cpp|ggml", "llama.cpp"), ("Megatron-LM", "Megatron"),
    (r"torch\.compile(?!.*Hugging Face)", "compiled"), ("Genie|RKLLM", "npu runtime"), ("habana", "HPU graphs"),
    ("PyTorch.*ROCm", "eager ROCm"), ("MLC", "MLC"), ("Oct 2023", "early"),
    (r"PyTorch.*(eager|TorchScript|Hugging Face)|(?<!for )Transformers", "eager"),
    ("LitGPT|AutoAWQ|Colossal|vLLM.*eager", "eager"),
)  # fmt: skip
# Programs whose prompts run through other kernels than their tokens: RKLLM's through Rockchip's runtime of networks;
# the first token of TensorRT-LLM waits for its session, which starts every kernel of a prompt from the host.
_PROMPTS = (("RKLLM", "RKNN"), ("TensorRT-LLM", "TensorRT-LLM"))
LLAMA_BENCH_TOKENS = 128
# Rows of 2,880 weights do not fill Q4_K's blocks of 256: beside its MXFP4 experts (4.25 bits) gpt-oss-20b's file, of
# 11.6 GB (group_data/all.py of ai-benchmarks), is Q5_0 and Q8_0; what a token reads has this many bits a weight.
MIXED_BITS = 5.1
_FUSED = r"TinyChat|AutoAWQ|DeepSpeed|Colossal-Inference|vLLM.*eager"
# The cache of transformers' code grows with every token, so that nothing compiled for one shape fits the next
# (huggingface/transformers, docs/source/en/kv_cache.md, "Static Cache").
_PLAIN = r"PyTorch.*(eager|TorchScript)|torch\.compile.*Hugging Face|(?<!for )Transformers\b|LitGPT"
_COMPILED = r"NeuronX|habana|torch\.compile(?!.*Hugging Face)"


def _on_vulkan(row: Row) -> bool:
    return "llama.cpp" in row.software and re.search(r"265K Custom PC|Pi CM5", row.note) is not None


def program_of(row: Row) -> str:
    """Return the kind of program that ran a language model."""
    if _on_vulkan(row):
        return "llama.cpp Vulkan"
    return next((name for word, name in _PROGRAMS if re.search(word, row.software)), "compiled")


def calls_operators(row: Row) -> bool:
    """Return whether a program that Python drives calls a GPU's operators one after the other."""
    driven = re.search(f"{_FUSED}|{_PLAIN}", row.software) and not re.search(f"{_COMPILED}|CPU", row.software)
    return bool(driven) and row.device_class.endswith(("GPU", "SoC"))


def network(draft: Draft) -> None:
    """Fill in the language model, and what changes it."""
    from mlsys.workloads import zoo

    row = draft.row
    draft.set(network=usual_name(row.model))
    entry = zoo.resolve(draft.columns["network"])
    if entry is not None and entry.name == "gpt3-1.3b" and row.source == "sitar-lab/NeuSight":
        # Its gpt3_xl.json has 24 heads of 128 and therefore a width of 3,072, not the 2,048 that GPT-3's table states.
        draft.numbers |= {"hidden": 3072, "heads": 24, "ffn": 4 * 3072}
    if "habana" in row.software and ("fp8" in row.precision or "gpt-oss" in row.model):
        draft.features.add("every expert")


def _model(draft: Draft) -> None:
    """Fill in what all rows of language models have."""
    row = draft.row
    if "Pulsar2" in row.software:
        # It keeps weights of a language model in 8 bits and what passes between its layers in 16 ("w8a16 by default":
        # AXERA-TECH/ax-llm, README.md).
        draft.in_format()
        draft.set(computes="int16", value_bytes=2)
    else:
        draft.in_format()
    if _on_vulkan(row) and "gpt-oss" in row.model:
        draft.set(weight_bytes=MIXED_BITS / 8)
    draft.set(software=program_of(row))
    network(draft)
    draft.on(cpu="CPU" in row.software)
    if row.software.endswith("CPU"):
        draft.set(processor="cpu")
    if "Oct 2023" in row.software:
        draft.features.add("linked by PCIe")
        if draft.columns["device"] == "A100_80GB":
            draft.set(device="A100_80GB_PCIe")
    threads(draft)
    _calls(draft)
    _parallelism(draft)
    draft.mark("one lane of PCIe", "one PCIe 2/3 lane", row.note)
    draft.mark("attention kernel flash", r"flash|\bFA\b", row.software)
    draft.mark("attention fused", "PyTorch 2", row.software)
    if draft.mark("attention written out", "HF eager attention", row.note):
        draft.features.discard("attention fused")
    # vLLM replays a graph that it captured (since 0.2.7, unless eager), as SGLang does; calm is one kernel, whose
    # blocks wait for one another (zeux/calm, src/infer.cu, ``cudaLaunchCooperativeKernel``).
    if re.search(r"^(?!.*(Oct 2023|eager))(vLLM|SGLang)|one kernel a token", row.software):
        draft.set(launch_mode="graph")
    # A version without a number is taken for an early one.
    draft.mark("steps planned in turn", r"^vLLM(?! (0\.([89]|\d\d)|[1-9]))(?!.*(eager|ROCm))", row.software)
    if "habana" in row.software:
        draft.mark("graph for each layer", r"Qwen3-\d+B-A|DeepSeek-V[23]", row.model)


def _calls(draft: Draft) -> None:
    row = draft.row
    if calls_operators(row):
        draft.features.add("operators called")
    if re.search(_FUSED, row.software) or "llm-awq" in row.source:
        draft.features.add("fused modules")
    words = f"{row.software} {row.precision}"
    if re.search(r"^(?=.*bitsandbytes).*(int8|8-bit)|LLM\.int8", words):
        draft.set(quantizer="bitsandbytes 8-bit")
    elif "bitsandbytes" in words and re.search("4-bit|nf4|fp4", row.precision):
        draft.set(quantizer="bitsandbytes 4-bit")
    elif re.search("AutoAWQ.*GEMM", row.software):
        draft.set(quantizer="AutoAWQ GEMM")
    elif "AutoAWQ" in row.software and "GEMV" in row.software:
        draft.set(quantizer="AutoAWQ GEMV")


def _parallelism(draft: Draft) -> None:
    """Fill in over how many devices each layer is split, and into how many stages the layers are."""
    row = draft.row
    by_rows = row.n_devices > 1 and re.search(r"llama\.cpp.*2023", row.software) is not None
    if by_rows:
        draft.features.add("split by rows")
    split = re.search(r"DeepSpeed|TP\b|tensor parallel", f"{row.software} {row.note}")
    if row.n_devices > 1 and "Transformers" in row.software and calls_operators(row) and not split:
        draft.features.add("layer by layer")
    tensor, stages = max(1, row.n_devices), 1
    stated = re.search(r"TP=?(\d+)(?:, PP=(\d+))?", row.note)
    if "layer by layer" in draft.features or ("llama.cpp" in row.software and row.n_devices > 1 and not by_rows):
        tensor, stages = 1, row.n_devices
    elif stated:
        tensor, stages = int(stated[1]), int(stated[2] or 1)
    draft.numbers |= {"tensor_parallel": tensor, "pipeline_parallel": stages}


def _positions(draft: Draft) -> None:
    if "Transformers NeuronX" in draft.row.software:
        draft.take("most_positions", r"seq (\d+)", draft.row.seq_or_shape)


def prefill(draft: Draft) -> None:
    """Fill in one pass over a prompt."""
    row = draft.row
    draft.numbers["tokens"] = whole_number(
        r"(?:pp|input )?(\d+)(?: tokens prompt| prompt tokens|,|$)", row.seq_or_shape, "length of the prompt"
    )
    _model(draft)
    _positions(draft)
    draft.set(operation="prefill", software=next((n for word, n in _PROMPTS if word in row.software), program_of(row)))
    if "prompt" in row.batch:
        draft.set(batch=1)
    draft.mark("encoder and decoder", "^Switch", row.model)
    draft.mark("logits of all positions", "logits of every position", row.note)


def decode(draft: Draft) -> None:
    """Fill in one step, at the middle of the stretch of tokens that was timed."""
    row, text = draft.row, draft.row.seq_or_shape
    _model(draft)
    if re.search(r"input (\d+), output (\d+)", text):
        context = whole_number(r"input (\d+)", text, "prompt") + whole_number(r"output (\d+)", text, "output") // 2
    elif _on_vulkan(row):
        context = LLAMA_BENCH_TOKENS // 2
    elif "-token prompt" in text:
        context = 5 + whole_number(r"(\d+) generated", text, "tokens generated") // 2
    elif "context" in text:
        context = whole_number(r"context (\d+)", text, "context")
    elif (draft.columns["batch"] or 1) == 1 and not re.search(r"\d", text):
        context = LLAMA_BENCH_TOKENS // 2  # one sequence reads its weights, and a few percent of them of its cache
    else:
        context = max(1, whole_number(r"(?:tg)?(\d+)", text, "tokens generated") // 2)
    draft.numbers["context"] = context
    _positions(draft)
    draft.take("reported_bandwidth", r"reported per-GPU memory bandwidth ([\d.]+) GB/s", row.note)
    draft.set(operation="decode")


def generation(draft: Draft) -> None:
    """Fill in a prompt and all tokens after it."""
    row = draft.row
    _model(draft)
    draft.numbers["tokens"] = whole_number(r"input (\d+)", row.seq_or_shape, "prompt")
    draft.numbers["output"] = whole_number(r"output (\d+)", row.seq_or_shape, "output")
    draft.set(operation="generation")


def serving(draft: Draft) -> None:
    """Fill in a server whose queue never empties."""
    generation(draft)
    draft.set(operation="serving")
