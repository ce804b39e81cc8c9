"""Specification of a sweep of sizings: language models, systems, layouts, batches, lengths and formats."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsys.errors import SweepFileError
from mlsys.faults import Place, json_schema, schema_file
from mlsys.sweep.schema import entries_of, faults_of, listed, repeated
from mlsys.sweep.spec import MOST_POINTS

if TYPE_CHECKING:
    from mlsys.hardware import System
    from mlsys.workloads.zoo.decoder import Decoder

_COUNTS = ("tp", "pp", "ep", "dp", "replicas", "batches")
_FORMATS = ("weight_formats", "kv_formats", "precisions")
_REQUIRED = ("models", "systems", "replicas", "batches", "lengths")
_AXES = ("models", "systems", "tp", "pp", "ep", "dp", "replicas", "batches", "lengths", "phases", *_FORMATS)


@dataclass(frozen=True)
class SizingSpec:
    """The points of a sweep of :func:`mlsys.size`: every combination of the listed values.

    An axis without entries is left to each point: sizes of a layout vary and the one ranked first answers, as in
    ``mlsys size``; formats are the model's own; prefill and decoding are both timed. A list of one entry may be written
    without brackets. A point that cannot be, such as a layout that does not divide the model, has a row with the
    reason.

    Attributes
    ----------
    models
        Language models: names of the catalogue, ``config.json`` files or their folders, files of weights.
    systems
        Systems and devices by name, files of systems, or mappings with ``system`` and ``nodes``.
    tp, pp, ep, dp
        Sizes of the layout of one copy.
    replicas, batches
        Copies of the model, and sequences that each decodes at once.
    lengths
        Tokens of each sequence, or mappings with ``prompt`` and ``output``.
    phases
        ``"prefill"`` or ``"decode"`` alone.
    weight_formats, kv_formats, precisions
        Stored formats of weights and cache, and number formats of the arithmetic.
    rank
        What layouts are ranked by where sizes vary.
    folder
        Base folder of relative paths.

    Raises
    ------
    SweepFileError
        If anything is wrong; every error is listed, with its place.

    Examples
    --------
    >>> SizingSpec(models=["llama-3-8b"], systems=["DGX_H100"], tp=[1, 2, 4, 8], batches=[1, 32]).points
    8
    >>> SizingSpec(models=["llama-3-8b"], systems=["DGX_H10"])
    Traceback (most recent call last):
        ...
    mlsys.errors.SweepFileError: systems.0: no system or device 'DGX_H10'. Did you mean 'DGX_H100'? ...
    """

    models: Sequence[Any]
    systems: Sequence[Any]
    tp: Sequence[int] = ()
    pp: Sequence[int] = ()
    ep: Sequence[int] = ()
    dp: Sequence[int] = ()
    replicas: Sequence[int] = (1,)
    batches: Sequence[int] = (1,)
    lengths: Sequence[Any] = (2048,)
    phases: Sequence[str] = ()
    weight_formats: Sequence[str] = ()
    kv_formats: Sequence[str] = ()
    precisions: Sequence[str] = ()
    rank: str = "latency"
    folder: Path = Path()

    def __post_init__(self) -> None:
        for name in _COUNTS:
            object.__setattr__(self, name, [_plain(entry) for entry in listed(getattr(self, name))])
        lengths = [
            {key: _plain(value) for key, value in entry.items()} if isinstance(entry, Mapping) else _plain(entry)
            for entry in listed(self.lengths)
        ]
        object.__setattr__(self, "lengths", lengths)
        data = {key: value for key, value in self.as_data().items() if value != []}
        complaints = [f"{'.'.join(map(str, keys))}: {text}" for keys, text in sizing_faults(data, self.folder)]
        complaints += [f"{name}: must have at least one entry" for name in _REQUIRED if not listed(getattr(self, name))]
        if not complaints and self.points > MOST_POINTS:
            complaints = [f"{self.points:,} points; a sweep has at most {MOST_POINTS:,}. Split it, e.g. by model"]
        if complaints:
            raise SweepFileError("\n".join(complaints))
        for name in _AXES:
            object.__setattr__(self, name, tuple(listed(getattr(self, name))))

    def as_data(self) -> dict[str, Any]:
        """Return the contents of a YAML file for this specification, as plain data."""
        axes = {
            name: [
                dict(entry) if isinstance(entry, Mapping) else str(entry) if isinstance(entry, Path) else entry
                for entry in listed(getattr(self, name))
            ]
            for name in _AXES
        }
        return {**axes, "rank": self.rank}

    @property
    def digest(self) -> str:
        """Hash of the specification."""
        return hashlib.sha256(json.dumps(self.as_data(), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def points(self) -> int:
        """Number of combinations."""
        others = (max(1, len(listed(getattr(self, name)))) for name in _AXES if name != "systems")
        return len(self.machines) * math.prod(others)

    @functools.cached_property
    def machines(self) -> tuple[System, ...]:
        """Every system once, in the order of its first mention."""
        found: dict[tuple[str, int], System] = {}
        for _, each in _machines(self.as_data(), self.folder):
            found.setdefault((each.id, each.nodes), each)
        return tuple(found.values())

    @functools.cached_property
    def decoders(self) -> tuple[Decoder, ...]:
        """The models, in order."""
        return tuple(_decoder(name, self.folder) for name in self.as_data()["models"])


def _plain(entry: Any) -> Any:
    """Return a whole number of NumPy as one of Python."""
    import numpy as np

    return int(entry) if isinstance(entry, np.integer) else entry


def _decoder(name: str, folder: Path) -> Decoder:
    from mlsys.workloads.transformer_config import load_decoder

    path = folder / name
    return load_decoder(path if path.exists() else name, encoders=True)


def _machines(data: Mapping[str, Any], folder: Path) -> Iterator[tuple[Place, System]]:
    """Yield the systems of a specification, each with its place; raises for the first that is unknown."""
    from mlsys.hardware import as_system

    for keys, entry in entries_of(data, "systems"):
        given = entry if isinstance(entry, Mapping) else {"system": entry}
        name = given["system"]
        path = folder / name
        for nodes in listed(given.get("nodes")):
            yield keys, as_system(path if path.suffix in (".yaml", ".yml") else name, nodes)


def sizing_faults(data: Mapping[str, Any], folder: Path) -> list[tuple[Place, str]]:
    """Return every error of a specification of sizings, each with its place.

    Parameters
    ----------
    data
        Contents of the YAML file.
    folder
        Base folder of relative paths.
    """
    rules, checker = schema_file("mlsys.sweep"), json_schema().Draft202012Validator
    complaints = [fault for error in checker(rules["sizings"]).iter_errors(data) for fault in faults_of(error)]
    for keys, entry in entries_of(data, "models"):
        if isinstance(entry, str) and entry:
            complaints += _refused(keys, functools.partial(_decoder, entry, folder))
    system, length = checker(rules["kinds"]["system"]), checker(rules["kinds"]["length"])
    for keys, entry in entries_of(data, "systems"):
        if not isinstance(entry, (str, Mapping)) or not entry:
            complaints.append((keys, f"a system is a name or a mapping with `system`, got {entry!r}"))
            continue
        of_form = (
            [((*keys, *rest), text) for error in system.iter_errors(entry) for rest, text in faults_of(error)]
            if isinstance(entry, Mapping)
            else []
        )
        complaints += of_form or _refused(keys, functools.partial(_all_machines, entry, folder))
    for keys, entry in entries_of(data, "lengths"):
        if isinstance(entry, Mapping):
            found = [((*keys, *rest), text) for error in length.iter_errors(entry) for rest, text in faults_of(error)]
            complaints += found
        elif isinstance(entry, bool) or not isinstance(entry, int) or not 1 <= entry <= 2**31:
            wanted = "a whole number of tokens from 1 to 2147483648, or a mapping with prompt and output"
            complaints.append((keys, f"must be {wanted}; got {entry!r}"))
    for key, which in (("weight_formats", "weight"), ("kv_formats", "kv"), ("precisions", "")):
        for keys, entry in entries_of(data, key):
            if isinstance(entry, str):
                complaints += _refused(keys, functools.partial(_format, entry, which))
    for key in _AXES:
        complaints += repeated(key, data.get(key))
    return complaints


def _all_machines(entry: Any, folder: Path) -> list[Any]:
    return list(_machines({"systems": [entry]}, folder))


def _format(name: str, which: str) -> None:
    from mlsys.models.inference.formats import known_format
    from mlsys.precision import precision_name

    if which:
        known_format(name, f"`{which}_format`")
    else:
        precision_name(name)


def _refused(keys: Place, check: Any) -> list[tuple[Place, str]]:
    try:
        check()
    except (ValueError, LookupError, OSError) as error:
        text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
        return [(keys, " ".join(text.split()))]
    return []
