"""Other predictors' figures beside ours: what ships is what they published, and ours are of machines left out."""

import re
from collections.abc import Sequence

import numpy as np
import pytest

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.rows import Row
from mlsys_evidence import comparisons, held_out_predictions
from mlsys_evidence.evaluate.predictors import NEW, NEW_GPU
from mlsys_evidence.evaluate.published import PublishedTime, published_predictions
from mlsys_evidence.fit.fitting import Fit, held_out
from mlsys_evidence.fit.refit import settings
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

# scripts/asplos/summary/nvidia_inf.csv and nvidia_train.csv of sitar-lab/NeuSight, H100: errors of a roofline, Habitat,
# Li et al. and NeuSight, %, of BERT-Large, GPT2-Large, GPT3-XL, OPT-1.3B and GPT3-2.7B, by batch.
TABLES = {
    "inf": (
        ("bert_large", 8, 31.2, 1822.3, 25.8, 23.4),
        ("bert_large", 16, 29.7, 860.5, 28.5, 13.2),
        ("gpt2_large", 4, 32.1, 503.9, 18.2, 3.1),
        ("gpt2_large", 8, 29.6, 215.5, 22.7, 6.8),
        ("gpt3_xl", 2, 27.0, 48.9, 34.4, 6.2),
        ("gpt3_xl", 8, 25.0, 47.9, 38.1, 3.9),
        ("opt_13", 2, 34.8, 324.5, 20.6, 2.0),
        ("opt_13", 8, 34.2, 23.3, 21.7, 4.3),
        ("gpt3_27", 2, 31.3, 93.1, 23.7, 0.7),
        ("gpt3_27", 8, 28.6, 28.0, 28.5, 0.4),
    ),
    "train": (
        ("bert_large", 2, 47.0, 5245.0, 3.9, 14.0),
        ("bert_large", 8, 34.3, 1616.5, 20.2, 17.6),
        ("gpt2_large", 1, 38.8, 1995.4, 4.9, 16.4),
        ("gpt2_large", 4, 31.9, 528.3, 18.1, 1.7),
        ("gpt3_xl", 1, 25.8, 212.6, 35.2, 1.2),
        ("opt_13", 1, 33.7, 745.5, 20.4, 1.5),
        ("opt_13", 2, 33.4, 348.6, 21.2, 0.1),
        ("gpt3_27", 1, 29.8, 297.9, 24.7, 1.6),
    ),
}


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    return {row.id: row for row in shipped_rows()}


def named(row: Row) -> Sequence[str]:
    """Return GPU, network, mode, length and batch of the file that a row was read from, and how the job was split."""
    found = re.search(r"label/([^/]+)/([^.]+)\.json", row.source_path)
    assert found
    return (found[1], *found[2].split("-"))


def off(each: PublishedTime, name: str = "neusight") -> float:
    return abs(each.predicted[name] / each.measured - 1)


def test_measured_times_are_those_of_the_rows(rows: dict[str, Row]) -> None:
    compared = 0
    for each in published_predictions():
        try:
            case = interpret(rows[each.id])
        except Inexpressible:
            continue
        assert each.measured == pytest.approx(1e3 * case.seconds, rel=1e-3), each.id
        compared += 1
    assert compared > 80


@pytest.mark.parametrize("mode", TABLES)
def test_errors_are_those_of_the_published_tables(rows: dict[str, Row], mode: str) -> None:
    whole = {tuple(named(rows[each.id])): each for each in published_predictions()}
    lengths = {"bert_large": "512", "gpt2_large": "1024"}
    for network, batch, *errors in TABLES[mode]:
        each = whole["NVIDIA_H100_80GB_HBM3", network, mode, lengths.get(network, "2048"), str(batch)]
        own = [100 * off(each, name) for name in ("roofline", "habitat", "li", "neusight")]
        assert own == pytest.approx(errors, abs=0.06)


def test_new_is_what_its_authors_call_out_of_distribution(rows: dict[str, Row]) -> None:
    """OOD_MODELS and OOD_DEVICES of scripts/asplos/summarize.py."""
    for each in published_predictions():
        gpu, network, *_ = named(rows[each.id])
        assert ("GPU" in each.new_to) == (gpu in ("NVIDIA_H100_80GB_HBM3", "NVIDIA_L4", "NVIDIA_A100_80GB_PCIe"))
        assert ("network" in each.new_to) == (network in ("gpt3_27", "opt_13", "gpt3_xl"))


def test_no_fit_that_predicts_a_device_has_seen_it() -> None:
    cases = settings()["eager small units llm prefill on GPU"]
    fits: list[tuple[list[int], Fit]] = []
    times = held_out(cases, lambda case: case.twin, on_fit=lambda places, fitted: fits.append((places, fitted)))
    assert sorted(place for places, _ in fits for place in places) == list(range(len(cases)))
    for places, fitted in fits:
        assert not {cases[place].twin for place in places} & set(fitted.machines)
        assert np.isfinite(times[places]).all()


def test_ours_is_nearer_than_a_roofline_on_whole_networks_of_every_group() -> None:
    for each in comparisons():
        if each.work in ("network, forward", "training step"):
            assert each.mean["ours"] < each.mean["roofline"]
            assert each.median["ours"] < each.median["roofline"]


def test_the_median_on_new_networks_is_that_of_the_rows(rows: dict[str, Row]) -> None:
    """By the left-out predictions themselves, and NeuSight's by its file."""
    of = {each.id: each for each in published_predictions() if each.new_to}
    unseen = [each for each in held_out_predictions("device") if each.row.id in of]
    forward = [each for each in unseen if "inf" in named(each.row)]
    here = {(each.work, each.group): each for each in comparisons()}["network, forward", NEW]
    assert here.rows == len(forward) == 24
    assert here.median["ours"] == pytest.approx(float(np.median([each.error for each in forward])))
    assert here.median["neusight"] == pytest.approx(float(np.median([off(of[each.row.id]) for each in forward])))


def test_groups_with_the_same_rows_are_listed_once() -> None:
    groups = [(each.work, each.rows) for each in comparisons()]
    assert len(set(groups)) == len(groups)
    assert {each.group for each in comparisons() if "four GPUs" in each.work} == {NEW_GPU}
