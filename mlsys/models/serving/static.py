"""Static batching with buckets: whole batches, padded to a common length."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mlsys.compiled import njit
from mlsys.errors import ArgumentError
from mlsys.models.serving.requests import Floats, Ints, Requests
from mlsys.models.serving.steps import StepSeconds, TabulatedSteps, step_seconds
from mlsys.unit_checks import checked_count, checked_number, nonnegative


@dataclass(frozen=True, eq=False)
class StaticRun:
    """What happened to each request under static batching; times in seconds, one entry for each request.

    Attributes
    ----------
    requests
        What was simulated.
    begin, first, end
        Times at which the batch of a request began, had its first tokens and ended.
    bucket
        Prompt length that each request was padded to.
    busy
        Seconds in which a batch ran.
    batches
        Number of batches.
    prompt_waste, output_waste
        Shares of the processed prompt tokens that were padding, and of the decoded tokens that nobody requested,
        because a batch decodes until its longest output ends.
    """

    requests: Requests
    begin: Floats
    first: Floats
    end: Floats
    bucket: Ints
    busy: float
    batches: int
    prompt_waste: float
    output_waste: float

    @property
    def queue_time(self) -> Floats:
        """Seconds from arrival to the start of the batch."""
        return self.begin - self.requests.arrival

    @property
    def ttft(self) -> Floats:
        """Time to first token, s."""
        return self.first - self.requests.arrival

    @property
    def latency(self) -> Floats:
        """End-to-end latency, s: a batch is returned as a whole."""
        return self.end - self.requests.arrival


def static_batching(
    requests: Requests,
    step: StepSeconds | TabulatedSteps,
    *,
    batch: int,
    buckets: Iterable[int],
    patience: float = 0.0,
) -> StaticRun:
    """Simulate a server that forms batches of one bucket each and runs them to their end.

    A request waits in the queue of the smallest bucket that its prompt fits in. When the server is free, it takes the
    bucket that is ready and whose oldest request arrived first; a bucket is ready when it has a whole batch, or its
    oldest request has waited for ``patience``. All prompts are padded to the bucket, and the batch decodes until its
    longest output ends.

    Parameters
    ----------
    requests, step
        As for :func:`~mlsys.models.serving.simulate`.
    batch
        Largest batch.
    buckets
        Prompt lengths that are padded to.
    patience
        Longest time that a request waits for a batch to fill while the server is free, s.

    Raises
    ------
    ArgumentError
        If a prompt exceeds the largest bucket.

    Examples
    --------
    >>> steps = TabulatedSteps.of(lambda prefill, batch, context: 0.010 if prefill else 0.001, 2048, 4, 8192)
    >>> run = static_batching(Requests([0, 0], [300, 500], [3, 9]), steps, batch=2, buckets=[512])
    >>> round(run.prompt_waste, 4), round(run.output_waste, 4), run.end.round(6).tolist()
    (0.2188, 0.3333, [0.018, 0.018])
    """
    where = "static_batching"
    most = checked_count(where, "batch", batch)
    wait = float(checked_number(where, "patience", patience, nonnegative(), {}))
    sizes = np.unique([checked_count(where, "buckets", bucket) for bucket in buckets])
    if not len(sizes) or requests.prompt.max() > sizes[-1]:
        raise ArgumentError(
            f"{where}(): a prompt has {requests.prompt.max():,} tokens, and the largest bucket "
            f"{int(sizes[-1]) if len(sizes) else 0:,}. Add a larger bucket"
        )
    longest = int(requests.output.max())
    if not isinstance(step, TabulatedSteps):
        step = TabulatedSteps.of(step, most * int(sizes[-1]), most, most * (int(sizes[-1]) + longest))
    kind = np.searchsorted(sizes, requests.prompt).astype(np.int64)
    number = len(requests)
    begin, first, end = np.zeros(number), np.zeros(number), np.zeros(number)
    busy, batches, padded, decoded = _run(
        requests.arrival, requests.output, kind, sizes.astype(np.int64), most, wait, begin, first, end,
        (step.prefill, step.batch, step.context, step.seconds, float(step.pair_seconds)),
    )  # fmt: skip
    return StaticRun(
        requests, begin, first, end, sizes[kind], float(busy), int(batches),
        prompt_waste=float(1 - requests.prompt.sum() / padded),
        output_waste=float(1 - requests.output.sum() / decoded),
    )  # fmt: skip


@njit(nogil=True, error_model="numpy")
def _run(arrivals, outputs, kind, sizes, most, wait, begin, first, end, grid):  # type: ignore[no-untyped-def]
    """Return busy seconds, batches, prompt tokens with padding, and decoded tokens with those beyond an end."""
    prefill, batch_axis, context_axis, table, pair_seconds = grid
    number, kinds = len(arrivals), len(sizes)
    # Requests of each bucket in order of arrival.
    starts = np.zeros(kinds + 1, np.int64)
    for i in range(number):
        starts[kind[i] + 1] += 1
    for k in range(kinds):
        starts[k + 1] += starts[k]
    order, fill = np.zeros(number, np.int64), starts[:-1].copy()
    for i in range(number):
        order[fill[kind[i]]] = i
        fill[kind[i]] += 1
    heads = starts[:-1].copy()
    now, busy, batches, padded, decoded, done = 0.0, 0.0, 0, 0, 0, 0
    while done < number:
        chosen, soonest, oldest = -1, np.inf, number
        for k in range(kinds):
            if heads[k] == starts[k + 1]:
                continue
            eldest = order[heads[k]]
            head = arrivals[eldest]
            full = heads[k] + most - 1
            ready = head + wait
            if full < starts[k + 1]:
                ready = min(ready, arrivals[order[full]])
            ready = max(ready, head)
            at = max(ready, now)
            if at < soonest or (at == soonest and eldest < oldest):
                chosen, soonest, oldest = k, at, eldest
        now = soonest
        stop = heads[chosen]
        longest = 0
        while stop < starts[chosen + 1] and stop < heads[chosen] + most and arrivals[order[stop]] <= now:
            longest = max(longest, outputs[order[stop]])
            stop += 1
        size = stop - heads[chosen]
        span = step_seconds(prefill, batch_axis, context_axis, table, size * sizes[chosen], 0, 0)
        span += size * sizes[chosen] * (sizes[chosen] + 1) * 0.5 * pair_seconds
        start, token = now, now + span
        now = token
        for j in range(1, longest):
            now += step_seconds(prefill, batch_axis, context_axis, table, 0, size, size * (sizes[chosen] + j))
        for j in range(heads[chosen], stop):
            begin[order[j]], first[order[j]], end[order[j]] = start, token, now
        busy += now - start
        padded += size * sizes[chosen]
        decoded += size * longest
        batches += 1
        done += size
        heads[chosen] = stop
    return busy, batches, padded, decoded
