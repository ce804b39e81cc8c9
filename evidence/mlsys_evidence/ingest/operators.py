"""Rows of single operators: matrix products, convolutions, reductions, attention, experts, recurrent layers."""

import re

from mlsys.calibration.case import Inexpressible
from mlsys_evidence.ingest.draft import Draft
from mlsys_evidence.ingest.reading import numbers_in, whole_number
from mlsys_evidence.ingest.software import (
    attention_version,
    by_processor,
    cuda_of,
    cudnn_of,
    saves_multiplications,
    serving_stack,
    unrolls,
)
from mlsys_evidence.ingest.tf32 import multiplied_in

# Where each call from Python was timed alone: NeuSight and KernelBench record events about it, LLMCompass waits for
# the machine (`torch.cuda.synchronize` in software_model/layernorm.py) and reads the host's clock.
_ALONE = r"NeuSight|KernelBench|LLMCompass|\bwaited for|fastest of"
# Benchmarks that have a module about each function.
_MODULES = "KernelBench"
# Compiled by `torch.compile`, whose guards run before each call, save softmax: LLMCompass's normalization and GELU.
_TIMED_BY_HOST = "LLMCompass"


def _kind_of_software(software: str) -> str:
    """Return the kind of software: a maker's own library, AMD's apart, one for phones, PyTorch or its compiler."""
    if "PyTorch" in software:
        return "compiled" if "torch.compile" in software else "eager"
    if software.startswith("Triton"):
        return "Triton"
    if "rocBLAS" in software:
        return "ROCm library"
    return "gemmlowp" if "gemmlowp" in software else "library"


def operator(draft: Draft) -> None:
    """Fill in what rows of all operators have: device, formats, software, and how calls are timed."""
    row = draft.row
    draft.in_format()
    draft.on(cpu=by_processor(row.device, row.software))
    draft.set(software=_kind_of_software(row.software), launch_mode=_launch_mode(draft))
    draft.mark("FP16 sums", "FP16 all through", row.note)
    draft.mark("scales of blocks", "block", row.precision)
    draft.mark("FP16 stored", "pseudo", row.precision)
    cuda = cuda_of(row.software, draft.columns["device"])
    if cuda < float("inf"):
        draft.numbers["cuda"] = cuda


def _launch_mode(draft: Draft) -> str:
    row = draft.row
    if "do_bench" in row.note:
        return "cache cleared"
    if re.search(_TIMED_BY_HOST, row.source):
        return "timed by host"
    if "each waited for" in row.note:
        return "waited for"
    alone = re.search(_ALONE, f"{row.source} {row.note}")
    return "queued" if "GPU" in row.device_class and alone is None else "timed alone"


def product(draft: Draft) -> None:
    """Fill in a matrix product given by M, N and K."""
    row = draft.row
    _sizes(draft, {"M": "m", "N": "n", "K": "k"}, "shape of the product")
    operator(draft)
    stack = serving_stack(row.software) or ("SGLang" if "DeepGEMM" in draft.libraries else "")
    precision = row.precision.replace("weight-only", "weights").replace(" weights", "-weights")
    draft.set(operation="product", kernels=stack, scheme=re.sub(r"[ (].*", "", precision))
    draft.mark("batched", "batched", row.workload)
    draft.mark("layer", r"nn\.Linear", row.software)
    draft.mark("first operand transposed", "opA=T", row.seq_or_shape)
    if "0.14" in row.software and stack == "vLLM":
        draft.features.add("vLLM 0.14")
    if stack:
        _weight_copies(draft, stack)


def _weight_copies(draft: Draft, stack: str) -> None:
    """Fill in how many layers of one shape took turns, as aiconfigurator's collect_gemm.py has it for each stack.

    None where DeepGEMM's own benchmark clears the cache. TensorRT-LLM: as many as fill the cache, at most five; vLLM:
    one of blocks and of FP4, save FP8 of version 0.14; else six. Layers that are plugins of TensorRT-LLM, with narrow
    weights alone and SmoothQuant, are measured by TensorRT's profiler, as the last of four in an engine that runs once,
    whatever their rows say of a CUDA graph (collector/trtllm/collect_gemm_trt.py, efcae124c): what quantizes the
    activations is a layer of its own, outside the time, and three large layers before have filled the cache.
    """
    row, blocks = draft.row, "scales of blocks" in draft.features
    if stack == "TensorRT-LLM" and ("weight-only" in row.precision or row.precision.startswith("w8a8")):
        draft.features.add("timed in an engine")
    elif "DeepGEMM" in draft.libraries:
        draft.numbers["weight_copies"] = 0
    elif stack == "TensorRT-LLM":
        draft.features.add("copies fill the cache")
        draft.numbers["weight_copies"] = 5
    else:
        one = stack == "vLLM" and (blocks or "fp4" in row.precision)
        of_0_14 = "vLLM 0.14" in draft.features and draft.columns["computes"] == "fp8"
        draft.numbers["weight_copies"] = 1 if one and not of_0_14 else 6


def _sizes(draft: Draft, names: dict[str, str], what: str) -> None:
    found = numbers_in(draft.row.seq_or_shape)
    if not names.keys() <= found.keys():
        raise Inexpressible(f"{what} not stated")
    draft.numbers |= {name: found[word] for word, name in names.items()}


def convolution(draft: Draft) -> None:
    """Fill in a convolution given by DeepBench's letters."""
    row = draft.row
    draft.numbers |= sizes_of_convolution(row.seq_or_shape)
    operator(draft)
    draft.set(operation="convolution", tf32=multiplied_in(row), algorithm=_algorithm(row.software))
    cudnn = cudnn_of(row.software)
    if cudnn < float("inf"):
        draft.numbers["cudnn"] = cudnn
    draft.numbers["call_growth"] = _times_as_long(row.source_path)


def sizes_of_convolution(text: str) -> dict[str, float]:
    """Return the numbers of a convolution that DeepBench's letters describe.

    Examples
    --------
    >>> sizes_of_convolution("N=16,C=192,H=28,W=28,K=32,R=5,S=5,pad_h=2")["filters"]
    32
    """
    names = {"N": "images", "C": "channels", "H": "height", "W": "width", "K": "filters"}
    names |= {"R": "filter_height", "S": "filter_width"}
    found = numbers_in(text)
    if not names.keys() <= found.keys():
        raise Inexpressible("shape of the convolution not stated")
    names |= {name: name for name in ("pad_h", "pad_w", "stride_h", "stride_v") if name in found}
    return {name: found[word] for word, name in names.items()}


def _algorithm(software: str) -> str:
    if unrolls(software):
        return "unrolled"
    if not saves_multiplications(software):
        return "direct"
    if "WINOGRAD" in software.upper():
        return "Winograd, apart" if "WINOGRAD_NONFUSED" in software else "Winograd, fused"
    if "algo FFT" in software:
        return "FFT"
    return "implicit" if "LICIT_" in software else ""


# NeuSight's program tries cuDNN's algorithms for some 5,000 shapes in one process, and each call takes longer than the
# one before: by 0.05 to 0.15 µs, as the smallest convolutions of each file show, which take 60 to 110 µs at the head
# and 360 to 760 at the end. Like a drifting clock this is corrected before the data are used. Lines of the file after
# which a call costs twice what the first did, read from the smallest times of each file, not from our errors; of a
# device that is not listed, the median.
_TWICE_AFTER = {"A100": 860.0, "P100": 380.0, "T4": 1060.0}
_TWICE_AFTER_ELSEWHERE = 860.0


def _times_as_long(path: str) -> float:
    """Return how many times as long as the first call of its process a call takes."""
    listed = re.search(r"/collect/conv/.*/(.+)\.csv.* line (\d+)", path)
    if not listed:
        return 1.0
    words = re.split(r"[\s-]", listed[1])
    twice = next((_TWICE_AFTER[word] for word in words if word in _TWICE_AFTER), _TWICE_AFTER_ELSEWHERE)
    return 1 + float(listed[2]) / twice


def reduction(draft: Draft) -> None:
    """Fill in a softmax or a layer normalization over the rows of an M × N matrix."""
    _sizes(draft, {"M": "m", "N": "n"}, "shape of the matrix")
    operator(draft)
    _called(draft, "softmax" if "softmax" in draft.row.workload.lower() else "layer norm")


def element_wise(draft: Draft) -> None:
    """Fill in a GELU, a ReLU or a hyperbolic tangent of so many elements."""
    draft.numbers["elements"] = whole_number(r"(\d+) elements", draft.row.seq_or_shape, "number of elements")
    operator(draft)
    _called(draft, next(word.lower() for word in ("GELU", "ReLU", "tanh") if word in draft.row.workload))


def _called(draft: Draft, operation: str) -> None:
    """Fill in an operator that is a loop over memory, called from Python."""
    draft.set(operation=operation)
    if operation == "layer norm" or _MODULES in draft.row.source:
        draft.features.add("module")
    if draft.columns["launch_mode"] == "timed by host" and draft.columns["software"] in ("eager", "compiled"):
        draft.set(software="eager" if operation == "softmax" else "compiled")


def recurrence(draft: Draft) -> None:
    """Fill in a recurrent layer as DeepBench runs it."""
    names = {"hidden": "hidden", "batch": "images", "timesteps": "steps"}
    _sizes(draft, names, "shape of the recurrent layer")
    draft.numbers["gates"] = {"LSTM": 4, "GRU": 3}.get(draft.row.workload.split()[-1], 1)
    operator(draft)
    draft.set(operation="recurrent layer")


def recurrences(draft: Draft) -> None:
    """Fill in recurrent layers in a stack."""
    row = draft.row
    names = {"hidden": "hidden", "batch": "images", "timesteps": "steps", "input": "inputs"}
    _sizes(draft, names, "shape of the recurrent layers")
    draft.numbers["layers"] = numbers_in(row.seq_or_shape).get("layers", 1)
    draft.numbers["gates"] = {"LSTM": 4, "GRU": 3}[row.workload.split()[0]]
    draft.numbers["directions"] = 2 if "bidirectional" in row.workload else 1
    operator(draft)
    draft.set(operation="recurrent layers")


def _heads(draft: Draft) -> None:
    text = draft.row.seq_or_shape
    heads = whole_number(r"(?<!kv )heads (\d+)", text, "heads")
    draft.numbers |= {"heads": heads, "kv_heads": heads}
    draft.take("kv_heads", r"kv heads (\d+)", text)
    draft.numbers["head_dim"] = whole_number(r"head_dim (\d+)", text, "width of a head")


def library_of(model: str, software: str) -> str:
    """Return the library of attention kernels and its generation, where one is named; Triton's are its own.

    Examples
    --------
    >>> library_of("FlashAttention-2", "PyTorch 2.1"), library_of("Triton flash attention 2", "Triton")
    ('FlashAttention-2', '')
    """
    named = f"{model}; {software}"
    generation = re.search(r"\bflash[-_ ]?att(?:n|ention)[-_ ]?v?(?:ersion )?([1-4])", named, re.IGNORECASE)
    if generation is None or re.search(r"\btriton\b", named, re.IGNORECASE):
        return ""
    return f"FlashAttention-{generation.group(1)}"


def _attention_kernels(draft: Draft, prompt: bool) -> str:
    row = draft.row
    library, stack = library_of(row.model, row.software), serving_stack(row.software)
    if library == "FlashAttention-2":
        return library
    return f"{stack}{attention_version(row.software, prompt)}" if stack else library or row.model


def attention(draft: Draft) -> None:
    """Fill in one attention kernel over whole sequences."""
    row = draft.row
    draft.numbers["tokens"] = whole_number(r"seq (\d+)", row.seq_or_shape, "sequence")
    _heads(draft)
    if draft.columns["batch"] is None:
        raise Inexpressible("batch not stated")
    operator(draft)
    written = draft.mark("scores written out", "standard", row.model, re.IGNORECASE)
    draft.set(operation="attention", kernels="" if written else _attention_kernels(draft, True))
    draft.mark("causal", r"(?<!non-)causal", row.seq_or_shape)
    draft.mark("vision", "vision", row.workload)
    if draft.mark("backward", "backward", row.workload):
        draft.mark("forward", "forward", row.workload)


def decode_attention(draft: Draft) -> None:
    """Fill in one new token of each sequence against its cache of keys and values."""
    row = draft.row
    draft.numbers["context"] = whole_number(r"context (\d+)", row.seq_or_shape, "context")
    _heads(draft)
    if draft.columns["batch"] is None:
        raise Inexpressible("batch not stated")
    operator(draft)
    draft.numbers["cache_bytes"] = 1.0 if "cache fp8" in row.precision else draft.columns["value_bytes"]
    kernels = _attention_kernels(draft, False)
    if draft.numbers["cache_bytes"] < draft.columns["value_bytes"] and kernels != "FlashAttention-2":
        kernels = f"{serving_stack(row.software)} fp8"
    draft.set(operation="decode attention", kernels=kernels)


def experts(draft: Draft) -> None:
    """Fill in one machine's share of a layer of experts."""
    row, text = draft.row, draft.row.seq_or_shape
    sizes = {
        "tokens": (r"tokens (\d+)", "tokens"), "hidden": (r"hidden (\d+)", "hidden"),
        "ffn": (r"expert ffn (\d+)", "width"), "experts": (r"experts (\d+)", "experts"),
        "experts_of_a_token": (r"top (\d+)", "experts of a token"),
        "tensor_parallel": (r"tensor parallel (\d+)", "tensor parallel"),
        "expert_parallel": (r"expert parallel (\d+)", "expert parallel"),
    }  # fmt: skip
    draft.numbers |= {name: whole_number(pattern, text, what) for name, (pattern, what) in sizes.items()}
    draft.take("routing_skew", r"routing power_law_([\d.]+)", text)
    operator(draft)
    draft.mark("no gates", "nongated", row.note)
    draft.mark("Marlin", "marlin", row.note)
    # Those of SGLang 0.5.6 on H100 are up to ten times slower than on H200, or than those of 0.5.9: as if not tuned.
    if "SGLang 0.5.6" in row.software and "H100" in row.device:
        draft.features.add("not tuned")
    draft.set(operation="experts", kernels=serving_stack(row.software))


def layer_of_gpt3(draft: Draft) -> None:
    """Fill in one operator of a GPT-3 layer split over several GPUs."""
    row = draft.row
    name = row.workload.split(": ")[1]
    prefill = "prefill" in name
    operator(draft)
    if draft.columns["batch"] is None:
        raise Inexpressible("batch not stated")
    batch, peers = draft.columns["batch"], row.n_devices
    hidden = whole_number(r"d_model (\d+)", row.seq_or_shape, "width")
    heads = whole_number(r"(\d+) heads", row.seq_or_shape, "heads") // peers
    context = whole_number(r"(?:seq|input) (\d+)", row.seq_or_shape, "sequence")
    if not prefill:
        context += whole_number(r"position (\d+)", row.seq_or_shape, "position")
    tokens = batch * context if prefill else batch
    queries = context if prefill else 1
    width = hidden // (heads * peers)
    wide, part = 4 * hidden // peers, hidden // peers
    products = {
        "Q_K_V": (tokens, part, hidden, 0, 3), "Q_mul_K": (queries, context, width, batch * heads, 1),
        "A_mul_V": (queries, width, context, batch * heads, 1), "Wo_proj": (tokens, hidden, part, 0, 1),
        "W1_proj": (tokens, wide, hidden, 0, 1), "W2_proj": (tokens, hidden, wide, 0, 1),
    }  # fmt: skip
    loops = {
        "Softmax": ("softmax", batch * heads * queries * context), "LayerNorm_MHA": ("layer norm", tokens * hidden),
        "LayerNorm_FFN": ("layer norm", tokens * hidden), "GeLU": ("gelu", tokens * wide),
    }  # fmt: skip
    key = name.split(" ")[0]
    if key.startswith("AllReduce"):
        draft.set(operation="all-reduce of a layer")
        draft.numbers["bytes"] = tokens * hidden * draft.columns["value_bytes"]
    elif key in products:
        draft.set(operation="product of a layer")
        draft.numbers |= dict(zip(("m", "n", "k", "copies", "calls"), products[key], strict=True))
    elif key in loops:
        operation, draft.numbers["elements"] = loops[key]
        _called(draft, operation)
        draft.set(operation=f"{operation} of a layer")
    else:
        raise Inexpressible(f"operator {key} of the layer is not described")
