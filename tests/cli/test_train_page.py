"""``mlsys train --html``: one page that needs nothing, with the numbers of the record."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

import mlsys
from mlsys.cli import main
from mlsys.cli.train_page import train_page
from mlsys.models.inference.words import amount

WORDS = ["train", "llama-3-8b", "--on", "DGX_H100", "--nodes", "2", "--tokens", "1T"]


def test_the_page_has_the_numbers_of_the_plan_and_needs_nothing(tmp_path: Path) -> None:
    target = tmp_path / "run.html"
    result = CliRunner().invoke(main, [*WORDS, "--html", str(target)])
    assert result.exit_code == 0, result.output
    page = target.read_text("utf-8")
    plan = mlsys.train("llama-3-8b", "DGX_H100", nodes=2, tokens=1e12)
    step = plan.result
    assert page == train_page(plan)
    assert f"{plan.chip_hours.m_as('hour'):,.0f} chip-hours" in page
    assert f"{plan.cost.m_as('USD'):,.0f} USD" in page
    for name, part in step.memory.items():
        assert not part.magnitude or f"{name}: {amount(part.m_as('byte'), 'byte')}" in page
    assert page.count("<tr>") == 1 + min(40, len(plan.layouts))
    assert not re.search(r"(?:src|href)=|url\(|<script", page)


def test_the_parts_of_a_bar_follow_each_other_to_the_whole() -> None:
    """From the drawing alone: each part begins where the one before ends, and widths are as the bytes."""
    plan = mlsys.train("llama-3-8b", "DGX_H100", layout={"tp": 8})
    page = train_page(plan)
    memory = page[page.index("<h2>Memory") : page.index("<h2>Time")]
    drawn = [
        (float(x), float(width)) for x, width in re.findall(r'<rect x="([0-9.]+)" y="[0-9]+" width="([0-9.]+)"', memory)
    ]
    sizes = [part.m_as("byte") for part in plan.result.memory.values() if part.magnitude]
    assert len(drawn) == len(sizes)
    for (start, width), (after, _) in itertools.pairwise(drawn):
        assert abs(start + width - after) < 0.11
    scale = sum(width for _, width in drawn) / sum(sizes)
    assert all(abs(width - size * scale) < 0.15 for (_, width), size in zip(drawn, sizes, strict=True))
    limit = float(re.search(r'<line class="mark" x1="([0-9.]+)"', memory)[1])  # type: ignore[index]
    assert abs((limit - drawn[0][0]) - plan.result.capacity.m_as("byte") * scale) < 0.5


def test_what_a_user_wrote_is_escaped() -> None:
    plan = mlsys.train("gpt2", "A100")
    step = replace(plan.result, workload="<b>mine</b>", assumptions=("a < b",))
    page = train_page(replace(plan, result=step), ["<i>changed</i>"])
    assert "&lt;b&gt;mine&lt;/b&gt;" in page and "a &lt; b" in page and "&lt;i&gt;changed" in page
    assert "<b>mine" not in page
