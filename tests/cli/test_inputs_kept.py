"""A command never writes over a file that it reads: whatever names lead to it, and before anything is computed."""

import json
import os
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

from mlsys.cli import main
from mlsys.errors import UnwrittenError
from mlsys.files import inputs_kept, write_text
from mlsys.inputs import read_text
from mlsys.planner.placement import example

RIGHT = Path(__file__).parents[1] / "torture" / "right"
# The command line, with IN for the input and OUT for the output, and the suffix of both.
COMMANDS = {
    "explain import": ("explain import IN --model m --platform p --out OUT", ".txt"),
    "explain import --power": ("explain import capture.txt --model m --platform p --power IN --out OUT", ".csv"),
    "explain report": ("explain report IN --html OUT", ".jsonl"),
    "plan --output": ("plan IN --output OUT", ".json"),
    "plan --figure": ("plan IN --figure OUT", ".svg"),
    "plan --save-scenario": ("plan IN --save-scenario OUT", ".json"),
    "plan --profiles": ("plan p.json --profiles IN --output OUT", ".csv"),
    "analyze --html": ("analyze IN --device A100 --html OUT", ".json"),
    "analyze --figure": ("analyze IN --device A100 --figure OUT", ".svg"),
    "analyze --calibration": ("analyze lenet5 --device A100 --calibration IN --html OUT", ".yaml"),
    "analyze module": ("analyze net:make --device A100 --html OUT", ".py"),
    "compare": ("compare IN --devices A100,T4 --figure OUT", ".svg"),
    "memory --figure": ("memory IN --figure OUT", ".svg"),
    "memory --buffers": ("memory --capacity 10 --buffers IN --figure OUT", ".svg"),
    "sweep": ("sweep IN --figure OUT", ".svg"),
    "calibrate": ("calibrate IN --out OUT", ".csv"),
    "validate": ("validate --data IN --csv OUT", ".csv"),
    "explain guide": ("explain guide IN --within 50 --markdown OUT", ".jsonl"),
    "compile-bench": ("compile-bench net:make --output OUT", ".py"),
    "size": ("size IN --on T4 --html OUT", ".json"),
    "size --calibration": ("size llama-3-8b --on T4 --calibration IN --html OUT", ".yaml"),
    "train": ("train IN --on DGX_H100 --html OUT", ".json"),
    "serve-sim": ("serve-sim llama-3-8b --on H100 --trace IN --html OUT", ".csv"),
}


def ask(line: str, tmp_path: Path, source: str, target: str) -> Result:
    words = [{"IN": source, "OUT": target}.get(word, word) for word in line.split()]
    result = CliRunner().invoke(main, words)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "capture.txt").write_text((RIGHT / "capture.txt").read_text())
    (tmp_path / "p.json").write_text(json.dumps(example()))
    return tmp_path


def test_every_command_that_writes_a_file_the_user_names_is_tried() -> None:
    from mlsys.cli.parameters import Output

    def writers(group, before=()):  # type: ignore[no-untyped-def]
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if hasattr(command, "commands"):
                yield from writers(command, (*before, name))
            elif any(isinstance(param.type, Output) for param in command.params):
                yield " ".join((*before, name))

    tried = {line.partition(" IN")[0].partition(" --")[0] for line, _ in COMMANDS.values()}
    without_input = {"measure", "explain run", "questions"}  # nothing but names of a device, a network or labs
    untried = {name for name in writers(main) if not any(line.startswith(name) for line in tried)} - without_input
    assert not untried


@pytest.mark.parametrize("link", ["same", "hard", "symbolic", "dotted"])
@pytest.mark.parametrize("name", COMMANDS)
def test_an_output_that_is_an_input_is_refused(name: str, link: str, folder: Path) -> None:
    line, suffix = COMMANDS[name]
    source = f"net{suffix}"
    content = (RIGHT / "calibration.yaml").read_text() if name.endswith("--calibration") else "kept"
    (folder / source).write_text(content)
    target = {"same": source, "dotted": f"./{source}"}.get(link, f"other{suffix}")
    if link == "hard":
        os.link(source, target)
    elif link == "symbolic":
        os.symlink(source, target)
    result = ask(line, folder, source, target)
    assert result.exit_code == 2, result.output
    assert "is an input of this command" in result.stderr
    assert (folder / source).read_text() == content and result.stdout == ""


@pytest.mark.parametrize("link", ["same", "hard", "symbolic"])
def test_so_is_what_a_factory_imports(link: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(folder)
    (folder / f"part_{link}.py").write_text("import torch\ndef net():\n    return torch.nn.Linear(4, 4)\n")
    factory = f"import torch\nimport part_{link}\ndef make():\n    return part_{link}.net(), torch.zeros(1, 4)\n"
    (folder / f"whole_{link}.py").write_text(factory)
    target = f"part_{link}.py" if link == "same" else "other.html"
    if link != "same":
        (os.link if link == "hard" else os.symlink)(f"part_{link}.py", target)
    result = ask(f"analyze whole_{link}:make --device A100 --html OUT", folder, "", target)
    assert result.exit_code == 1 and "is an input of this command" in result.stderr, result.output
    assert "nn.Linear" in (folder / f"part_{link}.py").read_text()


def test_so_are_weights_beside_an_onnx_file(folder: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    weight = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", 1, [1, 64])], [helper.make_tensor_value_info("y", 1, [1, 64])], [weight],
    )  # fmt: skip
    onnx.save(
        helper.make_model(graph), folder / "net.onnx", save_as_external_data=True, location="net.bin", size_threshold=0
    )
    before = (folder / "net.bin").read_bytes()
    result = ask("analyze net.onnx --device A100 --html OUT", folder, "", "net.bin")
    assert result.exit_code == 1 and "is an input of this command" in result.stderr, result.output
    assert (folder / "net.bin").read_bytes() == before


def test_two_outputs_are_two_files(folder: Path) -> None:
    result = ask("analyze lenet5 --device A100 --html x.svg --figure ./x.svg", folder, "", "")
    assert result.exit_code == 2 and "two outputs" in result.stderr and not (folder / "x.svg").exists()


def test_a_file_that_is_only_written_may_be_there(folder: Path) -> None:
    (folder / "out.json").write_text("old")
    result = ask("plan IN --output OUT", folder, "p.json", "out.json")
    assert result.exit_code == 0 and (folder / "out.json").read_text() != "old"
    again = ask("plan IN --output OUT", folder, "p.json", "out.json")
    assert again.exit_code == 0, again.output


def test_a_file_read_on_the_way_is_kept_too(tmp_path: Path) -> None:
    """A specification may name a file that the command line does not."""
    inner = tmp_path / "inner.txt"
    inner.write_text("kept")
    with inputs_kept([], [inner]):
        read_text(inner)
        with pytest.raises(UnwrittenError, match="is an input"):
            write_text(inner, "lost")
    assert inner.read_text() == "kept"
    assert write_text(inner, "now") == inner
