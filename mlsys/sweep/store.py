"""A folder that holds the points of a sweep: pieces as they are made, and the whole when it is done.

Every file is written under a temporary name and renamed when it is complete, so that whatever
stops the program, a file is there as a whole or not at all. What is read is known by the content
ids in it, not by the name of its file.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from mlsys.errors import ArgumentError
from mlsys.files import atomically
from mlsys.sweep.table import COLUMNS, SweepRow, SweepTable

__all__ = ["Folder"]

_MANIFEST, _PIECES = "sweep.json", "pieces"


class Folder:
    """The files of one sweep.

    Parameters
    ----------
    path
        Where they lie; made when something is written.

    Raises
    ------
    ArgumentError
        If pyarrow, which reads and writes Parquet, is not installed.
    """

    def __init__(self, path: str | Path) -> None:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise ArgumentError(
                "a folder of results needs pyarrow, which writes Parquet: pip install 'mlsys[sweep]'"
            ) from None
        self.path = Path(path)

    @property
    def manifest(self) -> dict[str, Any]:
        """What the folder says of itself; empty if it says nothing that can be read."""
        try:
            found = json.loads((self.path / _MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        """Make the folder, say what it is for, and clear away what a killed program left half-written."""
        if self.path.exists() and not self.path.is_dir():
            raise ArgumentError(f"{self.path} is a file; results go into a folder. Choose another name")
        if self.path.is_dir() and not (self.path / _MANIFEST).exists() and any(self.path.iterdir()):
            raise ArgumentError(f"{self.path} is not empty and no sweep has made it. Choose another folder")
        (self.path / _PIECES).mkdir(parents=True, exist_ok=True)
        for left in (*self.path.glob(".*.part"), *(self.path / _PIECES).glob(".*.part")):
            left.unlink(missing_ok=True)
        text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
        atomically(self.path / _MANIFEST, lambda place: place.write_text(text, encoding="utf-8"))

    def write(self, name: str, rows: Sequence[tuple[Any, ...]], provenance: Mapping[str, str]) -> None:
        """Keep a piece under a name."""
        _write_parquet(self.path / _PIECES / f"{name}.parquet", rows, provenance)

    def rows(self, wanted: Iterable[str]) -> tuple[dict[str, tuple[Any, ...]], int, list[str]]:
        """Return the rows of the wanted content ids, how many others there are, and files that cannot be read."""
        ids = set(wanted)
        found: dict[str, tuple[Any, ...]] = {}
        others: set[str] = set()
        broken = []
        for path in sorted((self.path / _PIECES).glob("*.parquet")):
            columns = _read_parquet(path)
            if columns is None:
                broken.append(path.name)
                continue
            for row in zip(*(columns[name] for name in SweepRow._fields), strict=True):
                if row[0] in ids:
                    found[row[0]] = row
                else:
                    others.add(row[0])
        return found, len(others), broken

    def finish(self, table: SweepTable) -> None:
        """Write the whole sweep in order: ``results.parquet`` and ``results.csv``."""
        rows = [tuple(row) for row in table]
        _write_parquet(self.path / "results.parquet", rows, table.provenance)

        def write(place: Path) -> None:
            with place.open("w", newline="", encoding="utf-8") as stream:
                write_csv(stream, rows)

        atomically(self.path / "results.csv", write)

    @property
    def finished(self) -> SweepTable | None:
        """The whole sweep, if it was finished and can be read."""
        path = self.path / "results.parquet"
        columns = _read_parquet(path) if path.is_file() else None
        return None if columns is None else SweepTable.of(columns, _provenance_of(path))


def write_csv(stream: TextIO, rows: Iterable[tuple[Any, ...]]) -> None:
    """Write rows as CSV; an empty cell is no value."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(SweepRow._fields)
    writer.writerows(rows)


def _schema(provenance: Mapping[str, str]) -> Any:
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    entries = [pa.field(column.name, types[column.type], metadata={"unit": column.unit}) for column in COLUMNS]
    return pa.schema(entries, metadata={f"mlsys.{name}": value for name, value in provenance.items()})


def _write_parquet(path: Path, rows: Sequence[tuple[Any, ...]], provenance: Mapping[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema(provenance)
    values = list(zip(*rows, strict=True)) or [()] * len(schema)
    columns = [pa.array(list(value), entry.type) for value, entry in zip(values, schema, strict=True)]
    table = pa.Table.from_arrays(columns, schema=schema)
    atomically(path, lambda place: pq.write_table(table, place, compression="zstd"))


def _read_parquet(path: Path) -> dict[str, list[Any]] | None:
    """Return the columns of a file, or None if it is no complete file of ours."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError):
        return None
    if table.column_names != list(SweepRow._fields):
        return None
    found: dict[str, list[Any]] = table.to_pydict()
    return found


def _provenance_of(path: Path) -> dict[str, str]:
    import pyarrow.parquet as pq

    metadata = pq.read_schema(path).metadata or {}
    return {
        key.decode().removeprefix("mlsys."): value.decode()
        for key, value in metadata.items()
        if key.startswith(b"mlsys.")
    }
