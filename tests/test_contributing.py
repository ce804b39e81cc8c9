"""What CONTRIBUTING.md names is there, and as many as it says."""

import fnmatch
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
OF_THE_READER = ("yourpage", "NN-name", "<topic>", "out.csv", "_build/", "modeling_", "configuration_")
"""Parts of names of what whoever follows a recipe makes, and of files of transformers."""


def test_every_file_that_it_names_exists() -> None:
    words = {word for quoted in re.findall(r"`([^`\n]+)`", GUIDE) for word in quoted.split()}
    names = {word for word in words if re.fullmatch(r"[\w.*/-]+(?:/|\.(?:py|yaml|csv|csv\.gz|md|json|txt))", word)}
    names = {name for name in names if not any(part in name for part in OF_THE_READER)}
    own = [path for path in ROOT.iterdir() if path.name == ".ci" or not path.name.startswith((".", "_build"))]
    there = [f"/{each.relative_to(ROOT)}{'/' * each.is_dir()}" for path in own for each in (path, *path.rglob("*"))]
    lost = [name for name in sorted(names) if not fnmatch.filter(there, f"*/{name}")]
    assert len(names) > 40 and lost == []


def test_the_map_has_every_room_of_the_package() -> None:
    rooms = {each.parent.name for each in (ROOT / "mlsys").glob("*/__init__.py")}
    table = [line for line in GUIDE.splitlines() if line.startswith("| `")]
    result = {room for line in table for room in re.findall(r"`mlsys/(\w+)/`", line.split("|")[1])}
    assert result == rooms


def test_silent_facts_are_as_many_as_it_allows() -> None:
    most = int(re.search(r"silent_facts\.yaml`, (\d+) at most", GUIDE)[1])
    result = (ROOT / "evidence" / "tests" / "test_facts_felt.py").read_text("utf-8")
    assert f"MOST_SILENT = {most}\n" in result
    kept = yaml.safe_load((ROOT / "evidence" / "tests" / "silent_facts.yaml").read_text("utf-8"))
    assert sum(map(len, kept.values())) <= most


def test_every_target_that_it_names_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = set(re.findall(r"`make (\w+)", GUIDE))
    assert len(named) > 6
    assert named <= set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
