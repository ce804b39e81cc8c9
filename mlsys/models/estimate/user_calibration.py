"""User calibration: the file written by ``mlsys calibrate`` and named by ``MLSYS_CALIBRATION``."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlsys.errors import UnreadableError
from mlsys.files import write_text
from mlsys.frozen import FrozenDict
from mlsys.inputs import read_text, yaml_of
from mlsys.models.estimate.effects import levels_of
from mlsys.models.estimate.likeness import Shape, ShapeEffects, shape_of_products
from mlsys.models.estimate.parameters import Parameters
from mlsys.models.estimate.work import Work

CALIBRATION = "MLSYS_CALIBRATION"
_MAY_BE_ZERO = ("launch", "ramp", "hop")
_MOST_BYTES = 1_000_000
# Largest spread of a useful calibration: e to the fifth is a factor of 150 either way.
_MOST_SPREAD = 5.0


@dataclass(frozen=True)
class _Own:
    """Contents of the file: the device, parameters by setting, further factors, and the spread."""

    device: str = ""
    settings: FrozenDict[str, Parameters] = field(default_factory=lambda: FrozenDict({}))
    networks: FrozenDict[str, float] = field(default_factory=lambda: FrozenDict({}))
    formats: FrozenDict[str, float] = field(default_factory=lambda: FrozenDict({}))
    versions: FrozenDict[str, FrozenDict[str, float]] = field(default_factory=lambda: FrozenDict({}))
    shapes: FrozenDict[str, ShapeEffects] = field(default_factory=lambda: FrozenDict({}))
    spread: float | None = None


def chosen_calibration() -> tuple[str, float]:
    """Return the calibration file named by the environment, and its modification time; empty if none."""
    name = os.environ.get(CALIBRATION, "")
    if not name:
        return "", 0.0
    path = Path(name)
    if not path.is_file():
        raise ValueError(
            f"{CALIBRATION}: there is no file {name}. Write one with `mlsys calibrate mine.csv`, or unset the variable"
        )
    return name, path.stat().st_mtime


@lru_cache(maxsize=8)
def _calibration(name: str, _written: float) -> _Own:
    import yaml

    if not name:
        return _Own()
    try:
        read = yaml_of(read_text(name, _MOST_BYTES))
        device, settings, networks = str(read["device"]), read["settings"], read.get("networks") or {}
        formats = read.get("formats") or {}
        shapes = {setting: _shape_effects(lines) for setting, lines in (read.get("shapes") or {}).items()}
        versions = {setting: FrozenDict(values) for setting, values in (read.get("versions") or {}).items()}
        parameters = {setting: Parameters(**values) for setting, values in settings.items()}
        numbers = {setting: dict(values) for setting, values in settings.items()}
        numbers |= {"networks": dict(networks), "formats": dict(formats), "": {"spread": read.get("spread", 1.0)}}
    except UnreadableError:
        raise
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{name}: not a calibration file of mlsys. Write one with `mlsys calibrate mine.csv`"
        ) from error
    for part, values in (*numbers.items(), *versions.items()):
        _check(name, part, values)
    learned = (
        FrozenDict(parameters),
        FrozenDict(networks),
        FrozenDict(formats),
        FrozenDict(versions),
        FrozenDict(shapes),
    )
    return _Own(device, *learned, read.get("spread"))


def _shape_effects(lines: Sequence[Sequence[float]]) -> ShapeEffects:
    """Return shape effects from lines of three features and a weight."""
    numbers = [(float(rows), float(columns), float(depth), float(weight)) for rows, columns, depth, weight in lines]
    if not all(math.isfinite(number) for line in numbers for number in line):
        raise ValueError("features and weights must be finite")
    return ShapeEffects(tuple(line[:3] for line in numbers), tuple(line[3] for line in numbers))


def _check(name: str, part: str, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < 0 or (value == 0 and key not in _MAY_BE_ZERO):
            head = f"{part}: " if part else ""
            raise ValueError(
                f"{name}: {head}`{key}` must be a finite number above zero, got {value!r}. "
                "Write a new file with `mlsys calibrate mine.csv`"
            )
        if key == "spread" and value > _MOST_SPREAD:
            raise ValueError(
                f"{name}: `spread` must be the logarithm of a factor, at most {_MOST_SPREAD:g}, got {value!r}"
            )


def calibrated(setting: str, device: str) -> Parameters | None:
    """Return a machine's calibrated parameters of a setting; None if the file has none."""
    calibration = _calibration(*chosen_calibration())
    return calibration.settings.get(setting) if calibration.device == device else None


def calibrated_network(device: str, network: str) -> float:
    """Return a calibrated machine's time factor of a network, relative to its parameters; else 1."""
    calibration = _calibration(*chosen_calibration())
    if calibration.device != device or not calibration.networks or not network:
        return 1.0
    return calibration.networks.get(levels_of("", "", network)["network"], 1.0)


def calibrated_format(device: str, precision: str) -> float:
    """Return a calibrated machine's time factor of a number format, relative to its parameters; else 1."""
    calibration = _calibration(*chosen_calibration())
    return calibration.formats.get(precision, 1.0) if calibration.device == device else 1.0


def calibrated_version(setting: str, device: str, version: str) -> float:
    """Return a calibrated machine's time factor of a software version, relative to its parameters; else 1."""
    calibration = _calibration(*chosen_calibration())
    return calibration.versions.get(setting, FrozenDict({})).get(version, 1.0) if calibration.device == device else 1.0


def calibrated_shape(setting: str, device: str, shape: Shape | None) -> float:
    """Return a calibrated machine's time factor for networks of a given shape; else 1."""
    calibration = _calibration(*chosen_calibration())
    if calibration.device != device or shape is None or setting not in calibration.shapes:
        return 1.0
    return math.exp(float(calibration.shapes[setting].of([shape])[0]))


def shape_if_calibrated(device: str, work: Work) -> Shape | None:
    """Return the shape of some work if a calibrated machine's estimates depend on it; else None."""
    return shape_of_products(work) if _calibration(*chosen_calibration()).device == device else None


def calibrated_spread(device: str) -> float | None:
    """Return the expected error of a calibrated machine's estimates, in logarithm of time; None if not in the file."""
    calibration = _calibration(*chosen_calibration())
    return calibration.spread if calibration.device == device else None


@contextmanager
def uncalibrated() -> Iterator[None]:
    """Ignore the calibration file inside the context."""
    with _naming(None):
        yield


@contextmanager
def calibrated_by(path: Path) -> Iterator[None]:
    """Use a calibration file inside the context, as if ``MLSYS_CALIBRATION`` named it."""
    with _naming(str(path)):
        yield


@contextmanager
def _naming(name: str | None) -> Iterator[None]:
    before = os.environ.pop(CALIBRATION, None)
    if name is not None:
        os.environ[CALIBRATION] = name
    try:
        yield
    finally:
        os.environ.pop(CALIBRATION, None)
        if before is not None:
            os.environ[CALIBRATION] = before


def calibrated_device() -> tuple[str, tuple[str, ...]]:
    """Return the device of the calibration file and its settings; empty without a file."""
    calibration = _calibration(*chosen_calibration())
    return calibration.device, tuple(calibration.settings)


def save_calibration(
    path: Path,
    device: str,
    settings: Mapping[str, Parameters],
    rows: int,
    networks: Mapping[str, float],
    formats: Mapping[str, float],
    versions: Mapping[str, Mapping[str, float]],
    shapes: Mapping[str, ShapeEffects],
    spread: float,
) -> None:
    """Write a calibration file for ``MLSYS_CALIBRATION`` atomically.

    Parameters
    ----------
    path
        The file.
    device
        Id of the device.
    settings
        Its parameters, by setting.
    rows
        Number of measurements used.
    networks
        Time factor of each network, relative to the parameters.
    formats
        Time factor of each number format.
    versions
        Time factor of each software version, for settings measured in several versions.
    shapes
        Effects of the shapes of measured networks, by setting.
    spread
        Expected error of a further measurement, in logarithm of time.
    """
    lines = [f"# {rows} measurements of {device}; written by `mlsys calibrate`.", f"device: {device}"]
    lines += [f"spread: {spread:.3g}  # of an estimate, in logarithm of time", "settings:"]
    for setting in sorted(settings):
        pairs = ", ".join(f"{name}: {decimal(getattr(settings[setting], name))}" for name in Parameters.names())
        lines.append(f'  "{setting}": {{{pairs}}}')
    if networks:
        lines.append("networks:  # time factors, relative to the parameters")
        names = {levels_of("", "", name)["network"]: factor for name, factor in networks.items()}
        lines += [f"  {_quoted(name)}: {factor:.4g}" for name, factor in sorted(names.items())]
    if formats:
        lines.append("formats:  # time factors of networks in each number format")
        lines += [f"  {name}: {factor:.4g}" for name, factor in sorted(formats.items())]
    if versions:
        lines.append("versions:  # time factors of each software version")
        for setting, factors in sorted(versions.items()):
            pairs = ", ".join(f"{_quoted(name)}: {factor:.4g}" for name, factor in sorted(factors.items()))
            lines.append(f"  {_quoted(setting)}: {{{pairs}}}")
    if shapes:
        lines.append("shapes:  # networks by their products: rows, columns, depth (binary logarithms) and a weight")
        for setting, shape_effects in sorted(shapes.items()):
            points = (
                ", ".join(f"{number:.4g}" for number in (*shape, weight))
                for shape, weight in zip(shape_effects.shapes, shape_effects.weights, strict=True)
            )
            lines.append(f"  {_quoted(setting)}: [{', '.join(f'[{point}]' for point in points)}]")
    write_text(path, "\n".join(lines) + "\n")


def _quoted(name: str) -> str:
    import json

    return json.dumps(name, ensure_ascii=False)  # a JSON string is a YAML string


def decimal(value: float) -> str:
    """Return a number with three significant digits, as YAML reads it back.

    Examples
    --------
    >>> decimal(1000.4), decimal(0.0123), decimal(2.81e-5)  # YAML reads 1e+03 as text
    ('1000', '0.0123', '2.81e-5')
    """
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{float(mantissa) * 10.0 ** int(exponent):g}" if 1e-4 < value < 1e5 else f"{mantissa}e{int(exponent):+d}"
