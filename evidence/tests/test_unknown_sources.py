"""Ranges for unknown sources, held against sources that are drawn afresh and against those that are left out."""

import numpy as np
import pytest

from mlsys.models.estimate.ranges import ALL_SOURCES, range_of, unknown_source_factors
from mlsys_evidence.fit.sources import BlindScore, blind_scores, held_left_out, source_factors, wanted_factor


@pytest.mark.parametrize("sources", [6, 20, 80])
def test_four_rows_in_five_of_a_source_that_comes_next_are_held(sources: int) -> None:
    """Each source has a habit that all its rows share: quantiles of rows alone hold fewer of six sources."""
    random = np.random.default_rng(sources)
    held, plain = [], []
    for _ in range(600):
        habits = random.normal(0, 1, sources + 1)
        rows = np.abs(habits[:, None] + random.normal(0, 0.3, (sources + 1, 5)))
        held.append(np.mean(rows[-1] <= wanted_factor(rows[:-1].tolist())))
        plain.append(np.mean(rows[-1] <= np.quantile(rows[:-1], 0.8)))
    assert np.mean(held) == pytest.approx(0.82, abs=0.045)
    assert np.mean(held) > np.mean(plain)


def test_work_of_few_sources_is_drawn_towards_what_most_work_needs() -> None:
    rows = [
        BlindScore(f"s{index}", kind, f"{kind} on GPU", score)
        for kind, score in (("a", 1.5), ("b", 2.0))
        for index in range(40)
    ]
    rows += [BlindScore("s0", "c", "c on GPU", 0.5)] * 100
    factors = source_factors(rows)
    assert 1.5 <= factors["a"][0] < 1.6 and factors["b"][0] == pytest.approx(2.0, abs=0.05)
    assert 1.4 < factors["c"][0] < 2.0, "a hundred rows of one source are one opinion"
    assert factors["c"][1] == 1


def test_no_range_is_narrower_than_for_a_known_source_and_few_sources_are_said() -> None:
    factors = unknown_source_factors()
    assert all(entry["factor"] >= 1 for entry in factors.values())
    few = range_of("library recurrent layer, vector units on GPU", "V100", source="a reader", work="recurrent layer")
    known = range_of("library recurrent layer, vector units on GPU", "V100", source=ALL_SOURCES, work="recurrent layer")
    assert few.low < known.low < known.high < few.high
    assert "few sources outside" in few.why and "few sources" not in known.why


def test_stored_factors_are_those_of_the_blind_evaluations() -> None:
    anew = source_factors(blind_scores())
    for name, entry in unknown_source_factors().items():
        assert entry["factor"] == pytest.approx(anew[name][0], rel=0.02), name
        assert entry["sources"] == anew[name][1]


def test_four_rows_in_five_of_a_source_that_is_left_out_are_held() -> None:
    """In the mean over sources, for all work and, with room, for each kind of work of five sources or more."""
    rows = blind_scores()
    by_source: dict[str, list[bool]] = {}
    by_work: dict[str, dict[str, list[bool]]] = {}
    for row, held in zip(rows, held_left_out(rows), strict=True):
        by_source.setdefault(row.source, []).append(held)
        by_work.setdefault(row.work, {}).setdefault(row.source, []).append(held)
    assert 0.8 < np.mean([np.mean(own) for own in by_source.values()]) < 0.87
    coverage = {
        work: float(np.mean([np.mean(own) for own in sources.values()]))
        for work, sources in by_work.items()
        if len(sources) >= 5
    }
    assert len(coverage) >= 12
    assert min(coverage.values()) > 0.73, coverage
