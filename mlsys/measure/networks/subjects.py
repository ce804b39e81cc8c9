"""Networks to measure: a chain, a PyTorch module, or a file; by the names that the command line takes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.inputs import read_bytes
from mlsys.measure.log import LayerWork
from mlsys.measure.networks.chains import NETS, Net, inputs_of, net_of
from mlsys.measure.networks.int8 import QuantizedNet, quantized
from mlsys.measure.networks.modules import ready_model
from mlsys.unit_checks import checked_choice

SubjectFormat = Literal["fp32", "int8"]
FORMATS: tuple[SubjectFormat, ...] = get_args(SubjectFormat)
_FILES = (".onnx", ".tflite")
_LEAST_BYTES = 16


Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Subject:
    """The network to measure.

    Attributes
    ----------
    name, format
        Name of the network, and its number format: ``fp32`` or ``int8``.
    net
        A chain described in this package; every backend runs it.
    module, inputs
        A PyTorch module in evaluation mode and its inputs, instead of a chain.
    file
        An ONNX or LiteRT file, instead of a chain.
    integers, values
        The quantised chain and the input ``(1, height, width, channels)`` of a chain, if other than the default.
    """

    name: str
    format: str = "fp32"
    net: Net | None = None
    module: Any = None
    inputs: Any = None
    file: Path | None = None
    integers: QuantizedNet | None = None
    values: Array | None = None

    @classmethod
    def of_chain(cls, chain: Net | QuantizedNet, values: Array | None = None) -> "Subject":
        """Return a chain with its own grids, such as one layer of a larger network, and optionally its input."""
        if isinstance(chain, QuantizedNet):
            return cls(chain.net.name, "int8", chain.net, integers=chain, values=values)
        return cls(chain.name, net=chain, values=values)

    @property
    def kind(self) -> str:
        """``chain``, ``module``, ``onnx`` or ``tflite``."""
        if self.net is not None:
            return "chain"
        return "module" if self.file is None else self.file.suffix.lstrip(".")

    @property
    def chain(self) -> Net | QuantizedNet:
        """The chain in the requested format."""
        assert self.net is not None
        return self.integers or (quantized(self.net) if self.format == "int8" else self.net)

    @property
    def batch(self) -> Array:
        """The input of a chain: ``(1, height, width, channels)``."""
        assert self.net is not None
        return inputs_of(self.net) if self.values is None else self.values

    def works(self) -> tuple[LayerWork, ...]:
        """Return the work of each layer of a network; empty where it is unknown (an ONNX or LiteRT file)."""
        if self.net is not None:
            element = 1 if self.format == "int8" else 4
            return tuple(layer.work(element) for layer in self.net.layers)
        if self.module is None:
            return ()
        from mlsys.workloads import Workload

        # A layer is a module without submodules; functions called between modules are listed by their own name.
        leaves = {name for name, part in self.module.named_modules() if name and not list(part.children())}
        merged: dict[str, LayerWork] = {}
        operators: tuple[Any, ...] = Workload.from_torch(self.module, self.inputs).operators
        for operator in operators:
            name = operator.path if operator.path in leaves else operator.name
            old = merged.get(name, LayerWork(name, operator.kind, 0, 0, 0, 0))
            weights = round(operator.weights.m_as("byte"))
            merged[name] = LayerWork(
                name, old.kind, old.macs + round(operator.flops.m_as("FLOP") / 2), old.weight_bytes + weights,
                old.read_bytes + max(round(operator.read.m_as("byte")) - weights, 0),
                old.write_bytes + round(operator.written.m_as("byte")),
            )  # fmt: skip
        return tuple(merged.values())


def subject_of(model: str, format: SubjectFormat = "fp32", *, batch: int = 1) -> Subject:
    """Return the network to measure.

    Parameters
    ----------
    model
        ``ds-cnn`` or ``tiny-cnn``, which every backend runs; an ``.onnx`` or ``.tflite`` file; or any MODEL of ``mlsys
        compile-bench``: a network of the catalogue with PyTorch code, or a ``package.module:factory``.
    format
        ``fp32`` or ``int8``; a file or a module has its own format.
    batch
        Batch of a module.

    Raises
    ------
    ArgumentError
        If the file does not exist or is not a model.
    UnknownNameError
        If the network is unknown.
    """
    checked_choice("subject_of", "format", format, FORMATS)
    if model.lower() in NETS:
        return Subject(model.lower(), format, net_of(model.lower()))
    path = Path(model)
    if path.suffix in _FILES:
        if not path.is_file():
            raise ArgumentError(f"{model}: there is no such file")
        if path.stat().st_size < _LEAST_BYTES:
            raise ArgumentError(f"{model}: is not a model, it has {path.stat().st_size} bytes")
        head = read_bytes(path)[4:8]
        if path.suffix == ".tflite" and head != b"TFL3":
            raise ArgumentError(f"{model}: is not a LiteRT model: bytes 4 to 7 must be TFL3, got {head!r}")
        return Subject(path.stem, "file", file=path)
    module, inputs, name = ready_model(model, batch=batch)
    return Subject(name, "fp32", module=module, inputs=inputs)
