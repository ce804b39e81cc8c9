"""Steps that share a layer's weights unpack nothing: in their own format these are as wide as they are multiplied."""

import pytest

from mlsys import Hardware
from mlsys.hardware.view import view
from mlsys.models.estimate import MATMUL, CaseBatch, Kernel, Parameters, Work, kernel_times, snapshot
from mlsys.models.estimate.machine import READ_FROM_STACKS
from sampled import drawn

MACHINES = (("Xeon_8480", "fp32"), ("RaspberryPi5", "fp32"), ("A100_80GB", "fp16"), ("H100_SXM", "bf16"))
WIDTH = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0}
QUESTIONS = [(*machine, m, steps) for machine in MACHINES for m in (1, 4, 32) for steps in (64, 240, 1024)]


@pytest.mark.parametrize(("device", "precision", "m", "steps"), drawn(QUESTIONS, 12, "steps"))
def test_steps_that_share_weights_take_no_longer_than_with_an_operand_each(
    device: str, precision: str, m: int, steps: int
) -> None:
    one = 512.0 * 512.0 * WIDTH[precision]
    inputs = 2.0 * steps * m * 512 * WIDTH[precision]
    engine = snapshot(view(Hardware[device], precision))

    def seconds(weights: float, moved: float) -> float:
        flops = 2.0 * steps * m * 512 * 512
        kernel = Kernel(MATMUL, flops, inputs + moved, weights, m=m, n=512, k=512, sequential_steps=steps - 1)
        stack = CaseBatch.of([(engine, Work.of([kernel]), False)])
        return float(kernel_times(stack, Parameters().vectorised()).seconds[0])

    # The same operations on no more bytes; weights alone are read from HBM a ninth slower.
    assert seconds(one, one) <= 1.001 * seconds(0.0, steps * one) / READ_FROM_STACKS
