"""Enumeration of a specification's points, each with a content id."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, fields, replace
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mlsys.gc_pause import gc_paused
from mlsys.provenance import Fact, recording, used_facts
from mlsys.sweep.spec import SweepSpec, Variant
from mlsys.workloads.operator import DECODE, NETWORK, PREFILL

if TYPE_CHECKING:
    from mlsys.models.analysis.changes import TimingModel
    from mlsys.models.estimate.running import Running

# Number of points evaluated and written together.
CHUNK = 1024


@dataclass(frozen=True)
class SweepCase:
    """One network in one number format at one batch, and the way it runs; None means fused kernels."""

    variant: Variant
    precision: str
    batch: int
    running: Running | None = None

    @property
    def way(self) -> str:
        """Way in which operators are grouped into kernels, as in :func:`mlsys.mapping.fusion.as_run`."""
        return self.running.way if self.running else "kernels"

    @property
    def fused(self) -> bool:
        """Whether operators are fused: if requested, and supported by the software."""
        return self.variant.fused and self.way != "one by one"


@dataclass(frozen=True)
class TimedDevice:
    """One device in one number format under one kind of software, as plain numbers in SI units.

    Facts are read through the view of the device, under the active what-ifs; a worker process reads none.

    Attributes
    ----------
    device, device_class, kind, precision
        Device, class, kind and number format.
    setting, calibration
        Kind of software, and the setting whose fitted parameters are used.
    timing
        The calibrated model and the roofline; None if the device cannot run this.
    capacity, power, price
        Bytes of the main memory, design power in W, USD; None where unknown.
    reason
        Why the device cannot run this; empty if it can.
    network_kind
        Kind of the networks that it is timed for, as :attr:`mlsys.workloads.Network.kind`.
    facts
        Facts that were read for it.
    """

    device: str
    device_class: str
    kind: str
    precision: str
    setting: str | None = None
    calibration: str | None = None
    timing: TimingModel | None = None
    capacity: float | None = None
    power: float | None = None
    price: float | None = None
    reason: str = ""
    network_kind: str = NETWORK
    facts: tuple[Fact, ...] = field(default=(), compare=False, repr=False)

    @functools.cached_property
    def digest(self) -> str:
        """Hash of the facts."""
        plain = [getattr(self, entry.name) for entry in fields(self) if entry.name not in ("timing", "facts")]
        return _digest(plain, None if self.timing is None else _rates(self.timing))


def _rates(timing: TimingModel) -> tuple[object, ...]:
    return (astuple(timing.engine), timing.parameters.vectorised().tolist(), timing.peak, timing.bandwidth)


class Point(NamedTuple):
    """One point: content id, network and device."""

    id: str
    case: SweepCase
    target: TimedDevice


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:20]


@functools.cache
def code_digest() -> str:
    """Return the version of the evaluation: a hash of the code that counts and times."""
    import mlsys

    top = Path(str(mlsys.__file__)).parent
    files = [
        path
        for folder in ("workloads", "mapping", "models", "formulas", "sweep")
        for path in sorted((top / folder).rglob("*.py"))
    ]
    fitted = top / "models" / "estimate"
    files += [top / "precision.py", fitted / "parameters.yaml", fitted / "machines.yaml", fitted / "effects.json"]
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.relative_to(top).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def catalogue_digest() -> str:
    """Return a hash of the device files of the package."""
    digest = hashlib.sha256()
    for folder in sorted((resources.files("mlsys.hardware") / "data").iterdir(), key=lambda path: path.name):
        for file in sorted(folder.iterdir(), key=lambda path: path.name):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def facts_digest(points: list[Point]) -> dict[str, str]:
    """Return, for each device of the points, a hash of the facts that the evaluation reads."""
    own: dict[str, dict[str, None]] = {}
    for target in {point.target.digest: point.target for point in points}.values():
        own.setdefault(target.device, {})[target.digest] = None
    return {device: _digest(*digests) for device, digests in own.items()}


def _identity(variant: Variant) -> str:
    """Return a hash of a network's definition, as far as known without building it."""
    content = ""
    path = Path(variant.reference)
    if (path / "config.json").is_file():
        path = path / "config.json"
    if path.is_file():
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    elif ":" in variant.reference:
        content = _source_of(variant.reference.partition(":")[0])
    framework = _version("torch") if variant.source == "captured" else ""
    sizes = (variant.sequence, variant.image, variant.phase, variant.fused)
    return _digest(variant.model, variant.source, sizes, content, framework, code_digest())


def _kind(variant: Variant) -> str:
    """Return the :attr:`mlsys.workloads.Network.kind` of a network without building it."""
    from mlsys.workloads import zoo
    from mlsys.workloads.hf import kind_of_file

    path = Path(variant.reference)
    if path.is_dir() or path.suffix == ".json":
        return kind_of_file(path)
    entry = None if ":" in variant.reference or path.suffix == ".onnx" else zoo.resolve(variant.reference)
    if entry is None or entry.model is None:
        return NETWORK
    return DECODE if variant.phase == "decode" else PREFILL


def _source_of(module: str) -> str:
    import sys
    from importlib.util import find_spec

    sys.path.insert(0, "")
    try:
        spec = find_spec(module)
    finally:
        sys.path.remove("")
    if spec is None or not spec.origin or not Path(spec.origin).is_file():
        return ""
    return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def targets(spec: SweepSpec, precision: str, kind: str = NETWORK) -> list[TimedDevice]:
    """Return every device and kind of software of a specification, in one precision, for networks of a kind."""
    settings: tuple[str | None, ...] = tuple(map(str, spec.settings)) or (None,)
    timed = [_with_facts(device, precision, setting, kind) for device in spec.device_ids for setting in settings]
    return list({target.digest: target for target in timed}.values())  # removes duplicate spellings of a setting


def facts_by_device(points: list[Point]) -> dict[str, tuple[Fact, ...]]:
    """Return, for each device of the points, the facts that were read for it."""
    read: dict[str, dict[Fact, None]] = {}
    for target in {id(point.target): point.target for point in points}.values():
        read.setdefault(target.device, {}).update(dict.fromkeys(target.facts))
    return {device: tuple(facts) for device, facts in read.items()}


def _with_facts(name: str, precision: str, setting: str | None, kind: str) -> TimedDevice:
    with recording() as seen:
        target = _target(name, precision, setting, kind)
    return replace(target, facts=used_facts(*seen.values()))


def _target(name: str, precision: str, setting: str | None, kind: str) -> TimedDevice:
    from mlsys.errors import UnknownNameError
    from mlsys.hardware import Hardware, view
    from mlsys.models.analysis.model import timing_of
    from mlsys.models.estimate.library import parameters_of
    from mlsys.models.software import software_of

    device = Hardware[name]
    who = (device.id, Hardware.class_of(device.id), device.kind, precision)
    try:
        device.peak(precision)  # its error lists what the device has instead
        whose = str(software_of(device, setting, kind, precision))
        parameters, calibration = parameters_of(whose, device.id, precision=precision)
        timing = timing_of(device, precision, parameters, setting=whose)
        # A single device sends no messages.
        timing = replace(timing, engine=timing.engine.changed(link=0.0, link_of_many=0.0))
    except (UnknownNameError, ValueError) as error:
        return TimedDevice(*who, setting=setting, reason=str(error), network_kind=kind)
    machine = view(device, precision)
    return TimedDevice(
        *who,
        setting=whose,
        calibration=calibration,
        timing=timing.as_numbers(),
        capacity=machine.main.capacity,
        power=machine.tdp,
        price=machine.price,
        network_kind=kind,
    )


@gc_paused()
def enumerate_points(spec: SweepSpec) -> list[Point]:
    """Return every point in order: networks, then fusion, precisions, batches, devices, settings."""
    from mlsys.hardware import Hardware
    from mlsys.models.estimate.running import usual_running
    from mlsys.precision import precision_name

    precisions = [precision_name(name) for name in spec.precisions]
    kinds = {variant: _kind(variant) for variant in spec.variants}
    machines = {
        (kind, name): targets(spec, name, kind) for kind in dict.fromkeys(kinds.values()) for name in precisions
    }
    ways = {
        id(target): usual_running(target.setting, Hardware[target.device], target.timing.engine)
        if target.setting and target.timing
        else None
        for own in machines.values()
        for target in own
    }
    points = []
    for variant, kind in kinds.items():
        what = _identity(variant)
        for precision, batch in itertools.product(precisions, spec.batches):
            start = hashlib.sha256(f"{what}|{precision}|{batch}|".encode())
            cases: dict[Running | None, SweepCase] = {}
            for target in machines[kind, precision]:
                own = start.copy()
                own.update(target.digest.encode())
                case = cases.setdefault(ways[id(target)], SweepCase(variant, precision, int(batch), ways[id(target)]))
                points.append(Point(own.hexdigest()[:20], case, target))
    return points


def chunks(points: list[Point], size: int = CHUNK) -> Iterator[list[Point]]:
    """Return the points in chunks of about ``size``; a chunk holds points of one network only."""
    for _, own in itertools.groupby(points, key=lambda point: point.case.variant):
        rows = list(own)
        pieces = -(-len(rows) // size)
        for piece in range(pieces):
            yield rows[len(rows) * piece // pieces : len(rows) * (piece + 1) // pieces]
