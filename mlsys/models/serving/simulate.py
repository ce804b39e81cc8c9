"""Event simulation of a language-model server with continuous batching."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.models.serving import kernel
from mlsys.models.serving.requests import Floats, Ints, Requests
from mlsys.models.serving.settings import ServerSettings
from mlsys.models.serving.steps import StepSeconds, TabulatedSteps
from mlsys.unit_checks import checked_count

Progress = Callable[[float], None]
"""Called with the share of the requests that has arrived."""
_SLICES = 50
_HOW = {"recompute": kernel.RECOMPUTE, "swap": kernel.SWAP, "reserve": kernel.RESERVE}


@dataclass(frozen=True, eq=False)
class ServingRun:
    """What happened to each request, and what each replica did; all times in seconds, one entry for each request.

    Attributes
    ----------
    requests, settings
        What was simulated.
    begin, first, end
        Times at which requests were admitted, got their first token and their last one.
    preemptions, replica
        How often each was preempted, and where it ran.
    iterations, prefilled, swapping, busy
        Iterations of all replicas, prompt tokens that they processed (again after a preemption), seconds of swapping
        and of running.
    most_blocks
        Largest number of cache blocks used on a replica.
    block_share, mean_batch
        Mean share of blocks in use, and mean number of decoding sequences, per replica over the whole run.
    cached
        Tokens of each prompt that are found in the shared prefix, or in a store of prefixes.
    """

    requests: Requests
    settings: ServerSettings
    begin: Floats
    first: Floats
    end: Floats
    preemptions: Ints
    replica: Ints
    iterations: int
    prefilled: int
    swapping: float
    busy: float
    most_blocks: int
    block_share: float
    mean_batch: float
    cached: Ints

    @property
    def prefix_hit_share(self) -> float:
        """Share of the prompts' tokens that are found in the shared prefix, or in a store of prefixes."""
        return float(self.cached.sum() / self.requests.prompt.sum())

    @property
    def queue_time(self) -> Floats:
        """Seconds from arrival to admission."""
        return self.begin - self.requests.arrival

    @property
    def ttft(self) -> Floats:
        """Time to first token, s."""
        return self.first - self.requests.arrival

    @property
    def latency(self) -> Floats:
        """End-to-end latency, s."""
        return self.end - self.requests.arrival

    @property
    def tpot(self) -> Floats:
        """Time per output token after the first, s; NaN for requests of one output token."""
        later = self.requests.output - 1
        return np.where(later > 0, (self.end - self.first) / np.maximum(later, 1), np.nan)

    @property
    def span(self) -> float:
        """Seconds from the first arrival to the last end."""
        return float(self.end.max() - self.requests.arrival[0])

    @property
    def in_system(self) -> float:
        """Mean number of requests in the system over :attr:`span`, integrated over arrivals and ends.

        Little's law says that it is the arrival rate times the mean latency; the tests hold it against that.
        """
        times = np.concatenate([self.requests.arrival, self.end])
        change = np.concatenate([np.ones(len(self.end)), -np.ones(len(self.end))])
        order = np.argsort(times, kind="stable")
        inside = np.cumsum(change[order])[:-1]
        return float((inside * np.diff(times[order])).sum() / self.span) if self.span > 0 else 0.0


def simulate(
    requests: Requests,
    step: StepSeconds | TabulatedSteps,
    settings: ServerSettings,
    *,
    progress: Progress | None = None,
) -> ServingRun:
    """Simulate a server with continuous batching until all requests have ended.

    Each iteration generates one token for every decoding sequence and processes prompt tokens up to the token budget
    (iteration-level scheduling; G.-I. Yu et al., Orca, OSDI 2022), so that requests join and leave between iterations.
    Requests are admitted in order of arrival when the batch has room and cache blocks (W. Kwon et al.,
    PagedAttention, SOSP 2023) are free; when none is left, the sequence admitted last is preempted and is first in
    the queue. Nothing is random: the same requests give the same run.

    Parameters
    ----------
    requests
        The requests, in order of arrival.
    step
        Time of an iteration; a function is tabulated with :meth:`TabulatedSteps.of`.
    settings
        Batch, token budget, cache blocks, preemption and replicas.
    progress
        Called now and then with the share of the requests that has arrived.

    Returns
    -------
    ServingRun
        Times of each request.

    Raises
    ------
    ArgumentError
        If a request does not fit in the cache of a replica, whatever runs beside it.

    Examples
    --------
    One request: its prompt takes 10 ms, and each of the seven later tokens 1 ms.

    >>> steps = TabulatedSteps.of(lambda prefill, batch, context: 0.010 if prefill else 0.001, 512, 4, 1024)
    >>> run = simulate(Requests([0.0], [100], [8]), steps, ServerSettings(max_batch=4, token_budget=512, blocks=64))
    >>> round(float(run.ttft[0]), 6), round(float(run.latency[0]), 6)
    (0.01, 0.017)
    """
    check_fits(requests, settings)
    table = tabulated(requests, step, settings)
    number, replicas = len(requests), settings.replicas
    states = np.zeros((replicas, kernel.INTEGERS), dtype=np.int64)
    for column in (kernel.PARTIAL, kernel.LAST_RUN, kernel.HEAD, kernel.TAIL):
        states[:, column] = kernel.NONE
    reals = np.zeros((replicas, kernel.REALS))
    rings = np.full((replicas, int(requests.output.max()) + 1), kernel.NONE, dtype=np.int64)
    phases = np.zeros((replicas, settings.block_size), dtype=np.int64)
    rows = np.zeros((kernel.FIELDS, number), dtype=np.int64)
    rows[kernel.SHARED] = shared = _shared(requests, settings)
    rows[kernel.CACHED] = cached = np.maximum(shared, _cached_prefixes(requests, settings))
    begin, first, end = np.full(number, -1.0), np.full(number, -1.0), np.full(number, -1.0)
    preemptions, homes = np.zeros(number, dtype=np.int64), np.zeros(number, dtype=np.int64)
    grid = (table.prefill, table.batch, table.context, table.seconds, float(table.pair_seconds), settings.swap_seconds)
    limits = (
        settings.max_batch, settings.token_budget, settings.block_size, settings.own_blocks, settings.reserve,
        int(settings.chunked_prefill), _HOW[settings.preemption],
    )  # fmt: skip
    bounds = np.unique(np.linspace(0, number, _SLICES + 1).astype(np.int64))
    for start, stop in itertools.pairwise(bounds):
        kernel.run(
            start, stop, requests.arrival, requests.prompt, requests.output, states, reals, rings, phases, rows,
            (begin, first, end, preemptions, homes), grid, limits, int(settings.routing == "least-loaded"),
        )  # fmt: skip
        if progress is not None:
            progress(float(stop) / number)
    span = float(end.max() - requests.arrival[0])
    whole = span * replicas or 1.0
    return ServingRun(
        requests, settings, begin, first, end, preemptions, homes,
        iterations=int(states[:, kernel.ITERATIONS].sum()),
        prefilled=int(states[:, kernel.PREFILLED].sum()),
        swapping=float(reals[:, kernel.SWAPPING].sum()),
        busy=float(reals[:, kernel.BUSY].sum()),
        most_blocks=int(states[:, kernel.MOST_USED].max()) + settings.shared_blocks,
        block_share=float(
            (reals[:, kernel.BLOCK_SECONDS].sum() / whole + settings.shared_blocks) / settings.blocks
        ),
        cached=cached,
        mean_batch=float(reals[:, kernel.BATCH_SECONDS].sum() / whole),
    )  # fmt: skip


def _cached_prefixes(requests: Requests, settings: ServerSettings) -> Ints:
    """Return the tokens of each prompt that a store of prefixes holds: whole blocks, and never the last token."""
    if requests.found is None:
        return np.zeros(len(requests), dtype=np.int64)
    size = settings.block_size
    found: Ints = np.minimum(requests.found, requests.prompt - 1) // size * size
    return found


def _shared(requests: Requests, settings: ServerSettings) -> Ints:
    """Return the tokens of each prompt that are found in the shared prefix: whole blocks, and never the last token."""
    found: Ints = np.minimum(settings.shared_blocks, (requests.prompt - 1) // settings.block_size) * settings.block_size
    return found


def check_fits(requests: Requests, settings: ServerSettings) -> None:
    """Raise if a request does not fit in the cache of a replica that is empty.

    Raises
    ------
    ArgumentError
        With the first such request.
    """
    if settings.own_blocks < 1:
        raise ArgumentError(
            f"simulate(): a shared prefix of {settings.shared_prefix:,} tokens takes all of the {settings.blocks:,} "
            f"blocks of {settings.block_size} tokens. Give more blocks, or a shorter prefix"
        )
    needed = requests.prompt + requests.output - 1 - _shared(requests, settings)
    longest = int(needed.argmax())
    if needed[longest] > settings.own_blocks * settings.block_size:
        raise ArgumentError(
            f"simulate(): request {longest + 1} never fits: its {requests.prompt[longest]:,} + "
            f"{requests.output[longest]:,} tokens need more than the {settings.own_blocks:,} blocks of "
            f"{settings.block_size} tokens. Give more blocks, or leave out longer requests"
        )


def tabulated(requests: Requests, step: StepSeconds | TabulatedSteps, settings: ServerSettings) -> TabulatedSteps:
    """Return a step function as a table that spans what the requests and the settings allow."""
    if isinstance(step, TabulatedSteps):
        return step
    if not callable(step):
        raise ArgumentError(
            "simulate(): `step` must be a function of prefill tokens, decode batch and context tokens, or "
            f"TabulatedSteps, got {step!r}"
        )
    longest = int((requests.prompt + requests.output).max())
    prefill = settings.token_budget if settings.chunked_prefill else max(settings.token_budget, longest)
    batch = min(settings.max_batch, len(requests))
    return TabulatedSteps.of(step, prefill, batch, min(settings.tokens, batch * longest) + batch)


def batch_means(values: Floats, batches: int = 50) -> tuple[float, float]:
    """Return the mean of a correlated series and its standard error, by the method of batch means.

    Waits of neighbouring requests resemble each other, so the spread of single values understates the error of their
    mean; means of long stretches are nearly independent.

    Parameters
    ----------
    values
        The series in order, such as :attr:`ServingRun.queue_time`.
    batches
        Stretches of equal length that it is cut into; what is left over at its end counts in the mean alone.

    Raises
    ------
    ArgumentError
        If there are fewer values than stretches.

    Examples
    --------
    >>> batch_means(np.array([1.0, 1.0, 1.0, 3.0, 3.0, 3.0]), batches=2)
    (2.0, 1.0)
    """
    number = checked_count("batch_means", "batches", batches)
    if number < 2 or len(values) < number:
        raise ArgumentError(
            f"batch_means(): give at least {max(number, 2)} values and two batches, got {len(values)} values and "
            f"{number} batches"
        )
    means = values[: len(values) // number * number].reshape(number, -1).mean(axis=1)
    return float(values.mean()), float(means.std(ddof=1) / np.sqrt(number))
