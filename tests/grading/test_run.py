"""Notebooks that are run: in a sandbox that holds against hostile ones, and beside the score, which stays."""

import json
import os
import random
import shutil
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from handins import honest
from handins import notebook as with_handin
from nbformat import v4, writes

pytest.importorskip("nbclient")
pytest.importorskip("psutil")

import psutil

from mlsys.cli import main
from mlsys.errors import ArgumentError
from mlsys.grading import Execution, Limits, Sandbox, execute, files_csv, grade, pages
from mlsys.grading.execute import _of_lines
from mlsys.grading.folder import SubmittedFile
from mlsys.grading.sandbox import _readable

MARK = "mlsys-sandbox-test"
QUICK = Limits(seconds=60, memory=1_500_000_000, disk=50_000_000, processes=40, output=2_000_000)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    try:
        return Sandbox([tmp_path_factory.getbasetemp()])
    except ArgumentError as error:
        if os.environ.get("CI") and shutil.which("bwrap") is None:
            raise
        pytest.skip(str(error))  # a container may refuse namespaces, which no installation mends


def found(*sources: str, **metadata: Any) -> SubmittedFile:
    cells = [v4.new_code_cell(source) for source in sources]
    return SubmittedFile("one.ipynb", writes(v4.new_notebook(cells=cells, metadata=metadata)).encode())


def run(sandbox: Sandbox, *sources: str, limits: Limits = QUICK) -> Execution:
    return execute(found(*sources), sandbox, limits)


# --- what honest notebooks get --------------------------------------------------------


def test_an_honest_notebook_runs_and_a_cell_that_fails_is_named(sandbox: Sandbox) -> None:
    ran = run(sandbox, "x = 6", "x * 7")
    assert (ran.outcome, ran.cell, ran.cells) == ("ran", 2, 2), ran
    failed = run(sandbox, "x = 6", "y = x / 0", "z = 1")
    assert failed.text() == "failed in code cell 2 of 3: ZeroDivisionError: division by zero"


def test_texts_that_are_not_what_is_stored_are_named_and_ignored_where_the_cell_says_so(sandbox: Sandbox) -> None:
    cells = [v4.new_code_cell("print(6 * 7)"), v4.new_code_cell("6 * 7"), v4.new_code_cell("6 * 7")]
    cells[0].outputs = [v4.new_output("stream", name="stdout", text="42\n")]
    cells[1].outputs = [v4.new_output("execute_result", data={"text/plain": "41"}, execution_count=1)]
    cells[2].outputs, cells[2].metadata["tags"] = cells[1].outputs, ["nbval-ignore-output"]
    one = SubmittedFile("one.ipynb", writes(v4.new_notebook(cells=cells)).encode())
    assert execute(one, sandbox, QUICK).differing == (2,)


def test_answers_in_code_are_told_and_not_scored(sandbox: Sandbox, tmp_path: Path) -> None:
    code = (
        "from mlsys.widgets import AmdahlLab\nlab = AmdahlLab('Ada')",
        "lab.predict(3 if not lab.prediction.listed() else lab.prediction.listed()[0])\n"
        "box = lab.boxes['profile']\nbox.field.value = str(box.question.expected)\nbox.button.click()",
    )
    (tmp_path / "code.ipynb").write_bytes(found(*code).content or b"")
    stripped = honest("01-amdahl", "Bob", random.Random(3))
    (tmp_path / "bob.ipynb").write_text(writes(with_handin(stripped)))
    plain = grade(tmp_path)
    book = grade(tmp_path, run=lambda each: execute(each, sandbox, QUICK))
    bob, ada = book.rows
    assert [row.record() | {"run": None} for row in book.rows] == [row.record() for row in plain.rows]
    assert bob.outcome == "scored" and bob.run is not None and "name 'lab' is not defined" in bob.run.detail
    assert ada.outcome == "refused" and ada.run is not None
    assert "its code answers 1 of " in ada.run.answers and "as 'Ada', 1 of 10 points, which are not counted" in (
        ada.run.answers
    )
    assert "Run (not scored)" in pages(book)["index.html"] and "not counted" in files_csv(book)
    assert "Run (not scored)" not in pages(plain)["index.html"] and "run" not in files_csv(plain).splitlines()[0]


# --- what hostile ones do not get -----------------------------------------------------


def test_there_is_no_network_not_even_to_this_machine(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        port = server.getsockname()[1]
        code = f"""
import socket
errors = []
for address in (("127.0.0.1", {port}), ("198.51.100.1", 80)):
    try:
        socket.create_connection(address, 5)
    except OSError as error:
        errors.append(type(error).__name__ + str(error.errno))
socket.getaddrinfo("pypi.org", 443) if len(errors) == 2 else 1 / 0
"""
        there = run(sandbox, code)
        assert "gaierror" in there.detail, there
        with pytest.raises(TimeoutError):
            server.accept()


def test_an_endless_loop_ends_with_all_it_started(sandbox: Sandbox) -> None:
    code = (
        "import os, subprocess, sys",
        f"for _ in range(3): subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(999)', {MARK!r}],"
        " start_new_session=True)",
        "if os.fork() == 0:\n    os.setsid()\n    os.execvp('sleep', ['sleep', '999.25'])",
        "while True: pass",
    )
    start = time.monotonic()
    ended = run(sandbox, *code, limits=Limits(seconds=25))
    assert ended.text() == "stopped in code cell 4 of 4: 25 s are over" and time.monotonic() - start < 40
    time.sleep(0.5)
    left = [each for each in psutil.process_iter(["cmdline"]) if {MARK, "999.25"} & set(each.info["cmdline"] or ())]
    assert not left


def test_a_fork_bomb_is_stopped(sandbox: Sandbox) -> None:
    start = time.monotonic()
    bomb = "while True:\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(1)"
    ended = run(sandbox, "import os, time", bomb, limits=Limits(seconds=60, memory=20_000_000_000, processes=40))
    assert ended.outcome in ("stopped", "failed") and ended.cell == 2, ended
    assert "40 processes" in ended.detail or os.getuid() != 0  # the system's own limit does not bind root
    assert time.monotonic() - start < 70
    time.sleep(0.5)
    assert sum(each.name().startswith("python") for each in psutil.process_iter()) < 200


@pytest.mark.parametrize(
    "code",
    [
        "from IPython.display import HTML, display\nwhile True: print('x' * 10**5), display(HTML('z' * 10**5))",
        "import os\nwhile True: os.write(1, b'w' * 10**6)",
    ],
)
def test_ten_gigabytes_of_output_are_not_kept(sandbox: Sandbox, code: str) -> None:
    before = psutil.Process().memory_info().rss
    ended = run(sandbox, code)
    assert ended.outcome == "stopped", ended
    assert "2 MB of output" in ended.detail or "1.5 GB of memory" in ended.detail, ended  # whichever is noticed first
    assert psutil.Process().memory_info().rss - before < 300_000_000


def test_a_flood_past_the_notebook_is_cut_off(sandbox: Sandbox) -> None:
    ended = sandbox.run(["yes"], b"", QUICK)
    assert ended.stopped_by == "output" and len(ended.output) <= QUICK.output


def test_memory_and_disk_are_bounded(sandbox: Sandbox) -> None:
    large = run(sandbox, "held = [bytearray(b'm' * 10**8) for _ in range(100)]")
    assert large.outcome in ("failed", "stopped") and ("MemoryError" in large.detail or "memory" in large.detail), large
    shared = (
        "import os\nfor _ in range(12):\n    if os.fork() == 0:\n        held = bytearray(b'm' * 3 * 10**8)\n"
        "        import time; time.sleep(99)\nimport time; time.sleep(99)"
    )
    many = run(sandbox, shared)
    assert many.outcome == "stopped" and "1.5 GB of memory" in many.detail, many
    code = """
import os
full = []
for folder in (os.path.expanduser("~"), "/tmp", "/dev/shm"):
    try:
        open(folder + "/f", "wb").write(b"d" * 10**8)
    except OSError as error:
        full.append(error.errno)
assert full == [28] * 3, full
"""
    assert run(sandbox, code).outcome == "ran"


def test_nothing_outside_is_read_or_written(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("the work of another")
    home = Path.home()
    read = [*map(str, (tmp_path, tmp_path / "other.json", home / ".bashrc")), "/etc/passwd", "/etc/shadow"]
    written = [
        str(home),
        str(tmp_path),
        "/",
        "/etc",
        "/usr",
        "/dev",
        "/proc/sys/kernel",
        "/var",
        os.path.dirname(os.__file__),
    ]
    code = f"""
import os
seen = [path for path in {read!r} if os.path.exists(path)]
for path in [*(os.path.join(folder, {MARK!r}) for folder in {written!r}), "/proc/sys/kernel/core_pattern"]:
    try:
        open(path, "r+" if os.path.exists(path) else "w").close()
        seen.append(path)
    except OSError:
        pass
assert not seen, seen
"""
    ended = run(sandbox, code)
    assert ended.outcome == "ran", ended
    assert not any(Path(folder, MARK).exists() for folder in (home, tmp_path, "/", "/usr", "/dev", "/var"))


def test_submissions_beside_the_interpreter_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("bwrap"):
        pytest.skip("no bubblewrap")
    monkeypatch.setattr("mlsys.grading.sandbox._readable", lambda: (*_readable(), str(tmp_path)))
    (tmp_path / "handed-in").mkdir()
    (tmp_path / "handed-in" / "other.json").write_text("the work of another")
    code = f"import os\nassert not os.listdir({str(tmp_path / 'handed-in')!r}), 'seen'"
    assert "seen" in run(Sandbox(), code).detail, "the test would see nothing"
    assert run(Sandbox([tmp_path / "handed-in"]), code).outcome == "ran"


def test_processes_of_the_instructor_are_not_seen(sandbox: Sandbox) -> None:
    code = "import os\npids = [each for each in os.listdir('/proc') if each.isdigit()]\nassert len(pids) < 12, pids"
    assert "ProcessLookupError" in run(sandbox, f"{code}\nos.kill({os.getpid()}, 0)").detail


def test_what_comes_from_inside_is_not_believed() -> None:
    forged = [
        {"cell": "x" * 9, "of": -1, "differs": None, "error": 7, "work": "all", "end": ["done"]},
        [1, 2], {"cell": 10**9}, {"work": [[], 3]},
    ]  # fmt: skip
    lines = b"\n".join(json.dumps(each).encode() for each in forged) + b"\n\xff\xfe{" + b"[" * 100_000
    ended = _of_lines(lines, "", 1.0, QUICK)
    assert (ended.outcome, ended.cell, ended.work) == ("failed", 0, ())
    escaped = _of_lines(b'{"error": "\\u001b[31m<script>", "cell": 1}', "", 1.0, QUICK)
    assert "\x1b" not in escaped.text()


def test_a_forged_hand_in_of_the_code_is_marked_anew_and_never_counts(sandbox: Sandbox, tmp_path: Path) -> None:
    record = honest("01-amdahl", "Eve", random.Random(1), right=1)
    told = Execution("ran", 1, 1, work=({**record, "lab": "../../etc"}, {"format": "mlsys-lab"}, record))
    (tmp_path / "eve.ipynb").write_bytes(found("1").content or b"")
    [row] = grade(tmp_path, run=lambda each: told).rows
    assert row.score is None and row.run is not None and row.run.answers.count("its code answers") == 3


# --- where it cannot run --------------------------------------------------------------


def test_without_bubblewrap_one_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = CliRunner().invoke(main, ["grade", str(tmp_path), "--run"])
    assert result.exit_code == 1 and result.output.count("\n") == 1 and "apt-get install bubblewrap" in result.output
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    result = CliRunner().invoke(main, ["grade", str(tmp_path), "--run"])
    assert result.exit_code == 1 and "No permissions to create new namespace" in result.output
    assert CliRunner().invoke(main, ["grade", str(tmp_path), "--run-seconds", "9"]).exit_code == 2


def test_the_command_says_which_notebooks_ran(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "bad.ipynb").write_bytes(found("raise ValueError('no')").content or b"")
    (tmp_path / "broken.ipynb").write_text("{")
    result = CliRunner().invoke(main, ["grade", str(tmp_path), "--run", "--run-seconds", "50"])
    assert result.exit_code == 0, result.output
    assert "0 of 2 notebooks from the first cell to the last" in result.output
    assert "bad.ipynb: failed in code cell 1 of 1: ValueError: no" in result.output
    assert "broken.ipynb: not run: it is no notebook" in result.output
