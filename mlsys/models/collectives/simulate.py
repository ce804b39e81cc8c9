"""Step-by-step simulation of a collective: messages of ranks over links, with the data that they carry.

Ranks run their rounds without a common clock: a message starts once both its ends have finished their earlier rounds.
Messages of one round that share a port, or a link that joins several ranks, share its bandwidth. Data are tracked as
the set of ranks that contributed to each block, so that a lost or doubled contribution is found.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.models.collectives.schedules import Message, Schedule

Hop = tuple[float, float]
"""Latency in s and bandwidth in byte/s of the way from one rank to another."""


@dataclass(frozen=True)
class Simulation:
    """Result of a simulated collective.

    Attributes
    ----------
    seconds
        Time until the last rank is done.
    rounds
        Rounds of the schedule.
    sent, received
        Bytes that each rank sent and received.
    by_link
        Bytes over each pair of ranks, in one direction.
    """

    seconds: float
    rounds: int
    sent: tuple[float, ...]
    received: tuple[float, ...]
    by_link: dict[tuple[int, int], float]


def simulate(
    schedule: Schedule,
    size: float,
    hop: Callable[[int, int], Hop],
    *,
    seconds_per_added_byte: float = 0.0,
    shared: Callable[[int, int], tuple[str, float] | None] = lambda source, target: None,
) -> Simulation:
    """Run a schedule and return its time and bytes.

    Parameters
    ----------
    schedule
        Of :func:`mlsys.models.collectives.schedules.schedule`.
    size
        Bytes of the array.
    hop
        Latency and bandwidth from one rank to another.
    seconds_per_added_byte
        Time of adding up one byte.
    shared
        Name and bandwidth of a link that the way from one rank to another shares with others, if there is one.

    Raises
    ------
    ArgumentError
        If a rank does not hold in the end what the operation promises, or a contribution was added twice.

    Examples
    --------
    >>> from mlsys.models.collectives.schedules import schedule
    >>> ring = simulate(schedule("all-reduce", "ring", 8), 1e6, lambda source, target: (5e-6, 100e9))
    >>> f"{ring.seconds * 1e6:.1f} us", f"{ring.sent[0]:.0f} bytes"
    ('87.5 us', '1750000 bytes')
    """
    ranks, block = schedule.ranks, size / schedule.blocks_per_array
    held = [_initial(schedule, rank) for rank in range(ranks)]
    ready = [0.0] * ranks
    sent, received = [0.0] * ranks, [0.0] * ranks
    by_link: dict[tuple[int, int], float] = {}
    for round_ in schedule.rounds:
        out = Counter(each.source for each in round_)
        into = Counter(each.target for each in round_)
        crowd = Counter(way[0] for each in round_ if (way := shared(each.source, each.target)) is not None)
        carried = [{at: held[each.source][at] for at in each.blocks} for each in round_]
        done = list(ready)
        for each, blocks in zip(round_, carried, strict=True):
            moved = block * len(each.blocks)
            latency, bandwidth = hop(each.source, each.target)
            rate = bandwidth / max(out[each.source], into[each.target])
            way = shared(each.source, each.target)
            if way is not None:
                rate = min(rate, way[1] / crowd[way[0]])
            end = max(ready[each.source], ready[each.target]) + latency + moved / rate
            done[each.source] = max(done[each.source], end)
            added = moved * into[each.target] * seconds_per_added_byte if each.adds else 0.0
            done[each.target] = max(done[each.target], end + added)
            sent[each.source] += moved
            received[each.target] += moved
            by_link[each.source, each.target] = by_link.get((each.source, each.target), 0.0) + moved
            _deliver(each, blocks, held[each.target])
        ready = done
    for rank in range(ranks):
        _check(schedule, rank, held[rank])
    return Simulation(max(ready), len(schedule.rounds), tuple(sent), tuple(received), by_link)


def _initial(schedule: Schedule, rank: int) -> dict[int, frozenset[int]]:
    every = range(schedule.blocks)
    match schedule.operation:
        case "all-reduce" | "reduce-scatter":
            return {at: frozenset({rank}) for at in every}
        case "all-gather":
            return {rank: frozenset({rank})}
        case "all-to-all":
            return {rank * schedule.ranks + peer: frozenset({rank}) for peer in range(schedule.ranks)}
    return {at: frozenset({0}) for at in every} if rank == 0 else {}


def _deliver(message: Message, blocks: dict[int, frozenset[int]], held: dict[int, frozenset[int]]) -> None:
    for at, contributors in blocks.items():
        if not message.adds:
            held[at] = contributors
        elif held[at] & contributors:
            raise ArgumentError(f"simulate(): block {at} of rank {message.target} has a contribution added twice")
        else:
            held[at] |= contributors


def _check(schedule: Schedule, rank: int, held: dict[int, frozenset[int]]) -> None:
    ranks, everyone = schedule.ranks, frozenset(range(schedule.ranks))
    match schedule.operation:
        case "all-reduce":
            right = all(held.get(at) == everyone for at in range(schedule.blocks))
        case "reduce-scatter":
            right = held.get(rank) == everyone
        case "all-gather":
            right = all(held.get(at) == frozenset({at}) for at in range(ranks))
        case "all-to-all":
            right = all(peer * ranks + rank in held for peer in range(ranks))
        case "broadcast":
            right = all(at in held for at in range(schedule.blocks))
        case _:
            right = rank != ranks - 1 or 0 in held
    if not right:
        raise ArgumentError(f"simulate(): after {schedule.operation} rank {rank} does not hold what it should")
