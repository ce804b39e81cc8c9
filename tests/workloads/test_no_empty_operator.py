"""Whatever runs a network, each of its operators moves something: one that moves nothing is no kernel."""

import pytest

from mlsys import Hardware
from mlsys.mapping.fusion import as_run
from mlsys.models.analysis import analyze
from mlsys.workloads import load, zoo
from sampled import drawn

WAYS = ("one by one", "loops", "kernels")
NAMES = [name for name in zoo.networks() if zoo.entry(name).image]
DETECTORS = [name for name in NAMES if name.startswith("efficientdet")]


@pytest.mark.parametrize("name", [*drawn(NAMES, 6, "moving"), *drawn(DETECTORS, 1, "detectors")])
def test_every_operator_moves_something(name: str) -> None:
    networks = [as_run(load(name, precision="fp16"), way) for way in WAYS]
    assert all(operator.data.m_as("byte") > 0 for network in networks for operator in network.operators)


def test_norms_of_levels_that_share_their_products_are_timed_and_counted() -> None:
    """3.9 million parameters: Tan et al. 2020, CVPR, table 2; however it runs."""
    networks = {way: as_run(load("efficientdet_d0", precision="fp16"), way) for way in WAYS}
    assert {round(sum(each.parameters for each in network.operators), -5) for network in networks.values()} == {3.9e6}
    answer = analyze(Hardware.Cloud.A100, networks["one by one"], precision="fp16", software="eager network on GPU")
    assert answer.estimate > answer.bound
