"""Check of a runtime's integer kernels: the distance of its outputs from exact sums of products.

An x86 CPU without VNNI multiplies unsigned by signed bytes with ``vpmaddubsw``, whose sums of two products saturate at
16 bits. The worst case is every activation at 255 and every weight at ±127; :func:`worst_cases` feeds it to each kind
of layer.

References
----------
ONNX Runtime documentation, Quantize ONNX models, "When and why do I need to try U8U8?"; PyTorch, issue 103646, Default
qconfig for onednn backend silently causes numeric saturation on CPUs without avx512_vnni.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mlsys.measure.backends.base import Array, Backend
from mlsys.measure.errors import BackendMissingError
from mlsys.measure.networks.chains import Layer, Net
from mlsys.measure.networks.int8 import Grid, QuantizedNet, integer_layer, run_int8
from mlsys.measure.networks.subjects import Subject

_STEPS = 100.3  # output-grid steps of the largest sum; chosen so that no other sum is near a rounding tie
_GRID = 255  # steps of an 8-bit grid: the value used for outputs that are not numbers
_SAFE = 64  # largest safe weight: two products with a byte, 2 · 64 · 255, fit into 16 bits
_QUANTIZED = ("Quantize", "QLinear", "MatMulInteger", "ConvInteger")


@dataclass(frozen=True)
class IntegerCheck:
    """Error of a runtime relative to exact integer arithmetic.

    Attributes
    ----------
    worst_case_steps, layer
        Largest difference in the worst case, in steps of the output grid, and the kind of layer that shows it; None if
        the worst case could not be run.
    network_steps
        Largest difference of the measured network's output; None if its exact output is unknown.
    reason
        Why one of them is None.
    """

    worst_case_steps: int | None = None
    layer: str | None = None
    network_steps: int | None = None
    reason: str = ""

    @property
    def record(self) -> dict[str, Any]:
        """Return the entry for the log."""
        return {
            "worst_case_steps": self.worst_case_steps, "layer": self.layer, "network_steps": self.network_steps,
            "reason": self.reason,
        }  # fmt: skip


@lru_cache(maxsize=1)
def worst_cases() -> tuple[tuple[QuantizedNet, Array], ...]:
    """Return one-layer networks with weights of ±127 only, each with an input of bytes 255 above the zero point.

    Examples
    --------
    >>> [whole.layers[0].layer.name for whole, _ in worst_cases()]
    ['conv', 'pointwise', 'depthwise', 'dense']
    >>> whole, batch = worst_cases()[0]
    >>> int(whole.source.to_int(batch).min()) - whole.source.zero
    255
    """
    layers = (
        _layer("conv", "conv", (6, 6, 8), 16, (3, 3)),
        _layer("pointwise", "conv", (4, 4, 64), 16),
        _layer("depthwise", "depthwise", (6, 6, 16), 16, (3, 3)),
        _layer("dense", "dense", (1, 1, 64), 16),
    )
    cases = []
    for layer in layers:
        assert layer.weight is not None and layer.bias is not None
        products = layer.weight.size // layer.shape[2]
        source = Grid(1.0, -128)
        target = Grid(float(np.float32(255 * 127 * products / _STEPS)), 0)
        zeros, ones = np.zeros(layer.shape[2], np.int32), np.ones(layer.shape[2], np.float32)
        whole = integer_layer(layer, source, target, layer.weight.astype(np.int8), zeros, ones)
        net = Net(f"worst-case:{layer.name}", layer.source, (layer,))
        cases.append((QuantizedNet(net, (whole,)), np.full((1, *layer.source), 255.0, np.float32)))
    return tuple(cases)


def _layer(name: str, kind: str, source: tuple[int, int, int], out: int, kernel: tuple[int, int] = (1, 1)) -> Layer:
    """Return a layer whose channels have weights of one sign, of alternating signs, and of random signs."""
    shape = {"conv": (out, *kernel, source[2]), "depthwise": (1, *kernel, out), "dense": (out, source[2])}[kind]
    signs = np.random.default_rng(3).choice([-1.0, 1.0], shape)
    rows = np.moveaxis(signs, -1 if kind == "depthwise" else 0, 0)  # a view: one row per output channel
    rows[0], rows[1] = 1, -1
    rows[2] = (1 - 2 * (np.arange(rows[2].size) % 2)).reshape(rows[2].shape)
    rows[3] = (1 - 2 * (np.arange(rows[3].size) // 2 % 2)).reshape(rows[3].shape)
    return Layer(
        name, kind, source, (*source[:2], out), kernel, weight=(127 * signs).astype(np.float32),
        bias=np.zeros(out, np.float32),
    )  # fmt: skip


def steps_apart(output: Array, whole: QuantizedNet, batch: Array, *, channels_last: bool = False) -> int:
    """Return the largest difference between outputs and exact integer arithmetic, in steps of the output grid.

    Parameters
    ----------
    output
        Output of a runtime, in real numbers.
    whole, batch
        The quantised network and its input, in real numbers.
    channels_last
        Whether ``output`` is in the order height, width, channels; otherwise channels come first.
    """
    exact = run_int8(whole, whole.source.to_int(batch))[-1]
    wanted = (exact if channels_last else exact.transpose(0, 3, 1, 2)).ravel().astype(np.float64)
    if output.size != wanted.size:
        return _GRID
    steps = np.abs(output.ravel() / whole.target.scale + whole.target.zero - wanted)
    return round(float(np.nan_to_num(steps, nan=_GRID, posinf=_GRID).max()))


def check_integers(backend: Backend, subject: Subject, threads: int = 1) -> IntegerCheck | None:
    """Return the check of a runtime's integer kernels on this CPU; None for a network without integers.

    Parameters
    ----------
    backend
        The backend after an inference of ``subject``; the worst cases run in fresh copies of it.
    subject
        The measured network.
    threads
        Number of threads.
    """
    network, reason = None, f"the exact output of {subject.name} is unknown"
    if subject.net is not None:
        if subject.format != "int8":
            return None
        whole = subject.chain
        assert isinstance(whole, QuantizedNet)
        network = steps_apart(backend.output(), whole, subject.batch, channels_last=backend.channels_last)
        reason = ""
    elif not holds_integers(subject):
        return None
    try:
        if subject.module is not None:
            worst = [(engine_steps(), "dense")] if (_most_weight(subject.module) or 0) > _SAFE else [(0, "")]
        else:
            worst = [(_worst(backend.twin(), *case, threads), case[0].net.layers[0].name) for case in worst_cases()]
    except (BackendMissingError, ModuleNotFoundError) as error:
        return IntegerCheck(None, None, network, f"the worst case could not run: {error}")
    steps, layer = max(worst)
    return IntegerCheck(steps, layer if steps else None, network, reason)


def holds_integers(subject: Subject) -> bool:
    """Return whether a file or a module multiplies 8-bit integers.

    Parameters
    ----------
    subject
        An ONNX or LiteRT file, or a PyTorch module.
    """
    if subject.module is not None:
        return _most_weight(subject.module) is not None
    if subject.file is None:
        return subject.format == "int8"
    if subject.file.suffix == ".tflite":
        from ai_edge_litert.interpreter import Interpreter

        details = Interpreter(model_path=str(subject.file)).get_tensor_details()
        return any(np.dtype(each["dtype"]) in (np.int8, np.uint8) for each in details)
    import onnx

    graph = onnx.load(subject.file, load_external_data=False).graph
    return any(word in node.op_type for node in graph.node for word in _QUANTIZED)


def _most_weight(part: Any, dynamic: bool = False) -> int | None:
    """Return the largest absolute 8-bit weight of a PyTorch module's quantised layers; None if it has none.

    Dynamic layers count as 0: PyTorch gives their inputs seven bits, so that no sum of two products saturates.
    """
    import torch

    from mlsys.workloads.torch_import.tensors import unpacked_weights

    dynamic = dynamic or ".quantized.dynamic." in type(part).__module__
    most = 0 if dynamic else None
    held = getattr(part, "_packed_params", None)
    if isinstance(held, torch.ScriptObject):
        weights = [] if dynamic else [values for name, values in unpacked_weights(held) if name == "weight"]
        most = max([0, *(int(values.int().abs().max()) for values in weights if values.numel())])
    parts = [most, *(_most_weight(child, dynamic) for child in part.children())]
    return max((each for each in parts if each is not None), default=None)


def engine_steps() -> int:
    """Return the largest worst-case error of PyTorch's integer kernels, in steps of the output grid.

    Tests the kernels of ``torch.backends.quantized.engine``.
    """
    import torch

    case, batch = worst_cases()[-1]
    each = case.layers[0]
    assert each.weight is not None
    given = torch.quantize_per_tensor(torch.from_numpy(batch.reshape(1, -1)), each.source.scale, 0, torch.quint8)
    weight = torch.quantize_per_tensor(torch.from_numpy(each.weight.astype(np.float32)), 1.0, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weight, None)
    output = torch.ops.quantized.linear(given, packed, each.target.scale, 128)
    return steps_apart(output.dequantize().numpy(), case, batch)


def _worst(runner: Backend, case: QuantizedNet, batch: Array, threads: int) -> int:
    runner.setup(Subject.of_chain(case, batch), threads)
    runner.run_inference()
    try:
        return steps_apart(runner.output(), case, batch, channels_last=runner.channels_last)
    finally:
        runner.close()
