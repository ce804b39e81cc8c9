"""Reading of input files: with a size limit, and with a timeout for pipes."""

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
"""Default limit of the size of a file, bytes."""

_TIMEOUT = 5.0
"""Seconds to wait for the first data of a pipe, and between two chunks."""
_CHUNK = 1 << 20

FILES_READ: dict[tuple[int, int], str] = {}
"""Identity (device and inode) and name of every regular file that was read; see :func:`mlsys.files.inputs_kept`."""


def read_bytes(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file or a pipe.

    Parameters
    ----------
    path
        Path of the file.
    most
        Largest size accepted, bytes.

    Raises
    ------
    UnreadableError
        If it does not exist, is a folder, is too large, or is a pipe that sends no data.

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
        raise _unreadable(repr(str(path)), "it is not a valid file name") from None
    try:
        kind = os.fstat(handle).st_mode
        if stat.S_ISDIR(kind):
            raise _unreadable(path, "it is a folder")
        if stat.S_ISREG(kind):
            FILES_READ.setdefault(identity(os.fstat(handle)), str(path))
        content = bytearray()
        while chunk := _chunk(path, handle, is_pipe=not stat.S_ISREG(kind), started=bool(content)):
            content += chunk
            if len(content) > most:
                raise _unreadable(path, f"too large; the limit is {most:,} bytes")
        return bytes(content)
    except OSError as error:
        if isinstance(error, UnreadableError):
            raise
        raise _unreadable(path, error.strerror or str(error)) from None
    finally:
        os.close(handle)


@contextlib.contextmanager
def mapped(path: str | Path, most: int = MOST_BYTES) -> Iterator[bytes | mmap.mmap]:
    """Memory-map a file, so that only the pages that are accessed are read from disk.

    Parameters
    ----------
    path, most
        As for :func:`read_bytes`; a pipe cannot be mapped.

    Raises
    ------
    UnreadableError
        If it does not exist, is not a regular file, or is too large.

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
            raise _unreadable(path, "it is not a regular file")
        FILES_READ.setdefault(identity(status), str(path))
        if status.st_size > most:
            raise _unreadable(path, f"too large; the limit is {most:,} bytes")
        if not status.st_size:
            yield b""
            return
        with mmap.mmap(handle, 0, access=mmap.ACCESS_READ) as content:
            yield content
    finally:
        os.close(handle)


def note_input(path: str | Path) -> None:
    """Register a file as an input, such as the weights stored next to an ONNX file.

    Examples
    --------
    >>> note_input("no such file")
    """
    with contextlib.suppress(OSError, ValueError):
        status = os.stat(path)
        FILES_READ.setdefault(identity(status), str(path))


def identity(status: os.stat_result) -> tuple[int, int]:
    """Return the device and inode of a file, which are the same for every name and link of it.

    Examples
    --------
    >>> identity(os.stat(os.curdir)) == identity(os.stat(os.path.abspath(os.curdir)))
    True
    """
    return status.st_dev, status.st_ino


def _chunk(path: str | Path, handle: int, *, is_pipe: bool, started: bool) -> bytes:
    if not is_pipe:
        return os.read(handle, _CHUNK)
    end = time.monotonic() + _TIMEOUT
    while time.monotonic() < end:
        select.select([handle], [], [], 0.1)
        try:
            chunk = os.read(handle, _CHUNK)
        except BlockingIOError:  # a writer is connected but has not written yet
            continue
        if chunk or started:
            return chunk
        time.sleep(0.05)  # no writer is connected yet
    raise _unreadable(path, f"it is a pipe that sent no data for {_TIMEOUT:g} s")


def unpacked(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file, decompressed where its name ends in ``.gz``; the limit holds for both sizes.

    Raises
    ------
    UnreadableError
        If it cannot be read, is not in gzip format despite its name, or expands to more than ``most`` bytes.
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
        raise _unreadable(path, f"too large; the limit is {most:,} bytes after decompression")
    return content


def read_text(path: str | Path, most: int = MOST_BYTES) -> str:
    """Return the content of a UTF-8 text file, without its byte order mark if it has one.

    A file whose name ends in ``.gz`` is decompressed.

    Raises
    ------
    UnreadableError
        If it cannot be read, or is not UTF-8.
    """
    raw = unpacked(path, most)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _unreadable(path, f"it must be UTF-8 text, got byte {raw[error.start]:#04x} in line {line}") from None


def read_json(
    path: str | Path, most: int = MOST_BYTES, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """Return the content of a JSON file.

    Parameters
    ----------
    path, most
        As for :func:`read_bytes`.
    pairs
        The ``object_pairs_hook`` of ``json.loads``.

    Raises
    ------
    UnreadableError
        If it cannot be read, is not JSON, contains ``NaN`` or numbers of thousands of digits, or is nested too
        deeply.
    """
    text = read_text(path, most)
    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=_refused)
    except RecursionError:
        raise _unreadable(path, "not readable as JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise _unreadable(path, f"not readable as JSON: {error.msg} in line {error.lineno}") from None
    except ValueError as error:
        raise _unreadable(path, f"not readable as JSON: {str(error).partition(';')[0]}") from None


def yaml_of(text: str) -> Any:
    """Return YAML text as plain data, parsed by libyaml if available, which is seven times as fast.

    Raises
    ------
    yaml.YAMLError
        If it is not valid YAML.

    Examples
    --------
    >>> yaml_of("launch: 4.5e-06")
    {'launch': 4.5e-06}
    """
    import yaml

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def shipped_text(package: str, name: str) -> str:
    """Return a text file that ships with a package of mlsys: a schema, a style sheet, a script.

    Examples
    --------
    >>> shipped_text("mlsys.widgets", "lab.css").splitlines()[0]
    '.mlsys-lab { max-width: 860px; }'
    """
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def csv_records(path: str | Path, most: int = MOST_BYTES) -> list[tuple[int, list[str]]]:
    """Return the cells of each non-empty row of a CSV file, with the number of its first line.

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
    raise ValueError(f"{constant} is not a number")


def _unreadable(path: str | Path, why: str) -> UnreadableError:
    return UnreadableError(errno.EINVAL, why, str(path))
