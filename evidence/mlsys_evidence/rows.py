"""The measurements that are shipped, where they come from, and the typed row of each."""

from functools import cache, lru_cache
from pathlib import Path

from mlsys.calibration.rows import Row, read_rows
from mlsys.frozen import FrozenDict
from mlsys.inputs import read_text, yaml_of
from mlsys_evidence.ingest.resolve import resolve
from mlsys_evidence.typed_rows import TypedRow, read_typed

DATA = Path(__file__).parent / "data"
TYPED = DATA / "typed"


@lru_cache(maxsize=1)
def shipped_rows() -> tuple[Row, ...]:
    """Return the measurements that come with this distribution.

    Examples
    --------
    >>> rows = shipped_rows()
    >>> all(row.source in sources() for row in rows)
    True
    """
    return tuple(cited("measured.csv") + cited("measured_more.csv.gz"))


@lru_cache(maxsize=1)
def cited_rows() -> tuple[Row, ...]:
    """Return the few measurements that are single facts of sources which cannot be redistributed.

    They are the only evidence of some kinds of software; they are in the fit and in no score.
    """
    return tuple(cited("cited.csv"))


@lru_cache(maxsize=1)
def sources() -> FrozenDict[str, FrozenDict[str, str]]:
    """Return title, address, licence and attribution of each source of the shipped rows."""
    read = yaml_of(read_text(DATA / "sources.yaml"))
    return FrozenDict({key: FrozenDict(entry) for key, entry in read.items()})


@cache
def _cited(name: str) -> tuple[Row, ...]:
    return tuple(read_rows(DATA / name))


def cited(name: str) -> list[Row]:
    """Return the measurements in a file of the data folder, as they were published."""
    return list(_cited(name))


def typed_place(name: str) -> Path:
    """Return the file of the typed rows of a file of measurements."""
    return TYPED / f"{name.removesuffix('.gz').removesuffix('.csv')}.csv.gz"


@lru_cache(maxsize=1)
def row_files() -> tuple[str, ...]:
    """Return the names of the files of measurements, those of the fit first."""
    first = ("measured.csv", "measured_more.csv.gz", "cited.csv")
    others = sorted(DATA.glob("blind_evaluation_*.csv.gz"))
    blind = [path.name for path in others if not path.name.endswith("_first.csv.gz")]
    return (*first, *blind, "card_power.csv.gz")


@cache
def _stored(name: str) -> dict[str, TypedRow]:
    place = typed_place(name)
    return {each.row.id: each for each in read_typed(place, _cited(name))} if place.exists() else {}


@lru_cache(maxsize=1)
def _place_of_an_id() -> dict[str, str]:
    """Return the file of the fit that holds each id; others are looked for in turn."""
    return {row.id: name for name in row_files()[:3] for row in _cited(name)}


@lru_cache(maxsize=1 << 16)
def typed(row: Row) -> TypedRow:
    """Return the typed row of a measurement: the stored one, or what ingest makes of a row that is not shipped.

    Examples
    --------
    >>> row = typed(shipped_rows()[0])
    >>> row.operation, row.device, row.computes, row.number("threads"), row.number("image")
    ('network', 'EPYC_7742', 'fp16', 1, 224)
    """
    known = _place_of_an_id().get(row.id)
    for name in (known,) if known else row_files()[3:]:
        stored = _stored(name).get(row.id)
        if stored is not None:
            return stored if stored.row == row else resolve(row)
    return resolve(row)
