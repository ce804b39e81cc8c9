"""Writers of the fitted files that ship in :mod:`mlsys.models`."""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mlsys.files import Drafts
from mlsys.models import energy, estimate
from mlsys.models.estimate.library import differing
from mlsys.models.estimate.parameters import Parameters
from mlsys.models.estimate.user_calibration import decimal

ESTIMATE, ENERGY = (Path(str(package.__file__)).parent for package in (estimate, energy))


def save_parameters(
    parameters: dict[str, Parameters], factors: dict[str, dict[str, float]], files: Drafts, folder: Path = ESTIMATE
) -> None:
    """Draft the files of fitted parameters and machine factors, with three significant digits.

    A parameter that is as expected before any measurement is left out.
    """
    lines = [
        "# Fitted by `mlsys validate --refit` to the measurements of mlsys_evidence; not for editing by hand.",
        "# Efficiencies are parts of a peak; launch and hop are seconds; ramp is steps; energy is joules an operation.",
        "# What is left out is as expected before any measurement: mlsys.models.estimate.parameters.EXPECTED.",
    ]
    for setting in sorted(parameters):
        pairs = ", ".join(f"{name}: {decimal(value)}" for name, value in differing(parameters[setting]).items())
        lines.append(f"{setting}: {{{pairs}}}")
    files.text(folder / "parameters.yaml", "\n".join(lines) + "\n")
    lines = [
        "# How many times as long as its setting each measured machine takes, drawn towards 1; fitted, not edited by",
        "# hand. 1: no more apart than the noise, or told by effects.",
    ]
    for setting in sorted(factors):
        pairs = ", ".join(f"{twin}: {factor:.3g}" for twin, factor in sorted(factors[setting].items()))
        lines.append(f"{setting}: {{{pairs}}}")
    files.text(folder / "machines.yaml", "\n".join(lines) + "\n")


def save_effects(effects: Mapping[str, Any], files: Drafts) -> None:
    """Draft the file of the effects of every pool, one line per group.

    A level has its effect and the sweeps it was measured in; only these, if its effect was too small to keep.
    """
    lines = []
    for name in sorted(effects):
        parts = {key: ",\n".join(_lines(effects[name][key])) for key in ("groups", "curves")}
        rest = f'"rest": {effects[name]["rest"]:.4g}'
        inner = f'{rest},\n  "groups": {{\n{parts["groups"]}}},\n  "curves": {{\n{parts["curves"]}}}'
        lines.append(f" {json.dumps(name)}: {{{inner}}}")
    files.text(ESTIMATE / "effects.json", "{\n" + ",\n".join(lines) + "\n}\n")


def _lines(entries: Mapping[str, Any]) -> Iterable[str]:
    return (f"   {json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in entries.items())


def save_ranges(ranges: dict[str, dict[str, Any]], files: Drafts) -> None:
    """Draft the fitted intervals of every setting."""
    lines = [
        "# 80 % intervals of the logarithm of measured over estimated time, in units of how far the estimate is",
        "# expected to be off; how far off, in that logarithm, its estimates are of software that was never measured,",
        "# and that it stands in for; and who measured it.",
        "# Fitted by `mlsys validate --refit`, not edited by hand.",
    ]
    for setting in sorted(ranges):
        entry = ranges[setting]
        parts = []
        for name in ("seen", "unseen"):
            low, high = entry[name]
            if not -math.inf < low <= 0 <= high < math.inf:
                raise AssertionError(f"{setting}: {low} to {high}")
            parts.append(f"{name}: [{low:.4g}, {high:.4g}]")
        parts += [f"rows: {entry['rows']}", f"sweeps: {entry['sweeps']}", f'of: "{entry["of"]}"']
        parts += [f"lent: {entry['lent']:.4g}", f"sources: {json.dumps(entry['sources'])}"]
        lines.append(f"{setting}: {{{', '.join(parts)}}}")
    files.text(ESTIMATE / "ranges.yaml", "\n".join(lines) + "\n")


def save_sources(factors: Mapping[str, tuple[float, int]], files: Drafts) -> None:
    """Draft the factors for unknown sources, each with the number of sources that it rests on."""
    lines = [
        "# How many times as wide, in logarithms, a range is for a source that is not in the fit, by kind of work and",
        "# by kind of work on a class of machine; and the number of sources in blind evaluations.",
        "# Fitted by `mlsys validate --refit`, not edited by hand.",
    ]
    lines += [f"{name}: {{factor: {factor:.3g}, sources: {number}}}" for name, (factor, number) in factors.items()]
    files.text(ESTIMATE / "unknown_sources.yaml", "\n".join(lines) + "\n")


def save_powers(laws: Mapping[str, Mapping[str, Any]], files: Drafts) -> None:
    """Draft the file of fitted laws."""
    lines = [
        "# Power at work of a class: watts for each cycle per second, or each watt of design power, and the factors",
        "# between which measurements lie about it; fitted by `mlsys validate --refit`, not edited by hand.",
    ]
    for name in sorted(laws):
        pairs = ", ".join(
            f"{key}: {value if isinstance(value, (int, str)) else f'{value:.4g}'}" for key, value in laws[name].items()
        )
        lines.append(f"{name}: {{{pairs}}}")
    files.text(ENERGY / "powers.yaml", "\n".join(lines) + "\n")
