"""The stored results of the study of ten measurements are those that the study gives, on any CPU."""

from dataclasses import astuple, replace

import pytest

from mlsys.files import together
from mlsys_evidence.evaluate import ten_sample_study
from mlsys_evidence.evaluate.ten_sample_study import TenBack, save_ten, study_ten, ten_back
from sampled import drawn

STORED = {group.group: group for group in ten_back()}


def assert_close(group: TenBack, stored: TenBack) -> None:
    """Compare as stored, with four digits: every CPU advises the same rows."""
    assert (group.group, group.machines, group.rows) == (stored.group, stored.machines, stored.rows)
    assert astuple(group)[3:] == pytest.approx(astuple(stored)[3:], rel=1e-3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", drawn(sorted(STORED), 2, "classes of the study of ten measurements"))
def test_a_repeated_study_gives_the_stored_results(name: str) -> None:
    (group,) = study_ten(f"^{name}$")
    assert_close(group, STORED[name])


def test_every_class_with_enough_rows_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ten_sample_study, "_results", lambda name, machines: name)
    assert list(study_ten()) == list(STORED)


def test_results_are_read_as_they_were_stored(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, group = tmp_path / "ten.csv", STORED["NPU: network inference"]
    moved = replace(group, after=1 / 3)
    with together() as files:
        save_ten([moved, replace(group, group="CPU: gemm")], files, path)
    monkeypatch.setattr(ten_sample_study, "_PLACE", path)
    first, second = ten_back()
    assert (first.group, second.group) == ("CPU: gemm", group.group), "in the order of names"
    assert second.after == 0.3333, "four digits, which every CPU rounds alike"
    assert astuple(replace(second, after=group.after)) == astuple(group)
