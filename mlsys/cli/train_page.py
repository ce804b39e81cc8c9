"""A training plan as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsys.cli.page import STYLE
from mlsys.formatting import natural
from mlsys.inputs import shipped_text
from mlsys.models.inference.words import amount

if TYPE_CHECKING:
    from mlsys.api.train import TrainingPlan
    from mlsys.units import Quantity

# Colours of the book, in the order of its figures.
_COLORS = ("#006395", "#008f59", "#cc5500", "#8b5fbf", "#c0392b", "#5f6f7f", "#b8860b", "#2a9d8f")
_WIDTH, _LEFT, _RIGHT, _LAYOUTS = 500, 100, 80, 40


def train_page(plan: TrainingPlan, overrides: Sequence[str] = ()) -> str:
    """Return the page: the run, memory and time by part, messages, layouts and assumptions.

    Raises
    ------
    ModuleNotFoundError
        If Jinja2 is not installed.
    """
    import jinja2

    step = plan.result
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, auto_reload=False
    )
    template = environment.from_string(shipped_text("mlsys.cli", "train.html"))
    memory = _bar(
        "Memory of the fullest chip", step.memory, "byte", step.capacity.m_as("byte"),
        f"{amount(step.capacity.m_as('byte'), 'byte')} of the chip",
    )  # fmt: skip
    time = _bar("Time of a step", step.parts, "s")
    return template.render(
        title=f"Training {step.workload} on {step.chips:,} × {step.chip.name}",
        style=STYLE,
        workload=f"{natural(step.tokens)} tokens a step",
        layout=f"{step.layout}; micro-batch {step.micro_batch}, recompute {step.recompute}, ZeRO {step.zero}",
        summary=_summary(plan),
        bars=[memory, time],
        width=_WIDTH,
        left=_LEFT,
        span=_WIDTH - _LEFT - _RIGHT,
        sent=[(name, f"{amount(size.m_as('byte'), 'byte')}, {step.links[name]}") for name, size in step.sent.items()
              if size.magnitude],
        caption=f"{min(_LAYOUTS, len(plan.layouts))} of {len(plan.layouts)}, those that fit first, the fastest first.",
        columns=("layout", "micro-batch", "recompute", "ZeRO", "memory", "fits", "step", "MFU", "tokens/s"),
        rows=[
            (
                each.layout, each.micro_batch, each.recompute, each.zero, amount(each.needed.m_as("byte"), "byte"),
                "yes" if each.fits else "no", amount(each.time.m_as("s"), "s"), f"{each.figures['MFU'].magnitude:.1%}",
                natural(each.tokens_per_second.m_as("1/s")),
            )
            for each in plan.layouts[:_LAYOUTS]
        ],
        assumptions=step.assumptions,
        overrides=list(overrides),
    )  # fmt: skip


def _summary(plan: TrainingPlan) -> list[tuple[str, str]]:
    """Return the answers by name, as text."""
    step = plan.result
    low, high = step.range
    verdict = "fits" if step.fits else "does not fit"
    rows = [
        ("step", f"{amount(step.time.m_as('s'), 's')}, {amount(low.m_as('s'), 's')} to {amount(high.m_as('s'), 's')}"),
        ("rate", f"{natural(step.tokens_per_second.m_as('1/s'))} tokens/s, bound by {step.bound_by}"),
        ("MFU", f"{step.figures['MFU'].magnitude:.1%}; HFU {step.figures['HFU'].magnitude:.1%}"),
        ("memory", f"{amount(step.needed.m_as('byte'), 'byte')} of {amount(step.capacity.m_as('byte'), 'byte')}: "
                   f"{verdict}"),
    ]  # fmt: skip
    if plan.tokens is not None:
        duration, hours = step.duration(plan.tokens), step.chip_hours(plan.tokens)
        days, spent = f"{duration.m_as('day'):,.4g} days", f"{hours.m_as('hour'):,.0f} chip-hours"
        rows.append(("run", f"{plan.tokens / 1e9:,.4g} billion tokens, {days}, {spent}"))
        cost = "rent unknown: --rent gives one" if plan.cost is None else f"{plan.cost.m_as('USD'):,.0f} USD"
        rows.append(("cost", cost))
        if plan.energy is not None:
            rows.append(("energy", f"{plan.energy.m_as('MWh'):,.4g} MWh at the chips' design power"))
    return rows


def _bar(
    title: str, parts: Mapping[str, Quantity], unit: str, limit: float | None = None, limit_text: str = ""
) -> dict[str, Any]:
    """Return the parts of a whole as steps of one bar, each beginning where the one before ends."""
    sizes = {name: float(part.m_as(unit)) for name, part in parts.items() if part.magnitude}
    total = sum(sizes.values())
    whole = max(total, limit or 0.0) or 1.0
    steps, start = [], 0.0
    for index, (name, size) in enumerate(sizes.items()):
        color = _COLORS[index % len(_COLORS)]
        steps.append({"name": name, "text": amount(size, unit), "share": size / whole, "start": start, "color": color})
        start += size / whole
    listed = ", ".join(f"{each['name']} {each['text']}" for each in steps)
    return {
        "title": f"{title}: {amount(total, unit)}",
        "label": f"{title}, {amount(total, unit)}: {listed}",
        "parts": steps,
        "limit": None if limit is None else limit / whole,
        "limit_text": limit_text,
    }
