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


def test_every_example_runs_as_it_stands() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 2
    for code in blocks:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(code, {})
        assert shown.getvalue().count("\n") >= 3
        if "fuse(" in code:
            assert "174 operators in 56 kernels" in code and "174 operators in 56 kernels" in shown.getvalue()
            assert "half the bytes" in code and "(50.7%)" in shown.getvalue()


def test_the_counts_are_those_of_the_data() -> None:
    from mlsys.workloads.zoo import networks
    from mlsys_evidence import examination_rows, held_examinations
    from mlsys_evidence.rows import shipped_rows

    assert f"{len(shipped_rows()):,} published measurements" in README
    asked = [row for number in held_examinations() for row in examination_rows(number)]
    assert f"`--exam` asks {len(asked):,}\n" in README
    assert f"of {len({row.source for row in asked})} other repositories" in README
    assert f"`--exam {held_examinations()[-1]}` asks the last" in README
    assert f"{len(list(Hardware))} device twins" in README and f" {len(networks())} networks" in README


def test_the_errors_are_those_of_the_fit() -> None:
    """As printed, to the last digit: a new fit moves them, and the lines to type instead stand in the failure."""
    from mlsys_evidence import class_scores
    from mlsys_evidence.evaluate.tables import percent_cell

    told = [line for line in README.splitlines() if line.endswith("× |")]
    known = {each.name.replace("datacenter", "data-centre"): each for each in class_scores() if each.name != "all"}
    names = [line.split(" | ")[0].strip("| ") for line in told]
    assert sorted(names) == sorted(known)
    lines = []
    for name in names:
        scores = known[name]
        medians = [percent_cell(part.median_ape) for part in (scores.fitted, scores.sweep, scores.device)]
        lines.append(f"| {' | '.join([name, *medians, f'{scores.device.width:.2g}×'])} |")
    assert told == lines, "The table of `How wrong is it?` in README.md must read:\n" + "\n".join(lines)


def test_the_analysis_prints_what_it_says() -> None:
    """To the last digit too; of the reasons of the range, which are long, nothing but the first words."""
    asked, block = re.search(r"\$ mlsys (analyze .*)\n((?: .*\n)+)", README).groups()
    printed = CliRunner().invoke(main, asked.split()).output
    lines = [line for line in printed.splitlines() if line.startswith(("  at least ", "  estimate ", "  range "))]
    lines[-1] = re.sub(r"(80 % interval: ).*", r"\1…)", lines[-1])
    assert block.splitlines() == lines, f"What `mlsys {asked}` prints in README.md must read:\n" + "\n".join(lines)


def test_each_kind_of_addition_has_its_recipe() -> None:
    recipes = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text("utf-8").count("\n### Add a ")
    spelled = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")[recipes]
    assert f"has {spelled} recipes, one for each kind of addition" in README


def test_the_requirements_are_those_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.match(r"[\w-]+", each)[0].lower() for each in project["dependencies"]}
    told = re.search(r"needs nothing but ([^;]+);", README)[1].lower()
    assert set(re.split(r",\s+|\s+and\s+", told)) == needed
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


def test_no_command_names_a_version_that_does_not_exist() -> None:
    """There is no tag yet: what a command of the README compares with is there in every clone."""
    root = Path(__file__).parent.parent
    named = re.findall(r"mlsys claims diff (\S+)", README + (root / "CONTRIBUTING.md").read_text("utf-8"))
    assert named
    assert set(named) <= {"HEAD`", "HEAD", "HEAD~1"}


def test_the_table_of_extras_is_that_of_the_package() -> None:
    from mlsys.cli.common import EXTRAS

    extras = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    told = dict(re.findall(r"^\| `([a-z]+)` \| (.+) \|$", README, re.MULTILINE))
    assert set(told) == set(extras) - {"dev"}
    assert set(EXTRAS.values()) <= set(told), "a message names an extra that the README does not"
    packages = {"sklearn": "scikit-learn", "IPython": "ipywidgets", "mpl_toolkits": "matplotlib", "tvm": "apache-tvm",
                "ai_edge_litert": "ai-edge-litert", "serial": "pyserial", "torch_pruning": "torch-pruning",
                "dask": "distributed", "flatbuffers": "ai-edge-litert"}  # fmt: skip
    for module, extra in EXTRAS.items():
        names = {re.split(r"[<>=\[]", requirement)[0] for requirement in extras[extra]}
        assert packages.get(module, module) in names, (module, extra)
    assert {name.partition(">")[0] for name in extras["guide"]} == {"scikit-learn"}, "a guide needs no torch"
    for extra, words in (("sweep", "`sweep`"), ("guide", "`explain guide`"), ("edge", "`edge run`")):
        assert words in told[extra]


def test_every_file_of_a_command_line_is_there_or_made_by_a_line_above_or_a_placeholder() -> None:
    root, made = Path(__file__).parent.parent, set()
    (lines,) = re.findall(r"```sh\n(mlsys validate.*?)```", README, re.DOTALL)
    for line in lines.splitlines():
        command = line.partition("#")[0]
        outputs = set(re.findall(r"(?:--out|--output|--html|--flame|--plan|>) (\S+)", command))
        if command.startswith("mlsys explain run"):
            made.add("explain-logs/*.jsonl")  # its default folder
        for name in re.findall(r"[\w./*-]+\.(?:json|jsonl|yaml|csv|ipynb|onnx)\b", command):
            known = name in made or name in outputs or name.startswith("FILE.") or (root / name).exists()
            assert known, f"{command}: nothing makes {name}"
        made |= outputs
