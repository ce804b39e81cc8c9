"""A search for offsets below a given capacity, compiled: complete, so that it can also prove that none fit.

Buffers are placed from the bottom up, so that at any time each step of the run has a floor. A *niche* is a stretch of
steps whose floors are level and lower than both sides; whatever comes to rest on its floor lies within it. So at a
step of a niche the next thing above the floor is one of few buffers, or a gap: these are the branches, and they
exclude each other. Taken is always the step, of any niche, that has the fewest branches for how often the search
failed there (F. Boussemart et al., Boosting systematic search by weighting constraints, ECAI 2004).

A packing that cannot be pushed down rests on itself, so a gap ends where something rests, and is not left where a
buffer could lie that nothing keeps out. What is left at a step, piled up from the lowest offset that each buffer may
have, must stay below the capacity. What falls apart in time is searched by itself, and states that failed are
remembered, since the same floors come about in many ways.

That pushed-down packings are enough, that what is left at a step bounds the search, and that it is to be split in
time, is in M. D. Moffitt, MiniMalloc, ASPLOS 2023, where buffers are placed by rising offset instead.
"""

import numpy as np

from mlsys.compiled import njit
from mlsys.planner.memory.niches import branches, by_offset, choose_step, first_part, pile_up, raise_floors
from mlsys.planner.memory.sections import FOUND, NONE, STOPPED

_GROWTH = 1.0005
_MOST_WEIGHT = 1e50
_LOOK, _DONE, _FAILED, _BRANCH = 0, 1, 2, 3


@njit(nogil=True)
def search_offsets(
    first: np.ndarray, last: np.ndarray, size: np.ndarray, start: np.ndarray, rank: np.ndarray, capacity: int,
    failed: np.ndarray, offsets: np.ndarray, allowed: int, stop: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Return `FOUND`, `NONE` if there are no offsets, or `STOPPED`; and the states looked at.

    Parameters
    ----------
    first, last
        Step in which each begins, and step after its last one, shape (buffers,); ordered by ``first``.
    size
        Bytes of each, or a multiple of them.
    start
        Place of the first buffer that begins in a step or later, shape (steps + 1,).
    rank
        Which are tried first where several may lie.
    capacity
        Of the block.
    failed
        Room for hashes of states that failed, as many as a power of two; kept between searches.
    offsets
        Written, shape (buffers,).
    allowed
        States after which the search stops.
    stop
        It also stops when the only entry of this array is not 0.
    """
    number = len(first)
    steps = len(start) - 1
    mask = np.uint64(len(failed) - 1)
    left = np.ones(number, np.bool_)
    floor = np.zeros(steps, np.int64)
    least = np.zeros(number, np.int64)
    slack, reach, tops = np.zeros(steps, np.int64), np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    niche, choices, above = np.zeros(steps, np.int64), np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    weight, grain = np.ones(steps), 1.0
    order, listed = np.arange(number), np.zeros(number, np.int64)
    trail, placed = np.zeros(number, np.int64), 0
    # Frames of the search: where a branch was taken at a step (`at`), or where parts are searched in turn (-1).
    depth = 4 * (number + steps) + 64
    top = -1
    begins, ends, at = np.zeros(depth, np.int64), np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    placed_by, floors = np.zeros(depth, np.int64), np.empty((depth, steps), np.int64)
    turn, turns = np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    gap_end, state_of = np.zeros(depth, np.int64), np.zeros(depth, np.uint64)
    options, base = np.zeros(64 * number + 64, np.int64), np.zeros(depth + 1, np.int64)
    begin, end = np.int64(0), np.int64(steps)  # one type, so that what follows is compiled once
    looked = 0
    mode = _LOOK
    while True:
        if mode == _LOOK:
            looked += 1
            if looked > allowed or stop[0] or top + 3 > depth or base[top + 1] + number + 1 > len(options):
                return STOPPED, looked
            mode = _FAILED
            overflow, count = raise_floors(
                begin, end, first, last, size, start, capacity, left, floor, least, slack, reach
            )  # fmt: skip
            if overflow >= 0:
                weight[overflow] += grain
                continue
            if count == 0:
                mode = _DONE
                continue
            part_begin, part_end = first_part(begin, end, reach)
            if first_part(part_end, end, reach)[0] < end:
                top += 1
                begins[top], ends[top], at[top], turn[top], placed_by[top] = begin, end, -1, part_end, placed
                for here in range(begin, end):
                    floors[top, here] = floor[here]
                base[top + 1] = base[top]
            begin, end = part_begin, part_end
            count = by_offset(begin, end, first, left, least, order, listed)
            mine = listed[:count]
            overflow, state = pile_up(mine, begin, end, first, last, size, capacity, least, tops)
            if overflow >= 0:
                weight[overflow] += grain
                continue
            if failed[state & mask] == state:
                continue
            step = choose_step(
                mine, begin, end, first, last, size, floor, least, slack, weight, niche, choices, above, tops
            )  # fmt: skip
            top += 1
            begins[top], ends[top], at[top], turn[top], placed_by[top] = begin, end, step, 0, placed
            for here in range(begin, end):
                floors[top, here] = floor[here]
            state_of[top] = state
            turns[top], gap_end[top] = branches(
                mine, step, first, last, size, rank, floor, least, slack, niche, options[base[top] :]
            )  # fmt: skip
            base[top + 1] = base[top] + turns[top]
            mode = _BRANCH
        elif mode == _BRANCH:
            if turn[top] == turns[top]:
                failed[state_of[top] & mask] = state_of[top]
                grain *= _GROWTH
                if grain > _MOST_WEIGHT:
                    for here in range(steps):
                        weight[here] = max(weight[here] / grain, 1e-3)
                    grain = 1.0
                top -= 1
                mode = _FAILED
                continue
            item = options[base[top] + turn[top]]
            turn[top] += 1
            begin, end = begins[top], ends[top]
            if item >= 0:
                offsets[item] = floor[at[top]]
                for here in range(first[item], last[item]):
                    floor[here] = offsets[item] + size[item]
                left[item] = False
                trail[placed] = item
                placed += 1
            else:
                floor[at[top]] = gap_end[top]
            mode = _LOOK
        elif mode == _FAILED:
            if top < 0:
                return NONE, looked
            while placed > placed_by[top]:
                placed -= 1
                left[trail[placed]] = True
            for here in range(begins[top], ends[top]):
                floor[here] = floors[top, here]
            if at[top] < 0:
                top -= 1
            else:
                mode = _BRANCH
        else:
            while top >= 0 and at[top] >= 0:
                top -= 1
            if top < 0:
                return FOUND, looked
            begin, end = turn[top], ends[top]  # the parts that are left
            top -= 1
            mode = _LOOK
