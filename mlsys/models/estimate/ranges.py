"""Prediction intervals: the 80 % interval of an estimate.

The interval is a pair of quantiles, in units of the expected error of the estimate. The expected error is larger,
and the interval wider, for a machine, a network or a software that was never measured.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.by_line import EntriesByLine
from mlsys.frozen import FrozenDict
from mlsys.models.estimate.effects import USUAL, spread_of
from mlsys.models.estimate.library import calibrated, fallback_stack, machines
from mlsys.models.estimate.range_keys import OF_WORK, setting_on, work_in, work_on
from mlsys.models.estimate.user_calibration import calibrated_spread

Array = NDArray[np.float64]

_PLACE = Path(__file__).parent / "ranges.yaml"
_SOURCES = Path(__file__).parent / "unknown_sources.yaml"
COVERAGE = 0.8
# Half-width of the 80 % interval of a normal distribution, in standard deviations.
FOUR_IN_FIVE = 1.2816
# Interval where nothing similar was measured: the estimate gives the order of magnitude only.
UNKNOWN = (0.4, 2.5)
# For any source: no added width for measuring habits.
ALL_SOURCES = "*"
# For a source that was not in the fit, whose measuring habits, and whose program's, are unknown. Set from the first
# predictions for the second and third held-out evaluation, each source weighted by the root of its rows, so that a
# tenth of them lies beyond each end (``unseen_shares_outside`` of the evidence); checked in sight on the fourth and
# blind on the fifth.
# Downwards, in logarithms: this fraction of the gap to the lower bound, of at most this gap, in addition to the spread
# between sweeps; and never more than half of the gap.
LEFT_BELOW, MOST_LEFT, AT_MOST = 1 / 3, 2.0, 0.5
# Upwards: the added logarithm at one millisecond and typical uncertainty; a fifth less for a time ten times as long,
# since the fixed cost of each call is then a smaller part of it.
SLOWER, A_CALL, LESS = 1.35, 1e-3, 0.1
# The ends so found are then moved apart by a factor of their logarithms, of the kind of work and class of machine
# (``unknown_sources.yaml``), under this name for work of which no source was answered blindly; with fewer sources than
# this, an answer says that its width is drawn from other work.
ALL_KINDS, ENOUGH_SOURCES = "any", 5
# Longer times are treated as this long: no source outside the fit measured longer ones.
SHORTEST, LONGEST = 1e-5, 10.0
# Shorter times depend on how they are started and timed.
SHORT = 1e-4


@dataclass(frozen=True)
class Range:
    """The interval of an estimated time, as factors of the estimate.

    Attributes
    ----------
    low, high
        Four measurements in five lie between ``low`` and ``high`` times the estimate.
    why
        Basis of the interval: the number of sweeps left out, and of which software; and what widens it: parts of the
        question that were never measured, an unseen source, a time so short that its start dominates.
    """

    low: float
    high: float
    why: str

    def of_value(self, inverse: bool = False) -> tuple[float, float]:
        """Return the factors of a value: of a time, or of a rate, which falls as time grows."""
        return (1 / self.high, 1 / self.low) if inverse else (self.low, self.high)


_Entry = FrozenDict[str, Any]
# Words for the parts of a question that were never measured.
_NAMED = {"machine": "machine", "network": "network", "network family": "family of networks"}


@lru_cache(maxsize=1)
def fitted_ranges() -> Mapping[str, _Entry]:
    """Return the fitted intervals by setting."""
    return EntriesByLine(_PLACE, FrozenDict)


@lru_cache(maxsize=1)
def unknown_source_factors() -> Mapping[str, _Entry]:
    """Return the factors for unknown sources, by kind of work and by kind of work on a class of machine."""
    return EntriesByLine(_SOURCES, FrozenDict)


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
    """Return the 80 % interval of an estimate.

    Parameters
    ----------
    setting
        Kind of software on a class of machine, as for :func:`mlsys.models.estimate.library.parameters_of`.
    device
        Id of a device. For a device measured in the setting, the interval is that of left-out sweeps; otherwise it is
        the wider one of left-out machines.
    network
        Its name; the interval is wider for a network that was never measured.
    measured
        Whether to treat the machine as measured in the setting by the caller.
    version
        Software version; the interval is wider where it was never measured or is not given.
    source
        Who measures. Sources differ in what they time, how warm the machine is and in which power mode it runs. For a
        source in the fit the interval covers its habits; for any other it is :func:`unknown_source_interval`.
    work
        Kind of work, such as ``"layer norm"`` (:func:`work_of_network` for a network); a setting may run several, each
        with its own accuracy. Without it, a range for unknown sources is as wide as most kinds of work need.
    seconds, bound
        The estimate and its lower bound, if it has one.

    Examples
    --------
    >>> reach = range_of("an abacus", source="*")
    >>> reach.low, reach.high, reach.why
    (0.4, 2.5, 'nothing similar was measured')
    """
    return range_without_time(
        setting, device, network, measured=measured, version=version, source=source, work=work
    ).at(seconds, bound)


@dataclass(frozen=True)
class RangeWithoutTime:
    """The basis of an interval before the estimate itself is known.

    Attributes
    ----------
    known
        The interval for the sources in the fit.
    spread
        As for :func:`unknown_source_interval`; None where the interval holds for any source.
    factor, sources
        Of the logarithms of an interval for unknown sources, and the number of sources that it rests on.
    """

    known: Range
    spread: float | None
    factor: float = 1.0
    sources: int = ENOUGH_SOURCES

    def at(self, seconds: float | None = None, bound: float | None = None) -> Range:
        """Return the interval of an estimate, with its bound if it has one."""
        if self.spread is None:
            return self.known
        reach = unknown_source_interval(self.known, self.spread, seconds, bound)
        low, high = reach.low**self.factor, reach.high**self.factor
        if seconds and bound:
            low = min(max(low, bound / seconds), 1.0)
        few = "; few sources outside the fit have such work, so the range is as wide as most kinds of work need"
        return Range(low, high, reach.why + (few if self.sources < ENOUGH_SOURCES else ""))


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
    """Return the part of an interval that all estimates of a question share; arguments as for :func:`range_of`."""
    is_calibrated = bool(device) and calibrated(setting, device) is not None
    seen = is_calibrated or measured or device in machines().get(setting, FrozenDict({}))
    spread, unseen = spread_of(setting, device, network, version)
    after = calibrated_spread(device) if is_calibrated else None
    reach = range_at(setting, device, spread, seen=seen or after is not None, work=work)
    if after is not None:
        return RangeWithoutTime(after_ten(reach, after), None)
    missing = [_NAMED[group] for group in unseen if group in _NAMED and (network or group == "machine")]
    reach = Range(reach.low, reach.high, reach.why + "".join(f"; never measured: this {words}" for words in missing))
    on_record = measured or source in (ALL_SOURCES, *_entry(setting, device)[1].get("sources", ()))
    if on_record:
        return RangeWithoutTime(reach, None)
    known = unknown_source_factors()
    names = (work_on(work, setting, device), work, ALL_KINDS)
    entry = next((known[name] for name in names if name in known), FrozenDict({}))
    return RangeWithoutTime(reach, spread, float(entry.get("factor", 1.0)), int(entry.get("sources", 0)))


def unknown_source_interval(
    reach: Range, spread: float, seconds: float | None = None, bound: float | None = None
) -> Range:
    """Return the interval for measurements of a source that was not in the fit.

    The sources in the fit are vendors and tuners; others tend to be slower. The bound limits how much faster they
    can be: the nearer an estimate is to it, the less is left to gain. There is no upper limit; the interval extends
    further where more is unknown, and for short times, which depend on the start and the clock of each call.

    Parameters
    ----------
    reach
        Interval for the sources in the fit.
    spread
        Expected error of the estimate, one standard deviation of its logarithm.
    seconds, bound
        The estimate and its lower bound. Defaults: one millisecond, at a typical distance from the bound.

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
    why = f"{reach.why}; wider: the measuring source is unknown, and unseen sources tend to be slower"
    why += ", most of all for times this short" if seconds is not None and seconds < SHORT else ""
    why += "; faster by at most half of the gap to the bound" if near else ""
    return Range(math.exp(-down), math.exp(up), why)


def ends_of_ranges(reaches: Sequence[RangeWithoutTime], seconds: Array, bound: Array) -> tuple[Array, Array]:
    """Return the ends of many intervals, as factors of the estimates: :meth:`RangeWithoutTime.at` for arrays.

    Parameters
    ----------
    reaches
        Basis of each interval.
    seconds, bound
        The estimates and their lower bounds, above zero.

    Examples
    --------
    >>> reach = RangeWithoutTime(Range(0.7, 1.4, "12 rows"), 0.25)
    >>> low, high = ends_of_ranges([reach], np.array([1e-3]), np.array([5e-4]))
    >>> reach.at(1e-3, 5e-4) == Range(float(low[0]), float(high[0]), reach.at(1e-3, 5e-4).why)
    True
    """
    numbers = [(each.known.low, each.known.high, each.spread or math.nan, each.factor) for each in reaches]
    low, high, spread, factor = np.array(numbers, dtype=np.float64).reshape(len(reaches), 4).T
    left = np.maximum(np.log(seconds / bound), 0.0)
    down = np.minimum(np.hypot(np.log(low), LEFT_BELOW * np.minimum(left, MOST_LEFT)), AT_MOST * left)
    time = np.clip(seconds, SHORTEST, LONGEST)
    up = np.hypot(np.log(high), SLOWER * np.sqrt(spread / USUAL) * (time / A_CALL) ** -LESS)
    known = np.isnan(spread)
    further = np.clip(np.exp(-down * factor), bound / seconds, 1.0), np.exp(up * factor)
    return np.where(known, low, further[0]), np.where(known, high, further[1])


def after_ten(usual: Range, spread: float) -> Range:
    """Return the interval of an estimate for a machine calibrated by its own measurements.

    Two sources inform it: sweeps of its software measured by others, and the leave-one-out errors of the machine's own
    rows. Neither is certain: the sweeps contain effects that the machine's own rows have since explained, and a few
    rows determine a spread only within a factor of two. Both may be too wide or too narrow by a factor, so their
    geometric mean is used. A systematic bias is a property of the machine, which calibration removes.

    Parameters
    ----------
    usual
        Interval of the setting, from left-out sweeps.
    spread
        Expected error of a further row, one standard deviation of its logarithm.

    Examples
    --------
    >>> reach = after_ten(Range(0.5, 2.0, "12 rows in 3 sweeps of this software, sweeps left out"), 0.1)
    >>> f"{reach.low:.2f} {reach.high:.2f}"
    '0.74 1.35'
    """
    others = math.log(usual.high / usual.low) / 2
    far = math.exp(math.sqrt(others * FOUR_IN_FIVE * spread))
    return Range(1 / far, far, f"calibrated by measurements of this machine; {usual.why}")


def _entry(setting: str, device: str, work: str = "") -> tuple[str, _Entry]:
    """Return the setting whose fitted interval applies, and that entry; empty if there is none."""
    known = fitted_ranges()
    names = (setting_on(setting, device), setting)
    wanted = (*(work_in(work, each) for each in names), *names)
    key = next((name for name in wanted if name in known), "")
    key = key or fallback_stack(setting, [name for name in known if OF_WORK not in name])
    return key.rpartition(OF_WORK)[2], known.get(key, FrozenDict({}))


def range_at(setting: str, device: str, spread: float, *, seen: bool, work: str = "") -> Range:
    """Return the interval of an estimate with expected error ``spread``, for the sources in the fit.

    Parameters
    ----------
    setting, device, work
        As for :func:`range_of`.
    spread
        Expected error: one standard deviation, in logarithm of time.
    seen
        Whether the machine was measured in the setting.
    """
    key, entry = _entry(setting, device, work)
    if not key:
        return Range(*UNKNOWN, "nothing similar was measured")
    if key not in (setting_on(setting, device), setting):
        far = math.exp(float(entry["lent"]))
        return Range(1 / far, far, f"this software was never measured on such a machine; {key} is used instead")
    low, high = (math.exp(float(part) * spread) for part in entry["seen" if seen else "unseen"])
    left_out = "sweeps" if seen else "machines"
    others = "" if entry["of"] == "of its own" else f" and those {entry['of']}"
    sweeps = f"{entry['sweeps']} sweep{'s' if entry['sweeps'] != 1 else ''}"
    return Range(low, high, f"{entry['rows']} rows in {sweeps} of this software{others}, {left_out} left out")


def speed_range(first: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return the 80 % interval of the ratio of two predicted times, as factors of the point estimate.

    A ratio does not depend on the habits of the measuring source. Without them, the errors of two machines under
    one kind of software are almost independent: the correlation between left-out machines is 0.04. So the width of a
    ratio's interval, in logarithms, is the root of the sum of two squares: less than the two ranges laid end to end.

    Parameters
    ----------
    first, other
        Ends of the two ranges over their estimates, for one measuring source.

    Returns
    -------
    tuple of float
        Factors of the estimated ratio of the first time to the other.

    Examples
    --------
    >>> low, high = speed_range((0.5, 2.0), (0.5, 2.0))
    >>> f"{low:.2f} {high:.2f}"
    '0.38 2.67'
    """
    low, high = (math.hypot(math.log(own), math.log(its)) for own, its in zip(first, reversed(other), strict=True))
    return math.exp(-low), math.exp(high)
