"""What others get: a source distribution with its papers, and names that a type checker knows (see tests/typing)."""

import ast
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib

import pytest
import yaml

import mlsys
from pages import ROOT

STUB = ROOT / "mlsys" / "__init__.pyi"
PAPERS = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "LICENSE-TEXT.md", "README.md", "pyproject.toml"}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the names in a source distribution that is built of a copy of this checkout."""
    copy = tmp_path_factory.mktemp("checkout")
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    for folder in ("mlsys", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    code = "from setuptools import build_meta; print(build_meta.build_sdist('dist'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with tarfile.open(copy / "dist" / done.stdout.split()[-1]) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_the_source_distribution_holds_its_papers(sdist: set[str]) -> None:
    assert sdist >= PAPERS


def test_the_source_distribution_holds_the_whole_package(sdist: set[str]) -> None:
    wanted = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "mlsys").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= sdist


def test_the_source_distribution_holds_no_tests_that_cannot_run(sdist: set[str]) -> None:
    assert not [name for name in sdist if name.startswith("tests")]


def test_one_version_stands_everywhere_and_the_changelog_has_its_notes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    releases = re.findall(
        r"^## \[(\d+\.\d+\.\d+)\] - ([\d-]+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert mlsys.__version__ == project["version"] == citation["version"]
    assert releases[0] == (mlsys.__version__, citation["date-released"])
    assert [version for version, _ in releases] == sorted((version for version, _ in releases), reverse=True)


def test_the_stub_names_what_the_package_gives() -> None:
    named = {
        alias.asname for node in ast.walk(ast.parse(STUB.read_text("utf-8"))) for alias in getattr(node, "names", ())
    }
    assert named | {"__version__"} == set(mlsys.__all__)
