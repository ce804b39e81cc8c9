"""Which kind of software a row ran on: what is fitted together."""

import re
from functools import lru_cache

from mlsys.calibration.rows import Row

# TensorFlow Lite runs on the processor by default (tensorflow/tensorflow, tensorflow/lite: a
# delegate); on microcontrollers it is another program.
TENSORFLOW_LITE = r"(?<!ai hub )(tflite|tensorflow ?lite)(?!.*(edge tpu|gpu|nnapi|hexagon|delegate))(?!.?(for )?micro)"
# The first pattern found decides. Makers' runtimes of neural processors are separate: each compiles in its own way.
_NETWORKS = (
    (r"vulkan", "vulkan"),
    (r"open(cl|gl)|plaidml", "opencl"),
    (r"paddle-lite", "Paddle-Lite"),
    (r"ncnn", "ncnn"),
    (
        rf"xnnpack|{TENSORFLOW_LITE}|neon|gemmlowp|tvm|^(tnn|mnn|mace|tengine|ppl\.nn arm)\b(?!.*tensorrt)",
        "mobile runtime",
    ),
    (r"core ml.*\bcpu\b", "Core ML"),  # of a processor; elsewhere it is the Neural Engine's
    (r"hailo", "Hailo"),
    (r"rknn", "RKNN"),
    (r"ai hub", "AI Hub"),
    (r"cloud ai|qaic", "Cloud AI"),
    (r"qnn|core ml|edge tpu|genie|dlc|nnapi|snpe|synapse|qualcomm|sophon|pulsar", "npu runtime"),
    (r"paddle inference.*tensorrt [1-6]\b", "Paddle TensorRT"),
    (r"tensorflow.*xla", "TensorFlow XLA"),
    (r"^tensorflow [\d(]", "TensorFlow"),
    (r"torch\.compile|nvfuser", "torch.compile"),
    # On a GPU their graphs call cuDNN layer by layer, as Caffe's and Torch7's; NVIDIA's containers are GPUs'.
    (r"^(mxnet|opencv).*(cudnn|\bngc\b)", "eager"),
    (r"mxnet|openvino|opencv|onnx ?runtime|^tf v", "processor runtime"),
    (r"tensorrt|fastertransformer|flax|tf-nightly|xla|jax|neuronx|neuron", "compiled"),
    (r"rocm", "eager ROCm"),
    (r"pytorch|torch|paddlenlp|^caffe", "eager"),
)


@lru_cache(maxsize=1024)
def network_software(software: str) -> str:
    """Return the kind of software that ran a whole network.

    Examples
    --------
    >>> network_software("Hailo Dataflow Compiler 5.2.0"), network_software("TensorRT 8.4.0, CUDA 11.6")
    ('Hailo', 'compiled')

    Paddle's calls of TensorRT are separate up to the version that was measured.

    >>> network_software("Paddle Inference, TensorRT 6.0"), network_software("Paddle Inference, TensorRT 8.0")
    ('Paddle TensorRT', 'compiled')

    One program may be a phone's on one machine and a server's on another.

    >>> network_software("PPL.nn ARM"), network_software("PPL.nn CUDA")
    ('mobile runtime', 'compiled')
    >>> network_software("TensorFlow Lite 2.11"), network_software("TFLite Edge TPU C++")
    ('mobile runtime', 'npu runtime')
    """
    plain = software.lower()
    return next((kind for pattern, kind in _NETWORKS if re.search(pattern, plain)), "compiled")


def serving_stack(software: str) -> str:
    """Return the name of a stack that serves language models, or an empty string.

    Examples
    --------
    >>> serving_stack("vLLM 0.19.0 linear layer, CUDA graph")
    'vLLM'
    """
    if "CUDA graph" not in software and "eager" not in software:
        return ""
    return next((name for name in ("TensorRT-LLM", "SGLang", "vLLM") if name in software), "")


def attention_version(software: str, prompt: bool = True) -> str:
    """Return what tells apart a version whose kernels of attention are others, or an empty string.

    SGLang before 0.5.9 spends twice as long on what leads to the kernel; vLLM before 0.18 has slower
    kernels for prompts.

    Parameters
    ----------
    software
        In the words of the source.
    prompt
        Whether a whole prompt is attended to, not one new token.

    Examples
    --------
    >>> attention_version("SGLang 0.5.6.post2, CUDA graph"), attention_version("vLLM 0.19.0, CUDA graph")
    (' 0.5.6', '')
    """
    old = {" 0.5.6": "SGLang 0.5.6"} | ({" 0.14": "vLLM 0.14"} if prompt else {})
    return next((version for version, name in old.items() if name in software), "")


# How DeepBench's rows are labelled, and what its workbooks say of their software in a sheet "Specs", where the label
# lacks or contradicts it.
_DEEPBENCH = "cuBLAS/cuDNN"
# The P100, the GTX 1080 Ti and the TITAN Xp had cuBLAS 8.0.88, a patch of June 2017; the TITAN X (Pascal), measured
# before with driver 367.48, which came with CUDA 8.0.44, had none.
_CUDA_OF = {
    "TITAN_X_Maxwell": 7.5, "M40": 7.5, "V100": 10.1,
    "TITAN_X_Pascal": 8.044, "GTX_1080_Ti": 8.088, "P100_PCIe": 8.088, "TITAN_Xp": 8.088,
}  # fmt: skip


def cuda_of(software: str, twin: str) -> float:
    """Return the version of CUDA whose cuBLAS ran a row, or infinity where it is not known.

    Parameters
    ----------
    software
        In the words of the row: DeepBench's label names CUDA 8 for a TITAN X of Maxwell's generation, which ran 7.5.
    twin
        The id of the machine's twin.

    Examples
    --------
    >>> cuda_of("cuBLAS/cuDNN CUDA 8", "TITAN_X_Maxwell"), cuda_of("cuBLAS/cuDNN CUDA 8", "P100_PCIe")
    (7.5, 8.088)
    >>> cuda_of("PyTorch 2.1.0 CUDA 12.1 eager (cuBLAS nn.Linear with bias)", "P100_PCIe")
    12.1
    """
    if "cuBLAS" not in software:
        return float("inf")
    stated = re.search(r"CUDA (\d+(?:\.\d+)?)", software)
    label = float(stated[1]) if stated else float("inf")
    return _CUDA_OF.get(twin, label) if software.startswith(_DEEPBENCH) else label


# cuDNN 4 tiles FFTs ("up to 2x faster"), and version 5 has Winograd's algorithms, both for small filters: "What's New"
# of developer.nvidia.com/cudnn. A network in single precision is found with them, whatever framework asks.
_FEWER_MULTIPLICATIONS = 4


def cudnn_of(software: str) -> float:
    """Return the version of cuDNN that ran a row, or infinity where it is not known.

    Examples
    --------
    >>> cudnn_of("Torch7, cuDNN 5.1.10, CUDA 8"), cudnn_of("PyTorch 2.1")
    (5.1, inf)
    """
    stated = re.search(r"cuDNN (\d+(?:\.\d+)?)", software)
    return float(stated[1]) if stated else float("inf")


def saves_multiplications(software: str) -> bool:
    """Return whether a library has convolutions of small filters with fewer multiplications than they are written with.

    Examples
    --------
    >>> saves_multiplications("cuDNN 2"), saves_multiplications("Caffe native"), saves_multiplications("TensorRT 7.2")
    (False, False, True)
    """
    return cudnn_of(software) >= _FEWER_MULTIPLICATIONS and not unrolls(software)


def unrolls(software: str) -> bool:
    """Return whether a framework writes out the inputs of every output of a convolution, for a plain product.

    Caffe and Torch7 do so without cuDNN, one image after the other (BVLC/caffe, src/caffe/layers/conv_layer.cu;
    torch/cunn, SpatialConvolutionMM.cu).

    Examples
    --------
    >>> unrolls("Torch7 SpatialConvolutionMM (cuBLAS)"), unrolls("Torch7, cuDNN 4")
    (True, False)
    """
    return re.search(r"SpatialConvolutionMM|(Torch7|Caffe) native|^Caffe$", software) is not None


@lru_cache(maxsize=4096)
def by_processor(device: str, software: str) -> bool:
    """Return whether the processor of a machine runs an operator, as the names of its device or its software say.

    Examples
    --------
    >>> by_processor("Raspberry Pi 5 CPU", "PyTorch"), by_processor("Apple M4", "ggml CPU"), by_processor("T4", "MLX")
    (True, True, False)
    """
    return "CPU" in device or re.search(r"CPU(?!_AND)", software) is not None


# Libraries by the names that typed rows have for them, where a software names them.
_LIBRARIES = {
    "PyTorch": "PyTorch", "torch": "torch", "torch.compile": r"torch\.compile", "TorchScript": "TorchScript",
    "Triton": "Triton", "cuBLAS": "cuBLAS", "cuDNN": "cuDNN", "ROCm": "ROCm", "TensorRT-LLM": "TensorRT-LLM",
    "llama.cpp": r"llama\.cpp", "vLLM": "vLLM", "SGLang": "SGLang", "Transformers": "Transformers",
    "Transformers NeuronX": "Transformers NeuronX", "Optimum Habana": "habana", "DeepSpeed": "DeepSpeed",
    "TinyChat": "TinyChat", "AutoAWQ": "AutoAWQ", "ExLlama": "ExLlama", "ExLlamaV2": "ExLlama.*V2|V2.*ExLlama",
    "FasterTransformer": "FasterTransformer", "Megatron": "Megatron", "Megatron-DeepSpeed": "Megatron-DeepSpeed",
    "NeMo": "NeMo", "TensorFlow": "TensorFlow", "ncnn": "ncnn", "OpenCV": "(?i)opencv", "DeepGEMM": "^DeepGEMM",
    "TensorFlow Lite": f"(?i){TENSORFLOW_LITE}", "Arm NN": "ArmNN",
}  # fmt: skip


def libraries_in(row: Row) -> set[str]:
    """Return the libraries that a row's software names; bitsandbytes may stand with the number format."""
    found = set(_libraries(row.software))
    return found | {"bitsandbytes"} if "bitsandbytes" in f"{row.software} {row.precision}" else found


@lru_cache(maxsize=4096)
def _libraries(software: str) -> frozenset[str]:
    return frozenset(name for name, pattern in _LIBRARIES.items() if re.search(pattern, software))


# Programs whose version matters, the one that decides first.
_VERSIONED = (
    "Neuron",
    "PyTorch",
    "TensorFlow",
    "vLLM",
    "SGLang",
    "TensorRT-LLM",
    "TensorRT",
    "ONNX Runtime",
    "OpenVINO",
)


@lru_cache(maxsize=4096)
def release_of(software: str) -> str:
    """Return the version of the main program, or an empty string.

    Examples
    --------
    >>> release_of("PyTorch 2.1.0 CUDA 12.1 eager"), release_of("ncnn benchncnn")
    ('2.1.0', '')
    """
    stated = (re.search(rf"\b{name} v?(\d+(?:\.\d+)*)", software) for name in _VERSIONED)
    return next((found[1] for found in stated if found), "")


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@lru_cache(maxsize=4096)
def written_in(software: str) -> str:
    """Return the year, and the month where it is stated, that a software was built in; empty where neither is.

    Examples
    --------
    >>> written_in("llama.cpp (May 2024)"), written_in("llama.cpp build 8e672ef (2023-11)"), written_in("MLX")
    ('2024-05', '2023-11', '')
    """
    named = re.search(rf"\b({'|'.join(_MONTHS)})\w* (20\d\d)\b", software)
    if named:
        return f"{named[2]}-{_MONTHS.index(named[1]) + 1:02d}"
    stated = re.search(r"\b(20[12]\d)(-[01]\d)?(?!\.?\d)", software)
    return f"{stated[1]}{stated[2] or ''}" if stated else ""
