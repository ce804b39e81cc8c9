"""A token of a program that Python drives: how many operators it calls, and what its host takes for them."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode

from mlsys.calibration.bounds import least_times
from mlsys.calibration.case import Case
from mlsys.calibration.estimates import estimated
from mlsys.calibration.rows import Row
from mlsys.models.estimate import VECTOR, CaseBatch
from mlsys.workloads import zoo
from mlsys_evidence.ingest.reading import number_format
from mlsys_evidence.questions import interpret, typed
from mlsys_evidence.questions.eager_launch_overhead import A_CALL, calls_of, graph_captured, small_steps
from mlsys_evidence.rows import shipped_rows

HUGGING_FACE = "PyTorch 2.1 eager (Hugging Face Transformers)"
# Operators that start no kernel on a GPU.
VIEWS = {"view", "t", "transpose", "unsqueeze", "expand", "slice", "select", "permute", "_unsafe_view", "alias"}


def _row(**changes: Any) -> Row:
    row = next(row for row in shipped_rows() if "gpt-fast" in row.software and row.precision == "bf16")
    usual: dict[str, Any] = {"model": "Llama-2-7B", "n_devices": 1, "software": HUGGING_FACE, "note": ""}
    return replace(row, **(usual | changes))


def _level(**changes: Any) -> tuple[Case, float]:
    case = interpret(_row(**changes))
    return case, float(estimated([case], CaseBatch.of([(case.engine, case.work, case.cached)]))[0])


class _Counted(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def _called(config: transformers.PretrainedConfig, layers: str) -> int:
    """Return the kernels that one more layer of transformers' own code starts for a token, counted without a device."""
    totals: list[int] = []
    for number in (1, 2):
        setattr(config, layers, number)
        with torch.device("meta"), torch.no_grad():
            model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").half().eval()
            cache = model(torch.zeros(1, 8, dtype=torch.long), use_cache=True).past_key_values
            with _Counted() as counted:
                model(torch.zeros(1, 1, dtype=torch.long), past_key_values=cache, use_cache=True)
        totals.append(sum(count for name, count in counted.calls.items() if name not in VIEWS))
    return totals[1] - totals[0]


@pytest.mark.parametrize(("name", "family"), [("llama-2-7b", "llama"), ("gpt2", "gpt2")])
def test_a_layer_of_transformers_calls_as_many_operators(name: str, family: str) -> None:
    model = zoo.language_model(name)
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4} if family == "llama" else {"n_head": 4}
    sizes = {"hidden_size": 64, "intermediate_size": 128} if family == "llama" else {"n_embd": 64}
    own = _called(
        transformers.AutoConfig.for_model(family, vocab_size=100, **sizes, **heads),
        "n_layer" if family == "gpt2" else "num_hidden_layers",
    )
    ours = calls_of(typed(_row()), model, written_out=True) - calls_of(
        typed(_row()), replace(model, layers=model.layers - 1), True
    )
    assert ours == pytest.approx(own, rel=0.12)


def test_the_host_s_calls_hold_a_small_model_and_the_memory_a_large_one() -> None:
    """Of QwenLM's README: models of 24 and 32 layers take 0.77 and 0.76 ms a layer in BF16, and 8 bits save nothing."""
    small, wide = (_level(model=name)[1] / layers for name, layers in (("Qwen-1.8B-Chat", 24), ("Llama-2-7B", 32)))
    assert small == pytest.approx(wide, rel=0.05)
    assert 0.77e-3 / 1.5 < small < 0.77e-3 * 1.5
    narrow = _level(precision="int8 weight-only", model="Llama-2-7B")[1]
    assert narrow == pytest.approx(_level()[1], rel=0.05)
    case, seconds = _level(model="Llama-2-70B", n_devices=2)
    assert seconds > case.at_least


def test_published_rates_of_eager_programs() -> None:
    """LitGPT's table: 30.97 tokens/s of Llama 2 7B on an A100 of 40 GB; premAI's: 44.4. Neither host is named."""
    _, seconds = _level(software="LitGPT (PyTorch 2.1.0 eager)", device="NVIDIA A100 40GB SXM")
    assert 30.97 < 1 / seconds < 44.4


def test_layers_on_several_gpus_work_one_after_the_other() -> None:
    one, four = (_level(model="Llama-2-70B", n_devices=number)[0] for number in (1, 4))
    assert four.engine.bandwidth == one.engine.bandwidth
    split = _level(model="Llama-2-70B", n_devices=4, note="TP=4")[0]
    assert split.engine.bandwidth == pytest.approx(4 * one.engine.bandwidth)
    assert _level(model="Llama-2-70B", n_devices=4)[1] == pytest.approx(_level(model="Llama-2-70B")[1])


def test_weights_made_wide_before_each_product_cross_the_memory_five_times_as_often() -> None:
    """Read as a byte, written as two, read as two; the bound is that of the byte."""
    deep = {"software": "DeepSpeed-Inference 0.7.3 (PyTorch)", "model": "Llama-2-70B", "n_devices": 8}
    narrow, half = (_level(precision=precision, **deep)[0] for precision in ("int8 weight-only", "fp16"))
    moved = [float((case.work["moved"] * case.work["count"]).sum()) for case in (narrow, half)]
    assert moved[0] == pytest.approx(2.5 * moved[1], rel=0.05)
    least = [
        least_times([case], CaseBatch.of([(case.engine, case.work, case.cached)]))[1][0] for case in (narrow, half)
    ]
    assert least[0] == pytest.approx(least[1] / 2, rel=0.05)
    four = {"precision": "4-bit weights (bitsandbytes nf4), bf16", "software": "LitGPT (PyTorch 2.1.0 eager)"}
    one, several = (_level(batch=batch, **four)[0].work["moved"].max() for batch in ("1", "4"))
    assert several > 3 * one


@pytest.mark.parametrize(("name", "times"), [("Llama-2-7B", 2), ("Llama-3-8B", 2 + 1 + 4 + 4 - 1)])
def test_a_cache_that_grows_is_copied_and_heads_that_share_it_read_copies(name: str, times: int) -> None:
    """Read and written anew; of four heads to a key read again, written four times, and read so, not once."""
    moved = {}
    for software in (HUGGING_FACE, "LitGPT (PyTorch 2.1.0 eager)"):
        work = _level(model=name, software=software, seq_or_shape="context 4096", batch="8")[0].work
        moved[software] = float((work["moved"] * work["count"]).sum())
    cache = zoo.language_model(name).kv_cache_per_token("fp16").m_as("byte") * 4096 * 8
    assert moved[HUGGING_FACE] - moved["LitGPT (PyTorch 2.1.0 eager)"] == pytest.approx(times * cache)


def test_a_desktop_calls_faster_than_a_server() -> None:
    server, desktop = (
        _level(device=device, device_class=f"{where} GPU", model="GPT-2")[0].at_least
        for device, where in (("NVIDIA A100 80GB SXM", "datacenter"), ("NVIDIA RTX 4090", "consumer"))
    )
    assert 1.5 < server / desktop < 3


def test_products_of_8_bits_that_quantise_on_the_way_take_more_calls() -> None:
    """Published (huggingface.co/blog/hf-bitsandbytes-integration): several times slower where models are small."""
    model = zoo.language_model("llama-2-7b")
    for precision in ("int8 (bitsandbytes)", "bitsandbytes int8", "LLM.int8()"):
        assert calls_of(typed(_row(precision=precision)), model) > 2 * calls_of(typed(_row()), model)
    # 45.06 ms a token in 4 bits, 30.43 in 16, of 40 layers of 7 products (huggingface/optimum): 52 microseconds each.
    four = calls_of(typed(_row(precision="4-bit weights (bitsandbytes nf4)")), model) - calls_of(typed(_row()), model)
    assert A_CALL * four / model.layers / (2 + 2 + model.gated) == pytest.approx(52e-6, rel=0.1)


def test_a_generation_takes_its_calls_once_for_each_token_and_several_gpus_take_turns() -> None:
    first = next(
        row for row in shipped_rows() if "FasterTransformer C++" in row.software and "input" in row.seq_or_shape
    )
    common: dict[str, Any] = {"software": HUGGING_FACE, "model": "Llama-2-7B", "note": "", "batch": "2"}
    cases = []
    for number, tokens in ((1, 8), (1, 32), (4, 32)):
        row = replace(first, n_devices=number, seq_or_shape=f"input 128, output {tokens}", **common)
        cases.append(interpret(row))
    few, many, split = estimated(
        cases, CaseBatch.of([(case.engine, case.work, case.cached) for case in cases])
    ).tolist()
    assert many == pytest.approx(4 * few, rel=0.1)
    assert split == many


def test_python_calls_every_expert_and_a_shape_without_any_calls_none() -> None:
    """Mixtral's loop over its eight experts, a token's two of which compute, against the same block of one expert."""
    mixtral = zoo.language_model("mixtral-8x7b")
    dense = replace(mixtral, experts=0, active_experts=0)
    more = (calls_of(typed(_row()), mixtral) - calls_of(typed(_row()), dense)) / mixtral.layers
    assert more == 9 + 8 + (5 + 4) + 4
    assert calls_of(typed(_row(software="AutoAWQ")), mixtral) < calls_of(typed(_row()), mixtral)


def test_what_is_compiled_for_one_length_of_the_cache_is_called_again_for_the_next() -> None:
    """Llama 2 7B takes an A100 6.6 ms for its bytes: gpt-fast, whose cache has a fixed size, makes 105 tokens a second
    (pytorch.org/blog/accelerating-generative-ai-2), transformers' own code under torch.compile no more than eager."""
    times = {name: _level(software=name)[1] for name in (HUGGING_FACE, "PyTorch torch.compile (Hugging Face)")}
    eager, compiled = times.values()
    assert compiled == pytest.approx(eager, rel=0.15)
    assert compiled > 2 * _level(software="gpt-fast (PyTorch torch.compile)")[1]


class _Moved(TorchDispatchMode):
    """Bytes that each operator reads and writes."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ not in VIEWS:
            of = [each for each in args if isinstance(each, torch.Tensor)]
            of += [each for each in torch.utils._pytree.tree_leaves(args) if isinstance(each, torch.Tensor)][len(of) :]
            self.bytes += sum(each.numel() * each.element_size() for each in (*of, result))
        return result


def test_a_normalisation_and_a_rotation_move_what_transformers_own_code_does() -> None:
    """Its operators are run, and their bytes counted: the rest of a prompt's is what one kernel for each would move."""
    from transformers.models.llama.modeling_llama import LlamaRMSNorm, apply_rotary_pos_emb

    rows, hidden, heads, width = 64, 512, 4, 128
    model = replace(
        zoo.language_model("llama-2-7b"), layers=1, hidden=hidden, heads=heads, kv_heads=heads, head_dim=width, ffn=1
    )
    tokens = torch.zeros(1, rows, hidden, dtype=torch.float16)
    norm = LlamaRMSNorm(hidden).half()
    with torch.no_grad(), _Moved() as normalising:
        norm(tokens)
    queries = torch.zeros(1, heads, rows, width, dtype=torch.float16)
    turns = torch.zeros(1, rows, width, dtype=torch.float16)
    with _Moved() as turning:
        apply_rotary_pos_emb(queries, queries, turns, turns)
    theirs = 3 * (normalising.bytes - 2 * 2 * rows * hidden) + turning.bytes
    work = small_steps(typed(_row()), model, rows, number_format("fp16"))
    assert float((work["moved"] * work["count"]).sum()) == pytest.approx(theirs, rel=0.03)
    for other in ({"software": "TinyChat (AWQ kernels)"}, {"software": "TensorRT-LLM 0.15"}):
        assert small_steps(typed(_row(**other)), model, rows, number_format("fp16")).launches == 0


@pytest.mark.parametrize(
    ("software", "at_once"),
    [("vLLM 0.10.0, ROCm 6.4.1, graphs captured", True), ("vLLM 0.6.4, ROCm 6.2, eager", False), ("SGLang", True),
     ("vLLM Oct 2023", False), ("TensorRT-LLM 0.15", False), ("calm (CUDA, one kernel a token)", True)],
)  # fmt: skip
def test_a_captured_graph_waits_for_no_host(software: str, at_once: bool) -> None:
    step = _level(software="TensorRT-LLM 0.15")[0].work
    assert bool((graph_captured(typed(_row(software=software)), step)["ranks"] != step["ranks"]).any()) == at_once


def test_the_host_that_is_named_is_told_by_its_calls() -> None:
    """Small batches on an EPYC 7742, of models and formats beside the two that say what a call takes."""
    rows = [
        row for row in shipped_rows()
        if row.source == "huggingface/optimum-benchmark" and "decode" in row.workload and row.batch in ("1", "4")
    ]  # fmt: skip
    reported = [case.at_least / case.seconds for case in map(interpret, rows)]
    assert len(reported) > 8
    assert all(0.75 < part < 1.1 for part in reported)


def test_index_arithmetic_holds_up_a_copy_of_short_numbers() -> None:
    """Published (optimum-benchmark): a token of 64 sequences takes 3.3 times as long as one of a single sequence."""
    one, many = (
        next(
            row for row in shipped_rows()
            if row.source == "huggingface/optimum-benchmark" and "decode" in row.workload and row.batch == batch
            and row.model == "llama-2-7b" and "FlashAttention" not in row.software
        )
        for batch in ("1", "64")
    )  # fmt: skip
    cases = [interpret(one), interpret(many)]
    few, more = estimated(cases, CaseBatch.of([(case.engine, case.work, case.cached) for case in cases])).tolist()
    assert more / few == pytest.approx(64 * one.value / many.value, rel=0.4)


def test_index_arithmetic_is_done_by_integer_lanes() -> None:
    """NVIDIA's guide: 64 integers a cycle on each multiprocessor of A100 and H100, which has twice as many in FP32."""
    copies = {}
    for device in ("NVIDIA A100 80GB SXM", "NVIDIA H100 SXM5"):
        work = _level(device=device, seq_or_shape="context 4096", batch="8")[0].work
        copies[device] = float(work["flops"][work["kind"] == VECTOR].max())
    assert copies["NVIDIA H100 SXM5"] == pytest.approx(2 * copies["NVIDIA A100 80GB SXM"], rel=0.1)


def test_narrow_weights_attain_less_of_hopper_than_halves() -> None:
    """TensorRT-LLM's products with weights of 4 bits run in instructions of Ampere, 62.9 % as fast on Hopper."""
    for device, part in (("NVIDIA H200 SXM", 0.629), ("NVIDIA A100 80GB SXM", 1.0)):
        halves, narrow = (
            _level(precision=name, software="TensorRT-LLM 0.15", device=device)[0].engine.matmul
            for name in ("bf16", "4-bit weights, fp16")
        )
        assert narrow == pytest.approx(part * halves, rel=0.01)
