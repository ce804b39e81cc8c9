"""Kernels of a training step, counted here by hand from what PyTorch runs one by one."""

from collections.abc import Iterable

import numpy as np
import pytest

from mlsys.calibration.case import Case
from mlsys.models.estimate.lowering import Format
from mlsys.models.estimate.steps import ONCE, step_kernels
from mlsys.models.estimate.work import MATMUL, Work
from mlsys.workloads import zoo
from mlsys_evidence.fit.fitting import fit, predicted
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

HALF = Format("fp16", 2, 2)
TIMM, NVIDIA, MICROSOFT = "huggingface/pytorch-image-models", "NVIDIA/DeepLearningExamples", "microsoft/superbenchmark"


def step(model: str, passes: tuple[float, float] = ONCE, casts: bool = False) -> Work:
    return step_kernels(zoo.network(model, precision="fp16", fused=False), HALF, passes, casts)


def moved(work: Work) -> float:
    return float((work["moved"] * work["count"]).sum())


def trained(source: str) -> list[Case]:
    """Return the training rows of a source whose operators PyTorch runs one by one."""
    rows = [row for row in shipped_rows() if row.source == source and "training" in row.workload]
    return [case for case in map(interpret, rows) if case.setting == "eager training on GPU"]


def test_a_batch_is_normalised_in_three_passes_and_five_for_the_gradient() -> None:
    """VGG-16 with and without normalisation: 13 convolutions, 13.5 million numbers behind them."""
    layers = ((64, 224), (64, 224), (128, 112), (128, 112), *3 * ((256, 56),), *3 * ((512, 28),), *3 * ((512, 14),))
    numbers = sum(channels * side**2 for channels, side in layers)
    plain, normalised = step("vgg16"), step("vgg16_bn")
    assert moved(normalised) - moved(plain) == pytest.approx(8 * 2 * numbers, rel=0.005)  # and biases
    assert normalised.launches - plain.launches == 2 * len(layers)


def test_mixed_precision_casts_what_runs_in_fp32() -> None:
    """ViT-B/16 by hand: 25 normalisations of 197 tokens of 768, 12 layers of 12 heads with 197 x 197 scores."""
    numbers, scores = 25 * 197 * 768, 12 * 12 * 197**2
    # A layer's normalisation reads and writes 14 + 26 bytes a number instead of 2 + 5 of 2; the scores between the
    # products 24 + 28 instead of 4 + 5 of 2.
    extra = (40 - 14) * numbers + (52 - 18) * scores
    model = "vit_base_patch16_224"
    assert moved(step(model, casts=True)) - moved(step(model)) == pytest.approx(extra, rel=1e-6)


def test_a_step_multiplies_three_times_what_a_pass_does_and_a_fourth_where_it_runs_twice() -> None:
    network = zoo.network("resnet50", precision="fp16", fused=False)
    once = sum(operator.flops.m_as("FLOP") for operator in network.operators if operator.kind in ("conv2d", "gemm"))
    for passes in ((1.0, 2.0), (2.0, 2.0)):
        work = step("resnet50", passes)
        products = work["kind"] == MATMUL
        assert (work["flops"] * work["count"])[products].sum() == pytest.approx(sum(passes) * float(once), rel=1e-3)


def errors(cases: Iterable[Case], result: np.ndarray) -> list[float]:
    return [abs(float(np.log(time / case.seconds))) for case, time in zip(cases, result, strict=True)]


def test_what_one_card_teaches_holds_for_cards_of_other_generations() -> None:
    """Fitted to the RTX 3090 of timm alone, steps on A100 and V100 as NVIDIA and Microsoft timed them."""
    fitted = fit(trained(TIMM))
    for source, usual, worst in ((NVIDIA, 0.2, 0.5), (MICROSOFT, 0.3, 0.8)):
        cases = trained(source)
        assert len(cases) >= 16
        off = errors(cases, predicted(cases, fitted))
        assert np.median(off) < usual
        assert max(off) < worst


def test_speedups_are_those_that_nvidia_prints() -> None:
    """ResNet-50: TF32 to mixed precision 2.63 times on an A100; FP32 3.26 and 3.24 on V100s."""
    rows = [row for row in shipped_rows() if row.source == NVIDIA and "PyTorch" in row.software]
    result = {}
    for row in rows:
        if row.model == "ResNet-50":
            result.setdefault(row.device, {})[row.precision.startswith("amp")] = row.value
    ratios = sorted(values[True] / values[False] for values in result.values())
    assert ratios == pytest.approx([2.63, 3.24, 3.26], abs=0.02)


def test_the_card_of_superbench_is_the_one_that_its_own_copy_shows() -> None:
    """A copy within the card does 1118 GB/s in the same file: 72 % of an A100's 40 GB, 55 % of its 80 GB."""
    assert {case.twin for case in trained(MICROSOFT)} == {"A100_40GB"}
    parts = {case.twin: 1118e9 / case.engine.bandwidth for case in (*trained(MICROSOFT), *trained(NVIDIA))}
    assert parts["A100_80GB"] < 0.6 < 0.65 < parts["A100_40GB"] < 0.85
