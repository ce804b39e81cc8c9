"""A claim says what it was made of: the model, its arguments and the facts, or that the page chose it."""

import json
from pathlib import Path

import pytest

from mlsys.claims.sensitivity import run_page

SETUP = """
from mlsys import Hardware, Q_, claim
from mlsys.models.access import WARP
from mlsys.models.analysis import analyze
from mlsys.models.tiling import tile_sizes
from mlsys.registry import start_chapter
from mlsys.workloads import zoo
start_chapter("demo")
a100, v100 = Hardware.Cloud.A100, Hardware.Cloud.V100
found = analyze(a100, zoo.network("resnet50", batch=8, precision="fp16"))
"""


def claimed(tmp_path: Path, *cells: str):
    path = tmp_path / "page.ipynb"
    code = [{"cell_type": "code", "source": cell, "metadata": {}} for cell in (SETUP, *cells)]
    path.write_text(json.dumps({"cells": code}), "utf-8")
    return run_page(path).claims


def test_a_share_of_a_result_names_the_model_its_arguments_and_every_fact_that_moves_it(tmp_path: Path) -> None:
    made = claimed(tmp_path, 'claim(memory=found.share_limited_by("memory"), unit="%")')["memory"]
    assert made.formula.startswith(
        "found.share_limited_by('memory'), of analyze(device=NVIDIA A100 80 GB SXM4, workload="
    )
    assert {"A100_80GB/memory/HBM/bandwidth", "A100_80GB/peaks/fp16/matrix/dense", "A100_80GB/power/tdp"} <= set(
        made.facts
    )


def test_values_are_followed_through_the_cells_before(tmp_path: Path) -> None:
    cells = ("half = found.utilisation / 2", "other = [half]\nboth = other[0] * 2", "claim(both=both, unit='%')")
    made = claimed(tmp_path, *cells)["both"]
    assert made.formula.startswith("other[0] * 2, of analyze(device=NVIDIA A100")
    assert "A100_80GB/memory/HBM/bandwidth" in made.facts


def test_a_function_of_the_page_is_followed_too(tmp_path: Path) -> None:
    cell = """
def growth(new, old):
    return (new / old).m_as("") - 1
rise = growth(a100.memory_bw, v100.memory_bw)
claim(rise=rise, unit="%")
"""
    made = claimed(tmp_path, cell)["rise"]
    assert set(made.facts) == {"A100_80GB/memory/HBM/bandwidth", "V100/memory/HBM/bandwidth"}


@pytest.mark.parametrize(
    "cell",
    [
        "claim(two=len([found for found in (1, 2)]))",
        "claim(two=max((1, 2), key=lambda found: found))",
        "def larger(found):\n    other = found + 1\n    return other\nclaim(two=larger(1))",
    ],
)
def test_a_name_that_an_expression_binds_itself_is_not_the_pages(tmp_path: Path, cell: str) -> None:
    """``found`` is the analysis of the first cell on the page, and a mere number in each of these."""
    made = claimed(tmp_path, "other = found.utilisation", cell)["two"]
    assert made.value == 2
    assert made.facts == ()


def test_facts_of_devices_in_a_loop_are_found(tmp_path: Path) -> None:
    cell = "rates = [card.memory_bw.m_as('GB/s') for card in (a100, v100)]\nclaim(spread=max(rates) / min(rates))"
    made = claimed(tmp_path, cell)["spread"]
    assert set(made.facts) == {"A100_80GB/memory/HBM/bandwidth", "V100/memory/HBM/bandwidth"}


@pytest.mark.parametrize(
    ("cell", "formula"),
    [
        ("moved = 0.95\nclaim(value=moved, unit='%')", "given: this page sets it"),
        ("claim(value=Q_(16, 'kB'))", "given: this page sets it"),
        ("before, after = 47, 8\nclaim(value=before / after)", "before / after, of values that the page sets"),
        ("claim(value=WARP)", "WARP, of mlsys.models.access.WARP"),
        ("import random\nclaim(value=random.Random(1).random())", "this page's own code"),
        ("sizes = tile_sizes(a100)\nclaim(value=sizes['L2'] / 2)", "sizes['L2'] / 2, of tile_sizes(device=NVIDIA"),
        ("network = zoo.network('resnet50', batch=8)\nclaim(value=len(network))", "len(network), of zoo.network()"),
    ],
)  # fmt: skip
def test_what_a_formula_says(tmp_path: Path, cell: str, formula: str) -> None:
    assert claimed(tmp_path, cell)["value"].formula.startswith(formula)


def test_what_a_quantity_remembers_is_not_told_anew(tmp_path: Path) -> None:
    made = claimed(tmp_path, "claim(ridge=a100.ridge_point('fp16'))")["ridge"]
    assert made.formula == "ridge_point(peak=312 TFLOP/s, bandwidth=2039 GB/s)"
