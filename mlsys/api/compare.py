"""``mlsys.compare``: comparison of one network on several devices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.api.analyze import analysis_of, prepared
from mlsys.api.arguments import NetworkRequest
from mlsys.choices import Phase
from mlsys.errors import ArgumentError
from mlsys.formatting import natural
from mlsys.hardware.device import Device
from mlsys.models.analysis.answer import SAMPLES, Analysis
from mlsys.models.analysis.record import analysis_summary
from mlsys.models.estimate.ranges import ALL_SOURCES
from mlsys.models.record import with_units
from mlsys.models.software import SoftwareStack
from mlsys.tables import Table
from mlsys.workloads.operator import Network

_COLUMNS = ("speed", "of peak", "FLOP/byte", "ridge", "limited by")


@dataclass(frozen=True)
class DeviceComparison:
    """Estimates of one network on several devices.

    Attributes
    ----------
    analyses
        One analysis per device, in the order given; speeds are relative to the first.
    """

    analyses: tuple[Analysis, ...]

    def record(self) -> list[dict[str, Any]]:
        """Return the records printed by ``mlsys compare --json``: one per device."""
        return [with_units(row) for row in self.rows()]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row of plain data per device."""
        return [analysis_summary(analysis, self.analyses[0]) for analysis in self.analyses]

    def table(self) -> Table:
        """Return a table with one row per device."""
        first = self.analyses[0]
        columns = ("device", "at least", "estimate", "80 % range", f"{SAMPLES[first.kind]}/s", "energy", *_COLUMNS)
        rows = [self._row(analysis) for analysis in self.analyses]
        return Table(f"{first.workload}, {first.batch_in_words}, {first.precision}", columns, rows)

    def _row(self, analysis: Analysis) -> tuple[str, ...]:
        return (
            analysis.device,
            f"{analysis.bound.to_compact():.3g}",
            f"{analysis.estimate.to_compact():.3g}",
            " to ".join(f"{time.to_compact():.3g}" for time in analysis.range),
            natural(analysis.rate.m_as("1/s")),
            f"{analysis.energy.energy.to_compact():.3g}" if analysis.energy else "—",
            _speed(analysis, self.analyses[0]),
            f"{analysis.utilisation:.0%}",
            f"{analysis.intensity.m_as('FLOP/byte'):.3g}",
            f"{analysis.ridge.m_as('FLOP/byte'):.3g}",
            f"{analysis.limited_by} {analysis.share_limited_by(analysis.limited_by):.0%}",
        )

    def explain(self) -> str:
        """Return the table, followed by the software, memory shortages, sizes and fusion, as text."""
        lines = [str(self.table())]
        software = dict.fromkeys(analysis.setting for analysis in self.analyses)
        lines.append(
            f"software: {', '.join(software)}" + ("; choose another with --software" if len(software) > 1 else "")
        )
        lines += [f"{each.device}: {each.memory}" for each in self.analyses if each.memory.fits is False]
        lines.append(
            "ranges assume one source for all devices; `mlsys analyze` gives the wider range of a single device"
        )
        runs = {each.device: each.network for each in self.analyses}
        lines += [run.sizes_in_words for run in list(runs.values())[:1]]
        for words in dict.fromkeys(run.kernels for run in runs.values()):
            lines.append(", ".join(device for device, run in runs.items() if run.kernels == words) + f": {words}")
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.table()._repr_mimebundle_(include, exclude)


def compare(
    devices: Iterable[Device | str],
    network: Network | str | Path,
    *,
    batch: int | None = None,
    sequence: int | None = None,
    image: int | None = None,
    phase: Phase | None = None,
    precision: str | None = None,
    software: SoftwareStack | str | None = None,
    fusion: bool = True,
    samples: int | None = None,
    sizes: Mapping[str, int] | None = None,
    shape: tuple[int, ...] | None = None,
    weight_format: str | None = None,
    kv_format: str | None = None,
    option: str = "`{}`",
) -> DeviceComparison:
    """Return the estimates of a network on several devices, as the command ``mlsys compare`` does.

    Parameters
    ----------
    devices
        Devices or their names; speeds are relative to the first.
    network, batch, sequence, image, phase, precision, software, fusion, samples, sizes, shape, weight_format, \
    kv_format, option
        As for :func:`mlsys.analyze`.

    Returns
    -------
    DeviceComparison
        Its ``record()`` is printed by ``mlsys compare --json``. Ranges are those of a source that measures all the
        devices; :func:`mlsys.analyze` returns the wider range of a single device.

    Raises
    ------
    UnknownNameError
        If a device, the network, number format or software is unknown.
    ArgumentError
        If there are no devices, or an argument does not apply to the network.

    Examples
    --------
    >>> both = compare(["T4", "A100"], "resnet50", batch=32)
    >>> [analysis.device for analysis in both.analyses], both.record()[1]["speed_over_first"] > 4
    (['NVIDIA T4', 'NVIDIA A100 80 GB SXM4'], True)
    """
    if isinstance(devices, (str, Device)):
        raise ArgumentError(f"compare(): `devices` must be a list, got {devices!r}. Write e.g. ['A100', 'T4']")
    request = NetworkRequest(batch, sequence, image, phase, precision, sizes, shape, option, weight_format, kv_format)
    twins, loaded, arithmetic = prepared(dict.fromkeys(devices), network, request)
    if not twins:
        raise ArgumentError("compare(): `devices` must name at least one device. Write e.g. ['A100', 'T4']")
    return DeviceComparison(
        tuple(analysis_of(twin, loaded, arithmetic, software, fusion, samples, ALL_SOURCES) for twin in twins)
    )


def _speed(analysis: Analysis, first: Analysis) -> str:
    """Return the speed relative to the first device, its interval, and whether the difference is significant."""
    if analysis is first:
        return "1×"
    speed, low, high = analysis.speed_over(first)
    unsure = ", probably: the ranges overlap" if analysis.overlaps(first) else ""
    verdict = unsure if analysis.differs_from(first) else ", no significant difference"
    return f"{speed:.2f}× ({low:.2g} to {high:.2g}{verdict})"
