"""Write the typed rows of all shipped measurements: ``python -m mlsys_evidence.ingest``."""

import gzip
from collections import Counter

from mlsys.cli.common import say
from mlsys.files import write_bytes
from mlsys_evidence.ingest.resolve import resolve
from mlsys_evidence.rows import cited, row_files, typed_place
from mlsys_evidence.typed_rows import check, typed_text


def typed_rows_of(name: str) -> str:
    """Return the typed rows of a file of measurements as CSV text."""
    rows = [resolve(row) for row in cited(name)]
    for row in rows:
        check(row)
    return typed_text(rows)


def main() -> None:
    """Write the typed rows of each file of measurements, and print how many."""
    counts: Counter[str] = Counter()
    for name in row_files():
        text = typed_rows_of(name)
        counts[name] = text.count("\n") - 1
        write_bytes(typed_place(name), gzip.compress(text.encode(), 9, mtime=0))
    for name, rows in counts.items():
        say(f"{name:<28} {rows:>6} rows")


if __name__ == "__main__":
    main()
