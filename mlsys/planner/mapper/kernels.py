"""Compiled loops of the mapper; imported by the functions that need them."""

import numpy as np

from mlsys.compiled import njit


@njit()
def _toll(leaving: int, cost: np.ndarray, at: int) -> float:
    """Return the cost of the operands that leave their memories in a step from a state, in order of borders."""
    total, border = 0.0, 0
    while leaving:
        if leaving & 1:
            total += cost[at, border]
        leaving >>= 1
        border += 1
    return total


@njit()
def shortest_path(
    lengths: np.ndarray,
    begins: np.ndarray,
    before: np.ndarray,
    bits: np.ndarray,
    cost: np.ndarray,
    room: np.ndarray,
    fixed: float,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the shortest path through a lattice: its cost, its states, and the last state that fits each border.

    Every step leads to a later state in memory order, so that one pass through the states finds all distances.

    Parameters
    ----------
    lengths
        Nodes of each loop; states are their product, with the last loop fastest.
    begins, before
        The predecessors of node j of loop d are ``before[begins[d, j] : begins[d, j + 1]]``.
    bits, cost
        For each state and border: bits held (NaN if infeasible), and the cost of leaving there.
    room
        Bits of each border.
    fixed
        Cost of the first state.

    Returns
    -------
    tuple
        Cost (infinite if the first state does not fit), states from first to last, and for each border the last state
        that it holds.
    """
    loops, states, borders = lengths.size, 1, room.size
    strides = np.ones(loops, np.int64)
    for loop in range(loops - 1, -1, -1):
        strides[loop] = states
        states *= lengths[loop]
    held = np.zeros(states, np.int64)  # one bit per border
    for state in range(states):
        for border in range(borders):
            held[state] |= (bits[state, border] <= room[border]) << border
    none = np.zeros(0, np.int64)
    if held[0] != (1 << borders) - 1:
        return np.inf, none, none

    distance, node = np.full(states, np.inf), np.zeros(loops, np.int64)
    distance[0] = fixed
    for state in range(1, states):
        loop = loops - 1
        while node[loop] == lengths[loop] - 1:
            node[loop] = 0
            loop -= 1
        node[loop] += 1
        least = np.inf
        for loop in range(loops):
            for step in range(begins[loop, node[loop]], begins[loop, node[loop] + 1]):
                came = state - (node[loop] - before[step]) * strides[loop]
                leaving = held[came] & ~held[state]
                least = min(least, distance[came] + (_toll(leaving, cost, came) if leaving else 0.0))
        distance[state] = least
    state = states - 1
    total = distance[state] + _toll(held[state], cost, state)
    if not np.isfinite(total):
        return total, none, none

    way, count = np.zeros(lengths.sum(), np.int64), 0
    last = np.full(borders, -1, np.int64)
    node[:] = lengths - 1
    while True:
        way[count] = state
        count += 1
        for border in range(borders):
            if last[border] < 0 and held[state] >> border & 1:
                last[border] = state
        if state == 0:
            return total, way[:count][::-1].copy(), last
        best = -1
        for loop in range(loops):
            for step in range(begins[loop, node[loop]], begins[loop, node[loop] + 1]):
                came = state - (node[loop] - before[step]) * strides[loop]
                paid = distance[came] + _toll(held[came] & ~held[state], cost, came)
                if abs(paid - distance[state]) <= 1e-13 * distance[state]:
                    best, node[loop] = came, before[step]
                    break
            if best >= 0:
                break
        if best < 0:  # impossible: every state has a predecessor
            raise ValueError("a state of the lattice has no predecessor")
        state = best
