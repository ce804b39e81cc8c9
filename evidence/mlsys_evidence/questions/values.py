"""Rates of arithmetic among published values."""

from mlsys.calibration.rows import Row

# Operations of integers are counted like FLOP, two for a multiply-add.
_ARITHMETIC = {f"{prefix}{kind}/s": scale for kind in ("FLOP", "OP") for prefix, scale in (("G", 1e9), ("T", 1e12))}


def operations_a_second(row: Row) -> float:
    """Return the operations per second that a row states, or 0 where it states something else.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from mlsys_evidence.rows import shipped_rows
    >>> row = replace(shipped_rows()[0], value=86.0, unit="TOP/s")
    >>> operations_a_second(row) / 1e12, operations_a_second(replace(row, unit="ms"))
    (86.0, 0.0)
    """
    return row.value * _ARITHMETIC.get(row.unit, 0.0)
