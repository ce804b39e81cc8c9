"""The two kinds of sweeps, of networks on devices and of sizings on systems: how each enumerates and answers points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.errors import SweepFileError
from mlsys.models.user_overrides import user_overrides
from mlsys.provenance import Fact
from mlsys.sweep.evaluate import evaluate_points
from mlsys.sweep.point_table import PointTable
from mlsys.sweep.points import chunks, enumerate_points, facts_by_device, facts_digest
from mlsys.sweep.schema import listed
from mlsys.sweep.sizing_points import (
    enumerate_sizings,
    evaluate_sizings,
    sizing_chunks,
    sizing_facts,
    sizing_facts_digest,
    sizing_jobs,
)
from mlsys.sweep.sizing_spec import SizingSpec, sizing_faults
from mlsys.sweep.sizing_table import SizingTable
from mlsys.sweep.spec import SweepSpec
from mlsys.sweep.table import SweepTable
from mlsys.sweep.workers import cores, usual_jobs


@dataclass(frozen=True)
class Kind:
    """How one kind of sweep works.

    Attributes
    ----------
    words
        What is swept, for messages.
    table
        Its table.
    enumerate, pieces, jobs, evaluate
        Points of a specification; pieces of them; processes that pay off; columns of a piece.
    facts, digests
        Facts, and hashes of them, by device or system.
    overrides
        What of the user stands in place of the catalogue's numbers, in words.
    """

    words: str
    table: type[PointTable[Any]]
    enumerate: Callable[[Any], list[Any]]
    pieces: Callable[[list[Any]], Iterator[list[Any]]]
    jobs: Callable[[list[Any]], int]
    evaluate: Callable[..., dict[str, list[Any]]]
    facts: Callable[[list[Any]], dict[str, tuple[Fact, ...]]]
    digests: Callable[[list[Any]], dict[str, str]]
    overrides: Callable[[list[Any]], tuple[str, ...]]


def _overrides(points: list[Any]) -> tuple[str, ...]:
    from mlsys.hardware import Hardware

    twins = [Hardware[name] for name in sorted({point.target.device for point in points})]
    settings = dict.fromkeys(point.target.setting for point in points if point.target.setting)
    return user_overrides(twins, estimates=True, settings=list(settings))


def _sizing_overrides(points: list[Any]) -> tuple[str, ...]:
    devices = {point.case.system.device.id: point.case.system.device for point in points}
    return user_overrides(devices.values(), estimates=True)


OF_DEVICES = Kind(
    "networks on devices", SweepTable, enumerate_points, chunks, usual_jobs, evaluate_points, facts_by_device,
    facts_digest, _overrides,
)  # fmt: skip
OF_SIZINGS = Kind(
    "sizings on systems", SizingTable, enumerate_sizings, sizing_chunks,
    lambda points: sizing_jobs(points, cores()), evaluate_sizings, sizing_facts, sizing_facts_digest, _sizing_overrides,
)  # fmt: skip


def kind_of(spec: SweepSpec | SizingSpec) -> Kind:
    """Return the kind of a specification."""
    return OF_SIZINGS if isinstance(spec, SizingSpec) else OF_DEVICES


def load_spec(path: str | Path) -> SweepSpec | SizingSpec:
    """Read a specification from a YAML file: with ``systems`` of sizings, else of networks on devices.

    Raises
    ------
    SweepFileError
        If the file is unreadable or invalid; every error is reported with its line.
    """
    from mlsys.hardware.document import Document

    path = Path(path)
    document = Document(path, "sweep", SweepFileError)
    data = document.data
    if not isinstance(data, dict) or "systems" not in data:
        return SweepSpec.load(path)
    faults = sizing_faults(data, path.parent)
    if "devices" in data:
        faults = [(("devices",), "`devices` and `systems` do not go together: a device is a system of one chip")]
    messages = [*document.faults, *(document.located(*fault) for fault in faults)]
    if messages:
        raise SweepFileError("\n".join(messages))
    try:
        entries: dict[str, Any] = {key: value if key == "rank" else listed(value) for key, value in data.items()}
        return SizingSpec(**entries, folder=path.parent)
    except SweepFileError as error:
        raise SweepFileError(f"{path}: {error}") from None
