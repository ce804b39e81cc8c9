"""ONNX Runtime, OpenVINO and LiteRT on this CPU."""

import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mlsys.inputs import read_bytes
from mlsys.measure.backends.base import Array, Backend, flat, seeded_input, stepped
from mlsys.measure.errors import BackendMissingError
from mlsys.measure.networks.export import as_litert, as_onnx
from mlsys.measure.networks.int8 import QuantizedNet
from mlsys.measure.networks.subjects import Subject

_WARM = 5


def _model(subject: Subject) -> bytes:
    return as_onnx(subject.chain) if subject.file is None else read_bytes(subject.file)


class OnnxRuntime(Backend):
    """ONNX Runtime's CPU provider, with all graph optimisations.

    x86 CPUs without VNNI multiply unsigned by signed bytes with ``vpmaddubsw``, which saturates sums of two products
    at 16 bits. ``session.x64quantprecision`` makes the runtime store signed weights unsigned on such CPUs, whose
    kernel widens to 16 bits first; on all others it has no effect.

    Parameters
    ----------
    precise
        Whether to request those kernels. A model that the runtime then cannot open is opened without them, and
        :meth:`facts` records this.
    """

    name, package = "onnxruntime", "onnxruntime"
    kinds, formats = ("chain", "onnx"), ("fp32", "int8")

    def __init__(self, precise: bool = True) -> None:
        self._precise = precise

    def twin(self) -> Backend:
        """Return a fresh backend with the same settings."""
        return OnnxRuntime(self._precise)

    def setup(self, subject: Subject, threads: int) -> None:
        """Open a session."""
        self._subject, self._threads = subject, threads
        self._session = self._opened("")
        wanted = self._session.get_inputs()
        if subject.net is not None:
            self._inputs = {wanted[0].name: subject.batch.transpose(0, 3, 1, 2).copy()}
        else:
            kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64,
                     "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8,
                     "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}  # fmt: skip
            self._inputs = {each.name: seeded_input(each.shape, kinds[each.type]) for each in wanted}
        self._output: Any = None

    def _opened(self, profile: str) -> Any:
        try:
            return self._session_of(profile, self._precise)
        except BackendMissingError:
            if not self._precise:
                raise
            session = self._session_of(profile, precise=False)  # signed inputs have no kernel for unsigned weights
            self._precise = False
            return session

    def _session_of(self, profile: str, precise: bool) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.x64quantprecision", str(int(precise)))
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads, 1
        options.log_severity_level = 4
        if profile:
            options.enable_profiling, options.profile_file_prefix = True, profile
        try:
            return onnxruntime.InferenceSession(_model(self._subject), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the runtime has its own class for every kind of invalid file
            raise BackendMissingError(f"onnxruntime cannot load {self._subject.name}: {str(error)[:200]}") from error

    def _run(self) -> None:
        self._output = self._session.run(None, self._inputs)

    def output(self) -> Array:
        """Return the first output."""
        return flat(self._output[0])

    def layers(self, iterations: int) -> tuple[str, list[dict[str, float]]]:
        """Read the runtime's profile of a second session; operators fused away take no time of their own."""
        with tempfile.TemporaryDirectory() as folder:
            session = self._opened(str(Path(folder) / "profile"))
            for _ in range(iterations + _WARM):
                session.run(None, self._inputs)
            events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        known = [layer.name for layer in self._subject.net.layers] if self._subject.net else []
        rounds: list[dict[str, float]] = []
        now: dict[str, float] = {}
        for event in events:
            name = event.get("name", "")
            if name == "model_run":
                rounds.append(now)
                now = {}
            elif event.get("cat") == "Node" and name.endswith("_kernel_time"):
                layer = _owner(name.removesuffix("_kernel_time"), known)
                now[layer] = now.get(layer, 0.0) + event["dur"] / 1e6
        return "the runtime's own profile, to the microsecond", rounds[_WARM:]

    def facts(self) -> dict[str, Any]:
        """Return whether non-saturating integer kernels were requested."""
        return {"session.x64quantprecision": self._precise}


def _owner(node: str, known: list[str]) -> str:
    """Return the layer that a node of the optimised graph belongs to.

    Examples
    --------
    >>> _owner("pw1/relu", ["pw1"]), _owner("reorder", ["pw1"]), _owner("output", ["pw1", "fc"])
    ('pw1', 'other', 'fc')
    """
    if not known:
        return node
    if node == "output":
        return known[-1]
    whole = re.match(r"[A-Za-z]+\d*", node)
    return whole[0] if whole and whole[0] in known else "other"


class OpenVino(Backend):
    """OpenVINO's CPU plug-in, in latency mode, with BF16 disabled for FP32 networks."""

    name, package = "openvino", "openvino"
    kinds, formats = ("chain", "onnx"), ("fp32", "int8")

    def setup(self, subject: Subject, threads: int) -> None:
        """Read and compile the model."""
        self._subject, self._threads = subject, threads
        self._request, self._inputs = self._opened(False)

    def _opened(self, profile: bool) -> tuple[Any, Any]:
        import openvino

        core = openvino.Core()
        settings = {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": self._threads, "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32", "PERF_COUNT": profile,
        }  # fmt: skip
        try:
            model = core.read_model(_model(self._subject))
            compiled = core.compile_model(model, "CPU", settings)
        except Exception as error:  # one class for all: an invalid file, an unsupported operator
            raise BackendMissingError(f"openvino cannot load {self._subject.name}: {str(error)[:200]}") from error
        if self._subject.net is not None:
            given: Any = {0: self._subject.batch.transpose(0, 3, 1, 2).copy()}
        else:
            given = {
                index: seeded_input([size.get_length() if size.is_static else 1 for size in port.partial_shape],
                              np.dtype(port.element_type.to_dtype()))
                for index, port in enumerate(compiled.inputs)
            }  # fmt: skip
        return compiled.create_infer_request(), given

    def _run(self) -> None:
        self._request.infer(self._inputs)

    def output(self) -> Array:
        """Return the first output."""
        return flat(self._request.get_output_tensor(0).data)

    def layers(self, iterations: int) -> tuple[str, list[dict[str, float]]]:
        """Read the plug-in's profile; operators fused away take no time of their own."""
        request, given = self._opened(True)
        known = [layer.name for layer in self._subject.net.layers] if self._subject.net else []
        rounds = []
        for index in range(iterations + _WARM):
            request.infer(given)
            now: dict[str, float] = {}
            for info in request.get_profiling_info():
                seconds = info.real_time.total_seconds()
                if seconds > 0:
                    layer = _owner(info.node_name, known)
                    now[layer] = now.get(layer, 0.0) + seconds
            if index >= _WARM:
                rounds.append(now)
        return "the plug-in's own profile, to the microsecond", rounds


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress direct output of a C++ library to standard error."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


class LiteRT(Backend):
    """LiteRT's interpreter, formerly TensorFlow Lite, with its XNNPACK kernels."""

    name, package = "litert", "ai_edge_litert"
    kinds, formats, channels_last = ("chain", "tflite"), ("fp32", "int8"), True

    def setup(self, subject: Subject, threads: int) -> None:
        """Build an interpreter and allocate its tensors."""
        from ai_edge_litert.interpreter import Interpreter

        self._subject, self._threads = subject, threads
        content = as_litert(subject.chain) if subject.file is None else read_bytes(subject.file)
        try:
            with _quiet():
                self._interpreter = Interpreter(model_content=content, num_threads=threads)
                self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise BackendMissingError(f"litert cannot load {subject.name}: {str(error)[:200]}") from error
        for each in self._interpreter.get_input_details():
            if subject.net is None:
                values = seeded_input(each["shape"], each["dtype"])
            else:
                chain = subject.chain
                values = chain.source.to_int(subject.batch) if isinstance(chain, QuantizedNet) else subject.batch
            self._interpreter.set_tensor(each["index"], values)
        self._target = self._interpreter.get_output_details()[0]["index"]

    def _run(self) -> None:
        self._interpreter.invoke()

    def output(self) -> Array:
        """Return the first output in real numbers."""
        values = self._interpreter.get_tensor(self._target)
        scales = self._interpreter.get_output_details()[0]["quantization"]
        return flat((values.astype(np.float32) - scales[1]) * np.float32(scales[0]) if scales[0] else values)

    def layers(self, iterations: int) -> tuple[str, list[dict[str, float]]]:
        """Time each layer as a separate model: the interpreter's Python interface has no profile."""
        if self._subject.net is None:
            return super().layers(iterations)
        return stepped(LiteRT, self._subject, self._threads, iterations)
