"""Orderings that anybody knows must hold: a few pairs of each, drawn from the whole catalogue."""

import pytest

from known_order_violations import KNOWN_VIOLATIONS, is_known_violation
from orderings import ORDERINGS, Pair, Question, both_measured, broken, seconds
from sampled import drawn

DRAWN = 40


@pytest.mark.parametrize("name", ORDERINGS)
def test_more_takes_longer_and_better_is_not_told_slower(name: str) -> None:
    pairs = drawn([pair for pair in ORDERINGS[name].pairs() if not is_known_violation(name, pair)], DRAWN, name)
    assert not broken(name, pairs), ORDERINGS[name].why


@pytest.mark.parametrize("name", KNOWN_VIOLATIONS)
def test_what_is_known_to_be_told_wrongly_still_is(name: str) -> None:
    """Most of each, or the entry has to go."""
    pairs = [pair for pair in ORDERINGS[name].pairs() if is_known_violation(name, pair)]
    assert len(broken(name, pairs)) >= len(pairs) / 2 > 0


def test_two_machines_may_be_told_apart_by_their_own_rows_alone() -> None:
    def pair(one: str, other: str) -> Pair:
        return Question(one, "resnet18", "int8"), Question(other, "resnet18", "int8")

    assert both_measured(pair("QCS8275", "QCS8450")) and not both_measured(pair("QCS8275", "Snapdragon8EliteGen5"))


def test_an_ordering_that_is_turned_round_is_found_broken() -> None:
    pairs: list[Pair] = [
        (Question("A100_80GB", "resnet50", "fp16", batch), Question("A100_80GB", "resnet50", "fp16"))
        for batch in (16, 64)
    ]
    found = broken("a larger batch", pairs)
    assert [pair[0].batch for _, pair in found] == [64, 16]


@pytest.mark.parametrize("device", ["Xeon_6980P", "Xeon_8592", "Xeon_8480", "Cobalt100", "EPYC_9654"])
def test_two_pictures_on_many_cores_take_no_less_than_one(device: str) -> None:
    """Cores without a part of one picture's layer have nobody wait for them, and are what a second one is done by."""
    one, two = seconds([Question(device, "resnet50", "fp32", batch) for batch in (1, 2)]).tolist()
    assert one <= two


@pytest.mark.parametrize("device", ["A100_80GB", "H100_SXM", "MI300X", "L4"])
def test_a_step_over_many_sequences_reads_its_weights_no_faster_than_one_over_few(device: str) -> None:
    """Sixteen rows and seventeen are read alike: no number of rows makes weights arrive earlier."""
    steps = [Question(device, "llama-3-8b", "fp16", batch, "decode", 512) for batch in (1, 8, 16, 17, 24, 32, 64)]
    times = seconds(steps).tolist()
    assert times == sorted(times)
