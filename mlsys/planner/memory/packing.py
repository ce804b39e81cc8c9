"""A search for offsets below a given capacity, compiled: complete, so that it can also prove that none fit.

Buffers are placed from the bottom up. In a packing that cannot be pushed down any further, some order of
placing has offsets that never fall, and each buffer rests on another one or on the floor: so only the lowest
offset of each buffer need be tried. Pruned is what cannot be completed (what is left at a step must fit above
the floor there), what repeats another order, and what leaves room under it for a whole buffer. When the
buffers that are left fall apart in time, the parts are searched by themselves.

The idea of ordering and of the pruning is that of M. D. Moffitt, MiniMalloc, ASPLOS 2023.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["search_offsets"]


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    members, bottom, bottom_rank, sizes, first, last, rank, near_starts, near, capacity, left, offsets,
    least, tops, state,
):  # fmt: skip
    """Place the buffers of a part, listed by rank: 1 if they were placed, 0 if none fit, -1 if stopped.

    Nothing is changed unless they were placed. `state` is the nodes spent and the nodes allowed; `tops` has a place
    for each step and is room to work in.
    """
    count = len(members)
    if count == 0:
        return 1
    state[0] += 1
    if state[0] > state[1]:
        return -1
    # What is left at a step is piled up from the lowest place where each may lie: above `capacity` none fit.
    order = np.empty(count, np.int64)
    begin, end = first[members[0]], last[members[0]]
    for place in range(count):
        one = members[place]
        begin = min(begin, first[one])
        end = max(end, last[one])
        back = place
        while back and least[order[back - 1]] > least[one]:
            order[back] = order[back - 1]
            back -= 1
        order[back] = one
    for step in range(begin, end):
        tops[step] = 0
    ceiling = capacity + 1
    for one in order:
        low = max(least[one], bottom)
        ceiling = min(ceiling, least[one] + sizes[one])
        for step in range(first[one], last[one]):
            tops[step] = max(tops[step], low) + sizes[one]
            if tops[step] > capacity:
                return 0
    # Where nothing crosses, the parts are searched by themselves.
    part = np.zeros(end - begin, np.int64)
    parts = 0
    ends_by = np.zeros(end - begin + 1, np.int64)
    for one in members:
        ends_by[first[one] - begin + 1] += 1
        ends_by[last[one] - begin] -= 1
    running = 0
    for step in range(end - begin):
        running += ends_by[step]  # buffers that lie on both sides of the start of this step
        if running == 0:
            parts += 1
        part[step] = parts
    home = part[first[members[0]] - begin]
    single = True
    for one in members:
        if part[first[one] - begin] != home:
            single = False
    if not single:
        for index in range(parts + 1):
            inside = 0
            chosen = np.empty(count, np.int64)
            for one in members:
                if part[first[one] - begin] == index:
                    chosen[inside] = one
                    inside += 1
            answer = _search(
                chosen[:inside], bottom, bottom_rank, sizes, first, last, rank, near_starts, near, capacity, left,
                offsets, least, tops, state,
            )  # fmt: skip
            if answer != 1:
                for one in members:
                    if part[first[one] - begin] < index:
                        left[one] = True
                for one in members:  # what lay above what was taken back may lie lower again
                    low = 0
                    for edge in range(near_starts[one], near_starts[one + 1]):
                        if not left[near[edge]]:
                            low = max(low, offsets[near[edge]] + sizes[near[edge]])
                    least[one] = low
                return answer
        return 1
    olds = np.empty(count, np.int64)
    for place in range(count):
        one = order[place]
        offset = max(least[one], bottom)
        if offset >= ceiling:
            if least[one] >= ceiling:
                break
            continue
        if offset == bottom and rank[one] < bottom_rank:
            continue
        left[one] = False
        offsets[one] = offset
        top = offset + sizes[one]
        changed = 0
        fits = True
        for edge in range(near_starts[one], near_starts[one + 1]):
            other = near[edge]
            if left[other]:
                olds[changed] = least[other]
                changed += 1
                if least[other] < top:
                    least[other] = top
                    if top + sizes[other] > capacity:
                        fits = False
        answer = 0
        if fits:
            rest = np.empty(count, np.int64)
            kept = 0
            for other in members:
                if other != one:
                    rest[kept] = other
                    kept += 1
            answer = _search(
                rest[:kept], offset, rank[one], sizes, first, last, rank, near_starts, near, capacity, left, offsets,
                least, tops, state,
            )  # fmt: skip
            if answer == 1:
                return 1
        left[one] = True
        changed = 0
        for edge in range(near_starts[one], near_starts[one + 1]):
            other = near[edge]
            if left[other]:
                least[other] = olds[changed]
                changed += 1
        if answer == -1:
            return -1
    return 0


def search_offsets(  # type: ignore[no-untyped-def]
    order, sizes, first, last, rank, near_starts, near, capacity, offsets, steps, allowed
):
    """Return 1 if `offsets` were found, 0 if there are none, -1 if stopped after `allowed` nodes; and the nodes.

    Parameters
    ----------
    order
        Buffers, those preferred first.
    sizes, first, last, rank
        Bytes, first step, step after the last, and place in ``order`` of each, shape (buffers,).
    near_starts, near
        Compressed rows: the buffers alive together with each.
    capacity
        Bytes of the block.
    offsets
        Written: bytes, shape (buffers,).
    steps
        How many there are.
    allowed
        Nodes after which the search stops.
    """
    state = np.array([0, allowed], np.int64)
    outcome = _search(
        order, 0, -1, sizes, first, last, rank, near_starts, near, capacity, np.ones(len(sizes), np.bool_), offsets,
        np.zeros(len(sizes), np.int64), np.zeros(steps + 1, np.int64), state,
    )  # fmt: skip
    return outcome, state[0]
