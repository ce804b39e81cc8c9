"""``mlsys compile-bench`` with a measurer that takes no time: its options, what is printed, how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("torch")

from mlsys import measure
from mlsys.cli import main
from mlsys.measure import CompileResult, PassResult, stored_compile_results, stored_pass_results


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["compile-bench", *arguments])


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Answer with stored results, and remember the options."""
    given: dict[str, Any] = {}

    def answer(module: Any, inputs: Any, **options: Any) -> CompileResult:
        given.update(options, shape=tuple(inputs.shape), training=module.training)
        options["tick"]()
        return stored_compile_results()[0]

    def climb(module: Any, inputs: Any, **options: Any) -> PassResult:
        given.update(options)
        return stored_pass_results()[0]

    monkeypatch.setattr(measure, "compile_bench", answer)
    monkeypatch.setattr(measure, "pass_bench", climb)
    return given


def test_the_report_is_the_results_own(requested: dict[str, Any]) -> None:
    done = run("mlp", "--batch", "4", "--repeats", "7", "--warmup", "2", "--threads", "2", "--freeze")
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == stored_compile_results()[0].explain()
    assert requested["shape"] == (4, 128)
    assert not requested["training"]
    chosen = {name: requested[name] for name in ("name", "batch", "repeats", "warmup", "threads", "freeze")}
    assert chosen == {"name": "mlp", "batch": 4, "repeats": 7, "warmup": 2, "threads": 2, "freeze": True}


def test_json_on_standard_output_is_the_whole_record(requested: dict[str, Any]) -> None:
    done = run("small_cnn", "--json")
    assert CompileResult.from_record(json.loads(done.stdout)) == stored_compile_results()[0]
    assert requested["name"] == "small-cnn"


def test_the_file_holds_the_same_and_nothing_half_written(requested: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    done = run("mlp", "--output", str(file))
    assert done.exit_code == 0, done.output
    assert "as fast as eager" in done.stdout
    assert CompileResult.from_record(json.loads(file.read_text())) == stored_compile_results()[0]
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_passes(requested: dict[str, Any]) -> None:
    done = run("mlp", "--passes")
    assert "normalisation folded" in done.stdout
    assert run("mlp", "--passes", "--freeze").exit_code == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (measure.OutputsDifferError("compile_bench(): the compiled 'mlp' differs from the eager one"), 1),
        (measure.NoCompilerError("compile_bench(): no C++ compiler was found"), 3),
        (measure.CompileFailedError("compile_bench(): 'mlp' cannot be compiled: because"), 3),
        (measure.OutOfMemoryError("compile_bench(): 'mlp' does not fit into memory"), 3),
    ],
)
def test_each_kind_of_failure_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, code: int
) -> None:
    def fail(*given: Any, **options: Any) -> Any:
        raise error

    monkeypatch.setattr(measure, "compile_bench", fail)
    done = run("mlp", "--output", str(tmp_path / "result.json"))
    assert done.exit_code == code
    assert done.stderr.strip() == f"Error: {error}"
    assert done.stdout == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("resnet5",), "Did you mean 'resnet50'?"),
        (("model.onnx",), "there is no file 'model.onnx'"),
        (("{onnx}",), "has no PyTorch code"),
        (("mlp", "--sequence", "4"), "--sequence does not apply to mlp"),
        (("mlp", "--output", "/no/such/folder/x.json"), "there is no folder"),
        (("mlp", "--batch", "0"), "--batch"),
        (("mlp", "--repeats", "1.5"), "not a valid integer"),
    ],
)
def test_wrong_questions_end_with_two(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    (tmp_path / "there.onnx").write_bytes(b"")
    done = run(*(argument.format(onnx=tmp_path / "there.onnx") for argument in arguments))
    assert done.exit_code == 2
    assert words in done.stderr
    assert "Traceback" not in done.output
