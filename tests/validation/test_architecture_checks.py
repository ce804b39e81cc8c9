"""Published times beside the architecture models, which know no fitted number and should lie below."""

from __future__ import annotations

import pytest

from mlsys.errors import ArgumentError
from mlsys.validation.architecture import architecture_checks, median_ratio


def test_a_systolic_array_is_near_its_published_times_and_never_beaten_by_the_model() -> None:
    checks = architecture_checks("compiled network on TPU")
    assert {check.row.model for check in checks} == {"ResNet-50 v1.5"}
    assert 0.8 < median_ratio(checks) < 1
    assert all(check.ratio == (check.result.time / check.measured).m_as("") < 1 for check in checks)


def test_nothing_to_compare_is_said() -> None:
    assert architecture_checks("no such setting") == ()
    with pytest.raises(ArgumentError, match=r"median_ratio\(\): `checks` must have at least one entry, got none"):
        median_ratio(())
