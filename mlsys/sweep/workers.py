"""Evaluation of a sweep's pieces in this process, in other processes on this machine, or on a Dask cluster.

On one machine, worker processes of the standard library are used: they start in a second, open no port and need no
further package. Threads would contend for the interpreter lock, since much of the work is Python code. Each worker has
its own pipe and shares no lock, so that any of them may be killed at any moment, and all end with this process. Dask is
for several machines.
"""

import asyncio
import concurrent.futures
import contextlib
import importlib
import logging
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.sweep.evaluate import evaluate_points
from mlsys.sweep.points import Point, code_digest

# Least number of points for which another process pays off.
_WORTH_A_PROCESS = 20_000
_DIED = (
    "a worker process died; finished points are kept. Repeat the command to resume, with fewer jobs if memory is short"
)

# Exceptions of futures whose scheduler is gone.
_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)

Pieces = Sequence[list[Any]]
Evaluation = Callable[..., dict[str, list[Any]]]
Answers = Generator[tuple[int, dict[str, list[Any]]], None, None]


def usual_jobs(points: Sequence[Point]) -> int:
    """Return the number of processes that pay off: points are fast, capturing a network is not.

    The networks of the catalogue are stored as captured; a user's code and files are not.
    """
    from mlsys.workloads import zoo

    variants = {point.case.variant for point in points}
    own = [
        variant
        for variant in variants
        if variant.source == "captured" and (":" in variant.reference or not zoo.resolve(variant.reference))
    ]
    return max(1, min(cores(), max(len(points) // _WORTH_A_PROCESS, len(own))))


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def evaluated(
    pieces: Pieces, jobs: int, scheduler: str | None, patience: float, evaluate: Evaluation = evaluate_points
) -> Answers:
    """Return the index of each piece and its columns, as they are finished."""
    if scheduler is not None:
        return _on_cluster(pieces, scheduler, patience, evaluate)
    return _in_processes(pieces, jobs, evaluate) if jobs > 1 and len(pieces) > 1 else _here(pieces, evaluate)


def nothing() -> Answers:
    """Return no answers."""
    yield from ()


def _here(pieces: Pieces, evaluate: Evaluation) -> Answers:
    for index, piece in enumerate(pieces):
        yield index, evaluate(piece)


def _in_processes(pieces: Pieces, jobs: int, evaluate: Evaluation) -> Answers:
    import multiprocessing
    from multiprocessing.connection import wait

    # A forked copy of a process that has loaded torch or numba may hang: use spawn.
    context = multiprocessing.get_context("spawn")
    waiting = deque(enumerate(pieces))
    workers: dict[Any, Any] = {}
    try:
        with _deaf_to_interrupts():
            for _ in range(min(jobs, len(pieces))):
                here, there = context.Pipe()
                process = context.Process(target=_work, args=(there, evaluate), daemon=True)
                workers[here] = process
                process.start()
                there.close()  # so that the pipe closes when the worker dies
        for pipe in workers:
            pipe.send(waiting.popleft())
        busy = set(workers)
        while busy:
            ready: list[Any] = list(wait(list(busy)))
            for pipe in ready:
                number, columns, error = pipe.recv()
                if error is not None:
                    raise error
                yield number, columns
                if waiting:
                    pipe.send(waiting.popleft())
                else:
                    busy.discard(pipe)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise ArgumentError(_DIED) from None
    finally:  # also after Ctrl-C and a full disk: do not wait for running workers
        for pipe, process in workers.items():
            pipe.close()
            if process.pid is not None:
                process.kill()
                process.join()


def _work(pipe: Any, evaluate: Evaluation) -> None:
    """Evaluate pieces until the pipe closes; end at once when the parent process ends."""
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            number, piece = pipe.recv()
            answer: tuple[int, Any, Exception | None]
            try:
                answer = (number, evaluate(piece), None)
            except Exception as error:
                answer = (number, None, _portable(error))
            pipe.send(answer)


def _end_with_the_parent() -> None:
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _portable(error: Exception) -> Exception:
    """Return an error that can be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an unknown exception class
        return ArgumentError(f"{type(error).__name__}: {error}")
    return error


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Start processes that ignore Ctrl-C, which this process handles."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _on_cluster(pieces: Pieces, address: str, patience: float, evaluate: Evaluation) -> Answers:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise ArgumentError(
            "--scheduler needs Dask on this machine and on every worker: pip install 'mlsys[cluster]'"
        ) from None
    with _quiet("distributed", "tornado"):
        client = _client(distributed, address, patience)
        try:
            yield from _answers_of(distributed, client, pieces, address, patience, evaluate)
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                client.close(timeout=2)


def _client(distributed: Any, address: str, patience: float) -> Any:
    """Return the client of a scheduler that answers and has workers."""
    try:
        _check_scheduler(address, patience)
        client = distributed.Client(address, timeout=patience, set_as_default=False)
    except Exception as error:  # any form of address, any service on the port
        raise ArgumentError(
            f"no Dask scheduler answers at {address!r} within {patience:g} s ({type(error).__name__}). "
            "Start one with `dask scheduler`, and workers with `dask worker ADDRESS`"
        ) from None
    return client


def _check_scheduler(address: str, patience: float) -> None:
    """Contact a scheduler with a timeout: a client would wait forever for an open port that does not answer."""
    from distributed.core import rpc

    async def identify() -> None:
        async with rpc(address) as scheduler:
            await asyncio.wait_for(scheduler.identity(), patience)

    failed: list[BaseException] = []

    def within() -> None:  # a separate loop: a notebook's is running already
        try:
            asyncio.run(asyncio.wait_for(identify(), patience))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=within, daemon=True)
    thread.start()
    thread.join(2 * patience)
    if thread.is_alive():
        raise TimeoutError
    if failed:
        raise failed[0]


def _answers_of(
    distributed: Any, client: Any, pieces: Pieces, address: str, patience: float, evaluate: Evaluation
) -> Answers:
    """Return the answers of a cluster as they come; raise if its scheduler or all of its workers are gone."""
    gone = f"the Dask scheduler at {address!r} is gone; finished points are kept. Start it and repeat the command"
    futures = client.map(evaluate, pieces, [code_digest()] * len(pieces), pure=False)
    places = {future.key: index for index, future in enumerate(futures)}
    waiting = set(futures)
    seen = time.monotonic()
    try:
        while waiting:
            try:
                with client.as_current():
                    done, waiting = distributed.wait(waiting, timeout=1, return_when="FIRST_COMPLETED")
            except TimeoutError:
                done = set()
            except _CANCELLED:
                raise ArgumentError(gone) from None
            if client.status != "running":
                raise ArgumentError(gone)
            if done or _workers_of(client):
                seen = time.monotonic()
            elif time.monotonic() - seen > patience:
                raise ArgumentError(
                    f"the Dask scheduler at {address!r} has had no worker for {patience:g} s; finished points are "
                    f"kept. Start some with `dask worker {address}` and repeat the command"
                )
            for future in done:
                try:
                    answer = _result(future, patience, gone)
                except TimeoutError:  # its worker ended before it was fetched: another one computes it again
                    waiting.add(future)
                else:
                    yield places[future.key], answer
    finally:
        with contextlib.suppress(Exception):
            client.cancel(list(waiting))


def _workers_of(client: Any) -> bool:
    try:
        return bool(client.nthreads())
    except Exception:  # no answer: try again later
        return False


def _result(future: Any, patience: float, gone: str) -> dict[str, list[Any]]:
    try:
        columns: dict[str, list[Any]] = future.result(timeout=patience)
        return columns
    except _CANCELLED:
        raise ArgumentError(gone) from None
    except ArgumentError:
        raise
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise ArgumentError(
                "a piece killed several Dask workers in a row; finished points are kept. Give the workers more memory"
            ) from None
        raise


@contextlib.contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """Suppress a library's log messages about its connections, which the error summarises in one line."""
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
