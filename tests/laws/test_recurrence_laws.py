"""Steps of a recurrence follow one another, and its time rises with the batch: never falls, never leaps."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mlsys import Hardware
from mlsys.hardware.view import view
from mlsys.mapping.fusion import as_kernels
from mlsys.models.analysis import analyze
from mlsys.workloads import Network, load
from mlsys.workloads.zoo import recurrent_layer
from sampled import drawn

MACHINES = (
    ("Xeon_8480", "fp32"), ("EPYC_7742", "fp32"), ("RaspberryPi5", "fp32"), ("Apple_M2", "fp16"), ("A100", "fp16"),
    ("T4", "fp16"), ("GTX_TITAN", "fp32"), ("Snapdragon888_GPU", "fp32"), ("Inferentia2", "bf16"), ("TPUv4", "bf16"),
    ("CloudAI100", "fp16"), ("RK3588_NPU", "fp16"), ("Coral", "int8"), ("Hailo8", "int8"),
)  # fmt: skip
QUESTIONS = [(*machine, name) for machine in MACHINES for name in ("rnn-t", "lstm", "gru")]
BATCHES = (1, 2, 3, 4, 6, 8, 16, 32)


def seconds(device: str, precision: str, network: Network, batch: int) -> float:
    answer = analyze(Hardware[device], network, precision=precision, samples=batch)
    return float(answer.estimate.m_as("s"))


def network_of(name: str, batch: int, precision: str, steps: int = 100) -> Network:
    if name == "rnn-t":
        return as_kernels(load(name, batch=batch, precision=precision))
    return recurrent_layer(name, batch=batch, steps=steps, inputs=512, hidden=512, precision=precision)


@pytest.mark.parametrize(("device", "precision", "name"), drawn(QUESTIONS, 14, "recurrences"))
def test_a_larger_batch_is_not_faster_and_one_twice_as_large_takes_no_more_than_twice_as_long(
    device: str, precision: str, name: str
) -> None:
    times = {batch: seconds(device, precision, network_of(name, batch, precision), batch) for batch in BATCHES}
    assert all(one <= 1.001 * other for one, other in pairwise(times.values())), times
    assert all(times[2 * batch] <= 2.05 * times[batch] for batch in (1, 2, 4, 8, 16)), times


@pytest.mark.parametrize(("device", "precision"), MACHINES)
def test_twice_the_steps_take_twice_as_long(device: str, precision: str) -> None:
    """None of them begins before the one before it has ended; the call itself is paid once."""
    some, twice = (seconds(device, precision, network_of("lstm", 1, precision, steps), 1) for steps in (500, 1000))
    assert 1.8 * some < twice < 2.02 * some


@pytest.mark.parametrize("device", ["RaspberryPi5", "RaspberryPi4", "T4"])
def test_weights_that_no_cache_holds_are_read_in_every_step(device: str) -> None:
    precision, steps, hidden = "fp32", 50, 2048
    network = recurrent_layer("lstm", batch=1, steps=steps, inputs=64, hidden=hidden, precision=precision)
    weights = 4 * hidden * hidden * 4
    machine = view(Hardware[device], precision)
    assert all((level.capacity or 0) < weights for level in (*machine.outer, *machine.inner))
    assert seconds(device, precision, network, 1) > steps * weights / machine.main.require("bandwidth")
