"""Steps that share a layer's weights unpack nothing: in their own format these are as wide as they are multiplied."""

import pytest

from mlsys import Hardware
from mlsys.hardware.view import view
from mlsys.models.calibrated import MATMUL, Kernel, Parameters, Stack, Work, kernel_times, snapshot
from mlsys.models.calibrated.machine import READ_FROM_STACKS
from sampled import drawn

MACHINES = (("Xeon_8480", "fp32"), ("RaspberryPi5", "fp32"), ("A100_80GB", "fp16"), ("H100_SXM", "bf16"))
WIDTH = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0}
QUESTIONS = [(*machine, m, steps) for machine in MACHINES for m in (1, 4, 32) for steps in (64, 240, 1024)]


@pytest.mark.parametrize(("device", "precision", "m", "steps"), drawn(QUESTIONS, 12, "steps"))
def test_steps_that_share_weights_take_as_long_as_by_any_other_operand(
    device: str, precision: str, m: int, steps: int
) -> None:
    one = 512.0 * 512.0 * WIDTH[precision]
    inputs = 2.0 * steps * m * 512 * WIDTH[precision]
    engine = snapshot(view(Hardware[device], precision))

    def seconds(weights: float) -> float:
        kernel = Kernel(MATMUL, 2.0 * steps * m * 512 * 512, inputs + one, weights, m=m, n=512, k=512, batch=steps)
        stack = Stack.of([(engine, Work.of([kernel]), False)])
        return float(kernel_times(stack, Parameters().vectorised()).seconds[0])

    # The same operations on the same bytes; weights alone are read from HBM a ninth slower.
    assert seconds(one) <= 1.001 * seconds(0.0) / READ_FROM_STACKS
