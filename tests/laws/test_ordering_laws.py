"""Orderings that anybody knows must hold: a few pairs of each, drawn from the whole catalogue."""

import pytest

from orderings import ORDERINGS, Pair, Question, broken, seconds
from sampled import drawn

DRAWN = 40


@pytest.mark.parametrize("name", ORDERINGS)
def test_more_takes_longer_and_better_is_not_told_slower(name: str) -> None:
    pairs = drawn(list(ORDERINGS[name].pairs()), DRAWN, name)
    assert not broken(name, pairs), ORDERINGS[name].why


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
