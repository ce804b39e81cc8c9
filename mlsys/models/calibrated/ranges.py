"""How far an estimate may be off: an interval that holds four measurements in five, by setting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlsys.files import Drafts
from mlsys.frozen import FrozenDict
from mlsys.models.calibrated.library import calibrated, machines, nearest

__all__ = ["COVERAGE", "Range", "fitted_ranges", "range_of", "save_ranges"]

_PLACE = Path(__file__).parent / "ranges.yaml"
COVERAGE = 0.8
# Where nothing like the question was measured: the estimate is good for its order of magnitude.
UNKNOWN = (0.4, 2.5)


@dataclass(frozen=True)
class Range:
    """The interval about an estimate of time, as factors of it.

    Attributes
    ----------
    low, high
        Four measurements in five lie between ``low`` and ``high`` times the estimate.
    why
        What it rests on: how many sweeps, left out whole, of which software; or that there is none.
    """

    low: float
    high: float
    why: str

    def of_value(self, inverse: bool = False) -> tuple[float, float]:
        """Return the factors of a value: of a time, or of a rate, which falls as time grows."""
        return (1 / self.high, 1 / self.low) if inverse else (self.low, self.high)


_Entry = FrozenDict[str, Any]


@lru_cache(maxsize=1)
def fitted_ranges() -> FrozenDict[str, _Entry]:
    """Return the intervals as they were fitted, by setting."""
    import yaml

    if not _PLACE.exists():
        return FrozenDict({})
    with _PLACE.open(encoding="utf-8") as stream:
        read = yaml.safe_load(stream) or {}
    return FrozenDict({setting: FrozenDict(values) for setting, values in read.items()})


def range_of(setting: str, device: str = "") -> Range:
    """Return the interval of an estimate.

    Parameters
    ----------
    setting
        Kind of software on a class of machine, as for :func:`mlsys.models.calibrated.library.parameters_of`.
    device
        Id of a twin. If it was measured in the setting, the interval is that of sweeps left out whole;
        if not, the wider one of machines left out whole.

    Examples
    --------
    >>> found = range_of("an abacus")
    >>> found.low, found.high, found.why
    (0.4, 2.5, 'nothing like it was measured')
    """
    known = fitted_ranges()
    own = bool(device) and calibrated(setting, device) is not None
    if setting not in known:
        setting = nearest(setting, known)
        if not setting:
            return Range(*UNKNOWN, "nothing like it was measured")
    entry = known[setting]
    seen = own or device in machines().get(setting, FrozenDict({}))
    low, high = entry["seen" if seen else "unseen"]
    what = "sweeps left out" if seen else "machines left out"
    return Range(float(low), float(high), f"{entry['rows']} rows in {entry['sweeps']} sweeps, {what}: {entry['of']}")


def save_ranges(found: dict[str, dict[str, Any]], files: Drafts, path: Path = _PLACE) -> None:
    """Draft the intervals of every setting."""
    lines = [
        "# 80 % intervals as factors of the estimated time; fitted by `mlsys validate --refit`, not edited by hand."
    ]
    for setting in sorted(found):
        entry = found[setting]
        parts = []
        for name in ("seen", "unseen"):
            low, high = entry[name]
            if not (0 < low <= high < math.inf):
                raise AssertionError(f"{setting}: {low} to {high}")
            parts.append(f"{name}: [{low:.4g}, {high:.4g}]")
        lines.append(
            f'{setting}: {{{", ".join(parts)}, rows: {entry["rows"]}, sweeps: {entry["sweeps"]}, of: "{entry["of"]}"}}'
        )
    files.text(path, "\n".join(lines) + "\n")
