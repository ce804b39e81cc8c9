"""Requests to a language-model server: arrival times, prompt lengths and output lengths."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from mlsys.errors import ArgumentError
from mlsys.unit_checks import Argument, checked_choice, checked_count, checked_number, positive
from mlsys.units import Quantity

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
OutputLengths = Literal["equal", "geometric"]
"""Distribution of output lengths: all equal, or geometric, the exponential distribution among whole numbers."""

MOST_REQUESTS = 20_000_000
"""Largest number of requests in one simulation."""
_LONGEST = 100_000_000  # tokens of one request


class Prefixes(NamedTuple):
    """Beginnings of prompts, by block.

    Attributes
    ----------
    blocks
        For each request the numbers of its prompt's blocks: equal ones have equal tokens, also in all blocks before.
    block
        Tokens of a block.
    """

    blocks: tuple[tuple[int, ...], ...]
    block: int


@dataclass(frozen=True, eq=False)
class Requests:
    """Requests in order of arrival.

    Attributes
    ----------
    arrival
        Arrival times in seconds, in ascending order.
    prompt, output
        Tokens of the prompt, and tokens that are generated; both at least 1.
    name
        Where the requests come from, for results.
    left_out
        Number of rows of a trace that were left out because they generated no token.
    prefixes
        What is known of the beginnings of prompts; None for nothing.
    found
        Tokens of each prompt whose keys and values a store of prefixes holds when it arrives; None for none. See
        :meth:`with_store`.

    Raises
    ------
    ArgumentError
        If there is no request, lengths differ, times go back or are negative, or a token count is below 1.

    Examples
    --------
    >>> Requests([0.0, 0.5], [100, 20], [3, 8]).tokens
    131
    >>> Requests([0.5, 0.0], [100, 20], [3, 8])
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: requests: arrival times must not go back, got 0 s after 0.5 s in row 2. Sort the rows
    """

    arrival: Floats
    prompt: Ints
    output: Ints
    name: str = "requests"
    left_out: int = 0
    prefixes: Prefixes | None = None
    found: Ints | None = None
    rate: float = field(init=False)

    def __post_init__(self) -> None:
        arrival = np.ascontiguousarray(self.arrival, dtype=np.float64)
        object.__setattr__(self, "arrival", arrival)
        for name in ("prompt", "output"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        if not len(arrival):
            raise ArgumentError("requests: there is none. Give at least one request, or a longer time to draw them in")
        if not len(arrival) == len(self.prompt) == len(self.output):
            raise ArgumentError(
                f"requests: as many arrival times, prompts and outputs are wanted, got {len(arrival)}, "
                f"{len(self.prompt)} and {len(self.output)}"
            )
        _check_times(arrival)
        span = float(arrival[-1] - arrival[0])
        object.__setattr__(self, "rate", (len(arrival) - 1) / span if span > 0 else float("inf"))

    def __len__(self) -> int:
        return len(self.arrival)

    @property
    def tokens(self) -> int:
        """Tokens of all prompts and outputs."""
        return int(self.prompt.sum() + self.output.sum())

    def at_rate(self, rate: float) -> Requests:
        """Return the same requests with arrival times stretched to ``rate`` requests per second.

        Examples
        --------
        >>> Requests([0.0, 0.5, 1.0], [1, 1, 1], [1, 1, 1]).at_rate(4.0).arrival.tolist()
        [0.0, 0.25, 0.5]
        """
        if not np.isfinite(self.rate):
            raise ArgumentError("at_rate(): requests that arrive at one moment have no rate to scale")
        times = (self.arrival - self.arrival[0]) * (self.rate / rate)
        return replace(self, arrival=times)

    def with_store(self, tokens: int | None = None) -> Requests:
        """Return the same requests with the tokens that a store of prefixes holds of each prompt when it arrives.

        Every prompt enters the store at its arrival, block by block. The first blocks of a prompt that are there, up to
        the first one that is not, are found. A full store evicts the block that was used longest ago.

        Parameters
        ----------
        tokens
            Tokens that the store holds; None for no limit.

        Raises
        ------
        ArgumentError
            If nothing is known of the beginnings of the prompts, or ``tokens`` is no whole number from 0.

        Examples
        --------
        The second prompt begins as the first one, and goes on differently.

        >>> known = Prefixes(((7, 8), (7, 9), (9,)), 512)
        >>> requests = Requests([0.0, 1.0, 2.0], [1000, 900, 100], [3, 8, 5], prefixes=known)
        >>> requests.with_store().found.tolist(), requests.with_store(tokens=512).found.tolist()
        ([0, 512, 100], [0, 512, 0])
        """
        if self.prefixes is None:
            raise ArgumentError(
                "with_store(): nothing is known of the beginnings of the prompts; a trace states hash_ids"
            )
        size, most = self.prefixes.block, None
        if tokens is not None:
            most = int(checked_number("with_store", "tokens", tokens, Argument("", low=0, whole=True), {})) // size
        held: OrderedDict[int, None] = OrderedDict()
        found = np.zeros(len(self), dtype=np.int64)
        for row, blocks in enumerate(self.prefixes.blocks):
            hits = 0
            for block in blocks:
                if block not in held:
                    break
                hits += 1
            found[row] = min(hits * size, self.prompt[row])
            if most is None:
                held.update(dict.fromkeys(blocks))
                continue
            for block in reversed(blocks):  # the first one is evicted last: the others are of no use without it
                held[block] = None
                held.move_to_end(block)
            while len(held) > most:
                held.popitem(last=False)
        return replace(self, found=found)


def _whole(name: str, values: object) -> Ints:
    numbers = np.asarray(values)
    if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "iuf"):
        raise ArgumentError(f"requests: `{name}` must be a list of whole numbers, got {numbers.dtype} values")
    wrong = np.flatnonzero(~((numbers >= 1) & (numbers <= _LONGEST) & (numbers == np.floor(numbers))))
    if len(wrong):
        raise ArgumentError(
            f"requests: `{name}` must be whole numbers from 1 to {_LONGEST:,} tokens, "
            f"got {numbers[wrong[0]]:g} in row {wrong[0] + 1}"
        )
    return np.ascontiguousarray(numbers, dtype=np.int64)


def _check_times(arrival: Floats) -> None:
    wrong = np.flatnonzero(~(np.isfinite(arrival) & (arrival >= 0)))
    if len(wrong):
        raise ArgumentError(
            "requests: arrival times must be finite and not negative, "
            f"got {arrival[wrong[0]]:g} s in row {wrong[0] + 1}"
        )
    back = np.flatnonzero(np.diff(arrival) < 0)
    if len(back):
        row = int(back[0]) + 1
        raise ArgumentError(
            f"requests: arrival times must not go back, got {arrival[row]:g} s after {arrival[row - 1]:g} s in row "
            f"{row + 1}. Sort the rows"
        )


def poisson_requests(
    rate: Quantity,
    prompt: int,
    output: int,
    *,
    seconds: Quantity | None = None,
    count: int | None = None,
    outputs: OutputLengths = "equal",
    seed: int = 0,
) -> Requests:
    """Return requests that arrive as a Poisson process.

    Parameters
    ----------
    rate
        Mean arrival rate, 1/s.
    prompt, output
        Tokens of each prompt, and of each output or of the mean one.
    seconds, count
        Time during which requests arrive, s, or their number; one of the two.
    outputs
        ``"equal"`` output lengths, or ``"geometric"`` ones of the same mean.
    seed
        Seed of the random numbers; the same seed gives the same requests.

    Raises
    ------
    ArgumentError, ArgumentUnitError, UnknownNameError
        If a number is not positive, or none or both of ``seconds`` and ``count`` are given; if no request arrives, or
        there is no such distribution.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> requests = poisson_requests(Q_(5, "1/s"), 1024, 256, count=10_000)
    >>> len(requests), round(requests.rate, 1)
    (10000, 5.0)
    """
    where = "poisson_requests"
    per_second = float(checked_number(where, "rate", rate, positive("1/s"), {}))
    prompt, output = checked_count(where, "prompt", prompt), checked_count(where, "output", output)
    if (seconds is None) == (count is None):
        raise ArgumentError(f"{where}(): give `seconds` or `count`, one of the two")
    checked_choice(where, "outputs", outputs, get_args(OutputLengths))
    draws = np.random.default_rng(checked_seed(where, seed))
    mean = " on average" if outputs == "geometric" else ""
    name = f"Poisson arrivals at {per_second:g} requests/s, {prompt} + {output} tokens{mean}, seed {seed}"
    if count is not None:
        number = _allowed(where, checked_count(where, "count", count))
        times = np.cumsum(draws.exponential(1 / per_second, number))
        return Requests(times, np.full(number, prompt), _outputs(draws, outputs, output, number), name)
    span = float(checked_number(where, "seconds", seconds, positive("s"), {}))
    _allowed(where, per_second * span)
    number = int(draws.poisson(per_second * span))
    if not number:
        raise ArgumentError(
            f"{where}(): no request arrives in {span:g} s at {per_second:g}/s. Write a longer time or a higher rate"
        )
    times = np.sort(draws.uniform(0.0, span, number))
    return Requests(times, np.full(number, prompt), _outputs(draws, outputs, output, number), name)


def _outputs(draws: np.random.Generator, kind: OutputLengths, mean: int, number: int) -> Ints:
    """Return output lengths, drawn after the arrival times, which are therefore the same for each kind."""
    return draws.geometric(1 / mean, number) if kind == "geometric" else np.full(number, mean)


def offline_requests(count: int, prompt: int, output: int) -> Requests:
    """Return ``count`` requests of equal lengths that are all queued at time zero.

    Examples
    --------
    >>> offline_requests(3, 128, 16).arrival.tolist()
    [0.0, 0.0, 0.0]
    """
    number = _allowed("offline_requests", checked_count("offline_requests", "count", count))
    name = f"{number} requests at once, {prompt} + {output} tokens"
    return Requests(np.zeros(number), np.full(number, prompt), np.full(number, output), name)


def checked_seed(where: str, seed: object) -> int:
    """Return a seed: a whole number of zero or more.

    Raises
    ------
    ArgumentError
        If it is none.

    Examples
    --------
    >>> checked_seed("poisson_requests", 7)
    7
    """
    if isinstance(seed, (bool, float)) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ArgumentError(f"{where}(): `seed` must be a whole number >= 0, got {seed!r}. Write e.g. seed=0")
    return int(seed)


def _allowed(where: str, number: float) -> int:
    if number > MOST_REQUESTS:
        raise ArgumentError(
            f"{where}(): at most {MOST_REQUESTS:,} requests are simulated, got {number:,.0f}. "
            "Write a shorter time or a lower rate"
        )
    return int(number)
