"""Records of an analysis as plain data, as printed by ``mlsys analyze --json`` and ``mlsys compare --json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsys.models.record import with_units

if TYPE_CHECKING:
    from mlsys.models.analysis.answer import Analysis
    from mlsys.models.energy.boards import InferenceEnergy


def report(analysis: Analysis) -> dict[str, Any]:
    """Return an analysis as plain data: :func:`analysis_summary`, operators, groups and changes."""
    plain = {
        **_summary(analysis),
        "operators": operator_rows(analysis),
        "groups": [
            {"kind": group.kind, "limited_by": group.limited_by, "operators": group.operators, "share": group.share}
            for group in analysis.groups
        ],
        "first": analysis.first,
        "changes": [
            {
                "operators": change.target,
                "if": change.change,
                "share": change.share,
                "seconds": change.time.m_as("s"),
                "speedup": change.speedup if change.speedup != float("inf") else None,
                "limit": change.limit if change.limit != float("inf") else None,
            }
            for change in analysis.changes
        ],
        "assumptions": list(analysis.assumptions),
        "facts": [fact.name for fact in analysis.facts],
    }
    return with_units(_sized(plain, analysis))


def analysis_summary(analysis: Analysis, first: Analysis | None = None) -> dict[str, Any]:
    """Return the summary of an analysis; its speed is relative to ``first``."""
    return _sized(_summary(analysis, first), analysis)


def _sized(record: dict[str, Any], analysis: Analysis) -> dict[str, Any]:
    """Return a record with the sizes and fusion of the network."""
    return analysis.network.merged(record)


def _summary(analysis: Analysis, first: Analysis | None = None) -> dict[str, Any]:
    speed, slowest, fastest = analysis.speed_over(first) if first not in (None, analysis) else (1.0, 1.0, 1.0)
    return {
        "model": analysis.workload,
        "device": analysis.device,
        "precision": analysis.precision,
        "batch": analysis.samples,
        "setting": analysis.setting,
        "calibration": analysis.calibration,
        "bound_seconds": analysis.bound.m_as("s"),
        "bound_by": analysis.roofline.bound_by,
        "estimate_seconds": analysis.estimate.m_as("s"),
        "low_seconds": analysis.range[0].m_as("s"),
        "high_seconds": analysis.range[1].m_as("s"),
        "range_rests_on": analysis.interval.why,
        "differs_from_first": slowest > 1 or fastest < 1,
        "limited_by": analysis.limited_by,
        "samples_per_second": analysis.rate.m_as("1/s"),
        "speed_over_first": speed,
        "low_speed_over_first": slowest,
        "high_speed_over_first": fastest,
        "flops": analysis.flops.m_as("FLOP"),
        "bytes": analysis.data.m_as("byte"),
        "weight_bytes": analysis.weights.m_as("byte"),
        "needed_bytes": analysis.memory.needed.m_as("byte"),
        "fits": analysis.memory.fits,
        "flop_per_byte": analysis.intensity.m_as("FLOP/byte"),
        "ridge_flop_per_byte": analysis.ridge.m_as("FLOP/byte"),
        "utilisation": analysis.utilisation,
        **_energy(analysis.energy),
    }


def _energy(energy: InferenceEnergy | None) -> dict[str, Any]:
    """Return the energy of one pass; None values where no power is known."""
    names = ("energy_joules", "static_joules", "dynamic_joules", "low_joules", "high_joules")
    if energy is None:
        return dict.fromkeys((*names, "power_watts", "power_rests_on"))
    amounts = (energy.energy, energy.static, energy.dynamic, *energy.range)
    return {
        **{name: amount.m_as("J") for name, amount in zip(names, amounts, strict=True)},
        "power_watts": energy.power.power.m_as("W"),
        "power_rests_on": energy.power.why,
    }


def operator_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Return one row per operator."""
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
            "limited_by": operator.limited_by,
        }
        for operator in analysis.operators
    ]
