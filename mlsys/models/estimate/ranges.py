"""How far an estimate may be off: an interval that holds four measurements in five.

The interval is a pair of quantiles, in units of how far the estimate is expected to be off: where a
machine, a network or a software was never measured, that is more, and the interval is wider.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlsys.by_line import EntriesByLine
from mlsys.files import Drafts
from mlsys.frozen import FrozenDict
from mlsys.models.estimate.effects import USUAL, spread_of
from mlsys.models.estimate.library import calibrated, fallback_stack, machines
from mlsys.models.estimate.user_calibration import calibrated_spread

_PLACE = Path(__file__).parent / "ranges.yaml"
COVERAGE = 0.8
# Standard deviations of a normal distribution, either way, that hold so many.
FOUR_IN_FIVE = 1.2816
# Where nothing like the question was measured: the estimate is good for its order of magnitude.
UNKNOWN = (0.4, 2.5)
# Of whoever measured: no width for the habits of sources.
ALL_SOURCES = "*"
# A source that the fit does not know: its habits, and its program's, are nobody's on record. Told by the first answers
# to the second and third examination, each source counting as the root of its rows, so that a tenth of them lies beyond
# each end (``strangers_missed`` of the evidence); the fourth tested
# it in sight, the fifth blind.
# Downwards, in logarithms: this part of what the lower bound leaves, of at most so much of it, beside what is told of
# sweeps; and never more than half of what it leaves.
LEFT_BELOW, MOST_LEFT, AT_MOST = 1 / 3, 2.0, 0.5
# Upwards: a millisecond of usual uncertainty takes so much longer, in logarithm; a time ten times as long a fifth less,
# since what is paid for each call is a smaller part of it.
SLOWER, A_CALL, LESS = 1.35, 1e-3, 0.1
# Times beyond these count as these: in them no stranger was heard.
SHORTEST, LONGEST = 1e-5, 10.0
# A time that hangs on how it is started and timed.
SHORT = 1e-4
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
        What it rests on: how many sweeps, left out whole, of which software; and what makes it wide: what of the
        question was never measured, a source that nobody knows, a time so short that its start decides.
    """

    low: float
    high: float
    why: str

    def of_value(self, inverse: bool = False) -> tuple[float, float]:
        """Return the factors of a value: of a time, or of a rate, which falls as time grows."""
        return (1 / self.high, 1 / self.low) if inverse else (self.low, self.high)


_Entry = FrozenDict[str, Any]
# Between a kind of work and the setting that does it beside others.
_OF_WORK = " by "
# What of a question was never measured, where a range says so.
_NAMED = {"machine": "machine", "network": "network", "network family": "family of networks"}


@lru_cache(maxsize=1)
def fitted_ranges() -> Mapping[str, _Entry]:
    """Return the intervals as they were fitted, by setting."""
    return EntriesByLine(_PLACE, FrozenDict)


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
    setting: str,
    device: str = "",
    network: str = "",
    *,
    measured: bool = False,
    version: str = "",
    source: str = "",
    work: str = "",
    seconds: float | None = None,
    bound: float | None = None,
) -> Range:
    """Return the interval of an estimate.

    Parameters
    ----------
    setting
        Kind of software on a class of machine, as for :func:`mlsys.models.estimate.library.parameters_of`.
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
        of the setting the fit knows, the interval holds them; for any other it is :func:`unknown_source_interval`.
    work
        Kind of work, such as ``"layer norm"``; a setting may do several, each told as near as it is.
    seconds, bound
        The estimate and its lower bound, where there is one.

    Examples
    --------
    >>> reach = range_of("an abacus", source="*")
    >>> reach.low, reach.high, reach.why
    (0.4, 2.5, 'nothing like it was measured')
    """
    return range_without_time(
        setting, device, network, measured=measured, version=version, source=source, work=work
    ).at(seconds, bound)


@dataclass(frozen=True)
class RangeWithoutTime:
    """What the interval of an estimate rests on before the estimate itself is known.

    Attributes
    ----------
    known
        The interval for the sources on record.
    spread
        As for :func:`unknown_source_interval`; None where it is the interval for whoever measures.
    """

    known: Range
    spread: float | None

    def at(self, seconds: float | None = None, bound: float | None = None) -> Range:
        """Return the interval about an estimate, with its bound where there is one."""
        return self.known if self.spread is None else unknown_source_interval(self.known, self.spread, seconds, bound)


def range_without_time(
    setting: str,
    device: str = "",
    network: str = "",
    *,
    measured: bool = False,
    version: str = "",
    source: str = "",
    work: str = "",
) -> RangeWithoutTime:
    """Return what the intervals of all estimates of a question have in common; arguments as of :func:`range_of`."""
    own = bool(device) and calibrated(setting, device) is not None
    seen = own or measured or device in machines().get(setting, FrozenDict({}))
    spread, unseen = spread_of(setting, device, network, version)
    after = calibrated_spread(device) if own else None
    reach = range_at(setting, device, spread, seen=seen or after is not None, work=work)
    if after is not None:
        return RangeWithoutTime(after_ten(reach, after), None)
    missing = [_NAMED[group] for group in unseen if group in _NAMED and (network or group == "machine")]
    reach = Range(reach.low, reach.high, reach.why + "".join(f"; never measured: this {words}" for words in missing))
    on_record = measured or source in (ALL_SOURCES, *_entry(setting, device)[1].get("sources", ()))
    return RangeWithoutTime(reach, None if on_record else spread)


def unknown_source_interval(
    reach: Range, spread: float, seconds: float | None = None, bound: float | None = None
) -> Range:
    """Return the interval for measurements of a source that the fit does not know.

    Makers and tuners fill the record; whoever else measures is slower rather than faster. How much faster, the bound
    limits: the nearer an estimate is to it, the less is left to gain. How much slower, nothing limits; it is more where
    more is unknown, and for short times, in which the start and the clock of each call decide.

    Parameters
    ----------
    reach
        For the sources on record.
    spread
        How far the estimate is expected to be off, one standard deviation of its logarithm.
    seconds, bound
        The estimate and its lower bound; as a millisecond, and as far from its bound as usual, where they are not said.

    Examples
    --------
    >>> known = Range(0.7, 1.4, "12 rows in 3 sweeps of this software, sweeps left out")
    >>> times = ((1e-5, 1e-6), (1.0, 0.1), (1.0, 0.8))
    >>> short, long, near = (unknown_source_interval(known, 0.25, *each) for each in times)
    >>> [f"{each.low:.2f} to {each.high:.1f}" for each in (short, long, near)]
    ['0.47 to 8.7', '0.47 to 2.1', '0.89 to 2.1']
    """
    low, high = -math.log(reach.low), math.log(reach.high)
    left = max(math.log(seconds / bound), 0.0) if seconds and bound else None
    down = math.hypot(low, LEFT_BELOW * min(1.0 if left is None else left, MOST_LEFT))
    near = left is not None and AT_MOST * left < down
    down = AT_MOST * left if near and left is not None else down
    time = min(max(seconds or A_CALL, SHORTEST), LONGEST)
    up = math.hypot(high, SLOWER * math.sqrt(spread / USUAL) * (time / A_CALL) ** -LESS)
    why = f"{reach.why}; wider, as who measures is not on record: strangers are slower rather than faster"
    why += ", most of all in so short a time" if seconds is not None and seconds < SHORT else ""
    why += ", and faster by half of what the bound leaves at most" if near else ""
    return Range(math.exp(-down), math.exp(up), why)


def after_ten(usual: Range, spread: float) -> Range:
    """Return the interval of an estimate that measurements of the machine calibrated.

    Two things tell how far off it is: the sweeps of its software, which others measured, and the machine's own rows,
    each told from the others. Neither is sure: the sweeps hold what the machine's own rows have told since, and a few
    rows tell a spread within a factor of two. Each may be too wide as well as too narrow by a factor, so that the
    middle of the two is their geometric mean. On which side more lies was a habit of machines, which is learned.

    Parameters
    ----------
    usual
        Of its setting, sweeps left out.
    spread
        How far off a further row is expected to be, one standard deviation of its logarithm.

    Examples
    --------
    >>> reach = after_ten(Range(0.5, 2.0, "12 rows in 3 sweeps of this software, sweeps left out"), 0.1)
    >>> f"{reach.low:.2f} {reach.high:.2f}"
    '0.74 1.35'
    """
    others = math.log(usual.high / usual.low) / 2
    far = math.exp(math.sqrt(others * FOUR_IN_FIVE * spread))
    return Range(1 / far, far, f"calibrated by measurements of this machine; {usual.why}")


def work_in(work: str, setting: str) -> str:
    """Return under which name the interval of one kind of work is kept where a setting does several."""
    return f"{work}{_OF_WORK}{setting}"


def _entry(setting: str, device: str, work: str = "") -> tuple[str, _Entry]:
    """Return the setting whose interval is that of another's, or its own, and what was fitted of it; empty if none."""
    known = fitted_ranges()
    own = (setting_on(setting, device), setting)
    wanted = (*(work_in(work, each) for each in own), *own)
    key = next((name for name in wanted if name in known), "")
    key = key or fallback_stack(setting, [name for name in known if _OF_WORK not in name])
    return key.rpartition(_OF_WORK)[2], known.get(key, FrozenDict({}))


def range_at(setting: str, device: str, spread: float, *, seen: bool, work: str = "") -> Range:
    """Return the interval of an estimate that is expected to be off by ``spread``, for the sources on record.

    Parameters
    ----------
    setting, device, work
        As for :func:`range_of`.
    spread
        One standard deviation, in logarithm of time.
    seen
        Whether the machine was measured in the setting.
    """
    key, entry = _entry(setting, device, work)
    if not key:
        return Range(*UNKNOWN, "nothing like it was measured")
    if key not in (setting_on(setting, device), setting):
        far = math.exp(float(entry["lent"]))
        return Range(1 / far, far, f"this software was never measured here; {key} stands in")
    low, high = (math.exp(float(part) * spread) for part in entry["seen" if seen else "unseen"])
    left_out = "sweeps" if seen else "machines"
    others = "" if entry["of"] == "of its own" else f" and those {entry['of']}"
    sweeps = f"{entry['sweeps']} sweep{'s' if entry['sweeps'] != 1 else ''}"
    return Range(low, high, f"{entry['rows']} rows in {sweeps} of this software{others}, {left_out} left out")


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
        "# expected to be off; how far off, in that logarithm, its estimates are of software that was never measured,",
        "# and that it stands in for; and who measured it.",
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
        parts += [f"lent: {entry['lent']:.4g}", f"sources: {json.dumps(entry['sources'])}"]
        lines.append(f"{setting}: {{{', '.join(parts)}}}")
    files.text(path, "\n".join(lines) + "\n")
