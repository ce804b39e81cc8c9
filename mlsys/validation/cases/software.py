"""Which kind of software a row ran on: what is fitted together."""

from __future__ import annotations

import re

__all__ = ["network_software", "serving_stack"]

# The first pattern found decides. Makers' runtimes of neural processors are told apart: each compiles in its own way.
_NETWORKS = (
    (r"vulkan", "vulkan"),
    (r"opencl", "opencl"),
    (r"paddle-lite", "Paddle-Lite"),
    (r"ncnn", "ncnn"),
    (r"xnnpack|tflite cpu|tflite v\d|neon|gemmlowp|tvm", "mobile runtime"),
    (r"hailo", "Hailo"),
    (r"rknn", "RKNN"),
    (r"ai hub", "AI Hub"),
    (r"cloud ai|qaic", "Cloud AI"),
    (r"qnn|core ml|edge tpu|genie|dlc|nnapi|snpe|synapse|qualcomm", "npu runtime"),
    (r"paddle inference", "Paddle TensorRT"),
    (r"tensorflow.*xla", "TensorFlow XLA"),
    (r"^tensorflow \d", "TensorFlow"),
    (r"torch\.compile", "torch.compile"),
    (r"mxnet|openvino|onnx ?runtime|^tf v", "processor runtime"),
    (r"tensorrt|fastertransformer|flax|tf-nightly|xla|jax|neuronx|neuron", "compiled"),
    (r"rocm", "eager ROCm"),
    (r"pytorch|torch", "eager"),
)


def network_software(software: str) -> str:
    """Return the kind of software that ran a whole network.

    Examples
    --------
    >>> network_software("Hailo Dataflow Compiler 5.2.0"), network_software("TensorRT 8.4.0, CUDA 11.6")
    ('Hailo', 'compiled')
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
