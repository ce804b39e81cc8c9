"""The same sweep on a Dask cluster of two processes on this machine, one of which is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlsys.errors import ArgumentError
from mlsys.sweep import SweepSpec, evaluate, sweep

distributed = pytest.importorskip("distributed")

SPEC = SweepSpec(
    models=["alexnet", "vgg16", "bert-base", "gpt2"],
    devices=["all"],
    batches=[1, 4, 16, 64],
    precisions=["fp16", "int8"],
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    found = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )
    try:
        yield found
    finally:
        found.close(timeout=10)


def test_a_killed_worker_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    alone = sweep(SPEC, jobs=1)
    victims = [worker.pid for worker in cluster.workers.values()]
    assert len(victims) == 2
    killed: list[int] = []

    def kill_once(done: int, whole: int) -> None:
        if 0 < done < whole and not killed:
            killed.append(victims[0])
            os.kill(victims[0], signal.SIGKILL)

    found = sweep(SPEC, tmp_path, scheduler=cluster.scheduler_address, progress=kill_once)
    assert killed
    assert found.columns == alone.columns
    assert len(set(found.columns["id"])) == len(found)


def test_a_worker_with_another_version_of_the_code_is_refused() -> None:
    with pytest.raises(ArgumentError, match="this machine has another version of mlsys than the one that asks"):
        evaluate.evaluate_points([], "another")


def test_nobody_at_the_address() -> None:
    small = SweepSpec(models=["vgg16"], devices=["A100"])
    with pytest.raises(ArgumentError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:1' within 1 s"):
        sweep(small, scheduler="tcp://127.0.0.1:1", patience=1)
    with pytest.raises(ArgumentError, match="no Dask scheduler answers at 'nonsense:' within 1 s"):
        sweep(small, scheduler="nonsense:", patience=1)


def test_dask_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        ArgumentError, match=r"needs Dask on this machine and on every worker: pip install 'mlsys\[cluster\]'"
    ):
        sweep(SweepSpec(models=["vgg16"], devices=["A100"]), scheduler="tcp://127.0.0.1:1")
