"""The fitted parameters, by kind of software and class of machine."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from mlsys.frozen import FrozenDict
from mlsys.models.calibrated.model import Parameters

__all__ = ["fitted", "parameters_of", "save"]

_PLACE = Path(__file__).parent / "parameters.yaml"


@lru_cache(maxsize=1)
def fitted() -> FrozenDict[str, Parameters]:
    """Return the fitted parameters of every setting, such as ``"compiled network on GPU"``."""
    import yaml

    if not _PLACE.exists():
        return FrozenDict({})
    with _PLACE.open(encoding="utf-8") as stream:
        read = yaml.safe_load(stream) or {}
    return FrozenDict({setting: Parameters(**values) for setting, values in read.items()})


def parameters_of(setting: str) -> tuple[Parameters, str]:
    """Return the parameters of a setting, and whose they are.

    Where a setting was never fitted, those of the same software on another class of machine
    stand in; failing that, the physical expectations that every fit starts from.

    Examples
    --------
    >>> parameters_of("an abacus")[1]
    'physical expectations'
    """
    known = fitted()
    if setting in known:
        return known[setting], setting
    software = setting.partition(" on ")[0]
    for other in known:
        if other.partition(" on ")[0] == software:
            return known[other], other
    return Parameters(), "physical expectations"


def save(parameters: dict[str, Parameters], path: Path = _PLACE) -> None:
    """Write the parameters of every setting, three significant digits each."""
    lines = [
        "# Fitted by `mlsys validate --refit` to the measurements in mlsys/validation/data; not for editing by hand.",
        "# Efficiencies are parts of a peak; launch and hop are seconds; ramp is steps; energy is joules an operation.",
    ]
    for setting in sorted(parameters):
        values = parameters[setting]
        pairs = ", ".join(f"{name}: {_decimal(getattr(values, name))}" for name in Parameters.names())
        lines.append(f"{setting}: {{{pairs}}}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    fitted.cache_clear()


def _decimal(value: float) -> str:
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{value:.3g}" if 1e-4 < value < 1e5 else f"{mantissa}e{int(exponent):+d}"
