"""What programs that answer prompts do beside their products: sums in FP16, partial sums, scores written out or not."""

from dataclasses import replace

import pytest

from mlsys.calibration.estimates import estimated
from mlsys.calibration.rows import Row
from mlsys.models.estimate import MATMUL, VECTOR, CaseBatch
from mlsys_evidence import validate
from mlsys_evidence.evaluate.blind_evaluation import blind_evaluation_rows
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows


def _row(software: str, model: str = "llama-2-7b", shape: str = "1024 prompt tokens") -> Row:
    first = next(row for row in blind_evaluation_rows(1) if "TinyChat" in row.software and "prefill" in row.workload)
    return replace(first, software=software, model=model, seq_or_shape=shape)


@pytest.mark.parametrize("program", ["TinyChat (AWQ kernels)", "ExLlama"])
def test_sums_in_half_precision_are_twice_as_fast_on_geforce_cards_alone(program: str) -> None:
    """NVIDIA's Ada whitepaper, appendix A: 330.3 TFLOP/s with sums in FP16, 165.2 in FP32, on the RTX 4090."""
    tiny = _row(program)
    assert interpret(tiny).engine.matmul == pytest.approx(330.3e12, rel=2e-3)
    assert interpret(replace(tiny, software="MLC LLM")).engine.matmul == pytest.approx(165.2e12, rel=2e-3)
    for device in ("NVIDIA A100 80GB PCIe", "NVIDIA RTX A6000"):
        there, usual = (interpret(replace(tiny, device=device, software=name)) for name in (tiny.software, "MLC LLM"))
        # One rate, but for the last digit of the datasheet: the RTX A6000's has 309.7 TOP/s and 154.8 TFLOP/s.
        assert there.engine.matmul == pytest.approx(usual.engine.matmul, rel=1e-3)


def test_attention_of_pytorch_2_leaves_out_what_the_mask_hides() -> None:
    eager = _row("Hugging Face Transformers (PyTorch 2 eager)")
    fused, written = (interpret(replace(eager, note=note)).work for note in ("", "HF eager attention"))
    scores, width, heads, layers = 1024 * 1024, 128, 32, 32
    # Half of the scores, but for the diagonal, in two products; softmax beside them is less than a tenth.
    assert written.flops - fused.flops == pytest.approx(4 * width * heads * layers * scores / 2, rel=0.1)
    # Written out, each product writes or reads them, and scale, mask and softmax do both: eight times two bytes.
    apart = (written["moved"] * written["count"]).sum() - (fused["moved"] * fused["count"]).sum()
    assert apart == pytest.approx(8 * 2 * heads * layers * scores)


def test_autoawq_adds_eight_partial_sums() -> None:
    """Its split along the sums writes eight results of each product in FP16, which another kernel reads."""
    plain, split = (interpret(_row(name)).work for name in ("PyTorch 1 eager", "AutoAWQ, GEMM kernels"))
    products = (plain["kind"] == MATMUL) & (plain["weights"] > 0)
    results = (plain["m"] * plain["n"] * plain["batch"] * plain["count"])[products].sum()
    apart = (split["moved"] * split["count"]).sum() - (plain["moved"] * plain["count"]).sum()
    assert apart == pytest.approx(2 * 8 * 2 * results)
    assert (split["count"] * (split["kind"] == VECTOR)).sum() > (plain["count"] * (plain["kind"] == VECTOR)).sum()


def test_a_short_prompt_takes_the_calls_of_its_operators_and_a_long_one_its_products() -> None:
    """Operators queue while those before run: what the host takes and what the card takes are not added up."""
    eager = "PyTorch 2.1 eager (Hugging Face Transformers)"
    cases = [interpret(replace(_row(eager, shape=f"{tokens} prompt tokens"), source="")) for tokens in (16, 4096)]
    short, long = estimated(cases, CaseBatch.of([(case.engine, case.work, case.cached) for case in cases])).tolist()
    assert short == cases[0].at_least == cases[1].at_least
    assert long > 10 * short
    products = 2.0 * 6.6e9 * 4096 / cases[1].engine.matmul
    # Beside them each layer's small operators move 36 bytes a value twice, 20 of queries and keys, 10 of the gate's.
    small = 32 * 4096 * (2 * 36 * 4096 + 20 * 2 * 4096 + 10 * 11008) / cases[1].engine.bandwidth
    assert products + small < long < 1.6 * (products + small)


def test_exllama_writes_each_matrix_out() -> None:
    """Its products of a prompt read 4 bits a weight, write 16 and read them: 2 bytes each way of 6.6 billion."""
    plain, written = (interpret(_row(name)).work for name in ("MLC LLM", "ExLlama"))
    apart = (written["moved"] * written["count"]).sum() - (plain["moved"] * plain["count"]).sum()
    layers, width, inner, vocabulary = 32, 4096, 11008, 32000
    weights = layers * (4 * width**2 + 3 * width * inner) + width * vocabulary
    assert apart == pytest.approx(2 * 2 * weights)


def test_small_units_are_easily_fed_whatever_they_multiply() -> None:
    """FP32 on an A100's vector units, and halves on a GeForce's matrix units, are told apart from an A100's halves."""
    eager = _row("Hugging Face Transformers (PyTorch 2 eager)")
    settings = {
        interpret(replace(eager, device=device, precision=precision)).setting
        for device, precision in (("NVIDIA RTX 4090", "fp16"), ("NVIDIA A100 80GB SXM", "fp32"), ("NVIDIA T4", "fp32"))
    }
    assert settings == {"eager small units llm prefill on GPU"}
    server = interpret(replace(eager, device="NVIDIA A100 80GB SXM", precision="fp16"))
    assert server.setting == "eager llm prefill on GPU"
    assert server.engine.matmul == pytest.approx(312e12, rel=1e-3)


@pytest.mark.parametrize(("model", "rate"), [("qwen2.5-0.5b", 270.49), ("qwen2.5-1.5b", 175.55), ("qwen2.5-7b", 80.45)])
def test_an_early_vllm_lets_the_machine_wait_for_its_host(model: str, rate: float) -> None:
    """Tokens a second of Qwen2 by vLLM 0.4.2 on an A100 (QwenLM, docs, speed_benchmark.rst@5c4e69c)."""
    any_row = next(row for row in shipped_rows() if "vLLM" in row.software and "LLM decode" in row.workload)
    words = {
        "device": "NVIDIA A100 80GB SXM",
        "precision": "bf16",
        "seq_or_shape": "short prompt, 2048 generated tokens",
    }
    row = replace(any_row, n_devices=1, model=model, note="", software="vLLM 0.4.2", **words)
    early, late = (validate([replace(row, software=name)]).predictions[0].value for name in ("vLLM 0.4.2", "vLLM 0.10"))
    assert early == pytest.approx(rate, rel=0.2)
    assert 1e3 / early - 1e3 / late == pytest.approx(3.3, abs=0.6)
