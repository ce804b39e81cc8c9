"""A typed row in the making."""

import re
from typing import Any

from mlsys.calibration.rows import Row
from mlsys.frozen import FrozenDict
from mlsys_evidence.ingest.reading import batch_of, device_of, number_format
from mlsys_evidence.ingest.software import libraries_in, release_of, written_in
from mlsys_evidence.typed_rows import TypedRow


class Draft:
    """Columns of a typed row that a reader fills in from the words of a row.

    Attributes
    ----------
    citation, row
        The row as it was published, and as its source shows that it is meant.
    """

    def __init__(self, row: Row) -> None:
        self.citation = self.row = row
        self.columns: dict[str, Any] = {"version": "", "batch": batch_of(row)}
        self.columns |= {"release": release_of(row.software), "dated": written_in(row.software)}
        self.libraries = libraries_in(row)
        self.features: set[str] = set()
        self.numbers: dict[str, float] = {}

    def set(self, **columns: object) -> None:
        """Fill in columns."""
        self.columns |= columns

    def on(self, *, cpu: bool = False, several: bool = False, name: str = "") -> None:
        """Fill in the device, by the name that the source has for it, or another."""
        device, share = device_of(name or self.row.device, cpu=cpu, several=several)
        self.set(device=device.id, share=share)

    def in_format(self, words: str | None = None) -> None:
        """Fill in the number formats, by the words of the row, or others."""
        fmt = number_format(self.row.precision if words is None else words)
        self.set(
            computes=fmt.computes, weight_bytes=fmt.weight, value_bytes=fmt.value, vector_unit=fmt.vector_unit
        )  # fmt: skip

    def mark(self, name: str, pattern: str, text: str, flags: int = 0) -> bool:
        """Note a feature where a pattern is found in a text, and return whether it is."""
        found = re.search(pattern, text, flags) is not None
        if found:
            self.features.add(name)
        return found

    def take(self, name: str, pattern: str, text: str, flags: int = 0) -> bool:
        """Note the number that a pattern's first group finds in a text, and return whether it does."""
        found = re.search(pattern, text, flags)
        if found is None or found[1] is None:
            return False
        digits = found[1].replace(",", "")
        self.numbers[name] = int(digits) if digits.isdigit() else float(digits)
        return True

    def done(self) -> TypedRow:
        """Return the typed row."""
        return TypedRow(
            self.citation, **self.columns, libraries=frozenset(self.libraries), features=frozenset(self.features),
            numbers=FrozenDict(self.numbers),
        )  # fmt: skip
