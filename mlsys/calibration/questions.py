"""From a measured row to the machine and the work that the models time."""

from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import entry_points
from typing import cast

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.rows import Row

READERS = "mlsys.row_readers"
"""Entry points of this group read rows in the words of published sources."""


@lru_cache(maxsize=1)
def _free_text_reader() -> Callable[[Row], Case] | None:
    """Return what reads rows in words, where a distribution that can is installed."""
    found = next(iter(entry_points(group=READERS)), None)
    return cast(Callable[[Row], Case], found.load()) if found else None


def interpret(row: Row) -> Case:
    """Return a row as a case.

    Raises
    ------
    Inexpressible
        If no model can express it; the text is the reason.
    """
    reader = _free_text_reader()
    if reader is None:
        raise Inexpressible("a row in the words of its source. To read it, type: pip install mlsys-evidence")
    return reader(row)
