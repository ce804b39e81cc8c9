"""The fitted parameters, by kind of software and class of machine."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path

from mlsys.errors import UnreadableError
from mlsys.files import Drafts, write_text
from mlsys.frozen import FrozenDict
from mlsys.inputs import read_text, yaml_of
from mlsys.models.calibrated.effects import effect_of
from mlsys.models.calibrated.model import Parameters

__all__ = [
    "CALIBRATION",
    "calibrated",
    "calibrated_device",
    "fitted",
    "machines",
    "nearest",
    "parameters_of",
    "plain_of",
    "save",
    "save_calibration",
    "scaled",
]

_PLACE = Path(__file__).parent / "parameters.yaml"
CALIBRATION = "MLSYS_CALIBRATION"
_MAY_BE_ZERO = ("launch", "ramp", "hop")
_MOST_BYTES = 1_000_000  # of a file of `mlsys calibrate`
_MACHINES = Path(__file__).parent / "machines.yaml"
# What a machine may attain of its peaks at most, however fast it was measured; 1.05 allows for boost clocks.
_MOST = {"compute": 1.05, "vector": 1.05, "bandwidth": 1.0, "link": 1.0}
_TIMES = ("launch", "hop", "energy")


@lru_cache(maxsize=1)
def fitted() -> FrozenDict[str, Parameters]:
    """Return the fitted parameters of every setting, such as ``"compiled network on GPU"``."""
    if not _PLACE.exists():
        return FrozenDict({})
    read = yaml_of(read_text(_PLACE)) or {}
    return FrozenDict({setting: Parameters(**values) for setting, values in read.items()})


def _chosen() -> tuple[str, float]:
    """Return the calibration file that the environment names, and when it was written; empty if none."""
    name = os.environ.get(CALIBRATION, "")
    if not name:
        return "", 0.0
    path = Path(name)
    if not path.is_file():
        raise ValueError(f"{CALIBRATION}: no file {name}. Write one with `mlsys calibrate mine.csv`, or unset it")
    return name, path.stat().st_mtime


@lru_cache(maxsize=8)
def _calibration(name: str, _written: float) -> FrozenDict[str, FrozenDict[str, Parameters]]:
    import yaml

    if not name:
        return FrozenDict({})
    try:
        read = yaml_of(read_text(name, _MOST_BYTES))
        device, settings = read["device"], read["settings"]
        found = {setting: FrozenDict({str(device): Parameters(**values)}) for setting, values in settings.items()}
    except UnreadableError:
        raise
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name}: no calibration file of mlsys. Write one with `mlsys calibrate mine.csv`") from error
    for setting, values in settings.items():
        for field, value in values.items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if not number or value < 0 or (value == 0 and field not in _MAY_BE_ZERO):
                raise ValueError(
                    f"{name}: {setting}: `{field}` must be a finite number above zero, got {value!r}. "
                    "Write the file anew with `mlsys calibrate mine.csv`"
                )
    return FrozenDict(found)


def calibrated(setting: str, device: str) -> Parameters | None:
    """Return a machine's own parameters from the file that ``MLSYS_CALIBRATION`` names; None if it has none."""
    return _calibration(*_chosen()).get(setting, FrozenDict({})).get(device)


def calibrated_device() -> tuple[str, tuple[str, ...]]:
    """Return which device the file that ``MLSYS_CALIBRATION`` names is of, and its settings; empty without a file."""
    found = _calibration(*_chosen())
    return next((name for devices in found.values() for name in devices), ""), tuple(found)


def save_calibration(path: Path, device: str, settings: dict[str, Parameters], rows: int) -> None:
    """Write a machine's own parameters for ``MLSYS_CALIBRATION``; nothing half-written stays behind."""
    lines = [f"# {rows} measurements of {device}; written by `mlsys calibrate`.", f"device: {device}", "settings:"]
    for setting in sorted(settings):
        pairs = ", ".join(f"{name}: {_decimal(getattr(settings[setting], name))}" for name in Parameters.names())
        lines.append(f'  "{setting}": {{{pairs}}}')
    write_text(path, "\n".join(lines) + "\n")


def parameters_of(setting: str, device: str = "", network: str = "") -> tuple[Parameters, str]:
    """Return the parameters of a setting, and whose they are.

    Where ``device``, the id of a twin, was measured in the setting, they are as that machine attains them;
    where the file that ``MLSYS_CALIBRATION`` names has it, they are its own. What measurements of the
    machine, of its family and of the ``network`` in other settings say, is counted in as
    :func:`mlsys.models.calibrated.effects.effect_of` has it.

    Where a setting was never fitted, those of the same software on another class of machine
    stand in; failing that, the physical expectations that every fit starts from.

    Examples
    --------
    >>> parameters_of("an abacus")[1]
    'physical expectations'
    """
    plain, whose = plain_of(setting, device)
    own = bool(device) and calibrated(setting, device) is not None
    return scaled(plain, effect_of(setting, device, network, machine=not own).factor), whose


def plain_of(setting: str, device: str = "") -> tuple[Parameters, str]:
    """Return the parameters of a setting on a machine, and whose they are, without effects of anything else."""
    own = calibrated(setting, device) if device else None
    if own is not None:
        return own, f"{setting}, measured on this machine"
    known = fitted()
    if setting in known:
        return scaled(known[setting], machines().get(setting, FrozenDict({})).get(device, 1.0)), setting
    other = nearest(setting, known)
    if other:
        return known[other], other
    return Parameters(), "physical expectations"


@lru_cache(maxsize=1)
def machines() -> FrozenDict[str, FrozenDict[str, float]]:
    """Return, by setting, the factor of time of each machine that was measured in it."""
    if not _MACHINES.exists():
        return FrozenDict({})
    read = yaml_of(read_text(_MACHINES)) or {}
    return FrozenDict({setting: FrozenDict(values) for setting, values in read.items()})


def scaled(parameters: Parameters, factor: float) -> Parameters:
    """Return the parameters of a machine that takes ``factor`` times as long as the setting's.

    Rates fall and times grow by the factor; no part of a peak grows above what a machine can attain,
    so that the estimate stays above its bound.

    Examples
    --------
    >>> slow = scaled(Parameters(), 2.0)
    >>> slow.compute, slow.launch, scaled(Parameters(), 0.5).bandwidth
    (0.4, 1e-05, 1.0)
    """
    if factor == 1.0:
        return parameters
    values = {}
    for name in Parameters.names():
        value = getattr(parameters, name)
        if name in _TIMES:
            values[name] = value * factor
        elif name == "ramp":
            values[name] = value
        else:
            values[name] = min(value / factor, max(value, _MOST.get(name, float("inf"))))
    return Parameters(**values)


def nearest(setting: str, known: Iterable[str]) -> str:
    """Return the setting that stands in for one that was never fitted, or an empty string.

    The same software on another class of machine; failing that, on the same class the same kind of
    work by the software whose name is most alike, so that a new version finds the last one.

    Examples
    --------
    >>> nearest("vLLM 0.20 gemm on GPU", ("vLLM gemm on GPU", "SGLang gemm on GPU", "vLLM attention on GPU"))
    'vLLM gemm on GPU'
    """
    names = list(known)
    software, _, machine = setting.partition(" on ")
    for other in names:
        if other.partition(" on ")[0] == software:
            return other
    kind = software.rpartition(" ")[2]
    alike = [other for other in names if other.endswith(f" {kind} on {machine}")]
    return max(alike, key=lambda other: SequenceMatcher(None, other, setting).ratio(), default="")


def save(
    parameters: dict[str, Parameters], own: dict[str, dict[str, float]], files: Drafts, place: Path = _PLACE.parent
) -> None:
    """Draft the parameters of every setting, and the factors of its machines, three significant digits each."""
    lines = [
        "# Fitted by `mlsys validate --refit` to the measurements in mlsys/validation/data; not for editing by hand.",
        "# Efficiencies are parts of a peak; launch and hop are seconds; ramp is steps; energy is joules an operation.",
    ]
    for setting in sorted(parameters):
        values = parameters[setting]
        pairs = ", ".join(f"{name}: {_decimal(getattr(values, name))}" for name in Parameters.names())
        lines.append(f"{setting}: {{{pairs}}}")
    files.text(place / _PLACE.name, "\n".join(lines) + "\n")
    lines = ["# How many times as long as its setting each machine takes, drawn towards 1; fitted, not edited by hand."]
    for setting in sorted(own):
        pairs = ", ".join(f"{twin}: {factor:.3f}" for twin, factor in sorted(own[setting].items()))
        lines.append(f"{setting}: {{{pairs}}}")
    files.text(place / _MACHINES.name, "\n".join(lines) + "\n")


def _decimal(value: float) -> str:
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{value:.3g}" if 1e-4 < value < 1e5 else f"{mantissa}e{int(exponent):+d}"
