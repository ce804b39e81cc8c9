"""Specification of a sweep: networks, devices, batches, number formats, fusion and settings."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsys.choices import Phase
from mlsys.errors import SweepFileError
from mlsys.sweep.devices import matching
from mlsys.sweep.schema import listed, spec_faults

if TYPE_CHECKING:
    from mlsys.models.software import SoftwareStack

MOST_POINTS = 1_000_000


@dataclass(frozen=True)
class Variant:
    """One network at one input size, fused or not.

    Attributes
    ----------
    model
        As written in the specification.
    reference
        As resolved: a name, a factory, or the path of a file.
    source
        ``"catalogue"``, defined operator by operator, or ``"captured"`` from code.
    sequence, image, phase
        Tokens, image size, phase of a language model; None for the default.
    fused
        Whether operators are fused.
    """

    model: str
    reference: str
    source: str
    sequence: int | None
    image: int | None
    phase: Phase | None
    fused: bool


def _names(settings: Sequence[Any]) -> list[Any]:
    """Return the names of software, as in a file."""
    if all(isinstance(entry, str) for entry in settings):
        return list(settings)
    from mlsys.models.software import SoftwareStack

    return [str(entry) if isinstance(entry, SoftwareStack) else entry for entry in settings]


@dataclass(frozen=True)
class SweepSpec:
    """The points of a sweep: every combination of the listed values.

    A model is anything that :func:`mlsys.workloads.load` accepts, fused as by a compiler (``fusion: on``) or with every
    operator separate (``off``). Every value is stored in the precision of the point. A list of one entry may be written
    without brackets.

    Attributes
    ----------
    models
        Names as for ``mlsys flops``, or mappings with ``model``, and ``sequence``, ``image`` and ``phase`` for this
        network only.
    devices
        Names of the catalogue, mappings of criteria (``class``, ``text``, ``kind``, ``vendor``,
        ``precision``, ``since``, ``until``), or ``all``.
    batches, precisions
        Whole numbers; names of number formats.
    fusion
        ``"on"``, ``"off"`` or both.
    settings
        Software, as :class:`mlsys.SoftwareStack` or by name: ``"eager"``, ``"eager network on GPU"``; by default the
        typical software for such work on each device. Operators run as in that software: one by one under eager
        settings on GPUs, even with ``fusion="on"``.
    folder
        Base folder of relative paths of models.

    Raises
    ------
    SweepFileError
        If anything is wrong; every error is listed, with its place.

    Examples
    --------
    >>> spec = SweepSpec(models=["resnet50"], devices=["A100", "H100"], batches=[1, 32])
    >>> spec.points, spec.device_ids
    (4, ('A100_80GB', 'H100_SXM'))
    >>> SweepSpec(models=["resnet5O"], devices=["A100"])
    Traceback (most recent call last):
        ...
    mlsys.errors.SweepFileError: models.0: unknown network 'resnet5O'. Did you mean 'resnet50'? ...
    """

    models: Sequence[Any]
    devices: Sequence[Any]
    batches: Sequence[int] = (1,)
    precisions: Sequence[str] = ("fp16",)
    fusion: Sequence[str] = ("on",)
    settings: Sequence[SoftwareStack | str] = ()
    folder: Path = Path()

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", _names(listed(self.settings)))
        data = {key: value for key, value in self.as_data().items() if value != []}
        complaints = [f"{'.'.join(map(str, keys))}: {text}" for keys, text in spec_faults(data, self.folder)]
        axes = ("models", "devices", "batches", "precisions", "fusion")
        complaints += [f"{name}: must have at least one entry" for name in axes if not listed(getattr(self, name))]
        if not complaints and self.points > MOST_POINTS:
            complaints = [_too_many(self)]
        if complaints:
            raise SweepFileError("\n".join(complaints))
        for name in ("models", "devices", "batches", "precisions", "fusion", "settings"):
            object.__setattr__(self, name, tuple(listed(getattr(self, name))))

    @classmethod
    def load(cls, path: str | Path) -> SweepSpec:
        """Read a specification from a YAML file; every error is reported with its line.

        Raises
        ------
        SweepFileError
            If the file is unreadable or invalid.
        """
        from mlsys.hardware.document import Document

        path = Path(path)
        document = Document(path, "sweep", SweepFileError)
        messages = [*document.faults, *(document.located(*fault) for fault in spec_faults(document.data, path.parent))]
        if messages:
            raise SweepFileError("\n".join(messages))
        try:
            return cls(**{key: listed(value) for key, value in document.data.items()}, folder=path.parent)
        except SweepFileError as error:
            raise SweepFileError(f"{path}: {error}") from None

    def as_data(self) -> dict[str, Any]:
        """Return the contents of a YAML file for this specification, as plain data."""
        names = ("models", "devices", "batches", "precisions", "fusion", "settings")
        return {
            name: [dict(entry) if isinstance(entry, Mapping) else entry for entry in listed(getattr(self, name))]
            for name in names
        }

    @property
    def digest(self) -> str:
        """Hash of the specification."""
        return hashlib.sha256(json.dumps(self.as_data(), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def points(self) -> int:
        """Number of combinations."""
        return (
            len(self.variants)
            * len(self.device_ids)
            * len(listed(self.batches))
            * len(listed(self.precisions))
            * max(1, len(listed(self.settings)))
        )

    @functools.cached_property
    def variants(self) -> tuple[Variant, ...]:
        """Every network at every size, in order."""
        variants = []
        for entry in listed(self.models):
            given = dict(entry) if isinstance(entry, Mapping) else {"model": entry}
            name = given["model"]
            reference = str(self.folder / name) if (self.folder / name).exists() else name
            sizes = (listed(given.get(key)) for key in ("sequence", "image", "phase"))
            for sequence, image, phase in itertools.product(*sizes):
                for fused in listed(self.fusion):
                    source = _source(name, phase)
                    variants.append(Variant(name, reference, source, sequence, image, phase, fused == "on"))
        return tuple(dict.fromkeys(variants))

    @functools.cached_property
    def device_ids(self) -> tuple[str, ...]:
        """Every device once, in the order of its first mention."""
        from mlsys.hardware import Hardware

        ids: dict[str, None] = {}
        for entry in listed(self.devices):
            if isinstance(entry, Mapping):
                ids.update(dict.fromkeys(matching(entry)))
            elif entry.lower() == "all":
                ids.update(dict.fromkeys(device.id for device in Hardware))
            else:
                ids[Hardware[entry].id] = None
        return tuple(ids)


def _source(name: str, phase: Phase | None) -> str:
    from mlsys.workloads import zoo

    entry = None if ":" in name else zoo.resolve(name)
    return "catalogue" if entry is not None and (not entry.has_graph or phase == "decode") else "captured"


def _too_many(spec: SweepSpec) -> str:
    return f"{spec.points:,} points; a sweep has at most {MOST_POINTS:,}. Split it, e.g. by model"
