"""One door for files: whole or not at all, and no other code writes."""

import ast
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import mlsys
from mlsys.errors import UnwrittenError
from mlsys.files import atomically, csv_text, together, write_text

ROOT = Path(mlsys.__file__).parents[1]
# What writes a file by itself. `savefig` is the drawing library's, and its one caller hands it a draft.
WRITES = {
    "write_text", "write_bytes", "savefig", "to_csv", "to_parquet", "to_html", "write_table", "mkstemp", "mkdtemp",
    "NamedTemporaryFile", "TemporaryFile", "savetxt", "savez", "tofile", "writelines", "copyfile", "copy2", "symlink",
}  # fmt: skip
DOORS = {"write_text", "write_bytes"}  # of mlsys.files: called by name, not as a method
ALLOWED = {
    ("mlsys/sweep/store.py", "write_table"),  # into memory
    ("mlsys/sweep/store.py", "fdopen"),  # the lock, which has no content
    ("mlsys/grading/sandbox.py", "TemporaryFile"),  # what the code inside reads from its standard input
    ("tools/portable.py", "open"),  # what a command prints while it runs
    ("tools/run_test_stages.py", "open"),  # what a command prints while it runs
    ("benchmarks/ten_students.py", "open"),  # what a server prints while it runs
    ("tools/resumed.py", "open"),  # a line for each test that passed: all but the last are whole after a kill
}


def writers(path: Path) -> list[tuple[str, int]]:
    """The calls in a file that could write one."""
    calls = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in DOORS and isinstance(function, ast.Name):
            continue
        if (
            name == "savefig"
            and node.args
            and isinstance(node.args[0], ast.Name)
            and node.args[0].id in ("stream", "draft")
        ):
            continue  # into memory, or into a draft of the door
        if name in WRITES:
            calls.append((name, node.lineno))
        if name == "open" or (name == "fdopen"):
            texts = [
                constant.value
                for constant in (*node.args, *(key.value for key in node.keywords if key.arg == "mode"))
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
            ]
            nothing = bool(node.args) and isinstance(node.args[0], ast.Attribute) and node.args[0].attr == "devnull"
            if not nothing and any(set(text) <= set("rwaxbt+U") and set(text) & set("wax+") for text in texts):
                calls.append((name, node.lineno))
        if name == "dump" and isinstance(function, ast.Attribute):
            calls.append((name, node.lineno))
    return calls


@pytest.mark.parametrize("folder", ["mlsys", "evidence/mlsys_evidence", "tools", "benchmarks"])
def test_nothing_else_writes_files(folder: str) -> None:
    others = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        relative = path.relative_to(ROOT).as_posix()
        if relative == "mlsys/files.py" or path.name.startswith("test_"):
            continue
        others += [f"{relative}:{line} {name}" for name, line in writers(path) if (relative, name) not in ALLOWED]
    assert not others, f"write through mlsys.files: {', '.join(others)}"


def test_the_search_for_writers_finds_them(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(
        "Path('a').write_text('')\nopen('a', 'w')\nopen(p, mode='ab')\njson.dump(x, f)\np.open('r+')\n"
        "open(p)\nopen(p, 'rb')\nwrite_text(p, '')\np.read_text()\n"
    )
    assert [line for _, line in writers(path)] == [1, 2, 3, 4, 5]


def test_what_fails_on_the_way_leaves_everything_as_it_was(tmp_path: Path) -> None:
    old = tmp_path / "old.txt"
    old.write_text("old")

    def half(draft: Path) -> None:
        draft.write_text("half of the n")
        raise OSError(28, "No space left on device")

    with pytest.raises(UnwrittenError, match="old.txt cannot be written: No space left on device"):
        atomically(old, half)
    with pytest.raises(ZeroDivisionError), together() as files:
        files.text(tmp_path / "new.txt", "new")
        raise ZeroDivisionError
    assert old.read_text() == "old" and [path.name for path in tmp_path.iterdir()] == ["old.txt"]


def test_a_full_disk_keeps_the_old_report(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: what is written beyond it fails."""
    page = tmp_path / "page.html"
    page.write_text("the old page")
    command = f'ulimit -f 8; "{sys.executable}" -m mlsys analyze alexnet --device A100 --html "{page}"'
    # Python would keep a module's code that it could write in part only, and fail with it ever after.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: {page} cannot be written: File too large\n"
    assert page.read_text() == "the old page" and list(tmp_path.iterdir()) == [page]


def test_what_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    for path, why in (
        (tmp_path / "none" / "a.txt", "there is no folder"),
        (tmp_path, "it is a folder"),
        (tmp_path / ("n" * 300), "File name too long"),
        (tmp_path / "a\0b", "is not a valid file name"),
        (Path("/dev/full"), "No space left on device"),
    ):
        with pytest.raises(UnwrittenError, match=why):
            write_text(path, "text")
    assert not list(tmp_path.iterdir())
    assert write_text(tmp_path / "made" / "a.txt", "text", folders=True).read_text() == "text"


def test_a_pipe_that_nobody_reads_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnwrittenError, match="No such device or address"):
        write_text(tmp_path / "pipe", "text")
    assert write_text("/dev/null", "text")


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink() and target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    (tmp_path / "plain.txt").write_text("")
    assert write_text(tmp_path / "fresh.txt", "").stat().st_mode == (tmp_path / "plain.txt").stat().st_mode


def test_no_row_begins_a_formula() -> None:
    text = csv_text([{"name": "@SUM(A1)", "value": -2.5, "note": "=1,2"}])
    assert text == "name,value,note\n'@SUM(A1),-2.5,\"'=1,2\"\n"
