"""Conversion of published values to times."""

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.rows import Row

_SECONDS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "s": 1.0}
_RATES = (
    "samples/s", "images/s", "queries/s", "sequences/s", "sentences/s", "inferences/s", "frames/s", "tokens/s",
    "iterations/s", "tokens/s/GPU", "tokens/s/chip",
)  # fmt: skip
_BANDWIDTHS = {"GB/s": 1e9, "TB/s": 1e12, "MB/s": 1e6}


def seconds_each(row: Row, per_unit: float = 1.0) -> tuple[float, bool]:
    """Return the time of ``per_unit`` units of output, and whether the row states a rate."""
    if row.unit in _SECONDS:
        return row.value * _SECONDS[row.unit], False
    if row.unit in _RATES:
        return per_unit / row.value, True
    raise Inexpressible(f"{row.metric} in {row.unit} is not a time or a rate of work, such as ms or samples/s")


def bytes_a_second(row: Row) -> float:
    """Return the bandwidth stated by a row, byte/s.

    Raises
    ------
    Inexpressible
        If it states another quantity.
    """
    scale = _BANDWIDTHS.get(row.unit)
    if scale is None:
        raise Inexpressible(f"{row.metric} in {row.unit} is not a bandwidth: write GB/s, TB/s or MB/s")
    return row.value * scale
