"""Attention kernels attain what was published of each, on cards whose shared memory and matrix units differ."""

from dataclasses import replace

import pytest

from mlsys.calibration.rows import Row
from mlsys.models.estimate.library import fallback_stack, fitted
from mlsys_evidence import validate
from mlsys_evidence.ingest.operators import library_of
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import cited_rows, shipped_rows


def _flash_2(device: str, shape: str = "seq 16384, head_dim 128, heads 16, non-causal") -> Row:
    first = next(row for row in cited_rows() if row.model == "FlashAttention-2")
    return replace(first, device=device, seq_or_shape=shape)


# Of the dense peak with sums in FP32. FlashAttention-2 (arXiv:2307.08691), abstract: 50 to 73 % of an A100's;
# FlashAttention-3 (arXiv:2407.08608), abstract: 35 % of an H100's with FlashAttention-2.
PUBLISHED = {
    "NVIDIA A100 80GB SXM": (312e12, 0.5, 0.73),
    "NVIDIA H100 SXM5": (989.4e12, 0.3, 0.4),
}


@pytest.mark.parametrize("device", PUBLISHED)
def test_flash_attention_2_attains_the_part_of_each_peak_that_its_papers_say(device: str) -> None:
    peak, low, high = PUBLISHED[device]
    (answer,) = validate([_flash_2(device)]).predictions
    assert low < answer.value * 1e12 / peak < high


def test_slower_matrix_units_wait_less_for_shared_memory() -> None:
    """A multiprocessor of an RTX 4090 multiplies a quarter of an A100's in a cycle, and reads as much (128 bytes)."""
    parts = {}
    for device, each_cycle in (("NVIDIA A100 80GB SXM", 2048), ("NVIDIA L40S", 1024), ("NVIDIA RTX 4090", 512)):
        flash, other = (
            interpret(row).engine for row in (_flash_2(device), replace(_flash_2(device), model="FlashAttention-3"))
        )
        assert other.matmul / (other.units * other.clock) == pytest.approx(each_cycle, rel=0.02)
        parts[each_cycle] = flash.matmul / other.matmul
        assert 1 / parts[each_cycle] - 1 == pytest.approx(each_cycle / (32 * 128), rel=0.02)
    assert parts[512] > parts[1024] > parts[2048]


def test_one_kernel_has_one_setting_whichever_stack_calls_it() -> None:
    rows = [row for row in shipped_rows() if row.model == "FlashAttention-2" and "attention" in row.workload]
    assert {row.software.split()[0] for row in rows} == {"SGLang", "vLLM"}
    assert {interpret(row).setting.removesuffix(" on GPU") for row in rows} == {
        "FlashAttention-2 attention",
        "FlashAttention-2 decode attention",
    }


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("flash_attn v2.5.6", "FlashAttention-2"),
        ("FlashAttention 2, CUDA 12.2", "FlashAttention-2"),
        ("Flash Attention v3", "FlashAttention-3"),
        ("Triton flash attention v2", ""),
        ("FlashAttention (FA2 or FA3, as the framework picks)", ""),
        ("scaled_dot_product_attention", ""),
    ],
)
def test_a_library_is_known_however_it_is_spelled(name: str, library: str) -> None:
    assert library_of(name, "") == library_of("", name) == library


def test_fused_attention_that_nobody_fitted_is_the_best_of_its_generation() -> None:
    """8 × 16 heads of 128 over 8,192 tokens by cuDNN on an H100: 582 TFLOP/s (meta-pytorch/tritonbench, issue 141)."""
    row = next(row for row in shipped_rows() if row.workload == "attention forward" and "A100" in row.device)
    words = {"model": "cuDNN SDPA", "software": "cuDNN 9", "precision": "fp16", "unit": "TFLOP/s", "batch": "8"}
    words |= {"metric": "achieved throughput", "seq_or_shape": "seq 8192, head_dim 128, heads 16, non-causal"}
    (answer,) = validate([replace(row, device="NVIDIA H100 SXM5", **words)]).predictions
    assert answer.value == pytest.approx(582, rel=0.2)
    software = ("cuDNN SDPA", "cuDNN SDPA fp8", "FlashAttention-4", "Triton flash attention v3")
    result = [fallback_stack(f"{name} attention on GPU", fitted()) for name in software]
    assert result == ["vLLM attention on GPU"] * 3 + ["Triton flash attention v2 attention on GPU"]
    assert fallback_stack("cuDNN SDPA decode attention on GPU", fitted()) == "vLLM decode attention on GPU"
