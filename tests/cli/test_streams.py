"""Whatever reads our output, and whatever a name holds: one line or a clean file, never a traceback."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mlsys.escaping import harmless, printable

COMMAND = [sys.executable, "-m", "mlsys"]


@pytest.mark.parametrize("words", [["devices"], ["devices", "--format", "json"], ["device", "A100"]])
def test_a_closed_pipe_ends_quietly(words: list[str]) -> None:
    done = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.stdout is not None and done.stderr is not None
    done.stdout.close()
    message = done.stderr.read()
    done.wait()
    assert message == "" and done.returncode == 0


def test_an_encoding_that_lacks_a_character_gets_it_written_out() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    done = subprocess.run([*COMMAND, "device", "Arduino_Nano33"], capture_output=True, env=environment, check=False)
    other = subprocess.run([*COMMAND, "claims", "diff", "→"], capture_output=True, env=environment, check=False)
    assert b"Traceback" not in done.stderr + other.stderr
    assert b"\\u2192" in other.stderr


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=cmd()", "'=cmd()"),
        ("+1-1", "'+1-1"),
        ("@sum", "'@sum"),
        ("-3.5", "-3.5"),
        ("conv", "conv"),
        (-2, -2),
        ("", ""),
    ],
)
def test_no_cell_is_a_formula(cell: object, written: object) -> None:
    assert harmless(cell) == written


def test_no_name_steers_the_terminal() -> None:
    done = subprocess.run([*COMMAND, "flops", "\x1b[31mred\x07"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "\x1b" not in done.stderr and "\x07" not in done.stderr
    assert printable("\x1b[0m") == "\\x1b[0m"


HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
from mlsys.cli import main
main({words})
"""


@pytest.mark.parametrize(
    ("hidden", "words", "extra"),
    [
        ({"matplotlib"}, ["analyze", "resnet50", "--device", "A100", "--html", "x.html"], "viz"),
        ({"matplotlib"}, ["validate", "--figures", "figures"], "viz"),
        ({"torch"}, ["compile-bench", "resnet18"], "torch"),
        ({"sklearn"}, ["explain", "guide", "--within", "50"], "guide"),
        ({"pyarrow"}, ["sweep", "s.yaml"], "sweep"),
        ({"torch"}, ["flops", "nowhere:factory"], ""),
        ({"onnx"}, ["flops", "net.onnx"], ""),
    ],
)
def test_a_part_that_is_not_installed_is_named_with_the_command(tmp_path, hidden, words, extra) -> None:
    (tmp_path / "net.onnx").write_bytes(b"\x08\x07")
    (tmp_path / "s.yaml").write_text("models: [lenet5]\ndevices: [A100]\n")
    code = HIDE.format(hidden=hidden, words=words)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode != 0 and "Traceback" not in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) <= 4
    assert f"mlsys[{extra}" in done.stderr, done.stderr
    assert not (tmp_path / "x.html").exists()


END = """
import atexit, sys, threading
atexit.register(print, "printed at the end")
def later():
    threading.main_thread().join()
    print("a thread's last word")
if {thread}:
    threading.Thread(target=later).start()
sys.argv = ["mlsys", *{words}]
from mlsys.cli import run_and_end
run_and_end()
"""


def test_a_thread_that_never_ends_is_not_waited_for() -> None:
    script = """
import sys, threading
threading.Thread(target=threading.Event().wait, name="left by a factory").start()
import mlsys.cli
home = sys.modules["mlsys.cli.main"]
home._PATIENCE = 0.5
sys.argv = ["mlsys", "systolic", "8", "8", "8"]
home.run_and_end()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and "cycles" in done.stdout
    assert "left by a factory" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "code"), [(["systolic", "8", "8", "8"], 0), (["systolic", "8", "8", "x"], 1), (["plan"], 2)]
)
@pytest.mark.parametrize("thread", [False, True])
def test_a_quick_end_leaves_nothing_undone(words: list[str], code: int, thread: bool) -> None:
    script = END.format(thread=thread, words=words)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
    assert done.stdout.endswith("printed at the end\n")
    assert ("a thread's last word" in done.stdout) == thread
    assert ("cycles" in done.stdout) == (code == 0)  # what was said before was written, though into a pipe


@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&-"])
def test_a_stream_that_the_shell_closed_changes_no_exit_code(closed: str) -> None:
    for words, code in (("systolic 8 8 8", 0), ("systolic 8 8 x", 1)):
        line = f"{shlex.join(COMMAND)} {words} {closed}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
        assert ("cycles" in done.stdout) == (code == 0 and closed == "2>&-")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals on this system")
@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_to_a_terminal_and_to_nothing_else(terminal: bool, tmp_path: Path) -> None:
    """A refusal stays one line where the standard error is a file."""
    spec = tmp_path / "s.yaml"
    spec.write_text("models: [lenet5]\ndevices: [A100]\n")
    words = [*COMMAND, "sweep", str(spec), "--out", str(tmp_path / "out")]
    if not terminal:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert done.stderr.startswith("written: ") and len(done.stderr.splitlines()) == 1
        return
    ours, theirs = os.openpty()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=theirs, check=True)
    os.close(theirs)
    assert b"points" in os.read(ours, 100_000)
    os.close(ours)
