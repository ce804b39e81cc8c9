"""Compiled inspection of a partial packing: floors, independent parts, overflows, and branches at a step.

Times are steps; ``first`` and ``last`` (exclusive) delimit the lifetime of each buffer. Buffers are numbered by their
first step, and ``start`` is the index of the first buffer of each step. See ``packing.py`` for the search.
"""

import numpy as np

from mlsys.compiled import njit

_FAR = 1 << 60


@njit(nogil=True)
def _hash(buffer: int, offset: int) -> np.uint64:
    """Return a 64-bit hash of a buffer and its lowest possible offset."""
    bits = np.uint64(buffer + 1) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(offset) * np.uint64(0xD6E8FEB86659FD93)
    bits ^= bits >> np.uint64(32)
    bits *= np.uint64(0xD6E8FEB86659FD93)
    bits ^= bits >> np.uint64(29)
    bits *= np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(32))


@njit(nogil=True)
def raise_floors(
    begin: int, end: int, first: np.ndarray, last: np.ndarray, size: np.ndarray, start: np.ndarray, capacity: int,
    left: np.ndarray, floor: np.ndarray, least: np.ndarray, slack: np.ndarray, reach: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Raise floors to the lowest usable offsets; return an overflowing step, or -1, and the number of buffers left.

    Outputs: the lowest offset of each remaining buffer, the space that may be wasted at each step (-1 if nothing is
    left), and the furthest end of the buffers that begin at each step.
    """
    for step in range(begin, end):
        slack[step] = 0
        reach[step] = _FAR
    count = 0
    for index in range(start[begin], start[end]):
        if left[index]:
            count += 1
            low = 0
            for step in range(first[index], last[index]):
                low = max(low, floor[step])
            least[index] = low
            for step in range(first[index], last[index]):
                slack[step] += size[index]
                reach[step] = min(reach[step], low)
    overflow = -1
    for step in range(begin, end):
        if slack[step]:
            floor[step] = reach[step]
            slack[step] = capacity - floor[step] - slack[step]
            if slack[step] < 0:
                overflow = step
        else:
            slack[step] = -1
        reach[step] = 0
    for index in range(start[begin], start[end]):
        if left[index]:
            reach[first[index]] = max(reach[first[index]], last[index])
    return overflow, count


@njit(nogil=True)
def first_part(begin: int, end: int, reach: np.ndarray) -> tuple[int, int]:
    """Return the steps of the first independent part, whose end no buffer crosses; empty if nothing is left."""
    while begin < end and reach[begin] == 0:
        begin += 1
    until = begin
    far = begin + 1
    while until < end and until < far:
        far = max(far, reach[until])
        until += 1
    return begin, until


@njit(nogil=True)
def _insert(listed: np.ndarray, count: int, buffer: int, key: np.ndarray) -> None:
    """Insert a buffer into the first ``count`` entries of a sorted list."""
    index = count
    while index and key[listed[index - 1]] > key[buffer]:
        listed[index] = listed[index - 1]
        index -= 1
    listed[index] = buffer


@njit(nogil=True)
def by_offset(
    begin: int, end: int, first: np.ndarray, left: np.ndarray, least: np.ndarray, order: np.ndarray, listed: np.ndarray
) -> int:
    """List the remaining buffers of a part, the lowest first, and return their number; `order` stays almost sorted."""
    count = 0
    for item in order:
        if left[item] and begin <= first[item] < end:
            _insert(listed, count, item, least)
            count += 1
    index = 0
    for at in range(len(order)):
        item = order[at]
        if left[item] and begin <= first[item] < end:
            order[at] = listed[index]
            index += 1
    return count


@njit(nogil=True)
def pile_up(
    listed: np.ndarray, begin: int, end: int, first: np.ndarray, last: np.ndarray, size: np.ndarray, capacity: int,
    least: np.ndarray, tops: np.ndarray,
) -> tuple[int, np.uint64]:  # fmt: skip
    """Return a step that overflows when the remaining buffers are stacked by lowest offset, or -1; and a hash."""
    for step in range(begin, end):
        tops[step] = 0
    state = np.uint64(0)
    for item in listed:
        state += _hash(item, least[item])
        for step in range(first[item], last[item]):
            tops[step] = max(tops[step], least[item]) + size[item]
            if tops[step] > capacity:
                return step, state
    return -1, state


@njit(nogil=True)
def choose_step(
    listed: np.ndarray, begin: int, end: int, first: np.ndarray, last: np.ndarray, size: np.ndarray,
    floor: np.ndarray, least: np.ndarray, slack: np.ndarray, weight: np.ndarray, niche: np.ndarray,
    choices: np.ndarray, above: np.ndarray, lift: np.ndarray,
) -> int:  # fmt: skip
    """Return the step of a niche with the fewest branches relative to its weight.

    Outputs: the index of the niche at each step (-1 if there is none), and the lowest offset at each step of buffers
    outside a niche; `lift` is scratch space.
    """
    step = begin
    while step < end:
        edge = step
        while step < end and floor[step] == floor[edge]:
            step += 1
        walled = (edge == begin or floor[edge - 1] > floor[edge]) and (step == end or floor[step] > floor[edge])
        for inside in range(edge, step):
            niche[inside] = edge if walled else -1
            choices[inside] = 0
            above[inside] = _FAR
            lift[inside] = _FAR
    for item in listed:
        home = niche[first[item]]
        within = home >= 0 and home == niche[last[item] - 1]
        for step in range(first[item], last[item]):
            if within:
                choices[step] += 1
                lift[home] = min(lift[home], size[item])
            else:
                above[step] = min(above[step], least[item])
    chosen = -1
    fewest = 1e300
    for step in range(begin, end):
        home = niche[step]
        if home >= 0:
            gap = min(above[step] - floor[step], lift[home])  # no smaller gap is possible there
            number = choices[step] + (1 if gap <= slack[step] else 0)
            score = number / weight[step] if number > 1 else -1.0
            if score < fewest:
                fewest = score
                chosen = step
    return chosen


@njit(nogil=True)
def _beside(first: np.ndarray, last: np.ndarray, step: int, buffer: int, other: int) -> bool:
    """Return whether another buffer overlaps one in time, but not at a step."""
    away = first[other] > step or last[other] <= step
    meets: bool = away and first[other] < last[buffer] and first[buffer] < last[other]
    return meets


@njit(nogil=True)
def branches(
    listed: np.ndarray, step: int, first: np.ndarray, last: np.ndarray, size: np.ndarray, rank: np.ndarray,
    floor: np.ndarray, least: np.ndarray, slack: np.ndarray, niche: np.ndarray, resting: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Write the buffers that may rest on the floor at a step, then -1 if a gap may; return their number and end."""
    count = 0
    low = floor[step]
    end = _FAR
    for item in listed:
        if not first[item] <= step < last[item]:
            continue
        if niche[first[item]] < 0 or niche[first[item]] != niche[last[item] - 1]:
            end = min(end, least[item])
            continue
        _insert(resting, count, item, rank)
        count += 1
    for index in range(count):  # a higher one must rest on another
        item = resting[index]
        for other in listed:
            if least[other] >= end:
                break
            if _beside(first, last, step, item, other):
                end = min(end, least[other] + size[other])
    if end - low > slack[step]:
        return count, end
    for index in range(count):  # no gap that could hold a buffer which nothing else keeps out
        item = resting[index]
        kept_out = low + size[item] > end
        for other in listed:
            if kept_out or least[other] >= low + size[item]:
                break
            kept_out = _beside(first, last, step, item, other)
        if not kept_out:
            return count, end
    resting[count] = -1
    return count + 1, end
