"""Reading of ONNX files: their structure is validated, and weights are skipped, before parsing.

An ONNX file is one protobuf message, so its fields can be traversed by their lengths without reading their contents.
This rejects files that are truncated, have another format, or would take gigabytes of memory when parsed.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsys.errors import ArgumentError, first_line
from mlsys.inputs import mapped, note_input

if TYPE_CHECKING:
    Schema = dict[int, "Schema | None"]

MOST_BYTES = 2**31 - 1  # the largest message that protobuf reads
_MOST_FIELDS = 300_000
_MOST_STRUCTURE = 32_000_000  # bytes that are neither weights nor text
_DEEPEST = 100  # protobuf's own limit
_SMALL = 512  # smaller messages count as structure without being traversed
_LARGE = 4096  # least bytes of weights that are skipped
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5

# Fields of onnx.proto by number: a schema for a message, None for weights and text, which may be long.
_TENSOR: Schema = dict.fromkeys((4, 5, 7, 8, 9, 10, 11, 12))
_LEFT_OUT = frozenset({4, 9, 10})  # float_data, raw_data, double_data: values of a fixed width
_SPARSE: Schema = {1: _TENSOR, 2: _TENSOR}
_ATTRIBUTE: Schema = {4: None, 5: _TENSOR, 10: _TENSOR, 13: None, 22: _SPARSE, 23: _SPARSE}
_NODE: Schema = {5: _ATTRIBUTE, 6: None, 9: None}
_GRAPH: Schema = {1: _NODE, 5: _TENSOR, 10: None, 15: _SPARSE, 16: None}
_ATTRIBUTE |= {6: _GRAPH, 11: _GRAPH}
_FUNCTION: Schema = {7: _NODE, 8: None, 11: _ATTRIBUTE, 14: None}
_MODEL: Schema = {
    **dict.fromkeys((2, 3, 4, 6, 14)),
    **{field: {} for field in (1, 5, 8, 26)},
    7: _GRAPH,
    20: {1: _GRAPH, 2: _GRAPH},
    25: _FUNCTION,
}


def read_model(onnx: Any, path: Path) -> Any:
    """Return the ``ModelProto`` of a file without its large weights.

    Skipped weights are marked as external data, with their size in bytes as ``length``.

    Raises
    ------
    ArgumentError
        If the file does not exist, is larger than an ONNX file can be, or is not an ONNX model.

    Examples
    --------
    >>> import onnx
    >>> read_model(onnx, Path("absent.onnx"))
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: from_onnx(): there is no file 'absent.onnx'. Give the path of a .onnx file
    """
    shown = repr(str(path))
    if not path.is_file():
        raise ArgumentError(f"from_onnx(): there is no file {shown}. Give the path of a .onnx file")
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ArgumentError(
                f"from_onnx(): {shown} has {size:,} bytes, but an ONNX file has at most {MOST_BYTES:,}. "
                "Save the model with its weights in a separate file (external data)"
            )
        if not size:
            raise ArgumentError(f"from_onnx(): {shown} is not an ONNX model: it is empty. Export it again")
        with mapped(path, MOST_BYTES) as content:
            model = onnx.ModelProto.FromString(_Walk(content, shown).message(0, size, _MODEL))
        for tensor in model.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    note_input(path.parent / entry.value)
        return model
    except ArgumentError:
        raise
    except Exception as error:  # protobuf's own class, or the operating system's
        raise ArgumentError(f"from_onnx(): {shown} is not an ONNX model: {first_line(error)}") from error


def without_weights(onnx: Any, model: Any) -> Any:
    """Return a copy of a ``ModelProto`` without its large weights, as from :func:`read_model`.

    Raises
    ------
    ArgumentError
        If it exceeds the size limit of a message.
    """
    try:
        content = model.SerializeToString()
    except Exception as error:  # protobuf's own class
        raise ArgumentError(f"from_onnx(): the model cannot be copied: {first_line(error)}") from error
    return onnx.ModelProto.FromString(_Walk(content, "`model`").message(0, len(content), _MODEL))


class _Walk:
    """Copier of a message without its large weights, which also adds up the cost of parsing it."""

    def __init__(self, content: mmap.mmap | bytes, shown: str) -> None:
        self._content, self._shown = content, shown
        self._fields = self._structure = 0

    def message(self, at: int, end: int, schema: Schema, depth: int = 0) -> bytes:
        if depth > _DEEPEST:
            raise self._refused(f"its graphs are nested in more than {_DEEPEST} messages")
        parts: list[bytes] = []
        copied, left_out = at, 0
        while at < end:
            begin = at
            field, wire, start, at = self._field(at, end)
            if not field or (not depth and field not in schema):
                raise self._refused(f"there is no field at byte {begin:,}")
            inner = schema.get(field)
            if wire != _LENGTH or field not in schema or (inner is not None and at - start <= _SMALL):
                self._counted(at - start)
            elif inner is not None:
                within = self.message(start, at, inner, depth + 1)
                parts += [self._content[copied:begin], _with_length(field, within)]
                copied = at
            elif schema is _TENSOR and field in _LEFT_OUT and at - start > _LARGE:
                parts.append(self._content[copied:begin])
                copied, left_out = at, left_out + at - start
        parts.append(self._content[copied:end])
        if left_out:
            length = _with_length(1, b"length") + _with_length(2, str(left_out).encode())
            location = _with_length(1, b"location") + _with_length(2, b"this file")
            parts += [_with_length(13, location), _with_length(13, length), b"\x70\x01"]
        return b"".join(parts)

    def _field(self, at: int, end: int) -> tuple[int, int, int, int]:
        """Return number and wire type of the field at a byte, the start of its content, and its end."""
        begin = at
        tag, at = self._number(at, end)
        start, wire = at, tag & 7
        self._fields += 1
        if self._fields > _MOST_FIELDS:
            raise self._refused(f"it has more than {_MOST_FIELDS:,} parts")
        if wire == _VARINT:
            _, at = self._number(at, end)
        elif wire == _LENGTH:
            length, start = self._number(at, end)
            at = start + length
        elif wire in (_EIGHT, _FOUR):
            at += 8 if wire == _EIGHT else 4
        else:
            raise self._refused(f"there is no field at byte {begin:,}")
        if at > end:
            raise self._refused(f"it is truncated: {at - end:,} bytes are missing at the end")
        return tag >> 3, wire, start, at

    def _counted(self, size: int) -> None:
        self._structure += size
        if self._structure > _MOST_STRUCTURE:
            raise self._refused(f"its nodes take more than {_MOST_STRUCTURE:,} bytes")

    def _number(self, at: int, end: int) -> tuple[int, int]:
        """Return the varint at a byte, and the position after it."""
        value = shift = 0
        while at < end and shift < 70:
            byte = self._content[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, at
            shift += 7
        raise self._refused("it is truncated" if at >= end else f"there is no number at byte {at:,}")

    def _refused(self, why: str) -> ArgumentError:
        return ArgumentError(f"from_onnx(): {self._shown} is not an ONNX model: {why}. Export it again")


def _with_length(field: int, content: bytes) -> bytes:
    """Return a length-delimited field in protobuf encoding."""
    return _varint(field << 3 | _LENGTH) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])
