"""Prompts under llama.cpp on NVIDIA cards, against published rates and the program's own way of working."""

from dataclasses import replace

import pytest

from mlsys_evidence import validate
from mlsys_evidence.rows import cited_rows

# Tokens/s of a prompt, Llama 3 of 8 billion, Q4_K_M (XiongjieDai/GPU-Benchmarks-on-LLM-Inference, README.md@aa72e0e).
PUBLISHED = {
    ("NVIDIA RTX 3090", 8192): 2527.4,
    ("NVIDIA RTX 4090", 1024): 6898.71,
    ("NVIDIA RTX 4090", 8192): 4039.68,
    ("NVIDIA L40S", 4096): 4335.18,
    ("NVIDIA RTX A6000", 4096): 2917.23,
}
PROMPT = next(row for row in cited_rows() if row.device == "NVIDIA L40S" and "prompt" in row.seq_or_shape)


def rate(device: str, tokens: int, cards: int = 1, software: str = PROMPT.software) -> float:
    row = replace(
        PROMPT, device=device, seq_or_shape=f"{tokens} tokens prompt", n_devices=cards, software=software, id="mine"
    )
    (result,) = validate((row,)).predictions
    assert result.case is not None, result.reason
    return result.value


@pytest.mark.parametrize(("device", "tokens"), PUBLISHED)
def test_rows_of_no_fit_are_told_within_a_quarter(device: str, tokens: int) -> None:
    """Four rates of 512 tokens are in the fit; longer prompts follow from blocks, their keys and written scores."""
    assert rate(device, tokens) == pytest.approx(PUBLISHED[device, tokens], rel=0.25)


def test_longer_prompts_attend_to_more() -> None:
    rates = [rate("NVIDIA RTX 4090", tokens) for tokens in (512, 1024, 4096, 8192, 32768)]
    assert rates == sorted(rates, reverse=True)
    flash = [
        rate("NVIDIA RTX 4090", tokens, software="llama.cpp (May 2024, flash attention)") for tokens in (512, 8192)
    ]
    assert flash[1] / flash[0] > rates[3] / rates[0]


def test_cards_that_share_the_layers_work_on_different_blocks() -> None:
    """One block has nobody beside it; of very many blocks four cards take four times as many at once."""
    one, four = (rate("NVIDIA RTX 4090", 512, cards) for cards in (1, 4))
    assert four == pytest.approx(one, rel=1e-9)
    one, four = (rate("NVIDIA RTX 4090", 65536, cards) for cards in (1, 4))
    assert 3.8 < four / one < 4


def test_geforce_cards_sum_in_half_precision() -> None:
    """A 3090 and an A6000 are one chip: sums of FP16 cost both the same, sums of FP32 would cost the 3090 twice."""
    assert rate("NVIDIA RTX 3090", 512) == pytest.approx(rate("NVIDIA RTX A6000", 512), rel=0.15)
