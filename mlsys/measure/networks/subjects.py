"""Resolution of names and files on the command line to networks that can be measured."""

from pathlib import Path
from typing import Literal, get_args

from mlsys.errors import ArgumentError
from mlsys.inputs import read_bytes
from mlsys.measure.backends import Subject
from mlsys.measure.networks.chains import NETS, net_of
from mlsys.unit_checks import checked_choice

SubjectFormat = Literal["fp32", "int8"]
FORMATS: tuple[SubjectFormat, ...] = get_args(SubjectFormat)
_FILES = (".onnx", ".tflite")
_LEAST_BYTES = 16


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
    from mlsys.measure import ready_model

    module, inputs, name = ready_model(model, batch=batch)
    return Subject(name, "fp32", module=module, inputs=inputs)
