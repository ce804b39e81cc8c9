"""Integer kernels in the worst case: what saturates is found by itself and labelled, with the difference in steps."""

import json
from dataclasses import replace
from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mlsys.cli.explain_page import explain_page
from mlsys.cli.main import main
from mlsys.measure import doubts, read_log
from mlsys.measure.backends import BACKENDS, Backend, Subject
from mlsys.measure.integer_check import check_integers, holds_integers, steps_apart, worst_cases
from mlsys.measure.log import Log, parsed
from mlsys.measure.networks.chains import NETS, layer_products, net_of
from mlsys.measure.networks.int8 import QuantizedNet, quantized, run_int8
from mlsys.measure.protocol import measure_backend
from mlsys.measure.summary import summary, summary_text

from .saturating import Exact, Saturating

CASES = {case.net.layers[0].name: (case, batch) for case, batch in worst_cases()}


def output_of(runner: Backend, case: QuantizedNet, batch: np.ndarray) -> np.ndarray:
    runner.setup(Subject.of_chain(case, batch), 1)
    runner.run_inference()
    output = runner.output()
    runner.close()
    return output


def ready(name: str) -> Backend:
    runner = BACKENDS[name]()
    if reason := runner.refuses(Subject("tiny-cnn", "int8", net_of("tiny-cnn"))):
        pytest.skip(reason)
    return runner


@pytest.mark.parametrize("name", CASES)
def test_the_integer_reference_is_right_in_the_worst_case(name: str) -> None:
    """Every output by whole numbers of Python: 255 times a weight of ±127, summed, times an exact fraction."""
    case, batch = CASES[name]
    (each,), got = case.layers, run_int8(case, case.source.to_int(batch))[-1][0]
    layer, weight = each.layer, each.weight
    assert {abs(int(value)) for value in weight.ravel()} == {127}
    assert {int(value) - case.source.zero for value in case.source.to_int(batch).ravel()} == {255}
    top, left, _, _ = layer.pads
    per_step = Fraction(case.target.scale)  # a sum of 1 stands for 1, as all scales of the input are 1
    for row, column, channel in np.ndindex(got.shape):
        kernel = weight[0, ..., channel] if layer.kind == "depthwise" else weight[channel]
        total = 0
        for place in np.ndindex(*layer.kernel):
            y, x = row + place[0] - top, column + place[1] - left
            if layer.kind == "dense" or (0 <= y < layer.source[0] and 0 <= x < layer.source[1]):
                values = kernel if layer.kind == "dense" else kernel[place]
                total += 255 * sum(int(value) for value in np.atleast_1d(values))
        assert got[row, column, channel] == floor(total / per_step + Fraction(1, 2))


def test_no_output_is_near_a_tie() -> None:
    """Runtimes scale sums in 32-bit reals or in fixed point; away from ties both must give the same byte."""
    for case, batch in CASES.values():
        assert nearest_tie(case, case.source.to_int(batch)) > 1000
    for name in NETS:
        whole = quantized(net_of(name))
        assert nearest_tie(whole, whole.source.to_int(Subject(name, "int8", whole.net).batch)) > 4


def nearest_tie(whole: QuantizedNet, batch: np.ndarray) -> float:
    """Return the least distance of a scaled sum from a tie, in roundings of a 32-bit real of its size."""
    inputs, found = [batch, *run_int8(whole, batch)], np.inf
    for each, x in zip(whole.layers, inputs, strict=False):
        if each.weight is None:
            scaled = x.astype(float).mean(axis=(1, 2))
        else:
            sums = layer_products(each.layer, x.astype(np.int64) - each.source.zero, each.weight.astype(np.int64))
            scaled = (sums + each.bias) * (each.scales.astype(float) * each.source.scale / each.target.scale)
            shown = scaled + each.target.zero
            scaled = scaled[(shown > (each.target.zero - 1 if each.layer.relu else -129)) & (shown < 128)]
        distance = np.abs(scaled - np.floor(scaled) - 0.5)
        found = min(found, float((distance / (np.abs(scaled) + 1)).min()) * 2**24)
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("backend", ["onnxruntime", "litert"])
def test_worst_cases_are_exact_to_the_byte(backend: str, name: str) -> None:
    runner = ready(backend)
    case, batch = CASES[name]
    exact = run_int8(case, case.source.to_int(batch))[-1]
    exact = exact if runner.channels_last else exact.transpose(0, 3, 1, 2)
    bytes_out = np.rint(output_of(runner, case, batch) / case.target.scale + case.target.zero).astype(np.int8)
    assert bytes_out.tobytes() == exact.tobytes()


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino", "litert"])
def test_a_runtime_is_exact_in_every_worst_case_or_labelled(backend: str, log: Log) -> None:
    apart = max(
        steps_apart(output_of(runner := ready(backend), *case), *case, channels_last=runner.channels_last)
        for case in CASES.values()
    )
    subject, runner = Subject("tiny-cnn", "int8", net_of("tiny-cnn")), ready(backend)
    runner.setup(subject, 1)
    runner.run_inference()
    check = check_integers(runner, subject)
    runner.close()
    assert check is not None and check.worst_case_steps == apart and (check.layer is None) == (apart == 0)
    result = " ".join(doubts(replace(log, format="int8", integers=check.record)))
    assert ("SATURATES" in result) == (apart > 0)
    assert (f"{apart} steps" in result) == (apart > 0)


def test_a_saturating_kernel_is_found_and_an_exact_one_is_not() -> None:
    case, batch = CASES["dense"]
    # 64 products of 255 x 127 in pairs: each pair is held to 32,767 of 64,770, so 100.3 steps become 50.7.
    assert steps_apart(output_of(Saturating(), case, batch), case, batch, channels_last=True) == 100 - 51
    assert all(steps_apart(output_of(Saturating(), *case), *case, channels_last=True) > 20 for case in CASES.values())
    assert not any(steps_apart(output_of(Exact(), *case), *case, channels_last=True) for case in CASES.values())


def test_outputs_that_are_no_numbers_count_as_the_whole_grid() -> None:
    case, batch = CASES["dense"]
    assert steps_apart(np.full(16, np.nan), case, batch) == 255
    assert steps_apart(np.zeros(3), case, batch) == 255


def test_the_label_reaches_log_text_json_and_html(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "saturating", Saturating)
    monkeypatch.setitem(BACKENDS, "exact", Exact)
    words = ["explain", "run", "tiny-cnn", "--format", "int8", "--runs", "1", "--no-rates", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, [*words, "--backend", "saturating,exact"])
    assert done.exit_code == 0, done.output
    whole, exact, bad = quantized(net_of("tiny-cnn")), read_log(tmp_path / "tiny-cnn-int8-exact.jsonl"), Saturating()
    subject = Subject("tiny-cnn", "int8", net_of("tiny-cnn"))
    log = read_log(tmp_path / "tiny-cnn-int8-saturating.jsonl")
    steps = steps_apart(output_of(bad, whole, subject.batch), whole, subject.batch, channels_last=True)
    assert steps > 1 and log.integers["network_steps"] == steps and log.integers["worst_case_steps"] >= 49
    label = [line for line in done.output.splitlines() if "SATURATES" in line]
    assert label and all("saturating on" in line and f" {steps} steps" in line for line in label)
    assert exact.integers["worst_case_steps"] == exact.integers["network_steps"] == 0
    assert "integers: exact" in summary_text(exact) and not any("INT8" in doubt for doubt in doubts(exact))
    result = summary(log)
    assert result["integers"]["network_steps"] == steps and any("SATURATES" in doubt for doubt in result["doubts"])
    kept = str(tmp_path / "tiny-cnn-int8-saturating.jsonl")
    for format_ in (["--json"], ["--html", str(tmp_path / "why.html")], []):
        report = CliRunner().invoke(main, ["explain", "report", kept, *format_])
        text = (tmp_path / "why.html").read_text() if "--html" in format_ else report.output
        assert report.exit_code == 0 and "SATURATES" in text and f" {steps} steps" in text, format_
    assert "SATURATES" not in explain_page([exact])


def test_a_board_and_an_unchecked_log_say_that_nothing_was_checked(log: Log) -> None:
    assert "not checked when this log was made" in summary_text(replace(log, format="int8"))
    record = {"worst_case_steps": None, "layer": None, "network_steps": 2, "reason": "no module named onnx"}
    result = " ".join(doubts(replace(log, format="int8", integers=record)))
    assert "2 steps" in result and "not checked for saturation: no module named onnx" in result
    lines = replace(log, integers=record).lines()
    assert parsed("\n".join(lines) + "\n").integers == record


def test_a_file_with_integers_is_checked_and_one_without_is_not(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    from mlsys.measure.networks.export import as_onnx

    runner = ready("onnxruntime")
    for net, wanted in ((net_of("tiny-cnn"), False), (quantized(net_of("tiny-cnn")), True)):
        path = tmp_path / "own.onnx"
        path.write_bytes(as_onnx(net))
        subject = Subject("own", "file", file=path)
        assert holds_integers(subject) is wanted
        log = measure_backend(runner, subject, runs=1, rates=False)
        assert (log.integers is not None) is wanted
    assert log.integers["worst_case_steps"] == 0 and log.integers["network_steps"] is None


def test_a_litert_file_with_integers_is_known(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    from mlsys.measure.networks.export import as_litert

    for net, wanted in ((net_of("tiny-cnn"), False), (quantized(net_of("tiny-cnn")), True)):
        (tmp_path / "own.tflite").write_bytes(as_litert(net))
        assert holds_integers(Subject("own", "file", file=tmp_path / "own.tflite")) is wanted


def test_signed_inputs_without_a_kernel_for_unsigned_weights_still_run(tmp_path: Path) -> None:
    """QLinearMatMul with signed inputs: no kernel takes them with the unsigned weights of the precise setting."""
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    runner = ready("onnxruntime")
    held = {
        "one": np.array(1, np.float32), "zero": np.array(0, np.int8), "w": np.full((64, 2), [127, -127], np.int8),
        "step": np.array(255 * 127 * 64 / 100.3, np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "one", "zero"], ["q"]),
        helper.make_node("QLinearMatMul", ["q", "one", "zero", "w", "one", "zero", "step", "zero"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "signed", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, [1, 2])],
        [numpy_helper.from_array(values, name) for name, values in held.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "signed.onnx").write_bytes(model.SerializeToString())
    runner.setup(Subject("signed", "file", file=tmp_path / "signed.onnx"), 1)
    assert runner.run_inference() > 0 and runner.output().shape == (2,)
    assert isinstance(runner.facts()["session.x64quantprecision"], bool)
    assert runner.twin().facts() == runner.facts()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize(("most", "risky"), [(127, True), (64, False)])
def test_a_module_with_eight_bit_weights_is_checked(most: int, risky: bool) -> None:
    torch = pytest.importorskip("torch")
    from mlsys.measure.integer_check import engine_steps

    runner, plain, given = BACKENDS["eager"](), torch.nn.Sequential(torch.nn.Linear(64, 8)), torch.ones(1, 64)
    assert check_integers(runner, Subject("plain", module=plain, inputs=given)) is None
    dynamic = torch.ao.quantization.quantize_dynamic(plain, {torch.nn.Linear}, dtype=torch.qint8)
    check = check_integers(runner, Subject("dynamic", module=dynamic, inputs=given))
    assert check is not None and check.worst_case_steps == 0  # PyTorch gives these inputs seven bits
    layer = torch.ao.nn.quantized.Linear(64, 8)
    weight = torch.quantize_per_tensor(torch.full((8, 64), float(most)), 1.0, 0, torch.qint8)
    layer.set_weight_bias(weight, torch.zeros(8))
    check = check_integers(runner, Subject("static", module=torch.nn.Sequential(layer), inputs=given))
    assert check is not None and check.network_steps is None and "static" in check.reason
    assert check.worst_case_steps == (engine_steps() if risky else 0)
    assert json.dumps(check.record)
