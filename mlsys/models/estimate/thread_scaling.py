"""CPU threads that share the layers of a network: the time they spend waiting for each other.

Of t threads that share a layer of one sample, t / (1 + SERIAL (t - 1)) are active on average (:func:`waiting`), not
counting threads that a small layer leaves without a block. Threads with samples of their own do not wait: of 16 on a
batch of 16, all are active. Starting and joining threads costs each kernel one more launch for every
``THREADS_A_LAUNCH`` of them.
"""

import re

import numpy as np
from numpy.typing import NDArray

from mlsys.models.estimate.machine import Snapshot
from mlsys.provenance import as_recorded

Array = NDArray[np.float64]

THREADS_A_LAUNCH = 16.0
# Settings fitted with one thread per core, the default of these programs.
_ON_ALL_CORES = re.compile(r"(compiled|eager|torch\.compile|ncnn|mobile runtime)( int8| transformer)? network on CPU")
# Programs that by default run a request on one core of a multi-core NPU.
_ON_ONE_CORE = re.compile(r"RKNN .*network on NPU")


# Serial fraction of a layer.
SERIAL = 0.05


def waiting(team: Array) -> Array:
    """Return the factor by which waiting lengthens the work of threads that share a layer of one sample.

    Of t threads, t / (1 + SERIAL (t - 1)) are active on average.
    """
    times: Array = 1.0 + SERIAL * np.maximum(team - 1.0, 0.0)
    return times


def sharing_layers(engine: Snapshot, threads: float, samples: float = 1.0, started: float = 0.0) -> Snapshot:
    """Return a CPU whose threads share the layers of some samples.

    Parameters
    ----------
    engine
        The active cores.
    threads
        One per core; a single thread does not wait.
    samples
        Samples processed in parallel; each has its share of the threads, which wait for each other.
    started
        Threads that a launch starts and joins, where there are more of them than cores.

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
    """Return a machine as the programs of a setting use it: one thread per CPU core, or one NPU core alone.

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
    with as_recorded():  # the number of cores that share a layer is part of the design: what-ifs on a rate keep it
        return sharing_layers(engine, engine.units, samples)


def with_twice_the_samples(engine: Snapshot) -> Snapshot:
    """Return a CPU whose threads share twice as many samples, with half as many threads for each."""
    return engine.changed(team=max(1.0, engine.team / 2)) if engine.team > 1 else engine
