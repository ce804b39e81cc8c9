"""The kernels of other CPUs give the same numbers, and the settings that choose them take effect."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import portable
from portable import Setting, lacking, run, settings

SETTINGS = {setting.name: setting for setting in settings()}
SAMPLE = "tests/portable/test_same_digits.py"
# `make portable` runs all; these differ most from the CPU that runs the tests.
QUICK = [name for name in ("oldest", "skylakex", "other-math") if name in SETTINGS and not lacking(SETTINGS[name])]


@pytest.mark.parametrize("name", QUICK)
def test_a_sample_of_numbers_is_the_same_on_other_cpus(name: str, tmp_path: Path) -> None:
    outcome = run(SETTINGS[name], [SAMPLE], tmp_path)
    assert outcome.failed == () and outcome.passed == 6, outcome.output[-4000:]


def python(setting: Setting, code: str) -> dict:
    done = subprocess.run([sys.executable, "-c", code], env=setting.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


WHICH = """
import json, numpy as np, torch
from numba.core.config import CPU_NAME
from numpy._core import _multiarray_umath as core
from threadpoolctl import threadpool_info
used = [name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]]
blas, = {(pool["architecture"], pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"}
torch_uses = torch.backends.cpu.get_cpu_capability()
print(json.dumps({"numpy": used, "blas": blas, "numba": CPU_NAME, "torch": torch_uses}))
"""


def test_the_oldest_kernels_are_used() -> None:
    used = python(SETTINGS["oldest"], WHICH)
    core, threads = used.pop("blas")
    assert used == {"numpy": [], "numba": "generic", "torch": "DEFAULT"}
    assert core in ("Prescott", "Katmai", "armv8"), "OpenBLAS has one code for the first two, and says either"
    assert threads == 1


OTHER = """
import json, math
import numpy as np
from numpy._core import _multiarray_umath as core
x = np.linspace(0.1, 3, 1000)
apart = (np.exp(x).view(np.int64) - core.exp(x).view(np.int64)).tolist()
print(json.dumps({"apart": apart, "whole": [np.exp(0.0), math.log2(8.0), float(np.power(10.0, 3))],
    "again": (np.exp(x) == np.exp(x)).all().item(), "one": math.exp(1.5) == float(np.exp(1.5))}))
"""


def test_the_other_math_library_differs_in_the_last_digits_alone() -> None:
    result = python(SETTINGS["other-math"], OTHER)
    assert set(result["apart"]) == {-2, -1, 0, 1, 2}
    assert result["whole"] == [1.0, 3.0, 1000.0] and result["again"] and result["one"]


def test_what_this_cpu_lacks_is_named_and_left_out(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(portable, "settings", lambda: [Setting("future", {}, needs=("AVX1024",))])
    assert portable.main(["tests/no_such_test.py"]) == 0
    assert "left out: this CPU lacks AVX1024" in capsys.readouterr().out


def test_a_failure_is_named_with_its_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(portable, "LOGS", tmp_path)
    test = tmp_path / "test_exact.py"
    test.write_text("import os\n\ndef test_good():\n    pass\n\ndef test_threads():\n"
                    "    assert os.environ['OMP_NUM_THREADS'] == '5'\n")  # fmt: skip
    assert portable.main(["--on", "oldest", str(test)]) == 1
    message = capsys.readouterr().out
    assert "oldest: " in message and "test_exact.py::test_threads" in message
    assert message.splitlines()[2].split()[:4] == ["oldest", "1", "1", "1"], "a thread, one passed, one failed"


def test_a_run_that_ends_without_a_count_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portable, "commands", lambda what: [[sys.executable, "-c", "raise SystemExit(3)"]])
    outcome = run(SETTINGS["oldest"], [], tmp_path)
    assert outcome.passed == 0 and len(outcome.failed) == 1


def test_all_pages_and_all_tests_with_numbers_are_run() -> None:
    chosen = portable.everything()
    assert {"book/validation.ipynb", "mlsys", "evidence", "tests/goldens", "tests/test_units.py"} <= set(chosen)
    folders = {path.name for path in (portable.ROOT / "tests").iterdir() if path.is_dir()}
    assert folders >= portable.NO_NUMBERS and "tests/browser" not in chosen
