"""Draws are repeated by their seed, differ between seeds, and leave nothing out when all is requested."""

import pytest

from sampled import drawn, over_all


@pytest.fixture(autouse=True)
def a_part_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLSYS_ALL", raising=False)
    monkeypatch.delenv("MLSYS_TIMES", raising=False)


def draws(monkeypatch: pytest.MonkeyPatch, seed: int) -> list[int]:
    monkeypatch.setenv("MLSYS_SEED", str(seed))
    return drawn(range(1000), 10, "test")


def test_a_seed_repeats_its_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    first = draws(monkeypatch, 7)
    assert first == draws(monkeypatch, 7) == sorted(set(first))
    assert len(first) == 10
    assert first != draws(monkeypatch, 8)
    assert first != drawn(range(1000), 10, "another purpose")


def test_in_the_long_run_every_case_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sampled.seed", iter(range(10_000)).__next__)
    assert set().union(*(drawn(range(100), 5, "test") for _ in range(400))) == set(range(100))


def test_all_of_them_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLSYS_ALL", "1")
    assert drawn("abcdef", 2, "test") == list("abcdef")
    monkeypatch.setenv("MLSYS_ALL", "0")
    assert len(drawn("abcdef", 2, "test")) == 2


def test_more_of_them_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLSYS_TIMES", "8")
    assert len(drawn(range(1000), 10, "test")) == 80
    assert drawn(range(50), 10, "test") == list(range(50))


def test_a_law_over_all_cases_names_each_that_breaks_it() -> None:
    seen = []

    def is_odd(number: int) -> None:
        seen.append(number)
        assert number % 2

    with pytest.raises(ExceptionGroup, match="of 2, of 4") as result:
        over_all([1, 2, 3, 4])(is_odd)()
    assert seen == [1, 2, 3, 4] and len(result.value.exceptions) == 2
    over_all([1, 3])(is_odd)()

    with pytest.raises(ExceptionGroup, match="of 2, 5") as told:
        over_all([(1, 3), (2, 5)], spread=True)(lambda first, second: is_odd(first * second))()
    assert len(told.value.exceptions) == 1
    with pytest.raises(ValueError, match="there is no case"):
        over_all([])
