"""Schedules of collective operations: which rank sends which blocks to whom, round by round.

The array is cut into blocks. A reduction adds the contributions of ranks to a block; a copy hands on what a block
holds. The simulator beside this module runs a schedule and checks what every rank holds in the end.
"""

from collections.abc import Callable
from dataclasses import dataclass

from mlsys.choices import Collective, CollectiveAlgorithm
from mlsys.unit_checks import checked_count, checked_counts


@dataclass(frozen=True, slots=True)
class Message:
    """Blocks that one rank sends to another in one round, added to what is there or copied over it."""

    source: int
    target: int
    blocks: tuple[int, ...]
    adds: bool = False


Round = list[Message]


@dataclass(frozen=True)
class Schedule:
    """Rounds of messages; ``blocks`` is the number of different blocks of all ranks together."""

    operation: Collective
    ranks: int
    blocks: int
    rounds: list[Round]

    @property
    def blocks_per_array(self) -> int:
        """Blocks that the array of one rank is cut into; in an all-to-all each rank has other ones."""
        return self.ranks if self.operation == "all-to-all" else self.blocks


def _ring(ranks: int, first: int, adds: bool) -> list[Round]:
    """Return p-1 rounds in which every rank sends one block to the next; rank 0 begins with block ``first``."""
    return [
        [
            Message(rank, (rank + 1) % ranks, ((rank + first - step) % ranks,), adds)
            for rank in range(ranks)
            if ranks > 1
        ]
        for step in range(ranks - 1)
    ]


def _ring_all_gather(ranks: int) -> list[Round]:
    return _ring(ranks, 0, False)


def _ring_reduce_scatter(ranks: int) -> list[Round]:
    return _ring(ranks, -1, True)


def _ring_all_reduce(ranks: int) -> list[Round]:
    return _ring(ranks, -1, True) + _ring(ranks, 0, False)


def _bruck_all_gather(ranks: int) -> list[Round]:
    """Return rounds in which a rank sends all that it has to the rank as many places below, at most what is missing."""
    rounds, held = [], 1
    while held < ranks:
        size = min(held, ranks - held)
        rounds.append(
            [
                Message(rank, (rank - held) % ranks, tuple((rank + at) % ranks for at in range(size)))
                for rank in range(ranks)
            ]
        )
        held += size
    return rounds


def _halving(ranks: int) -> list[Round]:
    """Return the reduce-scatter by recursive halving, for a power of two."""
    rounds, distance = [], ranks // 2
    while distance:
        rounds.append(
            [
                Message(
                    rank,
                    rank ^ distance,
                    tuple(
                        block
                        for block in range(ranks)
                        if block // (2 * distance) == rank // (2 * distance) and (block & distance) != (rank & distance)
                    ),
                    True,
                )
                for rank in range(ranks)
            ]
        )
        distance //= 2
    return rounds


def _doubling_all_gather(ranks: int) -> list[Round]:
    """Return the all-gather by recursive doubling, for a power of two."""
    rounds, distance = [], 1
    while distance < ranks:
        rounds.append(
            [
                Message(
                    rank,
                    rank ^ distance,
                    tuple(block for block in range(ranks) if block // distance == rank // distance),
                )
                for rank in range(ranks)
            ]
        )
        distance *= 2
    return rounds


def _all_blocks(blocks: int) -> tuple[int, ...]:
    return tuple(range(blocks))


def _folded(ranks: int, inner: Callable[[int], list[Round]], blocks: int) -> list[Round]:
    """Return a schedule of a power of two for any number of ranks: the others hand over first and receive last."""
    power = 1 << (ranks.bit_length() - 1)
    extra = range(power, ranks)
    before = [[Message(rank, rank - power, _all_blocks(blocks), True) for rank in extra]] if extra else []
    after = [[Message(rank - power, rank, _all_blocks(blocks)) for rank in extra]] if extra else []
    return before + inner(power) + after


def _doubling_all_reduce(power: int) -> list[Round]:
    return [
        [Message(rank, rank ^ (1 << bit), (0,), True) for rank in range(power)] for bit in range(power.bit_length() - 1)
    ]


def _rabenseifner(power: int) -> list[Round]:
    return _halving(power) + _doubling_all_gather(power)


def _tree_broadcast(ranks: int, blocks: int = 1) -> list[Round]:
    """Return the broadcast down a binomial tree from rank 0: holders double."""
    rounds, distance = [], 1
    while distance < ranks:
        rounds.append(
            [Message(rank, rank + distance, _all_blocks(blocks)) for rank in range(distance) if rank + distance < ranks]
        )
        distance *= 2
    return rounds


def _tree_all_reduce(ranks: int) -> list[Round]:
    down = _tree_broadcast(ranks)
    up = [[Message(each.target, each.source, (0,), True) for each in round_] for round_ in reversed(down)]
    return up + down


def _scatter(ranks: int) -> list[Round]:
    """Return the scatter from rank 0 for a power of two: halves go away, then quarters."""
    rounds, distance = [], ranks // 2
    while distance:
        rounds.append(
            [
                Message(rank, rank + distance, tuple(range(rank + distance, rank + 2 * distance)))
                for rank in range(0, ranks, 2 * distance)
            ]
        )
        distance //= 2
    return rounds


def _pairwise_all_to_all(ranks: int) -> list[Round]:
    return [
        [Message(rank, (rank + step) % ranks, (rank * ranks + (rank + step) % ranks,)) for rank in range(ranks)]
        for step in range(1, ranks)
    ]


def _direct_all_to_all(ranks: int) -> list[Round]:
    return [[message for round_ in _pairwise_all_to_all(ranks) for message in round_]] if ranks > 1 else []


def _bruck_all_to_all(ranks: int) -> list[Round]:
    """Return rounds in which blocks travel the binary digits of their distance."""
    rounds: list[Round] = []
    bit = 1
    while bit < ranks:
        moved: dict[int, list[int]] = {rank: [] for rank in range(ranks)}
        for source in range(ranks):
            for distance in range(ranks):
                if distance & bit:
                    at = (source + (distance & (bit - 1))) % ranks
                    moved[at].append(source * ranks + (source + distance) % ranks)
        rounds.append([Message(rank, (rank + bit) % ranks, tuple(blocks)) for rank, blocks in moved.items()])
        bit *= 2
    return rounds


def _direct(ranks: int, adds: bool) -> list[Round]:
    """Return one round in which every rank sends each peer the peer's block (adding) or its own (a copy)."""
    if ranks == 1:
        return []
    return [
        [
            Message(rank, peer, (peer if adds else rank,), adds)
            for rank in range(ranks)
            for peer in range(ranks)
            if peer != rank
        ]
    ]


def hierarchical_all_reduce(ranks_per_node: int, nodes: int) -> Schedule:
    """Return the schedule of an all-reduce in three parts; rank ``node * ranks_per_node + place``.

    Examples
    --------
    >>> len(hierarchical_all_reduce(4, 2).rounds)
    8
    """
    size, count = checked_counts("hierarchical_all_reduce", ranks_per_node=ranks_per_node, nodes=nodes)

    # Block (part, piece): the part that a place of each node reduces, in pieces that go round between the nodes.
    def block(part: int, piece: int) -> int:
        return part * count + piece

    def inside(rounds: list[Round]) -> list[Round]:
        return [
            [
                Message(
                    node * size + each.source,
                    node * size + each.target,
                    tuple(block(part, piece) for part in each.blocks for piece in range(count)),
                    each.adds,
                )
                for node in range(count)
                for each in round_
            ]
            for round_ in rounds
        ]

    between = [
        [
            Message(
                each.source * size + place,
                each.target * size + place,
                tuple(block(place, piece) for piece in each.blocks),
                each.adds,
            )
            for place in range(size)
            for each in round_
        ]
        for round_ in _ring_all_reduce(count)
    ]
    rounds = inside(_ring_reduce_scatter(size)) + between + inside(_ring_all_gather(size))
    return Schedule("all-reduce", size * count, size * count, rounds)


def double_tree(ranks: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the parents of each rank in two binary trees in which no rank passes on in both; -1 at the root.

    In the first tree a rank's level is its lowest set bit; the second is the first mirrored if the number of ranks is
    even, else shifted by one. Each tree carries half of the array, so that every rank sends and receives alike.

    References
    ----------
    P. Sanders, J. Speck, J. L. Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel
    Computing 35(12), 2009; NVIDIA/nccl, src/graph/trees.cc.

    Examples
    --------
    >>> double_tree(4)
    ((-1, 2, 0, 2), (1, 3, 1, -1))
    """
    ranks = checked_count("double_tree", "ranks", ranks)
    first = tuple(_parent(rank, ranks) for rank in range(ranks))
    if ranks % 2 == 0:
        second = tuple(-1 if (up := first[ranks - 1 - rank]) < 0 else ranks - 1 - up for rank in range(ranks))
    else:
        second = tuple(-1 if (up := first[(rank - 1) % ranks]) < 0 else (up + 1) % ranks for rank in range(ranks))
    return first, second


def _parent(rank: int, ranks: int) -> int:
    if rank == 0:
        return -1
    low = rank & -rank
    up = (rank ^ low) | (low << 1)
    return up if up < ranks else rank ^ low


def _power(ranks: int) -> int:
    return 1 << (ranks.bit_length() - 1)


def schedule(operation: Collective, algorithm: CollectiveAlgorithm, ranks: int) -> Schedule | None:
    """Return the schedule of an operation by an algorithm, None if the algorithm does not serve so many ranks.

    Examples
    --------
    >>> [len(round_) for round_ in schedule("all-reduce", "tree", 4).rounds]
    [2, 1, 1, 2]
    >>> schedule("reduce-scatter", "recursive halving", 6) is None
    True
    """
    ranks = checked_count("schedule", "ranks", ranks)
    power = _power(ranks) == ranks
    match operation, algorithm:
        case "all-gather", "ring":
            return Schedule(operation, ranks, ranks, _ring_all_gather(ranks))
        case "all-gather", "recursive doubling":
            rounds = _doubling_all_gather(ranks) if power else _bruck_all_gather(ranks)
            return Schedule(operation, ranks, ranks, rounds)
        case (("all-gather" | "reduce-scatter"), "direct"):
            return Schedule(operation, ranks, ranks, _direct(ranks, operation == "reduce-scatter"))
        case "reduce-scatter", "ring":
            return Schedule(operation, ranks, ranks, _ring_reduce_scatter(ranks))
        case "reduce-scatter", "recursive halving" if power:
            return Schedule(operation, ranks, ranks, _halving(ranks))
        case "all-reduce", "ring":
            return Schedule(operation, ranks, ranks, _ring_all_reduce(ranks))
        case "all-reduce", "direct":
            return Schedule(operation, ranks, ranks, _direct(ranks, True) + _direct(ranks, False))
        case "all-reduce", "recursive doubling":
            return Schedule(operation, ranks, 1, _folded(ranks, _doubling_all_reduce, 1))
        case "all-reduce", "rabenseifner":
            return Schedule(operation, ranks, _power(ranks), _folded(ranks, _rabenseifner, _power(ranks)))
        case "all-reduce", "tree":
            return Schedule(operation, ranks, 1, _tree_all_reduce(ranks))
        case "all-to-all", "pairwise":
            return Schedule(operation, ranks, ranks * ranks, _pairwise_all_to_all(ranks))
        case "all-to-all", "direct":
            return Schedule(operation, ranks, ranks * ranks, _direct_all_to_all(ranks))
        case "all-to-all", "bruck":
            return Schedule(operation, ranks, ranks * ranks, _bruck_all_to_all(ranks))
        case "broadcast", "tree":
            return Schedule(operation, ranks, 1, _tree_broadcast(ranks))
        case "broadcast", "ring" if power:
            return Schedule(operation, ranks, ranks, _scatter(ranks) + _ring_all_gather(ranks))
        case "send-recv", "direct":
            return Schedule(operation, ranks, 1, [[Message(0, ranks - 1, (0,))]] if ranks > 1 else [])
    return None
