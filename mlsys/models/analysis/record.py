"""An analysis as plain data: what ``mlsys analyze`` and ``mlsys compare`` print for other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsys.models.record import with_units

if TYPE_CHECKING:
    from mlsys.models.analysis.answer import Analysis
    from mlsys.models.energy.boards import InferenceEnergy


def report(found: Analysis) -> dict[str, Any]:
    """Return an analysis as plain data: :func:`analysis_summary`, operators, groups and changes."""
    plain = {
        **analysis_summary(found),
        "operators": operator_rows(found),
        "groups": [
            {"kind": group.kind, "held_by": group.held_by, "operators": group.operators, "share": group.share}
            for group in found.groups
        ],
        "first": found.first,
        "changes": [
            {
                "operators": change.target,
                "if": change.change,
                "share": change.share,
                "seconds": change.time.m_as("s"),
                "speedup": change.speedup if change.speedup != float("inf") else None,
                "limit": change.limit if change.limit != float("inf") else None,
            }
            for change in found.changes
        ],
        "assumptions": list(found.assumptions),
        "facts": [fact.name for fact in found.facts],
    }
    return with_units(plain)


def analysis_summary(found: Analysis, first: Analysis | None = None) -> dict[str, Any]:
    """Return one line of an analysis; its speed is that over ``first``."""
    return {
        "model": found.workload,
        "device": found.device,
        "precision": found.precision,
        "batch": found.samples,
        "setting": found.setting,
        "calibration": found.calibration,
        "bound_seconds": found.bound.m_as("s"),
        "bound_by": found.roofline.bound_by,
        "estimate_seconds": found.estimate.m_as("s"),
        "low_seconds": found.range[0].m_as("s"),
        "high_seconds": found.range[1].m_as("s"),
        "range_rests_on": found.interval.why,
        "told_apart_from_first": first is not None and found is not first and found.apart_from(first),
        "held_by": found.held_by,
        "samples_per_second": found.rate.m_as("1/s"),
        "speed_over_first": ((first or found).estimate / found.estimate).m_as(""),
        "flops": found.flops.m_as("FLOP"),
        "bytes": found.data.m_as("byte"),
        "weight_bytes": found.weights.m_as("byte"),
        "flop_per_byte": found.intensity.m_as("FLOP/byte"),
        "ridge_flop_per_byte": found.ridge.m_as("FLOP/byte"),
        "utilisation": found.utilisation,
        **_energy(found.energy),
    }


def _energy(energy: InferenceEnergy | None) -> dict[str, Any]:
    """Return the energy of one pass; each None where no power is known."""
    names = ("energy_joules", "static_joules", "dynamic_joules", "low_joules", "high_joules")
    if energy is None:
        return dict.fromkeys((*names, "power_watts", "power_rests_on"))
    amounts = (energy.energy, energy.static, energy.dynamic, *energy.range)
    return {
        **{name: amount.m_as("J") for name, amount in zip(names, amounts, strict=True)},
        "power_watts": energy.power.power.m_as("W"),
        "power_rests_on": energy.power.why,
    }


def operator_rows(found: Analysis) -> list[dict[str, Any]]:
    """Return one line for each operator."""
    return [
        {
            "name": operator.name,
            "kind": operator.kind,
            "share": operator.share,
            "estimate_seconds": operator.estimate.m_as("s"),
            "bound_seconds": operator.bound.m_as("s"),
            "flops": operator.flops.m_as("FLOP"),
            "bytes": operator.data.m_as("byte"),
            "weight_bytes": operator.weights.m_as("byte"),
            "flop_per_byte": operator.intensity.m_as("FLOP/byte"),
            "utilisation": operator.utilisation,
            "bound_by": operator.bound_by,
            "held_by": operator.held_by,
        }
        for operator in found.operators
    ]
