"""The one door for files that somebody hands us: read whole, up to a size, and never waited for without end."""

import contextlib
import csv
import errno
import gzip
import io
import json
import mmap
import os
import select
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from mlsys.errors import UnreadableError

MOST_BYTES = 200_000_000
"""Bytes of a file at most, unless its kind says less."""

_PATIENCE = 5.0
"""Seconds until a pipe must have begun to say something, and between two parts of it."""
_PART = 1 << 20

FILES_READ: dict[tuple[int, int], str] = {}
"""Identity (device and inode) and name of every regular file that was read; see :func:`mlsys.files.inputs_kept`."""


def read_bytes(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file, or of a pipe that somebody writes to.

    Parameters
    ----------
    path
        Where it lies.
    most
        Bytes that such a file has at most.

    Raises
    ------
    UnreadableError
        If there is none, it is a folder, too large, or a pipe that says nothing.

    Examples
    --------
    >>> read_bytes("no such file")
    Traceback (most recent call last):
        ...
    mlsys.errors.UnreadableError: no such file: cannot be read (No such file or directory)
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    except ValueError:  # a NUL in the name
        raise _unreadable(repr(str(path)), "it cannot be the name of a file") from None
    try:
        kind = os.fstat(handle).st_mode
        if stat.S_ISDIR(kind):
            raise _unreadable(path, "it is a folder")
        if stat.S_ISREG(kind):
            FILES_READ.setdefault(identity(os.fstat(handle)), str(path))
        content = bytearray()
        while part := _part(path, handle, waits=not stat.S_ISREG(kind), begun=bool(content)):
            content += part
            if len(content) > most:
                raise _unreadable(path, f"too large; such a file has at most {most:,} bytes")
        return bytes(content)
    except OSError as error:
        if isinstance(error, UnreadableError):
            raise
        raise _unreadable(path, error.strerror or str(error)) from None
    finally:
        os.close(handle)


@contextlib.contextmanager
def mapped(path: str | Path, most: int = MOST_BYTES) -> Iterator[bytes | mmap.mmap]:
    """Hold the content of a file without reading it: of a large one, only what is looked at comes from the disk.

    Parameters
    ----------
    path, most
        As :func:`read_bytes` takes them; a pipe cannot be held so.

    Raises
    ------
    UnreadableError
        If there is none, it is no regular file, or too large.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "large.bin"
    >>> _ = file.write_bytes(b"content")
    >>> with mapped(file) as content:
    ...     content[:4]
    b'cont'
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise _unreadable(path, "it is no regular file")
        FILES_READ.setdefault(identity(status), str(path))
        if status.st_size > most:
            raise _unreadable(path, f"too large; such a file has at most {most:,} bytes")
        if not status.st_size:
            yield b""
            return
        with mmap.mmap(handle, 0, access=mmap.ACCESS_READ) as content:
            yield content
    finally:
        os.close(handle)


def note_input(path: str | Path) -> None:
    """Count a file as read: one that belongs to an input, such as the weights beside an ONNX file.

    Examples
    --------
    >>> note_input("no such file")
    """
    with contextlib.suppress(OSError, ValueError):
        status = os.stat(path)
        FILES_READ.setdefault(identity(status), str(path))


def identity(status: os.stat_result) -> tuple[int, int]:
    """Return what is equal for two names of one file, links included: its device and inode.

    Examples
    --------
    >>> identity(os.stat(os.curdir)) == identity(os.stat(os.path.abspath(os.curdir)))
    True
    """
    return status.st_dev, status.st_ino


def _part(path: str | Path, handle: int, *, waits: bool, begun: bool) -> bytes:
    if not waits:
        return os.read(handle, _PART)
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        select.select([handle], [], [], 0.1)
        try:
            part = os.read(handle, _PART)
        except BlockingIOError:  # somebody holds the other end and has not written yet
            continue
        if part or begun:
            return part
        time.sleep(0.05)  # nobody has opened the other end yet
    raise _unreadable(path, f"it is a pipe that says nothing for {_PATIENCE:g} s")


def unpacked(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file, unpacked where its name ends in ``.gz``; a small one may hold very much.

    Raises
    ------
    UnreadableError
        If it cannot be read, is not packed as its name says, or holds more than ``most`` bytes.
    """
    raw = read_bytes(path, most)
    if Path(path).suffix != ".gz":
        return raw
    try:
        with gzip.open(io.BytesIO(raw)) as stream:
            content = stream.read(most + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise _unreadable(path, f"not readable as gzip: {error}") from None
    if len(content) > most:
        raise _unreadable(path, f"too large; unpacked, such a file has at most {most:,} bytes")
    return content


def read_text(path: str | Path, most: int = MOST_BYTES) -> str:
    """Return the content of a file in UTF-8, with or without a mark of its order at the beginning.

    A file whose name ends in ``.gz`` is unpacked.

    Raises
    ------
    UnreadableError
        If it cannot be read, or is no such text.
    """
    raw = unpacked(path, most)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _unreadable(path, f"wanted text in UTF-8, got byte {raw[error.start]:#04x} in line {line}") from None


def read_json(
    path: str | Path, most: int = MOST_BYTES, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """Return what a JSON file holds.

    Parameters
    ----------
    path, most
        As :func:`read_bytes` takes them.
    pairs
        Makes a mapping from its pairs, as ``json.loads`` calls it.

    Raises
    ------
    UnreadableError
        If it cannot be read, is no JSON, has ``NaN`` or numbers of thousands of digits, or is nested too deep.
    """
    text = read_text(path, most)
    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=_refused)
    except RecursionError:
        raise _unreadable(path, "not readable as JSON: nested too deep") from None
    except json.JSONDecodeError as error:
        raise _unreadable(path, f"not readable as JSON: {error.msg} in line {error.lineno}") from None
    except ValueError as error:
        raise _unreadable(path, f"not readable as JSON: {str(error).partition(';')[0]}") from None


def yaml_of(text: str) -> Any:
    """Return a YAML text as plain data, parsed by libyaml where it is there: seven times as fast.

    Raises
    ------
    yaml.YAMLError
        If it is no such text.

    Examples
    --------
    >>> yaml_of("launch: 4.5e-06")
    {'launch': 4.5e-06}
    """
    import yaml

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def shipped_text(package: str, name: str) -> str:
    """Return a file of text that ships with a package of ours: a schema, a style, a script.

    Examples
    --------
    >>> shipped_text("mlsys.widgets", "lab.css").splitlines()[0]
    '.mlsys-lab { max-width: 860px; }'
    """
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def csv_records(path: str | Path, most: int = MOST_BYTES) -> list[tuple[int, list[str]]]:
    """Return the cells of each line that has any, with the number of the line that they begin on.

    Raises
    ------
    UnreadableError
        If it cannot be read, or a field is longer than 128 KiB.
    """
    reader = csv.reader(io.StringIO(read_text(path, most), newline=""), strict=False)
    records: list[tuple[int, list[str]]] = []
    before = 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if cells:
                records.append((line, cells))
    except csv.Error as error:
        raise _unreadable(path, f"not readable as CSV: line {before + 1}: {error}") from None
    return records


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _unreadable(path: str | Path, why: str) -> UnreadableError:
    return UnreadableError(errno.EINVAL, why, str(path))
