"""Effects come out as they were put in, leave out what they say they leave out, and never break a bound."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mlsys.calibration.case import Case
from mlsys.hardware import Hardware
from mlsys.models.analysis import analyze
from mlsys.models.estimate import Parameters
from mlsys.models.estimate.effects import CURVES, MOST, POOLS, effect_of, pool_of, spread, spread_of
from mlsys.models.estimate.features import hats
from mlsys.models.estimate.library import fitted, parameters_of, plain_of
from mlsys.models.estimate.ranges import range_of
from mlsys.workloads import zoo
from mlsys_evidence import held_out_scores
from mlsys_evidence.fit.fitting import Fit, machines_of, predicted
from mlsys_evidence.fit.pooling import _blocks, _solved, _without, fit_pool
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

POOL, SETTING = "networks on NPU", "AI Hub network on NPU"
TWINS = ("Snapdragon8Gen2", "Snapdragon8Gen3", "Snapdragon8Elite", "QCS9075")
NETWORKS = tuple(f"net{index}" for index in range(12))


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Return measurements of made-up networks on four machines, two sweeps on each."""
    row = next(row for row in shipped_rows() if "AI Hub" in row.software and row.device_class == "NPU")
    made = replace(interpret(row), setting=SETTING)
    return [
        replace(made, twin=twin, network=name, row=replace(row, id=f"{twin}{sweep}{name}", group=f"{twin}{sweep}"))
        for twin in TWINS
        for sweep in range(2)
        for name in NETWORKS
    ]


def drawn(cases: list[Case], seed: int = 0) -> tuple[np.ndarray, dict[str, float]]:
    random = np.random.default_rng(seed)
    truth = {name: float(random.normal(0, 0.4)) for name in NETWORKS}
    return np.array([truth[case.network] + random.normal(0, 0.05) for case in cases]), truth


def test_what_networks_have_in_common_comes_out_again(cases: list[Case]) -> None:
    """The rows are made by networks whose effects are known."""
    y, truth = drawn(cases)
    pool = fit_pool(replace(POOLS[POOL], least=0.0), cases, {}, y, y)
    groups = pool.effects["groups"]
    software = SETTING.rpartition(" on ")[0]
    result = {  # one software only: what is the network's and what is its under this software cannot be told apart
        name: groups["network"]["levels"][name][0] + groups["network and software"]["levels"][f"{name}, {software}"][0]
        for name in NETWORKS
    }
    shift = np.mean([result[name] - value for name, value in truth.items()])  # all share it: the machines have it
    for name, value in truth.items():
        assert result[name] - shift == pytest.approx(value, abs=0.12)
        assert groups["network"]["levels"][name][1] == 2 * len(TWINS)
    assert np.std(y - pool.without_sweep) < 0.25 * np.std(y), "other sweeps tell what a network takes"


def test_leaving_out_in_closed_form_is_leaving_out(cases: list[Case]) -> None:
    """Oracle: the same variances and weights, fitted again without the rows of one sweep."""
    y, _ = drawn(cases, 1)
    blocks = _blocks(cases, POOLS[POOL], {})
    solved = _solved(blocks, y)
    sweeps = [case.row.group for case in cases]
    predictions = _without(blocks, solved, y, sweeps)
    here = np.array([sweep == sweeps[0] for sweep in sweeps])
    precision = np.repeat([1 / solved.variances[name] for name in blocks.names], np.diff(blocks.ends))
    z, scale = blocks.columns[~here], solved.weights[~here] / solved.rest
    u = np.linalg.solve((z * scale[:, None]).T @ z + np.diag(precision), z.T @ (scale * y[~here]))
    np.testing.assert_allclose(predictions[here], blocks.columns[here] @ u, atol=1e-8)


def test_a_sweep_left_out_does_not_hear_its_own_rows(cases: list[Case]) -> None:
    y, _ = drawn(cases, 2)
    sweep = cases[0].row.group
    here = np.array([case.row.group == sweep for case in cases])
    blocks = _blocks(cases, POOLS[POOL], {})
    solved = _solved(blocks, y)
    again = _without(blocks, solved, np.where(here, y + 0.3, y), [case.row.group for case in cases])
    np.testing.assert_allclose(
        again[here], _without(blocks, solved, y, [case.row.group for case in cases])[here], atol=1e-9
    )


def test_what_machines_of_a_family_have_in_common_is_left_to_the_effects(cases: list[Case]) -> None:
    """Three phones take half as long as the parameters say: a fourth, never measured, is told of it."""
    faster = np.array([0.5 if case.twin.startswith("Snapdragon") else 1.0 for case in cases])
    own = Parameters()
    times = predicted(cases, Fit(own))
    halved = [replace(case, seconds=float(time)) for case, time in zip(cases, times * faster, strict=True)]
    fitted_first = machines_of(halved, own)
    y = np.log([case.seconds for case in halved]) - np.log(predicted(halved, Fit(own, fitted_first)))
    result = fit_pool(POOLS[POOL], halved, {}, y, y).without_device
    of_a_phone = [value for value, case in zip(result, halved, strict=True) if case.twin == "Snapdragon8Elite"]
    assert np.median(of_a_phone) < math.log(0.75)
    # A pool that has factors of its machines finds them before.
    ones = [replace(case, setting="RKNN int8 network on NPU") for case in halved]
    assert machines_of(ones, own)["Snapdragon8Elite"] < 0.75 < machines_of(ones, own)["QCS9075"]


def test_what_was_never_measured_has_no_effect_and_a_wider_range() -> None:
    assert effect_of(SETTING, "no such machine", "no such network").factor == 1.0
    known, unknown = (range_of(SETTING, "Snapdragon8Gen3", name) for name in ("resnet50", "no such network"))
    assert unknown.high / unknown.low > known.high / known.low
    assert "never measured: this network" in unknown.why
    assert "never measured" not in known.why


def test_more_sweeps_leave_less_open() -> None:
    groups = {"machine": {"variance": 0.04}}
    open_ = [spread(groups, 0.02, [("machine", number)]) for number in (0, 1, 3, 10, 1000)]
    assert open_ == sorted(open_, reverse=True)
    assert open_[0] == pytest.approx(math.sqrt(0.06))
    assert open_[-1] == pytest.approx(math.sqrt(0.02), rel=0.01)


def test_every_effect_is_bounded_and_small_in_the_middle() -> None:
    sizes = []
    for setting in fitted():
        for case in ("A100_80GB", "T4", "Snapdragon8Gen3", "RaspberryPi5"):
            factor = effect_of(setting, case, "resnet50").factor
            assert 1 / MOST <= factor <= MOST
            sizes.append(abs(math.log(factor)))
        assert 0 < spread_of(setting, "A100_80GB")[0] < 1.5
    assert np.median(sizes) < 0.2, "most of a time is what the parameters say"


@pytest.mark.parametrize("device", ["A100", "T4", "Snapdragon8Gen3", "RaspberryPi5", "EdgeTPU"])
def test_an_estimate_with_effects_stays_above_its_bound_and_grows_with_the_batch(device: str) -> None:
    twin = Hardware[device]
    times = []
    for batch in (1, 2, 3, 8, 16):
        analysis = analyze(twin, zoo.network("mobilenet_v2", batch=batch, precision=twin.headline))
        assert analysis.estimate >= analysis.bound
        times.append(analysis.estimate.m_as("s"))
    assert times == sorted(times)


def test_parts_multiply_to_the_factor_and_are_told() -> None:
    effect = effect_of("compiled network on GPU", "A100_80GB", "resnet50")
    assert math.prod(factor for _, factor in effect.parts) == pytest.approx(effect.factor)
    plain, own = (
        plain_of("compiled network on GPU", "A100_80GB")[0],
        parameters_of("compiled network on GPU", "A100_80GB", "resnet50")[0],
    )
    assert own.launch / plain.launch == pytest.approx(effect.factor)
    result = analyze(Hardware["A100"], zoo.network("resnet50", batch=8, precision="fp16")).explain()
    assert "from similar measurements" in result


def test_curves_are_continuous_and_end_where_their_knots_end() -> None:
    for name, (lowest, highest, step) in CURVES.items():
        at = np.array([lowest - 9, lowest, lowest + step, lowest + 1.5 * step, highest, highest + 9])
        below, part = hats(name, at)
        value = lowest + step * (below + part)
        np.testing.assert_allclose(value, np.clip(at, lowest, highest), atol=1e-9)


def test_every_pool_has_settings_and_every_setting_one_pool() -> None:
    assert {pool_of(setting) for setting in fitted()} >= set(POOLS)


def test_intervals_cover_four_in_five_of_what_the_fit_has_not_seen() -> None:
    for name, part in held_out_scores().items():
        if part.expressible >= 100:
            assert part.coverage is not None
            assert 75 <= part.coverage <= 85, name


def test_small_effects_and_pairs_of_one_sweep_have_no_number_and_all_sweeps_are_counted(cases: list[Case]) -> None:
    y, _ = drawn(cases, 4)
    once = [replace(case, network="lonely") if case.row.id == cases[0].row.id else case for case in cases]
    groups = fit_pool(replace(POOLS[POOL], least=0.1), once, {}, y, y).effects["groups"]
    kept = [result for group in groups.values() for result in group["levels"].values() if not isinstance(result, int)]
    assert kept and all(abs(effect) >= 0.1 for effect, _ in kept)
    assert "lonely" in groups["network"]["levels"]
    assert not any("lonely" in level for level in groups["machine and network"]["levels"])
    sweeps = [result if isinstance(result, int) else result[1] for result in groups["machine"]["levels"].values()]
    assert sweeps == [2] * len(TWINS)


def test_versions_of_a_software_are_told_apart(cases: list[Case]) -> None:
    """Two versions, a third apart, in turn: what is known of a version on other machines mends a sweep left out."""
    versions = ["2.1" if case.row.group.endswith("1") else "1.1" for case in cases]
    stated = [replace(case, version=version) for case, version in zip(cases, versions, strict=True)]
    random = np.random.default_rng(3)
    y = np.where(np.array(versions) == "2.1", 0.15, -0.15) + random.normal(0, 0.05, len(cases))
    pool = fit_pool(POOLS[POOL], stated, {}, y, y)
    levels = pool.effects["groups"]["version"]["levels"]
    software = SETTING.rpartition(" on ")[0]
    apart = levels[f"{software}: 2.1"][0] - levels[f"{software}: 1.1"][0]
    assert apart == pytest.approx(0.3, abs=0.05)
    blind = fit_pool(POOLS[POOL], cases, {}, y, y)
    assert np.abs(y - pool.without_sweep).mean() < 0.5 * np.abs(y - blind.without_sweep).mean()


def test_a_version_that_was_measured_narrows_the_range() -> None:
    row = next(row for row in shipped_rows() if "AI Hub" in row.software and row.device_class == "NPU")
    case = interpret(row)
    assert case.version == row.software
    known, other = (
        range_of(case.setting, case.twin, case.network, version=version)
        for version in (case.version, "no such version")
    )
    assert other.high / other.low > known.high / known.low
    assert effect_of(case.setting, case.twin, case.network, version="no such version") == effect_of(
        case.setting, case.twin, case.network
    )
