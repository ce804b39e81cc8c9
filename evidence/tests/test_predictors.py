"""Other predictors' figures beside ours: what ships is what they published, and ours are of machines left out."""

import re
from collections.abc import Sequence

import numpy as np
import pytest

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.rows import Row
from mlsys.models.estimate import MATMUL
from mlsys_evidence import comparisons, held_out_predictions
from mlsys_evidence.evaluate.operators import OPERATORS, operator_parts, operators_left_out
from mlsys_evidence.evaluate.predictors import NEW, NEW_GPU
from mlsys_evidence.evaluate.published import WHOLE, Published, published_predictions
from mlsys_evidence.fit.fitting import Fit, held_out
from mlsys_evidence.fit.refit import parameters_alone, settings
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
# scripts/asplos/summary/perop.csv: NeuSight's mean error out of distribution, %. And how many networks that is of, and
# the mean over those on an L4, which do not ship (summary.csv).
REPORTED = {
    "batched product": (13.784, 54, 27.272),
    "product of a layer": (13.878, 54, 8.280),
    "element-wise": (19.320, 54, 21.232),
    "softmax": (13.860, 54, 16.054),
    "layer normalisation": (56.694, 48, 125.014),
}


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    return {row.id: row for row in shipped_rows()}


def named(row: Row) -> Sequence[str]:
    """Return GPU, network, mode, length and batch of the file that a row was read from, and how the job was split."""
    found = re.search(r"label/([^/]+)/([^.]+)\.json", row.source_path)
    assert found
    return (found[1], *found[2].split("-"))


def off(each: Published, name: str = "neusight") -> float:
    return abs(each.predicted[name] / each.measured - 1)


def test_measured_times_are_those_of_the_rows(rows: dict[str, Row]) -> None:
    compared = 0
    for each in published_predictions():
        if each.what != WHOLE:
            continue
        try:
            case = interpret(rows[each.id])
        except Inexpressible:
            continue
        assert each.measured == pytest.approx(1e3 * case.seconds, rel=1e-3), each.id
        compared += 1
    assert compared > 80


@pytest.mark.parametrize("mode", TABLES)
def test_errors_are_those_of_the_published_tables(rows: dict[str, Row], mode: str) -> None:
    whole = {tuple(named(rows[each.id])): each for each in published_predictions() if each.what == WHOLE}
    lengths = {"bert_large": "512", "gpt2_large": "1024"}
    for network, batch, *errors in TABLES[mode]:
        each = whole["NVIDIA_H100_80GB_HBM3", network, mode, lengths.get(network, "2048"), str(batch)]
        own = [100 * off(each, name) for name in ("roofline", "habitat", "li", "neusight")]
        assert own == pytest.approx(errors, abs=0.06)


@pytest.mark.parametrize("kind", REPORTED)
def test_reported_means_are_of_these_rows_and_of_those_on_an_l4(kind: str) -> None:
    mean, networks, on_l4 = REPORTED[kind]
    own = [100 * off(each) for each in published_predictions() if each.what == kind and each.new_to]
    assert len(own) == networks - 10
    assert (sum(own) + 10 * on_l4) / networks == pytest.approx(mean, abs=0.02)


def test_new_is_what_its_authors_call_out_of_distribution(rows: dict[str, Row]) -> None:
    """OOD_MODELS and OOD_DEVICES of scripts/asplos/summarize.py."""
    for each in published_predictions():
        gpu, network, *_ = named(rows[each.id])
        assert ("GPU" in each.new_to) == (gpu in ("NVIDIA_H100_80GB_HBM3", "NVIDIA_L4", "NVIDIA_A100_80GB_PCIe"))
        assert ("network" in each.new_to) == (network in ("gpt3_27", "opt_13", "gpt3_xl"))


def test_kernels_are_the_operators_of_the_network(rows: dict[str, Row]) -> None:
    """A block of a transformer has two normalisations, one softmax and, here, four products with weights."""
    layers = {"bert_large": 24, "gpt2_large": 36, "gpt3_27": 32, "opt_13": 24}
    # BERT normalises its embeddings, has no last normalisation, and its head is two small layers or one.
    norms, heads = {"bert_large": 1}, {"bert_large": (1, 2)}
    seen = set()
    for name in operators_left_out():
        network = named(rows[name])[1]
        if network not in layers:
            continue
        case = interpret(rows[name])
        counts = dict(zip(OPERATORS, operator_parts(case) @ case.work["count"], strict=True))
        assert counts["softmax"] == layers[network]
        assert counts["layer normalisation"] == 2 * layers[network] + norms.get(network, 1)
        assert counts["product of a layer"] - 4 * layers[network] in heads.get(network, (1,))
        assert counts["batched product"] in (layers[network], 2 * layers[network])
        flops = operator_parts(case) @ (case.work["flops"] * case.work["count"] * (case.work["kind"] == MATMUL))
        assert flops[:2].sum() == pytest.approx(
            (case.work["flops"] * (case.work["kind"] == MATMUL)) @ case.work["count"]
        )
        seen.add(network)
    assert seen == set(layers)


def test_operators_sum_to_nearly_the_network_as_told_without_its_machine() -> None:
    """What is left is embeddings, what selects and shifts, and waits for the host."""
    plain = parameters_alone()
    for name, seconds in operators_left_out().items():
        assert 0.75 * plain[name][0] < sum(seconds) < 1.01 * plain[name][0], name


def test_no_fit_that_tells_a_machine_has_seen_it() -> None:
    cases = settings()["eager small units llm prefill on GPU"]
    asked: list[tuple[list[int], Fit]] = []
    times = held_out(cases, lambda case: case.twin, told=lambda places, fitted: asked.append((places, fitted)))
    assert sorted(place for places, _ in asked for place in places) == list(range(len(cases)))
    for places, fitted in asked:
        assert not {cases[place].twin for place in places} & set(fitted.machines)
        assert np.isfinite(times[places]).all()


def test_ours_is_nearer_than_a_roofline_on_whole_networks_of_every_group() -> None:
    for each in comparisons():
        if each.work in ("network, forward", "training step"):
            assert each.mean["ours"] < each.mean["roofline"]
            assert each.median["ours"] < each.median["roofline"]


def test_the_median_on_new_networks_is_that_of_the_rows(rows: dict[str, Row]) -> None:
    """By the left-out predictions themselves, and NeuSight's by its file."""
    of = {each.id: each for each in published_predictions() if each.what == WHOLE and each.new_to}
    unseen = [each for each in held_out_predictions("device") if each.row.id in of]
    forward = [each for each in unseen if "inf" in named(each.row)]
    here = {(each.work, each.group): each for each in comparisons()}["network, forward", NEW]
    assert here.rows == len(forward) == 24
    assert here.median["ours"] == pytest.approx(float(np.median([each.error for each in forward])))
    assert here.median["neusight"] == pytest.approx(float(np.median([off(of[each.row.id]) for each in forward])))


def test_groups_of_the_same_rows_are_told_once() -> None:
    told = [(each.work, each.rows) for each in comparisons()]
    assert len(set(told)) == len(told)
    assert {each.group for each in comparisons() if "four GPUs" in each.work} == {NEW_GPU}
