"""Training steps of language models: fused attention in 16 bits, what a rate counts, and how many sequences fit."""

from dataclasses import replace

import pytest

from mlsys.calibration.case import Case
from mlsys.calibration.rows import Row
from mlsys.models.estimate import ATTENTION, MATMUL
from mlsys_evidence import validate
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows


def _step(length: int, precision: str = "amp_bf16", **words: object) -> Row:
    """Return a step of an MPT of 3 billion parameters on an H100, of so many tokens at a time."""
    rows = (row for row in shipped_rows() if row.source == "mosaicml/llm-foundry" and "MPT-3b" in row.model)
    first = next(row for row in rows if row.device == "NVIDIA H100 SXM5")
    batch = f"micro {max(1, 32768 // length)} x accum 1"
    note = first.note.replace("activation ckpt True", "activation ckpt False")
    return replace(first, precision=precision, batch=batch, seq_or_shape=f"seq {length}", note=note, **words)  # type: ignore[arg-type]


def _seconds(row: Row) -> float:
    return validate([row]).predictions[0].seconds


def test_layers_in_fp8_leave_attention_in_sixteen_bits() -> None:
    """llm-foundry's tables for the H100: FP8 trains 3 billion parameters 1.4 times as fast at 512 tokens; at 32,768,
    where most of a step is attention, as fast as BF16 does.
    """
    gains = [_seconds(_step(length)) / _seconds(_step(length, "amp_fp8")) for length in (512, 4096, 65536)]
    assert gains[0] > gains[1] > gains[2] > 1
    assert gains[0] > 1.3
    assert gains[2] < 1.25


def _attended(case: Case) -> float:
    here = case.work["kind"] == ATTENTION
    return float((case.work["flops"] * case.work["count"])[here].sum())


def test_attention_backward_has_five_products_where_forward_has_two() -> None:
    plain = interpret(_step(2048))
    again = interpret(replace(plain.row, note=plain.row.note.replace("ckpt False", "ckpt True")))
    assert _attended(again) / _attended(plain) == pytest.approx((2 + 2.5) / (1 + 2.5), rel=1e-6)


def test_a_program_of_before_fused_attention_multiplies_scores_as_products() -> None:
    old = next(row for row in shipped_rows() if row.software == "Megatron-DeepSpeed")
    assert not (interpret(old).work["kind"] == ATTENTION).any()
    products = interpret(old).work["kind"] == MATMUL
    assert (interpret(old).work["batch"][products] > 1).any()


def test_megatrons_rate_counts_pairs_of_tokens_above_the_diagonal() -> None:
    """Equation 3 of arXiv:2104.04473: 96 B s l h² (1 + s/6h), h = 2,560."""
    row = _step(32768, value=400.0, unit="TFLOP/s")
    causal, counted = interpret(row), interpret(replace(row, software="NeMo 25.04 (Megatron-LM)"))
    scores = _attended(interpret(replace(row, software="NeMo 25.04"))) * 3 / 3.5
    assert counted.seconds / causal.seconds - 1 == pytest.approx(scores / (causal.seconds * 400e12), rel=1e-3)
    assert counted.seconds * 400e12 == pytest.approx(scores * 2 * (1 + 6 * 2560 / 32768), rel=0.1)


def test_where_only_the_whole_batch_is_stated_a_machine_takes_what_its_memory_holds() -> None:
    row = _step(2048)
    stated = replace(row, batch="global 512", n_devices=8, note="")
    rows = {name: replace(stated, model=name) for name in ("gpt3-125m", "gpt3-2.7b")}
    taken = {name: interpret(each).work["m"].max() / 2048 for name, each in rows.items()}
    assert taken["gpt3-125m"] >= 8 * taken["gpt3-2.7b"] >= 16
    assert taken["gpt3-125m"] <= 64
    memory = 80e9
    assert 34 * 2048 * 768 * 12 * taken["gpt3-125m"] < memory
    assert interpret(replace(rows["gpt3-125m"], n_devices=512)).work["m"].max() == 2048
    for batch, taken_then in (("2", 2), ("micro 2 x accum 4", 2), ("", taken["gpt3-125m"])):
        assert interpret(replace(rows["gpt3-125m"], batch=batch)).work["m"].max() / 2048 == taken_then


def test_flash_attention_2_is_as_fast_on_a_b200_as_on_an_h100() -> None:
    """Published of a B200: 350 to 362 TFLOP/s from 2,048 tokens on (meta-pytorch/tritonbench, pull request 171)."""
    first = next(row for row in shipped_rows() if row.workload == "attention forward")
    shape = "seq 4096, head_dim 128, heads 16, non-causal"
    row = replace(first, device="NVIDIA B200", model="FlashAttention-2", software="FlashAttention 2", batch="8",
                  seq_or_shape=shape, precision="bf16", unit="TFLOP/s", value=353.9)  # fmt: skip
    on_h100 = replace(row, device="NVIDIA H100 SXM5")
    result, before = (each.value for each in validate([row, on_h100]).predictions)
    assert result == pytest.approx(353.9, rel=0.25)
    assert before == pytest.approx(result, rel=0.25)
    both = replace(row, metric="latency", workload="attention forward and backward", unit="ms", value=1.0)
    alone = replace(row, metric="latency", unit="ms", value=1.0)
    assert _seconds(both) / _seconds(alone) == pytest.approx(3.5, rel=0.05)


def test_frozen_weights_take_two_thirds_of_the_products() -> None:
    """Forward, and gradients of inputs alone: 4 FLOP for a parameter and a token where training takes 6."""
    whole = interpret(_step(512))
    tuned = interpret(_step(512, workload="LLM fine-tuning step (LoRA)"))
    products = [
        float((each.work["flops"] * each.work["count"])[each.work["weights"] > 0].sum()) for each in (whole, tuned)
    ]
    assert products[1] / products[0] == pytest.approx(2 / 3, rel=1e-6)
    assert _attended(tuned) == pytest.approx(_attended(whole))


@pytest.mark.parametrize(("note", "passes"), [("activation checkpointing", 4), ("no activation checkpointing", 3),
                                              ("selective activation checkpointing", 3)])  # fmt: skip
def test_activations_computed_again_are_a_pass_more(note: str, passes: int) -> None:
    """Selective checkpointing computes scores again (arXiv:2205.05198, section 5), and no product by weights."""
    whole, plain = (interpret(each).work for each in (replace(_step(512), note=note), _step(512)))
    flops = [each["flops"] * each["count"] * (each["weights"] > 0) for each in (whole, plain)]
    assert flops[0].sum() / flops[1].sum() == pytest.approx(passes / 3)


def test_eager_pytorch_of_today_attends_below_the_diagonal_alone() -> None:
    """Half of 4 b s² h FLOP forward for each of MPT's 32 layers of 2,560, and as much again for every pass behind."""
    eager = interpret(_step(4096, "bf16", software="PyTorch 2.3 eager (FSDP)"))
    assert eager.setting == "eager training on GPU"
    shape = eager.work["kind"] == ATTENTION
    longer = float(_by_flash_2_alone(eager))
    assert _attended(eager) == pytest.approx(longer * 3.5 * 32 * 2 * 8 * 4096**2 * 2560, rel=0.03)
    assert (eager.work["m"][shape] == eager.work["n"][shape]).all()


def _by_flash_2_alone(case: Case) -> float:
    """Return times as much arithmetic as FlashAttention-2's products count for, beside others of a step."""
    shape = case.work["kind"] == ATTENTION
    return float(case.work["k"][shape][0]) / 128
