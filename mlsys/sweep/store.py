"""Storage of a sweep's points in a folder: pieces as they are computed, and the complete results.

Files are written atomically and verified when read: a piece is named after the checksum of its bytes, and
``SHA256SUMS``, which ``sha256sum -c`` reads, has those of the results. A damaged piece is set aside, and its points are
computed again. Only one sweep writes at a time.
"""

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlsys.errors import ArgumentError, UnreadableError
from mlsys.files import DRAFTS, together, write_bytes, write_text
from mlsys.inputs import read_bytes, read_json, read_text
from mlsys.sweep.point_table import PointTable
from mlsys.sweep.sizing_table import SizingTable
from mlsys.sweep.table import SweepTable

_MOST_BYTES = 1 << 32  # limit of a piece or of the results
_MANIFEST, _PIECES, _DAMAGED, _LOCK = "sweep.json", "pieces", "damaged", ".lock"
_PARQUET, _CSV, _SUMS = "results.parquet", "results.csv", "SHA256SUMS"


class Folder:
    """The files of one sweep.

    Parameters
    ----------
    path
        The folder; created when something is written.
    table
        Table whose rows are stored.

    Raises
    ------
    ArgumentError
        If pyarrow, which reads and writes Parquet, is not installed.
    """

    def __init__(self, path: str | Path, table: type[PointTable[Any]] = SweepTable) -> None:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise ArgumentError(
                "a folder of results needs pyarrow, which writes Parquet: pip install 'mlsys[sweep]'"
            ) from None
        self.path = Path(path)
        self.table = table

    @property
    def manifest(self) -> dict[str, Any]:
        """Manifest of the folder; empty if there is none that can be read."""
        try:
            content = read_json(self.path / _MANIFEST)
        except UnreadableError:
            return {}
        return content if isinstance(content, dict) else {}

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Create the folder and lock it against other sweeps; remove incomplete files of a killed process.

        Raises
        ------
        ArgumentError
            If the folder has other contents, or another sweep is using it.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ArgumentError(f"{self.path} is a file; results go into a folder. Choose another name")
        if self.path.is_dir() and not (self.path / _MANIFEST).exists():
            others = [
                path for path in self.path.iterdir() if path.name not in (_PIECES, _LOCK) and not path.match(DRAFTS)
            ]
            if others:
                raise ArgumentError(f"{self.path} is not empty and was not created by a sweep. Choose another folder")
        try:
            (self.path / _PIECES).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArgumentError(f"{self.path} cannot be created: {error.strerror}. Choose another folder") from None
        with _locked(self.path / _LOCK, self.path):
            for left in (*self.path.glob(DRAFTS), *(self.path / _PIECES).glob(DRAFTS)):
                left.unlink(missing_ok=True)
            yield

    def describe(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest of the folder."""
        write_text(self.path / _MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")

    def write(self, rows: Sequence[tuple[Any, ...]], provenance: Mapping[str, str]) -> None:
        """Store a piece, under the checksum of its bytes."""
        raw = _parquet(self.table, rows, provenance)
        write_bytes(self.path / _PIECES / f"{_digest(raw)}.parquet", raw)

    def rows(self, wanted: Iterable[str]) -> tuple[dict[str, tuple[Any, ...]], int, list[str]]:
        """Return the rows of the given content ids, the number of other rows, and the damaged pieces."""
        ids = set(wanted)
        kept: dict[str, tuple[Any, ...]] = {}
        others: set[str] = set()
        damaged = []
        for path in sorted((self.path / _PIECES).glob("*.parquet")):
            columns = _piece(path, self.table)
            if columns is None:
                self._put_aside(path)
                damaged.append(path.name)
                continue
            for row in zip(*(columns[column.name] for column in self.table.COLUMNS), strict=True):
                if row[0] in ids:
                    kept[row[0]] = row
                else:
                    others.add(row[0])
        return kept, len(others), damaged

    def _put_aside(self, path: Path) -> None:
        """Move a damaged piece aside."""
        (self.path / _DAMAGED).mkdir(exist_ok=True)
        os.replace(path, self.path / _DAMAGED / path.name)

    def finish(self, table: PointTable[Any]) -> None:
        """Write the complete sweep in order, as Parquet and CSV with checksums, atomically."""
        parts = {
            _PARQUET: _parquet(self.table, [tuple(row) for row in table], table.provenance),
            _CSV: table.csv().encode("utf-8"),
        }
        with together() as files:
            for name, raw in parts.items():
                files.bytes(self.path / name, raw)
            sums = "".join(f"{hashlib.sha256(raw).hexdigest()}  {name}\n" for name, raw in parts.items())
            files.text(self.path / _SUMS, sums)

    @property
    def finished(self) -> PointTable[Any] | None:
        """The complete sweep, if it is finished.

        Raises
        ------
        ArgumentError
            If it has been modified.
        """
        path = self.path / _PARQUET
        if not path.is_file():
            return None
        raw = read_bytes(path, _MOST_BYTES)
        try:
            sums = read_text(self.path / _SUMS)
        except UnreadableError:
            sums = ""
        if f"{hashlib.sha256(raw).hexdigest()}  {_PARQUET}" not in sums.splitlines():
            raise ArgumentError(
                f"{path} was modified (its checksum differs from {_SUMS}). "
                f"Rebuild it from its pieces with: mlsys sweep SPEC.yaml --out {self.path}"
            )
        for table in (SweepTable, SizingTable):
            columns = _columns_of(raw, table)
            if columns is not None:
                return table.of(columns, _provenance_of(raw))
        return None


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:32]


@contextlib.contextmanager
def _locked(path: Path, folder: Path) -> Iterator[None]:
    """Hold a lock, which the system releases when this process ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)  # do not block on a named pipe
    try:
        handle = os.open(path, flags, 0o666)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be locked: {error.strerror}. Choose another folder") from None
    with os.fdopen(handle, "rb+", buffering=0) as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ArgumentError(f"{path} is not a regular file and cannot be the lock of a sweep. Remove it")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ArgumentError(
                f"another sweep is using {folder}. Wait until it ends, or choose another folder"
            ) from None
        except OSError:  # a file system without locks
            pass
        yield


def _schema(table: type[PointTable[Any]], provenance: Mapping[str, str]) -> Any:
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    entries = [pa.field(column.name, types[column.type], metadata={"unit": column.unit}) for column in table.COLUMNS]
    return pa.schema(entries, metadata={f"mlsys.{name}": value for name, value in provenance.items()})


def _parquet(table: type[PointTable[Any]], rows: Sequence[tuple[Any, ...]], provenance: Mapping[str, str]) -> bytes:
    """Return rows as the bytes of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema(table, provenance)
    values = list(zip(*rows, strict=True)) or [()] * len(schema)
    columns = [pa.array(list(value), entry.type) for value, entry in zip(values, schema, strict=True)]
    stream = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), stream, compression="zstd")
    return bytes(stream.getvalue())


def _piece(path: Path, table: type[PointTable[Any]]) -> dict[str, list[Any]] | None:
    """Return the columns of a piece, or None if its checksum does not match its name."""
    try:
        raw = read_bytes(path, _MOST_BYTES)
    except UnreadableError:
        return None
    return _columns_of(raw, table) if _digest(raw) == path.stem else None


def _columns_of(raw: bytes, kind: type[PointTable[Any]]) -> dict[str, list[Any]] | None:
    """Return the columns of a file, or None if it is not a complete file of a sweep."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(raw))
    except (pa.ArrowException, OSError, ValueError):
        return None
    if table.column_names != [column.name for column in kind.COLUMNS]:
        return None
    columns: dict[str, list[Any]] = table.to_pydict()
    return columns


def _provenance_of(raw: bytes) -> dict[str, str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = pq.read_schema(pa.BufferReader(raw)).metadata or {}
    return {
        key.decode().removeprefix("mlsys."): value.decode()
        for key, value in metadata.items()
        if key.startswith(b"mlsys.")
    }
