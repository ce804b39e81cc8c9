"""Published times beside the architecture models, which know no fitted number and should lie below."""

import pytest

from mlsys.errors import ArgumentError
from mlsys.provenance import origin_of, perturbed, used_facts
from mlsys_evidence.evaluate.architecture import architecture_checks, median_ratio


def test_a_systolic_array_is_near_its_published_times_and_never_beaten_by_the_model() -> None:
    checks = architecture_checks("compiled network on TPU")
    assert {check.row.model for check in checks} == {"ResNet-50 v1.5"}
    assert 0.8 < median_ratio(checks) < 1
    assert all(check.ratio == (check.result.time / check.measured).m_as("") < 1 for check in checks)


def test_the_median_of_few_machines_leans_on_the_rows_in_the_middle_and_compares_the_others() -> None:
    checks = architecture_checks("compiled network on TPU", noted=True)
    ratio = median_ratio(checks)
    origin = origin_of(ratio)
    assert origin is not None
    middle = sorted(checks, key=lambda check: check.ratio)[1:3]
    assert ratio == pytest.approx(sum(check.ratio for check in middle) / 2)
    sets = {fact.name for check in middle for fact in used_facts(check.result.time)}
    assert {fact.name for fact in origin.sets()} <= sets and "TPUv3/peaks/bf16/matrix/dense" in sets
    with perturbed("TPUv3/peaks/bf16/matrix/dense", 1.01):
        assert median_ratio(architecture_checks("compiled network on TPU")) < ratio
    assert origin_of(median_ratio(architecture_checks("compiled network on TPU"))) is None


def test_nothing_to_compare_is_said() -> None:
    assert architecture_checks("no such setting") == ()
    with pytest.raises(ArgumentError, match=r"median_ratio\(\): `checks` must have at least one entry, got none"):
        median_ratio(())
