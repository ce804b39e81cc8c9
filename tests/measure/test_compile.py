"""Eager against compiled: one real compilation, every way it can fail, and predictions summed by hand."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.measure import (
    CompileFailedError,
    CompileResult,
    MachineRates,
    NoCompilerError,
    OutOfMemoryError,
    OutputsDifferError,
    PassResult,
    Timing,
    compile_bench,
    pass_bench,
    predict,
    ready_model,
    stored_compile_results,
    stored_pass_results,
)
from mlsys.measure.compile import comparison as compiling
from mlsys.measure.compile.kernels import count_launches, dispatched
from mlsys.measure.compile.predict import times_of
from mlsys.measure.machine import compiler
from mlsys.workloads import Network, gemm, relu

RATES = MachineRates(1, 1e11, (8e10, 9e10, 2e11), (2**18, 2**28), (1e11, 2e10), 4e-10, 5e-6, 1e-5, 1e-6)


def mlp() -> tuple[Any, Any]:
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    return layers.eval(), torch.randn(16, 32)


def without_compiler() -> Any:
    from torch._inductor import config

    return config.patch({"cpp.cxx": ("no-such-compiler",)})


def plain_loops() -> Any:
    """Let torch neither try each vector extension of this processor nor compile its headers beforehand."""
    from torch._inductor import config

    return config.patch({"cpp.vec_isa_ok": False, "cpp_cache_precompile_headers": False})


def has_compiler() -> bool:
    try:
        compiler()
    except NoCompilerError:
        return False
    return True


def test_a_real_compilation_or_the_reason_why_there_is_none() -> None:
    module, inputs = mlp()
    if not has_compiler():
        with pytest.raises(NoCompilerError, match=r"no C\+\+ compiler was found.* Install one .*apt install g\+\+"):
            compile_bench(module, inputs, rates=RATES)
        return
    with plain_loops():
        result = compile_bench(module, inputs, name="mlp", batch=16, rates=RATES, repeats=6, warmup=2)
    assert (result.operators, result.library, result.graphs, result.graph_breaks) == (3, 2, 1, 0)
    assert result.generated == 1  # the ReLU; both products are calls of a library
    assert result.inputs == "16×32 float32"
    assert len(result.eager.samples) == len(result.compiled.samples) == 6
    assert result.error <= 1e-5
    assert result.compile_seconds > 0
    assert CompileResult.from_record(json.loads(json.dumps(result.record()))).model == "mlp"
    assert "kernels: 3 eager, 3 compiled (1 generated, 2 in libraries)" in result.explain()


def test_without_a_compiler_one_sentence_says_what_to_install() -> None:
    module, inputs = mlp()
    with (
        without_compiler(),
        pytest.raises(NoCompilerError, match="apt install g.*environment variable CXX"),
    ):
        compile_bench(module, inputs, rates=RATES)


def fake_compiler(monkeypatch: pytest.MonkeyPatch, first_call: Any) -> None:
    """Let everything but the compilation itself be real."""
    monkeypatch.setattr(compiling, "compiler", lambda: "a compiler")
    monkeypatch.setattr(compiling, "first_call", first_call)


SOURCE = """
loop_0 = async_compile.cpp_pybinding(['float*'], '')
def call(args):
    extern_kernels.mm(a, b, out=c)
    buf = torch.ops.mkldnn._linear_pointwise.default(c, d)
    assert_size_stride(buf, (1, 2), (2, 1), 'torch.ops.mkldnn._linear_pointwise.default')
    e = empty_strided_cpu((1, 2), (2, 1), torch.float32)
    loop_0(c, e)
    loop_0(e, c)
def benchmark(times=10):
    loop_0(rand_strided((1, 2), (2, 1)), extern_kernels.mm(a, b))
"""


def test_other_outputs_are_an_error_not_a_speedup(monkeypatch: pytest.MonkeyPatch) -> None:
    module, inputs = mlp()
    for spoil in (lambda y: y * 1.01, lambda y: y[:, :7], lambda y: y.double(), lambda y: y * float("nan")):
        fake_compiler(monkeypatch, lambda *given, spoil=spoil: (spoil(module(inputs)), [SOURCE], 1.0))
        with pytest.raises(OutputsDifferError, match="differs from the eager one.*No speed-up is reported"):
            compile_bench(module, inputs, rates=RATES)


def test_outputs_within_the_tolerance_are_accepted_and_the_largest_difference_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, inputs = mlp()
    fake_compiler(monkeypatch, lambda *given: (module(inputs) * (1 + 1e-4), [SOURCE], 1.0))
    monkeypatch.setattr(compiling, "measure", lambda runs, **_: [Timing(name, (1.0,) * 6) for name in runs])
    result = compile_bench(module, inputs, rates=RATES, repeats=6)
    assert result.error == pytest.approx(1e-4, rel=0.01)
    assert (result.generated, result.library) == (2, 2)


def test_what_the_compiler_raises_becomes_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    module, inputs = mlp()

    def fail(*given: Any) -> Any:
        raise torch._dynamo.exc.Unsupported("no idea what this is\nand fifty lines more")

    monkeypatch.setattr(compiling, "compiler", lambda: "a compiler")
    monkeypatch.setattr("torch._inductor.utils.run_and_get_code", fail)
    with pytest.raises(CompileFailedError, match="'Sequential' cannot be compiled: no idea what this is$"):
        compile_bench(module, inputs, rates=RATES)


def test_a_model_that_falls_back_as_a_whole_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    module, inputs = mlp()
    fake_compiler(monkeypatch, lambda *given: (module(inputs), [], 1.0))
    with pytest.raises(CompileFailedError, match="no part of 'Sequential' was compiled; all of it fell back"):
        compile_bench(module, inputs, rates=RATES)


class Huge(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.empty(2**50) + x


def test_no_memory_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compiler", lambda: "a compiler")
    with pytest.raises(OutOfMemoryError, match="'Huge' does not fit into memory. Choose a smaller batch"):
        compile_bench(Huge().eval(), torch.ones(1), rates=RATES)


def test_wrong_arguments_are_refused() -> None:
    module, inputs = mlp()
    with pytest.raises(ArgumentError, match=r"`model` is in training mode.* Write model.eval\(\)"):
        compile_bench(mlp()[0].train(), inputs, rates=RATES)
    with pytest.raises(ArgumentError, match="`model` must be a torch.nn.Module, got function"):
        compile_bench(mlp, inputs, rates=RATES)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="`inputs` must be a tensor, a tuple"):
        compile_bench(module, 3, rates=RATES)
    with pytest.raises(ArgumentError, match="`threads` must be a whole number >= 1, got 0"):
        compile_bench(module, inputs, threads=0)


def test_inputs_that_do_not_fit_and_rates_of_another_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compiler", lambda: "a compiler")
    module, inputs = mlp()
    with pytest.raises(ArgumentError, match="'Sequential' does not run on these inputs: mat1 and mat2"):
        compile_bench(module, torch.ones(2, 33), rates=RATES)
    with pytest.raises(ArgumentError, match=r"measured with 1 threads, `threads` is 2. Write rates=machine_rates\(2\)"):
        compile_bench(module, inputs, rates=RATES, threads=2)


def test_views_and_allocations_are_no_kernels() -> None:
    x = torch.ones(8, 8)
    assert dispatched(lambda: torch.empty(3)) == 0
    assert dispatched(lambda: (x.t().reshape(4, 16)[1:] + 1).relu()) == 3  # the reshape of a transpose copies


def test_launches_are_counted_in_the_call_alone() -> None:
    assert count_launches([SOURCE, SOURCE]) == (4, 4)
    assert count_launches(["def call(args):\n    return args"]) == (0, 0)


def test_a_prediction_is_the_sum_that_can_be_done_by_hand() -> None:
    product, activation = gemm(64, 64, 64, "fp32"), relu(2**20, "fp32")
    alone, two = (
        times_of(Network("it", work), RATES, RATES.launch, 8e10) for work in ((product,), (product, activation))
    )
    assert alone.causes["compute"] == pytest.approx(2 * 64**3 / 1e11)
    assert alone.causes["launch"] == 5e-6
    moved = 2 * 4 * 2**20  # 8 MiB lie halfway between the two sizes, in the logarithm
    assert two.causes["memory"] == pytest.approx(moved / ((1e11 + 2e10) / 2))
    assert two.total == pytest.approx(alone.total + moved / 6e10 + 5e-6)


def test_a_convolution_runs_at_the_rate_of_its_layout() -> None:
    module, inputs = torch.nn.Conv2d(64, 64, 3, padding=1).eval(), torch.zeros(1, 64, 56, 56, device="meta")
    work = 2 * 64 * 64 * 9 * 56 * 56 + 64 * 56 * 56  # products, and a bias for each result
    plain, frozen = (predict(module, inputs, RATES, "conv", frozen=freeze) for freeze in (False, True))
    assert plain is not None
    assert frozen is not None
    assert plain.eager == pytest.approx(work / 8e10 + 5e-6)
    assert plain.compiled == pytest.approx(work / 9e10 + 1e-6 + 1e-5)
    assert frozen.compiled == pytest.approx(work / 2e11 + 1e-6 + 1e-5)


def test_large_results_pay_for_new_memory() -> None:
    from mlsys.workloads import Workload

    def cost(rows: int) -> float:
        work = Workload.from_torch(torch.nn.ReLU(), torch.zeros(rows, 2**20, device="meta"))
        return times_of(work, RATES, RATES.launch, 8e10).causes["new memory"]

    assert cost(7) == 0
    assert cost(8) == pytest.approx(2**25 * 4e-10)


def test_one_kernel_less_saves_its_launch_and_its_tensor() -> None:
    module, inputs = mlp()
    same = predict(module, inputs, RATES, "mlp", fuse=lambda work: work)
    fused = predict(module, inputs, RATES, "mlp", frozen=True)
    assert same is not None
    assert fused is not None
    assert (same.kernels, fused.kernels) == (3, 2)
    saved = 2 * 16 * 64 * 4 / 1e11  # the ReLU's reading and writing; its work stays, beside a product that computes
    assert same.compiled - fused.compiled == pytest.approx(1e-6 + saved - 16 * 64 / 1e11, rel=1e-6)
    assert fused.limited_by == "launch"


def test_models_by_name_and_from_a_factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, inputs, name = ready_model("BERT_base", sequence=8, batch=2)
    assert (name, tuple(inputs.shape), inputs.dtype) == ("bert-base", (2, 8), torch.int64)
    again = ready_model("BERT_base", sequence=8, batch=2)[0]
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), again.parameters(), strict=True))
    (tmp_path / "mine.py").write_text("import torch\ndef net():\n    return torch.nn.Linear(6, 2)\nnumber = 3\n")
    monkeypatch.chdir(tmp_path)
    module, inputs, name = ready_model("mine:net", batch=5)
    assert (name, tuple(inputs.shape), module.training) == ("net", (5, 6), False)
    with pytest.raises(ArgumentError, match="mine has no 'nett'. Did you mean 'net'?"):
        ready_model("mine:nett")
    with pytest.raises(ArgumentError, match="cannot be called without arguments"):
        ready_model("mine:number")


@pytest.mark.parametrize(
    ("model", "sizes", "words"),
    [
        ("resnet5", {}, "unknown network 'resnet5'. Did you mean 'resnet50'?"),
        ("model.onnx", {}, "an ONNX file has no PyTorch code"),
        ("resnet18", {"sequence": 9}, "--sequence does not apply to resnet18, which takes --image"),
        ("mlp", {"image": 9}, "--image does not apply to mlp, which has one input size"),
        ("gpt2", {"sequence": 2000}, "--sequence must be at most 1024 for gpt2, got 2000"),
        ("no.such.place:net", {}, "cannot import 'no.such.place'"),
    ],
)
def test_models_that_are_not_there(model: str, sizes: dict[str, int], words: str) -> None:
    with pytest.raises((ArgumentError, UnknownNameError)) as caught:
        ready_model(model, **sizes)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_stored_results_say_where_they_are_from_and_agree_with_themselves() -> None:
    stored = stored_compile_results()
    assert len({result.model for result in stored}) >= 8
    for result in stored:
        assert result.machine.cpu and result.machine.day and result.machine.torch and result.machine.compiler
        assert result.rates.threads == 1
        assert result.speedup.low <= result.speedup.value <= result.speedup.high
        assert result.error < result.tolerance
        assert result.predicted is not None
        assert result.kernels > 0
        assert result.graph_breaks == 0


def test_stored_kernels_are_those_of_the_network() -> None:
    by_name = {(result.model, result.batch, result.frozen): result for result in stored_compile_results()}
    resnet = by_name["resnet50", 1, True]
    assert resnet.operators == 174  # 53 convolutions and normalisations, 49 ReLU, 16 additions, 2 pools, 1 product
    assert resnet.predicted is not None
    assert resnet.predicted.kernels == 56
    assert resnet.library == 54  # 53 convolutions and the last product


def test_stored_passes_multiply_to_the_total() -> None:
    for result in stored_pass_results():
        product = 1.0
        for factor in result.factors:
            product *= factor.value
        assert product == pytest.approx(result.total.value, rel=1e-12)
        assert PassResult.from_record(json.loads(json.dumps(result.record()))) == result
        assert result.steps[1].kernels < result.steps[0].kernels  # folding takes every normalisation away


def test_pass_bench_wants_a_compiler() -> None:
    with without_compiler(), pytest.raises(NoCompilerError):
        pass_bench(*mlp())


def test_importing_the_package_loads_no_torch() -> None:
    code = "import mlsys.measure, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.strip() == "False"
