"""The measurements that are shipped, and where they come from."""

from functools import lru_cache
from pathlib import Path

from mlsys.calibration.rows import Row, read_rows
from mlsys.frozen import FrozenDict
from mlsys.inputs import read_text, yaml_of

DATA = Path(__file__).parent / "data"


@lru_cache(maxsize=1)
def shipped_rows() -> tuple[Row, ...]:
    """Return the measurements that come with this distribution.

    Examples
    --------
    >>> rows = shipped_rows()
    >>> all(row.source in sources() for row in rows)
    True
    """
    return tuple(read_rows(DATA / "measured.csv") + read_rows(DATA / "measured_more.csv.gz"))


@lru_cache(maxsize=1)
def cited_rows() -> tuple[Row, ...]:
    """Return the few measurements that are single facts of sources which cannot be redistributed.

    They speak where no shipped row does, so that no setting is left to guesses; they are in
    the fit and in no score.
    """
    return tuple(read_rows(DATA / "cited.csv"))


@lru_cache(maxsize=1)
def sources() -> FrozenDict[str, FrozenDict[str, str]]:
    """Return title, address, licence and attribution of each source of the shipped rows."""
    read = yaml_of(read_text(DATA / "sources.yaml"))
    return FrozenDict({key: FrozenDict(entry) for key, entry in read.items()})
