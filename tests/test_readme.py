"""The README's example runs and prints what its comments say."""

import contextlib
import io
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from mlsys import Q_, Hardware
from mlsys.cli import main
from mlsys.formulas import ridge_point

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def test_the_taste_prints_what_it_says() -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(code, {})
    printed = shown.getvalue()
    for promised in ("153.016184 FLOP/B", "memory 4.24264443 µs"):
        assert promised in code and promised in printed
    assert "2039 GB/s" in printed and "source" in printed


def test_the_analysis_prints_what_it_says() -> None:
    """To the last digit too; of the reasons of the range, which are long, nothing but the first words."""
    command, block = re.search(r"\$ mlsys (analyze .*)\n((?: .*\n)+)", README).groups()
    printed = CliRunner().invoke(main, command.split()).output
    lines = [line for line in printed.splitlines() if line.startswith(("  at least ", "  estimate ", "  range "))]
    lines[-1] = re.sub(r"(80 % interval: ).*", r"\1…)", lines[-1])
    assert block.splitlines() == lines, f"What `mlsys {command}` prints in README.md must read:\n" + "\n".join(lines)


def test_the_sizing_prints_what_it_says() -> None:
    command, block = re.search(r"\$ mlsys (size .*)\n((?: .*\n)+)", README).groups()
    printed = CliRunner().invoke(main, command.split()).output.splitlines()
    assert [line for line in block.splitlines() if line not in printed] == []


def test_each_kind_of_addition_has_its_recipe() -> None:
    recipes = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text("utf-8").count("\n### Add a ")
    spelled = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")[recipes]
    assert f"with {spelled} recipes, one for each kind of addition" in README


def test_the_requirements_are_those_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.match(r"[\w-]+", each)[0].lower() for each in project["dependencies"]}
    result = re.search(r"needs nothing but ([^|]+?) \|", README)[1].lower()
    assert set(re.split(r",\s+|\s+and\s+", result)) == needed
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in README


def test_the_refusals_are_word_for_word() -> None:
    refused = {
        'ridge_point(312, Q_(2039, "GB/s"))': lambda: ridge_point(312, Q_(2039, "GB/s")),
        'a100.peak("fp8")': lambda: Hardware.Cloud.A100.peak("fp8"),
        'Q_(5, "USD") + Q_(3, "byte")': lambda: Q_(5, "USD") + Q_(3, "byte"),
    }
    for line, attempt in refused.items():
        message = README.split(f">>> {line}\n")[1].splitlines()[0]
        with pytest.raises(Exception) as caught:  # each refusal has a kind of its own
            attempt()
        assert str(caught.value) == message


def test_every_linked_file_exists() -> None:
    root = Path(__file__).parent.parent
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (root / target).exists(), target
