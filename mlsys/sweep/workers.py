"""Who evaluates the pieces of a sweep: this process, others on this machine, or a Dask cluster.

On one machine worker processes of the standard library do it: they start in a second, open no
port and need no further package. Threads would wait for one another, since much of the work is
Python's own. Dask is for several machines.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.sweep.evaluate import evaluate
from mlsys.sweep.points import Point, code_digest

__all__ = ["evaluated", "usual_jobs"]

# For fewer points a further process costs more than it saves.
_WORTH_A_PROCESS = 20_000
_DIED = (
    "a worker process died; what was finished is kept. Run the same again to go on, with fewer jobs if memory is short"
)

Pieces = Sequence[list[Point]]
Answers = Iterator[tuple[int, dict[str, list[Any]]]]


def usual_jobs(points: Sequence[Point]) -> int:
    """Return how many processes are worth their start: points are quick, capturing a network is not."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    captured = {point.case.variant for point in points if point.case.variant.source == "captured"}
    return max(1, min(cores, max(len(points) // _WORTH_A_PROCESS, len(captured))))


def evaluated(pieces: Pieces, jobs: int, scheduler: str | None, patience: float) -> Answers:
    """Return the place of each piece and its columns, as they are finished."""
    if scheduler is not None:
        return _on_cluster(pieces, scheduler, patience)
    return _in_processes(pieces, jobs) if jobs > 1 and len(pieces) > 1 else _here(pieces)


def _here(pieces: Pieces) -> Answers:
    for place, piece in enumerate(pieces):
        yield place, evaluate(piece)


def _in_processes(pieces: Pieces, jobs: int) -> Answers:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    others = set(multiprocessing.active_children())
    # A forked copy of a process that has loaded torch or numba may hang: start afresh.
    pool = ProcessPoolExecutor(min(jobs, len(pieces)), mp_context=multiprocessing.get_context("spawn"))
    try:
        with _deaf_to_interrupts():
            places = {pool.submit(evaluate, piece): place for place, piece in enumerate(pieces)}
        for future in as_completed(places):
            yield places[future], future.result()
    except BrokenProcessPool:
        raise ArgumentError(_DIED) from None
    except BaseException:  # also Ctrl-C: what the others are at is not waited for
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Start processes that leave Ctrl-C to this one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _on_cluster(pieces: Pieces, address: str, patience: float) -> Answers:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise ArgumentError(
            "--scheduler needs Dask on this machine and on every worker: pip install 'mlsys[cluster]'"
        ) from None
    try:
        client = distributed.Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ArgumentError(
            f"no Dask scheduler answers at {address!r} within {patience:g} s ({type(error).__name__}). "
            "Start one with `dask scheduler`, and workers with `dask worker ADDRESS`"
        ) from None
    with client:
        futures = client.map(evaluate, pieces, [code_digest()] * len(pieces), pure=False)
        places = {future.key: place for place, future in enumerate(futures)}
        try:
            for future in distributed.as_completed(futures, loop=client.loop):
                yield places[future.key], future.result()
        finally:
            client.cancel([future for future in futures if not future.done()])
