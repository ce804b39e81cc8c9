"""Formulas of training against published runs, papers and worked examples."""

import pytest

from mlsys import Hardware, formulas
from mlsys.units import Q_

# Sequences of a step and tokens of each are 2,048; the vocabulary is 250,000, on 384 A100. BigScience, topology sweep
# of the 176 B model (bigscience-workshop/bigscience@9e64ede, train/tr11-176B-ml/chronicles-prequel.md): layers, width,
# seconds of an iteration, TFLOP/s printed.
BLOOM = (
    (72, 14336, 143.31, 112.49),
    (72, 14336, 134.02, 120.29),
    (72, 14336, 123.69, 130.34),
    (72, 14336, 129.26, 124.72),
    (72, 14336, 139.82, 115.31),
    (72, 14336, 131.02, 123.05),
    (72, 14336, 121.48, 132.71),
    (84, 13824, 143.89, 121.45),
    (84, 13824, 133.12, 131.27),
    (84, 13824, 141.41, 123.58),
    (84, 13824, 130.31, 134.11),
    (96, 12288, 136.73, 115.73),
    (96, 12288, 122.96, 128.69),
    (84, 13312, 125.52, 129.29),
    (84, 13312, 135.55, 119.72),
    (84, 13312, 122.93, 132.0),
    (78, 13824, 121.28, 133.93),
)


@pytest.mark.parametrize(("layers", "hidden", "seconds", "printed"), BLOOM)
def test_topology_sweep_of_bloom(layers: int, hidden: int, seconds: float, printed: float) -> None:
    step = formulas.training_step_flops(2048, 2048, layers, hidden, 250_000, recomputed=1)
    assert step.m_as("TFLOP") / seconds / 384 == pytest.approx(printed, abs=0.1)


def test_main_run_of_bloom() -> None:
    step = formulas.training_step_flops(2048, 2048, 70, 14336, 250_880, recomputed=1)
    assert step.m_as("TFLOP") / 104.70 / 384 == pytest.approx(149.77, abs=0.05)


def test_gpt3_of_the_megatron_readme() -> None:
    """About 32 s and 138 TFLOP/s are both printed."""
    step = formulas.training_step_flops(1536, 2048, 96, 12288, 51200, recomputed=1)
    assert round(step.m_as("TFLOP") / 32 / 1024) == 138


def test_equation_3_is_that_of_the_paper() -> None:
    b, s, n, h, v = 8, 2048, 24, 2304, 51200
    for recomputed, leading, head in ((1, 96, 16), (0, 72, 12)):
        paper = leading * b * s * n * h**2 * (1 + s / (6 * h) + v / (head * n * h))
        step = formulas.training_step_flops(b, s, n, h, v, recomputed)
        assert step.m_as("FLOP") == pytest.approx(paper, rel=1e-12)


@pytest.mark.parametrize(("layers", "percent"), [(118, 46.2), (0, 45.7)])
def test_utilisation_of_palm(layers: int, percent: float) -> None:
    token = formulas.training_flops_per_token(Q_(540.35, "Gparam"), layers, 48 * 256, 2048)
    attained = token * Q_(238.3e3, "1/s") / 6144
    assert formulas.flops_utilisation(attained, Q_(275, "TFLOP/s")).magnitude * 100 == pytest.approx(percent, abs=0.06)


@pytest.mark.parametrize(
    ("parameters", "tokens", "chips", "rate", "days"), [(175e9, 300e9, 1024, 140, 34), (1.008e12, 450e9, 3072, 163, 84)]
)
def test_days_of_sc21(parameters: float, tokens: float, chips: int, rate: float, days: int) -> None:
    run = formulas.training_time(Q_(parameters, "param"), tokens, chips, Q_(rate, "TFLOP/s"), Q_(8, "FLOP"))
    assert round(run.m_as("day")) == days


def test_utilisation_of_an_h100() -> None:
    """NVIDIA/Megatron-LM issue 1565: the peak with sparsity would give half of it."""
    share = formulas.flops_utilisation(Q_(420, "TFLOP/s"), Hardware.Cloud.H100.peak("bf16"))
    assert share.magnitude == pytest.approx(0.424, abs=5e-4)


@pytest.mark.parametrize(("gradient", "gigabytes"), [(2, 107.2), (4, 120.6)])
def test_recipes_of_mixed_precision(gradient: int, gigabytes: float) -> None:
    """NVIDIA/Megatron-LM issue 654: Adam with 16-bit gradients keeps 16 B for a parameter, with FP32 ones 18 B."""
    each = formulas.training_bytes_per_parameter(gradient=Q_(gradient, "byte"))
    assert formulas.weight_bytes(Q_(6.7, "Gparam"), each).m_as("GB") == pytest.approx(gigabytes, abs=0.05)


def test_stages_of_zero() -> None:
    """Figure 1 of arXiv:1910.02054: 7.5 B parameters on 64 GPUs."""
    states = [
        formulas.weight_bytes(Q_(7.5, "Gparam"), formulas.training_bytes_per_parameter(stage, 64)).m_as("GB")
        for stage in range(4)
    ]
    assert states == pytest.approx([120, 31.4, 16.6, 1.9], abs=0.05)


@pytest.mark.parametrize(
    ("stages", "micro_batches", "chunks", "over_ideal", "share"),
    [(4, 8, 1, 0.375, 0.2727), (8, 64, 1, 0.1094, 0.0986), (8, 64, 4, 0.0273, 0.0266), (64, 512, 1, 0.1230, 0.1096)],
)
def test_two_bubbles(stages: int, micro_batches: int, chunks: int, over_ideal: float, share: float) -> None:
    over = formulas.pipeline_bubble_over_ideal(stages, micro_batches, chunks).magnitude
    of_total = formulas.pipeline_bubble_share(stages, micro_batches, chunks).magnitude
    assert (over, of_total) == pytest.approx((over_ideal, share), abs=6e-5)
    assert of_total == pytest.approx(over / (1 + over))


def test_activations_of_gpt3() -> None:
    shares = ((1, 1, 1), (8, 1, 1), (8, 8, 1), (8, 8, 0))
    layer = [formulas.layer_activation_bytes(2048, 1, 12288, 96, *each).m_as("GB") for each in shares]
    assert layer == pytest.approx([2.869, 0.579, 0.359, 0.107], abs=6e-4)
    assert formulas.checkpoint_bytes(2048, 1, 12288).m_as("GB") == pytest.approx(0.0503, abs=5e-5)


def test_days_of_gpt3_on_one_chip() -> None:
    """3.14e23 FLOP at the dense FP16 peak of an H100 are ten years."""
    years = formulas.training_time(Q_(175, "Gparam"), 300e9, 1, Hardware.Cloud.H100.peak("fp16")).m_as("year")
    assert years == pytest.approx(10.1, abs=0.05)
