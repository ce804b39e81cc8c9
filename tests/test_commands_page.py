"""The page of commands in the reference: its examples, extras and exit codes are those of the package."""

import re
import tomllib
from pathlib import Path

import click
from click.testing import CliRunner

from apireference import helps
from mlsys.cli import main

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "book" / "reference" / "commands.md").read_text("utf-8")
LISTING = re.findall(r"^\| `(mlsys [^`]+)` \|", PAGE, re.MULTILINE)


def commands() -> dict[str, click.Command]:
    context = click.Context(main)
    return {name: main.get_command(context, name) for name in main.list_commands(context)}


def test_every_command_is_described_as_its_help_prints() -> None:
    shown = dict(helps(78))
    names = {name.removeprefix("mlsys ").partition(" ")[0] for name in shown if name != "mlsys"}
    assert names == {name for name in commands() if not commands()[name].hidden}
    for name in ("mlsys", "mlsys analyze", "mlsys edge run"):
        printed = CliRunner().invoke(main, [*name.split()[1:], "--help"], prog_name="mlsys", terminal_width=78).output
        assert shown[name].strip() == printed.strip()


def test_every_example_names_a_command_and_options_that_exist() -> None:
    assert LISTING
    for line in LISTING:
        words = line.split()[1:]
        command: click.Command = main
        while isinstance(command, click.Group):
            found = command.get_command(click.Context(command), words.pop(0))
            assert found is not None, line
            command = found
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= options, line


def test_every_command_has_an_example() -> None:
    assert {line.split()[1] for line in LISTING} == set(commands())


def test_no_command_names_a_version_that_does_not_exist() -> None:
    """What an example compares with is there in every clone."""
    named = re.findall(r"mlsys claims diff ([^\s`]+)", PAGE + (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert named
    assert set(named) <= {"HEAD", "HEAD~1"}


def test_the_table_of_extras_is_that_of_the_package() -> None:
    from mlsys.cli.common import EXTRAS

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    result = dict(re.findall(r"^\| `([a-z]+)` \| (.+) \|$", PAGE, re.MULTILINE))
    assert set(result) == set(extras) - {"dev"}
    assert set(EXTRAS.values()) <= set(result), "a message names an extra that the page does not"
    packages = {"sklearn": "scikit-learn", "IPython": "ipywidgets", "mpl_toolkits": "matplotlib", "tvm": "apache-tvm",
                "ai_edge_litert": "ai-edge-litert", "serial": "pyserial", "torch_pruning": "torch-pruning",
                "dask": "distributed", "flatbuffers": "ai-edge-litert"}  # fmt: skip
    for module, extra in EXTRAS.items():
        names = {re.split(r"[<>=\[]", requirement)[0] for requirement in extras[extra]}
        assert packages.get(module, module) in names, (module, extra)
    assert {name.partition(">")[0] for name in extras["guide"]} == {"scikit-learn"}, "a guide needs no torch"
    for extra, words in (("sweep", "`sweep`"), ("guide", "`explain guide`"), ("edge", "`edge run`")):
        assert words in result[extra]


def test_every_file_of_a_command_line_is_there_or_made_by_a_line_above_or_a_placeholder() -> None:
    made: set[str] = set()
    for command in LISTING:
        outputs = set(re.findall(r"(?:--out|--output|--html|--flame|--plan|>) (\S+)", command))
        if command.startswith("mlsys explain run"):
            made.add("explain-logs/*.jsonl")  # its default folder
        for name in re.findall(r"[\w./*-]+\.(?:json|jsonl|yaml|csv|ipynb|onnx)\b", command):
            known = name in made or name in outputs or name.startswith("FILE.") or (ROOT / name).exists()
            assert known, f"{command}: nothing makes {name}"
        made |= outputs
