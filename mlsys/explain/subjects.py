"""What a name or a file on the command line stands for."""

from pathlib import Path
from typing import Literal, get_args

from mlsys.errors import ArgumentError
from mlsys.explain.backends import Subject
from mlsys.explain.nets import NETS, net_of
from mlsys.inputs import read_bytes
from mlsys.unit_checks import checked_choice

SubjectFormat = Literal["fp32", "int8"]
FORMATS: tuple[SubjectFormat, ...] = get_args(SubjectFormat)
_FILES = (".onnx", ".tflite")
_LEAST_BYTES = 16


def subject_of(model: str, format: SubjectFormat = "fp32", *, batch: int = 1) -> Subject:
    """Return what to measure.

    Parameters
    ----------
    model
        ``ds-cnn`` or ``tiny-cnn``, which every backend takes; an ``.onnx`` or ``.tflite`` file; or whatever
        ``mlsys compile-bench`` takes: a network of the catalogue with PyTorch code, or a ``package.module:factory``.
    format
        ``fp32`` or ``int8``; a file and a module bring their own.
    batch
        Of a module.

    Raises
    ------
    ArgumentError
        If there is no such file, or it is none.
    UnknownNameError
        If there is no such network.
    """
    checked_choice("subject_of", "format", format, FORMATS)
    if model.lower() in NETS:
        return Subject(model.lower(), format, net_of(model.lower()))
    path = Path(model)
    if path.suffix in _FILES:
        if not path.is_file():
            raise ArgumentError(f"{model}: there is no such file")
        if path.stat().st_size < _LEAST_BYTES:
            raise ArgumentError(f"{model}: is no model, it has {path.stat().st_size} bytes")
        head = read_bytes(path)[4:8]
        if path.suffix == ".tflite" and head != b"TFL3":
            raise ArgumentError(f"{model}: is no LiteRT model: bytes 4 to 7 must be TFL3, got {head!r}")
        return Subject(path.stem, "file", file=path)
    from mlsys.bench import ready_model

    module, inputs, name = ready_model(model, batch=batch)
    return Subject(name, "fp32", module=module, inputs=inputs)
