"""How far an estimate may be off: an interval that holds four measurements in five.

The interval is a pair of quantiles, in units of how far the estimate is expected to be off: where a
machine, a network or a software was never measured, that is more, and the interval is wider.
"""

import json
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlsys.files import Drafts
from mlsys.frozen import FrozenDict
from mlsys.inputs import read_text, yaml_of
from mlsys.models.calibrated.effects import spread_of
from mlsys.models.calibrated.library import calibrated, machines, nearest
from mlsys.models.calibrated.own import calibrated_spread

_PLACE = Path(__file__).parent / "ranges.yaml"
COVERAGE = 0.8
# Where nothing like the question was measured: the estimate is good for its order of magnitude.
UNKNOWN = (0.4, 2.5)
# Of whoever measured: no width for the habits of sources.
ALL_SOURCES = "*"
# Times that a range told by leaving out sources reaches for a source that nobody had seen when the laws were chosen,
# downwards and upwards: by these, four in five of the first answers to the second examination hold, each source
# counting the same (:func:`mlsys.validation.examination.missed`). What is in the record was measured by makers and
# tuners; whoever else measures is slower rather than faster.
STRANGERS = (0.82, 1.60)
# Cards for players, by their name: their drivers and limits of power are others than those of data centres.
_CONSUMER = re.compile(r"GeForce|GTX|TITAN|RTX \d{4}\b|Radeon RX")


@dataclass(frozen=True)
class Range:
    """The interval about an estimate of time, as factors of it.

    Attributes
    ----------
    low, high
        Four measurements in five lie between ``low`` and ``high`` times the estimate.
    why
        What it rests on: how many sweeps, left out whole, of which software, and what of the question was
        never measured; or that there is none.
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
    if not _PLACE.exists():
        return FrozenDict({})
    read = yaml_of(read_text(_PLACE))
    return FrozenDict({setting: FrozenDict(values) for setting, values in (read or {}).items()})


@lru_cache(maxsize=512)
def setting_on(setting: str, device: str) -> str:
    """Return the setting, told apart for consumer cards and for the processors of phones and boards.

    Examples
    --------
    >>> setting_on("stream on GPU", "RTX_4090"), setting_on("stream on GPU", "A100")
    ('stream on consumer GPU', 'stream on GPU')
    >>> setting_on("ncnn network on CPU", "RaspberryPi5")
    'ncnn network on small CPU'
    """
    from mlsys.errors import UnknownNameError
    from mlsys.hardware import Hardware

    if not device or not setting.endswith((" on GPU", " on CPU")):
        return setting
    try:
        name, group = Hardware[device].name, Hardware.class_of(device)
    except UnknownNameError:
        return setting
    if setting.endswith(" on CPU"):
        return setting.replace(" on CPU", " on small CPU") if group in ("Mobile", "Edge", "Tiny") else setting
    return setting.replace(" on GPU", " on consumer GPU") if _CONSUMER.search(name) else setting


def range_of(
    setting: str, device: str = "", network: str = "", *, measured: bool = False, version: str = "", source: str = ""
) -> Range:
    """Return the interval of an estimate.

    Parameters
    ----------
    setting
        Kind of software on a class of machine, as for :func:`mlsys.models.calibrated.library.parameters_of`.
    device
        Id of a twin. If it was measured in the setting, the interval is that of sweeps left out whole;
        if not, the wider one of machines left out whole.
    network
        Its name; the interval is wider for one that was never measured.
    measured
        Whether to answer as for a machine that was measured in the setting by who asks.
    version
        Of the software; the interval is wider where it was never measured, or is not said.
    source
        Who measures. Each has habits: what is timed, how warm, in which power mode. For one whose measurements
        of the setting the fit knows, the interval holds them; for any other it is wider by what sources differ,
        above all upwards.

    Examples
    --------
    >>> reach = range_of("an abacus", source="*")
    >>> reach.low, reach.high, reach.why
    (0.4, 2.5, 'nothing like it was measured')
    """
    own = bool(device) and calibrated(setting, device) is not None
    seen = own or measured or device in machines().get(setting, FrozenDict({}))
    spread, unseen = spread_of(setting, device, network, version)
    after = calibrated_spread(device) if own else None
    if after is not None:
        return after_ten(range_at(setting, device, spread, seen=True), after)
    if measured:
        source = ALL_SOURCES
    missing = [group for group in unseen if group in ("machine", "network") and (network or group != "network")]
    reach = range_at(setting, device, spread, seen=seen, source=source)
    return Range(reach.low, reach.high, reach.why + "".join(f"; never measured: this {group}" for group in missing))


# Parts of the scatter of its software's sweeps, and of how far ten rows leave a machine open, that are left. Chosen so
# that, with ten rows of a machine handed back, four in five of its other rows are inside, in most classes.
_LEFT, _OPEN = 0.7, 0.8


def after_ten(usual: Range, spread: float) -> Range:
    """Return the interval of an estimate that measurements of the machine calibrated.

    Parameters
    ----------
    usual
        Of its setting, sweeps left out.
    spread
        How far the measurements leave it open, in logarithm of time.

    Examples
    --------
    >>> reach = after_ten(Range(0.5, 2.0, "12 rows in 3 sweeps of this software, sweeps left out"), 0.1)
    >>> f"{reach.low:.2f} {reach.high:.2f}"
    '0.61 1.64'
    """
    low, high = (
        math.exp(sign * math.hypot(_LEFT * math.log(end), _OPEN * spread))
        for sign, end in ((-1, usual.low), (1, usual.high))
    )
    return Range(low, high, f"calibrated by measurements of this machine; {usual.why}")


def range_at(setting: str, device: str, spread: float, *, seen: bool, source: str = ALL_SOURCES) -> Range:
    """Return the interval of an estimate that is expected to be off by ``spread``, in logarithm of time.

    Parameters
    ----------
    setting, device
        As for :func:`range_of`.
    spread
        One standard deviation.
    seen
        Whether the machine was measured in the setting.
    source
        Who measures, as for :func:`range_of`.
    """
    known = fitted_ranges()
    key = next((name for name in (setting_on(setting, device), setting) if name in known), "")
    key = key or nearest(setting, known)
    entry = known.get(key, FrozenDict({"apart": 0.0, "sources": []}))
    down, up = STRANGERS
    if not key:
        reach = [math.log(part) for part in UNKNOWN]
        why = "nothing like it was measured"
    elif key not in (setting_on(setting, device), setting):
        reach = [-float(entry["lent"]), float(entry["lent"])]
        down = up = 1.0  # told by other programs as wholes, which were strangers to it
        why = f"this software was never measured here; {key} stands in"
    else:
        reach = [float(part) * spread for part in entry["seen" if seen else "unseen"]]
        left_out = "sweeps" if seen else "machines"
        others = "" if entry["of"] == "of its own" else f" and those {entry['of']}"
        sweeps = f"{entry['sweeps']} sweep{'s' if entry['sweeps'] != 1 else ''}"
        why = f"{entry['rows']} rows in {sweeps} of this software{others}, {left_out} left out"
    low, high = reach
    if source not in (ALL_SOURCES, *entry["sources"]):
        apart = float(entry["apart"])
        low, high = min(low, -down * math.hypot(low, apart)), up * math.hypot(high, apart)
        why += f"; sources differ by up to {math.exp(apart):.2f} times either way" if apart else ""
        why += "; strangers are slower rather than faster" if up > 1 else ""
    return Range(math.exp(low), math.exp(high), why)


def speed_range(first: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return between which factors of what is told the ratio of two times lies, four in five.

    What is off of two machines under one kind of software has next to nothing in common once the habits of who
    measures are left out, which a ratio does not see: between machines left out its correlation is 0.04. So the reach
    of a ratio is the root of the sum of two squares, and less than that of two ranges which must not overlap.

    Parameters
    ----------
    first, other
        Ends of the two ranges over their estimates, of one who measures both.

    Returns
    -------
    tuple of float
        Factors of the estimated ratio of the first time over the other.

    Examples
    --------
    >>> low, high = speed_range((0.5, 2.0), (0.5, 2.0))
    >>> f"{low:.2f} {high:.2f}"
    '0.38 2.67'
    """
    low, high = (math.hypot(math.log(own), math.log(its)) for own, its in zip(first, reversed(other), strict=True))
    return math.exp(-low), math.exp(high)


def save_ranges(ranges: dict[str, dict[str, Any]], files: Drafts, path: Path = _PLACE) -> None:
    """Draft the intervals of every setting."""
    lines = [
        "# 80 % intervals of the logarithm of measured over estimated time, in units of how far the estimate is",
        "# expected to be off; how far, in that logarithm, sources other than those named may lie apart; and how far",
        "# off its estimates are of software that was never measured, and that it stands in for.",
        "# Fitted by `mlsys validate --refit`, not edited by hand.",
    ]
    for setting in sorted(ranges):
        entry = ranges[setting]
        parts = []
        for name in ("seen", "unseen"):
            low, high = entry[name]
            if not -math.inf < low <= 0 <= high < math.inf:
                raise AssertionError(f"{setting}: {low} to {high}")
            parts.append(f"{name}: [{low:.4g}, {high:.4g}]")
        parts += [f"rows: {entry['rows']}", f"sweeps: {entry['sweeps']}", f'of: "{entry["of"]}"']
        parts += [
            f"apart: {entry['apart']:.4g}",
            f"lent: {entry['lent']:.4g}",
            f"sources: {json.dumps(entry['sources'])}",
        ]
        lines.append(f"{setting}: {{{', '.join(parts)}}}")
    files.text(path, "\n".join(lines) + "\n")
