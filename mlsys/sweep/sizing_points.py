"""Points of a sweep of sizings, each with a content id, and their answers: those of ``mlsys.size``."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.inputs import read_bytes
from mlsys.models.inference.arguments import request_of
from mlsys.models.inference.result import NUMBERS, Sizing
from mlsys.models.inference.sizing import size_model
from mlsys.provenance import Fact, active_whatifs, perturbed
from mlsys.sweep.points import code_digest
from mlsys.sweep.sizing_spec import SizingSpec
from mlsys.sweep.sizing_table import SizingRow
from mlsys.unit_checks import checked_choice

if TYPE_CHECKING:
    from mlsys.hardware import System
    from mlsys.workloads.zoo.decoder import Decoder

# Points evaluated and written together: each takes milliseconds.
CHUNK = 64
_WORTH_A_PROCESS = 400
_DATA = (".yaml", ".json", ".csv")


@dataclass(frozen=True)
class SizingCase:
    """One question to ``mlsys.size``, with all that a worker needs to answer it.

    Attributes
    ----------
    model, decoder, system
        Name of the model as given, the model, and the system.
    options
        Arguments of the request, by name.
    sizes
        Sizes of the layout that are fixed, by name.
    rank
        What layouts are ranked by.
    whatifs
        Active what-ifs.
    """

    model: str
    decoder: Decoder
    system: System
    options: FrozenDict[str, Any]
    sizes: FrozenDict[str, int | None]
    rank: str
    whatifs: tuple[tuple[str, float], ...]


class SizingPoint(NamedTuple):
    """One point: content id and question."""

    id: str
    case: SizingCase


def enumerate_sizings(spec: SizingSpec) -> list[SizingPoint]:
    """Return every point in order: models, systems, layouts, copies, lengths, formats, phases, batches."""
    whatifs = active_whatifs()
    code = sizing_digest()
    axes = [
        [*getattr(spec, name)] or [None]
        for name in ("tp", "pp", "ep", "dp", "replicas", "lengths", "weight_formats", "kv_formats", "precisions",
                     "phases", "batches")
    ]  # fmt: skip
    machines = [(system, _system_digest(system)) for system in spec.machines]
    points = []
    for name, decoder in zip(spec.models, spec.decoders, strict=True):
        what = _digest(_as_plain(decoder), code, whatifs, spec.rank)
        for system, where in machines:
            start = hashlib.sha256(f"{what}|{where}|{name}|".encode())
            for tp, pp, ep, dp, replicas, length, weights, cache, precision, phase, batch in itertools.product(*axes):
                sizes = FrozenDict({"tp": tp, "pp": pp, "ep": ep, "dp": dp})
                tokens = {"sequence": length} if isinstance(length, int) else dict(length)
                options = FrozenDict(
                    {
                        **tokens, "batch": batch, "phase": phase, "replicas": replicas, "weight_format": weights,
                        "kv_format": cache, "precision": precision,
                    }
                )  # fmt: skip
                own = start.copy()
                own.update(json.dumps([dict(sizes), dict(options)], sort_keys=True).encode())
                case = SizingCase(str(name), decoder, system, options, sizes, spec.rank, whatifs)
                points.append(SizingPoint(own.hexdigest()[:20], case))
    return points


def evaluate_sizings(points: Sequence[SizingPoint], code: str | None = None) -> dict[str, list[Any]]:
    """Return the rows of the points, as columns.

    Raises
    ------
    ArgumentError
        If this machine has another version of the code than ``code``.
    """
    if code is not None and code != code_digest():
        raise ArgumentError(
            "evaluate_sizings(): this machine has another version of mlsys than the caller. "
            "Install the same version on both"
        )
    rows = [_row(point) for point in points]
    return {name: list(values) for name, values in zip(SizingRow._fields, zip(*rows, strict=True), strict=True)}


def answer_of(case: SizingCase) -> Sizing:
    """Return the sizing that answers a case, as :func:`mlsys.size` does."""
    sizes: dict[str, Any] = dict(case.sizes)
    request = request_of(case.decoder, **case.options)
    rank = checked_choice("sweep", "rank", case.rank, ("latency", "throughput"))
    with contextlib.ExitStack() as stack:
        now = dict(active_whatifs())
        for name, factor in case.whatifs:
            if now.get(name) != factor:
                stack.enter_context(perturbed(name, factor / now.get(name, 1.0)))
        return size_model(case.decoder, case.system, request, rank=cast("Any", rank), **sizes)


def _row(point: SizingPoint) -> SizingRow:
    case = point.case
    options = case.options
    common = {
        "id": point.id,
        "model": case.model,
        "system": case.system.id,
        "device": case.system.device.id,
        "nodes": case.system.nodes,
        **{name: options[name] for name in ("replicas", "batch", "phase", "weight_format", "kv_format")},
    }
    try:
        sizing = answer_of(case)
    except (ValueError, LookupError) as error:
        text = " ".join(str(error.args[0] if error.args else error).split())
        unanswered = dict.fromkeys(SizingRow._fields)
        lengths = {name: options.get(name) for name in ("sequence", "prompt", "output")}
        return SizingRow(**{**unanswered, **common, **case.sizes, **lengths, "precision": options["precision"],
                            "error": text})  # fmt: skip
    tokens, best = sizing.request.tokens, sizing.best
    return SizingRow(
        **{
            **common,
            **{name: getattr(sizing.layout, name) for name in ("tp", "pp", "ep", "dp")},
            "chips": sizing.chips,
            "sequence": tokens.sequence,
            "prompt": tokens.prompt,
            "output": tokens.output,
            "precision": None if best is None else best.formats.computes,
            **{name: getattr(sizing, name) for name in NUMBERS},
            "capacity_bytes": sizing.capacity_bytes,
            "bound_by": sizing.bound_by or None,
            "error": None,
        }
    )


def sizing_chunks(points: list[SizingPoint], size: int = CHUNK) -> Iterator[list[SizingPoint]]:
    """Return the points in chunks of one model and system each, so that what they share is computed once."""
    for _, own in itertools.groupby(points, key=lambda point: (id(point.case.decoder), id(point.case.system))):
        rows = list(own)
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


def sizing_jobs(points: Sequence[SizingPoint], cores: int) -> int:
    """Return the number of processes that pay off."""
    return max(1, min(cores, len(points) // _WORTH_A_PROCESS))


def sizing_facts(points: list[SizingPoint]) -> dict[str, tuple[Fact, ...]]:
    """Return, for each system of the points, its recorded facts and those of its chip."""
    found: dict[str, tuple[Fact, ...]] = {}
    for system in _systems(points):
        values = [*system.device.recorded(), *system.recorded()]
        found[system.id] = tuple(dict.fromkeys(fact for value in values for fact in value.facts))
    return found


def sizing_facts_digest(points: list[SizingPoint]) -> dict[str, str]:
    """Return, for each system of the points, a hash of its facts."""
    return {f"{system.id} × {system.nodes}": _system_digest(system) for system in _systems(points)}


def _systems(points: list[SizingPoint]) -> list[System]:
    return list({id(point.case.system): point.case.system for point in points}.values())


@functools.cache
def sizing_digest() -> str:
    """Return the version of the evaluation: the code, and the data files that it reads beside those of systems."""
    digest = hashlib.sha256(code_digest().encode())
    top = resources.files("mlsys")
    for folder in ("models", "workloads", "_facts"):
        for path in sorted(_files(top / folder), key=str):
            digest.update(path.name.encode())
            digest.update(read_bytes(path))
    return digest.hexdigest()[:16]


def _files(folder: Any) -> Iterator[Any]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from _files(path)
        elif path.name.endswith(_DATA):
            yield path


def _system_digest(system: System) -> str:
    """Return a hash of what is recorded of a system and its chip, and of the calibration in use."""
    from mlsys.models.estimate.user_calibration import chosen_calibration

    values = [*system.device.recorded(), *system.recorded()]
    shape = [
        (link.name, link.kind, link.topology, link.ports, link.dimensions, link.shared_by, link.in_network_reduction)
        for link in system.links
    ]
    counts = (system.id, system.nodes, system.chips_per_node, system.hosts_per_node, system.nodes_per_fabric)
    calibration = chosen_calibration()[0]
    own = hashlib.sha256(read_bytes(calibration, 1 << 24)).hexdigest() if calibration else ""
    return _digest(counts, shape, [([fact.name for fact in value.facts], repr(value)) for value in values], own)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:20]


def _as_plain(value: Any) -> Any:
    """Return a model as nested lists of its fields, in which no address of an object stands."""
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *([entry.name, _as_plain(getattr(value, entry.name))] for entry in fields(value))]
    if isinstance(value, dict):
        return [[str(key), _as_plain(entry)] for key, entry in value.items()]
    if isinstance(value, (list, tuple)):
        return [_as_plain(entry) for entry in value]
    return value if isinstance(value, (int, float, str, bool)) or value is None else str(value)
