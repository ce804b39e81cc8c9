"""``explain run`` keeps every sample: of an earlier run, and of one that is stopped."""

import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mlsys.cli import main
from mlsys.measure import backends, read_log
from mlsys.measure.backends import Backend, Subject, Unmeasured


class Clockwork(Backend):
    """A backend that does nothing, and is stopped by Ctrl-C at one of its inferences."""

    name = "clockwork"
    stop_at: int | None = None

    def __init__(self) -> None:
        self.done = 0

    def setup(self, subject: Subject, threads: int) -> None:
        pass

    def _run(self) -> None:
        self.done += 1
        if self.done == self.stop_at:
            raise KeyboardInterrupt
        time.sleep(1e-5)

    def output(self) -> np.ndarray:
        return np.zeros(12)

    def layers(self, rounds: int) -> tuple[str, list[dict[str, float]]]:
        raise Unmeasured("clockwork has no layers")


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, stop_at: int | None) -> tuple[int, list[Path]]:
    monkeypatch.setattr(Clockwork, "stop_at", stop_at)
    monkeypatch.setitem(backends.BACKENDS, "clockwork", Clockwork)
    words = ["explain", "run", "tiny-cnn", "--backend", "clockwork", "--no-rates", "--out", str(folder)]
    done = CliRunner().invoke(main, words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, sorted(folder.glob("*"))


def test_a_second_run_does_not_replace_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, (first,) = run(tmp_path, monkeypatch, None)
    before = first.read_bytes()
    for number in (2, 3):
        code, logs = run(tmp_path, monkeypatch, None)
        assert code == 0 and len(logs) == number
    assert first.read_bytes() == before
    assert all(len(read_log(log).samples) == 300 for log in logs)


# 1 cold start and 10 for the warm-up come before the samples of each run of 100.
@pytest.mark.parametrize(("stop_at", "kept"), [(60, 48), (111 + 60, 148), (12, 0)])
def test_ctrl_c_keeps_the_samples_taken_so_far(
    stop_at: int, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, logs = run(tmp_path, monkeypatch, stop_at)
    assert code == 130
    if not kept:
        assert not logs
        return
    log = read_log(logs[0])
    assert len(log.samples) == kept
    assert log.environment["stopped"] == f"stopped by Ctrl-C after {kept} of 300 inferences"
