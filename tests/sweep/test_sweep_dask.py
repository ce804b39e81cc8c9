"""The same sweep on a Dask cluster of processes on this machine, which are killed one after another."""

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlsys.errors import ArgumentError
from mlsys.sweep import SweepSpec, evaluate, sweep

pytest.importorskip("distributed")

SPEC = SweepSpec(  # eight pieces, one a network
    models=["alexnet", "vgg16", "bert-base", "gpt2", "resnet18", "resnet50", "squeezenet1_0", "gpt2-medium"],
    devices=["A100", "H100_SXM", "T4", "L4", "MI250X", "TPUv5e", "JetsonOrinNano"],
    batches=[1, 16],
    precisions=["fp16", "int8"],
)


def test_a_worker_with_another_version_of_the_code_is_refused() -> None:
    with pytest.raises(ArgumentError, match="this machine has another version of mlsys than the caller"):
        evaluate.evaluate_points([], "another")


def test_nobody_at_the_address() -> None:
    small = SweepSpec(models=["vgg16"], devices=["A100"])
    with pytest.raises(ArgumentError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:1' within 1 s"):
        sweep(small, scheduler="tcp://127.0.0.1:1", patience=1)
    with pytest.raises(ArgumentError, match="no Dask scheduler answers at 'nonsense:' within 1 s"):
        sweep(small, scheduler="nonsense:", patience=1)


def test_dask_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        ArgumentError, match=r"needs Dask on this machine and on every worker: pip install 'mlsys\[cluster\]'"
    ):
        sweep(SweepSpec(models=["vgg16"], devices=["A100"]), scheduler="tcp://127.0.0.1:1")


CLUSTER = """
import asyncio, sys
from distributed import Scheduler, Worker
async def main():
    what = Scheduler(host="127.0.0.1", port=0, dashboard_address=":0") if sys.argv[1] == "scheduler" else Worker(
        sys.argv[2], nthreads=1, host="127.0.0.1", dashboard_address=":0")
    async with what:
        print(what.address, flush=True)
        await what.finished()
asyncio.run(main())
"""


@contextlib.contextmanager
def running(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A scheduler, or a worker of one, as a process of its own that is there, with its address."""
    process = subprocess.Popen([sys.executable, "-c", CLUSTER, *words], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def killer(victim: subprocess.Popen[str]) -> Callable[[int, int], None]:
    """Kill a process, and see it end, when the first piece is done and not the last."""

    def kill(done: int, whole: int) -> None:
        if 0 < done < whole:
            victim.kill()
            victim.wait()

    return kill


def test_dead_workers_and_a_dead_scheduler_lose_nothing_and_are_told(tmp_path: Path) -> None:
    """The process is dead before the next answer is requested: nothing here depends on which of two is quicker."""
    alone = sweep(SPEC, jobs=1)
    first, other = tmp_path / "one", tmp_path / "other"
    with running("scheduler") as (scheduler, address), running("worker", address) as (worker, _):
        with running("worker", address) as (victim, _):
            table = sweep(SPEC, tmp_path / "whole", scheduler=address, progress=killer(victim))
            assert victim.returncode == -signal.SIGKILL
            assert table.columns == alone.columns
            assert len(set(table.columns["id"])) == len(table)
        with pytest.raises(ArgumentError, match="has had no worker for 1 s"):
            sweep(SPEC, first, scheduler=address, patience=1, progress=killer(worker))
        with running("worker", address), pytest.raises(ArgumentError, match="is gone; finished points are kept"):
            sweep(SPEC, other, scheduler=address, patience=30, progress=killer(scheduler))
    for folder in (first, other):
        assert list((folder / "pieces").glob("*.parquet"))
        assert sweep(SPEC, folder, jobs=1).columns == alone.columns


def test_a_port_that_says_nothing_is_not_waited_for() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(ArgumentError, match="no Dask scheduler answers at .* within 1 s"):
            sweep(
                SweepSpec(models=["vgg16"], devices=["A100"]), patience=1,
                scheduler=f"tcp://127.0.0.1:{mute.getsockname()[1]}",
            )  # fmt: skip
