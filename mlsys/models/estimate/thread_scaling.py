"""Threads of a processor that share the layers of a network: how long they wait for each other.

Of t threads that share a layer of one sample, t / (1 + SERIAL (t - 1)) are at work on average
(:func:`waiting`); those that a small layer leaves without a block are not among them.
Threads with samples of their own do not wait: of 16 on a batch of 16, all are at work. To start and join them costs
each kernel a launch more for every ``THREADS_A_LAUNCH`` of them.
"""

import re

import numpy as np
from numpy.typing import NDArray

from mlsys.models.estimate.machine import Snapshot
from mlsys.provenance import as_recorded

Array = NDArray[np.float64]

THREADS_A_LAUNCH = 16.0
# Settings of programs whose pool has a thread for each core, and that were fitted with such a pool.
_ON_ALL_CORES = re.compile(r"(compiled|eager|torch\.compile|ncnn|mobile runtime)( int8| transformer)? network on CPU")
# Programs that run a request on one core of a neural processor that has several, unless they are told otherwise.
_ON_ONE_CORE = re.compile(r"RKNN .*network on NPU")


# Part of a layer that its threads do one after the other.
SERIAL = 0.05


def waiting(team: Array) -> Array:
    """Return how many times as long threads take, so many of which share a layer of one sample: they wait.

    Of t threads t / (1 + SERIAL (t - 1)) are at work on average.
    """
    times: Array = 1.0 + SERIAL * np.maximum(team - 1.0, 0.0)
    return times


def sharing_layers(engine: Snapshot, threads: float, samples: float = 1.0, started: float = 0.0) -> Snapshot:
    """Return a processor whose threads share out the layers of some samples.

    Parameters
    ----------
    engine
        The cores at work.
    threads
        One for each of them; one alone waits for nobody.
    samples
        That are worked on side by side; each has its part of the threads, which wait for each other.
    started
        Threads that a launch starts and joins, where they are more than the cores.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware import view
    >>> from mlsys.models.estimate import snapshot
    >>> cores = snapshot(view(Hardware["EPYC_7742"], "fp32"))
    >>> [sharing_layers(cores, 16, samples).team for samples in (1, 4, 16)]
    [16.0, 4.0, 1.0]
    """
    team = max(1.0, threads / samples)
    started = max(threads, started)
    joining = 1.0 + started / THREADS_A_LAUNCH if started >= 2 else 1.0
    return engine.changed(team=team, joining=joining)


def as_used(engine: Snapshot, setting: str, samples: float = 1.0) -> Snapshot:
    """Return a machine as the programs of a setting use it: a thread on each core of a processor, or one core alone.

    Parameters
    ----------
    engine
        A whole machine.
    setting
        Such as ``"compiled network on CPU"``.
    samples
        As for :func:`sharing_layers`.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware import view
    >>> from mlsys.models.estimate import snapshot
    >>> three = snapshot(view(Hardware["RK3588_NPU"], "int8"))
    >>> round(three.matmul / as_used(three, "RKNN int8 network on NPU").matmul)
    3
    """
    if _ON_ONE_CORE.fullmatch(setting):
        with as_recorded():
            return engine.share(1 / engine.units, 1 / engine.units)
    if not _ON_ALL_CORES.fullmatch(setting):
        return engine
    with as_recorded():  # how many cores share a layer is of the design: a what-if on a rate hires no thread
        return sharing_layers(engine, engine.units, samples)


def with_twice_the_samples(engine: Snapshot) -> Snapshot:
    """Return a processor whose threads share out twice as many samples, each of them among half as many."""
    return engine.changed(team=max(1.0, engine.team / 2)) if engine.team > 1 else engine
