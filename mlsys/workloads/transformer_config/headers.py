"""Headers of files of weights, GGUF and safetensors: metadata, and the bytes of each tensor; no weight is read."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mlsys.errors import ArgumentError, UnreadableError
from mlsys.faults import short
from mlsys.inputs import mapped, read_json

_MOST_FILE, _MOST_JSON = 1 << 44, 100_000_000
_MOST_ITEMS = 10_000_000
_LISTED = 1024  # numbers of an array that are kept; of longer ones, and of texts, only how many there are
# Name, weights of a block and its bytes, by number (ggml-org/llama.cpp, gguf-py/gguf/constants.py, GGML_QUANT_SIZES).
_GGML_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("f32", 1, 4), 1: ("f16", 1, 2), 2: ("q4_0", 32, 18), 3: ("q4_1", 32, 20), 6: ("q5_0", 32, 22),
    7: ("q5_1", 32, 24), 8: ("q8_0", 32, 34), 9: ("q8_1", 32, 40), 10: ("q2_k", 256, 84), 11: ("q3_k", 256, 110),
    12: ("q4_k", 256, 144), 13: ("q5_k", 256, 176), 14: ("q6_k", 256, 210), 15: ("q8_k", 256, 292),
    16: ("iq2_xxs", 256, 66), 17: ("iq2_xs", 256, 74), 18: ("iq3_xxs", 256, 98), 19: ("iq1_s", 256, 50),
    20: ("iq4_nl", 32, 18), 21: ("iq3_s", 256, 110), 22: ("iq2_s", 256, 82), 23: ("iq4_xs", 256, 136),
    24: ("i8", 1, 1), 25: ("i16", 1, 2), 26: ("i32", 1, 4), 27: ("i64", 1, 8), 28: ("f64", 1, 8),
    29: ("iq1_m", 256, 56), 30: ("bf16", 1, 2), 34: ("tq1_0", 256, 54), 35: ("tq2_0", 256, 66),
    39: ("mxfp4", 32, 17),
}  # fmt: skip
# Formats of the values of metadata, by number; 8 is text and 9 an array.
_VALUES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9


class Tensor(NamedTuple):
    """A tensor of a file.

    Attributes
    ----------
    name
        Its name in the file.
    form
        Its number format, as the file writes it.
    shape
        Its sizes, outputs first.
    bytes
        Its bytes in the file.
    """

    name: str
    form: str
    shape: tuple[int, ...]
    bytes: int

    @property
    def elements(self) -> int:
        """Number of values; of packed formats, of the integers that they are packed into."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Header:
    """Contents of the headers of a file, or of all parts of a checkpoint.

    Attributes
    ----------
    path
        The file that was named.
    tensors
        All tensors.
    metadata
        Fields of a GGUF file; long arrays as ``range`` of their length.
    total
        Bytes of all tensors, where an index states them and its parts are not there; None otherwise.
    """

    path: str
    tensors: tuple[Tensor, ...]
    metadata: Mapping[str, Any]
    total: int | None = None


def read_gguf(path: str | Path) -> Header:
    """Return metadata and tensors of a GGUF file (ggml-org/ggml, docs/gguf.md, versions 2 and 3).

    Raises
    ------
    ArgumentError
        If the file cannot be read, is not in this format, or ends within its header.
    """
    try:
        with mapped(path, _MOST_FILE) as content:
            return _Gguf(str(path), content).header()
    except UnreadableError as error:
        raise ArgumentError(str(error)) from error


class _Gguf:
    """Reader of a GGUF header, from its first byte on."""

    def __init__(self, path: str, content: Any) -> None:
        self.path, self.content, self.at = path, content, 0

    def header(self) -> Header:
        if bytes(self.content[:4]) != b"GGUF":
            raise ArgumentError(f"{self.path}: this is no GGUF file (it does not begin with GGUF)")
        self.at = 4
        version = self.number("I")
        if version not in (2, 3):
            raise ArgumentError(f"{self.path}: GGUF version {version} is not known here. Known: 2, 3")
        tensors, fields = self.count("tensors"), self.count("fields")
        metadata: dict[str, Any] = {}
        for _ in range(fields):
            key = self.text()
            metadata[key] = self.value(self.number("I"))
        return Header(self.path, tuple(self.tensor() for _ in range(tensors)), metadata)

    def number(self, form: str) -> Any:
        size = struct.calcsize(f"<{form}")
        if self.at + size > len(self.content):
            raise ArgumentError(f"{self.path}: the file ends within its header, at {len(self.content):,} bytes")
        (value,) = struct.unpack_from(f"<{form}", self.content, self.at)
        self.at += size
        return value

    def count(self, what: str) -> int:
        number: int = self.number("Q")
        if number > _MOST_ITEMS:
            raise ArgumentError(f"{self.path}: {number:,} {what} are more than a GGUF file has")
        return number

    def text(self) -> str:
        size = self.number("Q")
        if self.at + size > len(self.content):
            raise ArgumentError(f"{self.path}: the file ends within its header, at {len(self.content):,} bytes")
        self.at += size
        return bytes(self.content[self.at - size : self.at]).decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind != _ARRAY:
            if kind not in _VALUES:
                raise ArgumentError(f"{self.path}: a field has the type {kind}, which GGUF does not have")
            return self.number(_VALUES[kind])
        inner, length = self.number("I"), self.count("elements")
        if inner == _ARRAY:
            raise ArgumentError(f"{self.path}: a field has an array of arrays, which no model's metadata has")
        if inner in _VALUES and length > _LISTED:
            self.at += length * struct.calcsize(f"<{_VALUES[inner]}")
            return range(length)
        if inner == _TEXT:
            for _ in range(length):
                size = self.number("Q")
                self.at += size
            return range(length)
        return [self.value(inner) for _ in range(length)]

    def tensor(self) -> Tensor:
        name, dimensions = self.text(), self.number("I")
        if dimensions > 8:
            raise ArgumentError(f"{self.path}: the tensor {short(name)} has {dimensions} dimensions")
        shape = tuple(self.number("Q") for _ in range(dimensions))
        kind = self.number("I")
        self.number("Q")  # its offset
        if kind not in _GGML_TYPES:
            raise ArgumentError(
                f"{self.path}: the tensor {short(name)} has the type {kind}, which is not known here. "
                f"Known: {', '.join(form for form, _, _ in _GGML_TYPES.values())}"
            )
        form, block, size = _GGML_TYPES[kind]
        return Tensor(name, form, tuple(reversed(shape)), math.prod(shape) // block * size)


def read_safetensors(path: str | Path) -> Header:
    """Return the tensors of a safetensors file, or of all parts that an index names.

    Parts that are not there are left out where the index states the bytes of all tensors.

    Raises
    ------
    ArgumentError
        If a file cannot be read, is not in this format, or ends before its last tensor.
    """
    path = Path(path)
    if path.suffix != ".json":
        return Header(str(path), tuple(_safetensors(path)), {})
    try:
        index = read_json(path, _MOST_JSON)
    except UnreadableError as error:
        raise ArgumentError(str(error)) from error
    places = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        raise ArgumentError(f"{path}: an index must have a `weight_map` of names and files")
    parts = sorted(set(places.values()))
    missing = [name for name in parts if not (path.parent / Path(name).name).is_file()]
    if not missing:
        tensors = [each for name in parts for each in _safetensors(path.parent / Path(name).name)]
        return Header(str(path), tuple(tensors), {})
    total = (index.get("metadata") or {}).get("total_size")
    if isinstance(total, bool) or not isinstance(total, int | float) or not 0 < total < _MOST_FILE:
        raise ArgumentError(
            f"{path}: the file {short(missing[0])} is not there, and the index states no `total_size`. Put the files "
            "beside it"
        )
    return Header(str(path), (), {}, int(total))


def _safetensors(path: Path) -> list[Tensor]:
    try:
        with mapped(path, _MOST_FILE) as content:
            size = struct.unpack_from("<Q", content)[0] if len(content) >= 8 else 0
            if not 2 <= size <= min(_MOST_JSON, len(content) - 8):
                raise ArgumentError(f"{path}: this is no safetensors file, or it ends within its header")
            entries = json.loads(bytes(content[8 : 8 + size]))
            held = len(content) - 8 - size
    except UnreadableError as error:
        raise ArgumentError(str(error)) from error
    except ValueError:
        raise ArgumentError(f"{path}: this is no safetensors file: its header is not JSON") from None
    tensors = []
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        if name == "__metadata__":
            continue
        try:
            first, last = entry["data_offsets"]
            shape, form = tuple(int(side) for side in entry["shape"]), str(entry["dtype"])
            stored = int(last) - int(first)
        except (KeyError, TypeError, ValueError):
            raise ArgumentError(f"{path}: the tensor {short(name)} lacks a dtype, a shape or offsets") from None
        if not 0 <= stored <= int(last) <= held:
            raise ArgumentError(
                f"{path}: the tensor {short(name)} ends at byte {last}, and the file has {held:,} bytes of tensors: it "
                "is not whole"
            )
        tensors.append(Tensor(name, form, shape, stored))
    if not tensors:
        raise ArgumentError(f"{path}: the file has no tensors")
    return tensors
