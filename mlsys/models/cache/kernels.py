"""Numba kernels; imported lazily by the functions that need them."""

import numpy as np

from mlsys.compiled import njit

WRITE_BACK = 128
"""Flag of an event between levels that is a dirty line being written back, not an access."""


@njit(nogil=True)
def fill_gemm(
    sizes: np.ndarray, edges: np.ndarray, loops: np.ndarray, steps: np.ndarray, bases: np.ndarray, element: int,
    registers: bool, addresses: np.ndarray, kinds: np.ndarray,
) -> None:  # fmt: skip
    """Write the accesses of a blocked matrix product C = A B; loop 1 does not index A, loop 0 not B, loop 2 not C."""
    n, k = sizes[1], sizes[2]
    x0, x1, x2 = steps[0], steps[1], steps[2]
    kept = -1  # the operand kept in a register: the one that the innermost loop does not index
    if registers:
        kept = 0 if x2 == 1 else 1 if x2 == 0 else 2
    start, end, at = np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64)
    index = np.zeros(3, np.int64)
    p = 0
    for t0 in range(0, sizes[loops[0]], edges[loops[0]]):
        start[loops[0]], end[loops[0]] = t0, min(t0 + edges[loops[0]], sizes[loops[0]])
        for t1 in range(0, sizes[loops[1]], edges[loops[1]]):
            start[loops[1]], end[loops[1]] = t1, min(t1 + edges[loops[1]], sizes[loops[1]])
            for t2 in range(0, sizes[loops[2]], edges[loops[2]]):
                start[loops[2]], end[loops[2]] = t2, min(t2 + edges[loops[2]], sizes[loops[2]])
                for i0 in range(start[x0], end[x0]):
                    at[x0] = i0
                    for i1 in range(start[x1], end[x1]):
                        at[x1] = i1
                        for i2 in range(start[x2], end[x2]):
                            at[x2] = i2
                            index[0] = bases[0] + (at[0] * k + at[2]) * element
                            index[1] = bases[1] + (at[2] * n + at[1]) * element
                            index[2] = bases[2] + (at[0] * n + at[1]) * element
                            if kept >= 0 and i2 == start[x2]:
                                addresses[p], kinds[p] = index[kept], 2 * kept
                                p += 1
                            for operand in range(3):
                                if operand != kept:
                                    addresses[p], kinds[p] = index[operand], 2 * operand
                                    p += 1
                            if kept != 2:
                                addresses[p], kinds[p] = index[2], 5
                                p += 1
                        if kept == 2:
                            addresses[p], kinds[p] = index[2], 5
                            p += 1


@njit(nogil=True)
def fill_conv(
    shape: np.ndarray, cut: np.ndarray, strides: np.ndarray, bases: np.ndarray, element: int, addresses: np.ndarray,
    kinds: np.ndarray,
) -> int:  # fmt: skip
    """Write the accesses of a blocked convolution and return their number."""
    images, into, filters, size, out, taps, step, pad = shape
    p = 0
    for image in range(images):
        for row in range(0, out, cut[0]):
            for column in range(0, out, cut[1]):
                for filter_ in range(0, filters, cut[2]):
                    for channel in range(0, into, cut[3]):
                        for f in range(filter_, min(filter_ + cut[2], filters)):
                            for y in range(row, min(row + cut[0], out)):
                                for x in range(column, min(column + cut[1], out)):
                                    z = strides[2]
                                    index = image * z[0] + f * z[1] + y * z[2] + x * z[3]
                                    index = bases[2] + index * element
                                    addresses[p], kinds[p] = index, 4
                                    p += 1
                                    for c in range(channel, min(channel + cut[3], into)):
                                        for u in range(taps):
                                            i = y * step + u - pad
                                            if i < 0 or i >= size:
                                                continue
                                            for v in range(taps):
                                                j = x * step + v - pad
                                                if j < 0 or j >= size:
                                                    continue
                                                z = strides[0]
                                                q = image * z[0] + c * z[1] + i * z[2] + j * z[3]
                                                addresses[p], kinds[p] = bases[0] + q * element, 0
                                                z = strides[1]
                                                q = f * z[0] + c * z[1] + u * z[2] + v * z[3]
                                                addresses[p + 1], kinds[p + 1] = bases[1] + q * element, 2
                                                p += 2
                                    addresses[p], kinds[p] = index, 5
                                    p += 1
    return p


@njit(nogil=True)
def line_range(addresses: np.ndarray) -> tuple[int, int]:
    """Return the lowest and the highest address."""
    low = high = addresses[0]
    for address in addresses:
        low, high = min(low, address), max(high, address)
    return low, high


@njit(nogil=True)
def numbered(addresses: np.ndarray, shift: int, first: int, ids: np.ndarray) -> None:
    """Write the line number of each address, relative to ``first``, for lines of 2**shift bytes."""
    for p in range(len(addresses)):
        ids[p] = (addresses[p] >> shift) - first


@njit(nogil=True)
def run_level(
    lines: np.ndarray, kinds: np.ndarray, where: np.ndarray, numbers: np.ndarray, sets: int, ways: int,
    first_level: bool, events: np.ndarray, event_kinds: np.ndarray, misses: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Run accesses through one level of cache.

    ``lines`` are dense ids, ``numbers`` the line number of each id, ``where`` the slot of each
    id or −1. Each set keeps its slots in a doubly linked ring, the most recent at its head.
    Requests to the next level are written to ``events`` (ids): first the dirty line that was
    evicted, then the line that is fetched; nothing is written if ``events`` is empty. Beyond the
    first level a write that missed above only fetches: the line becomes dirty when it is written
    back. Returns the number of events and of lines written back.
    """
    slots = sets * ways
    newer, older = np.empty(slots, np.int32), np.empty(slots, np.int32)
    head, used = np.zeros(sets, np.int32), np.zeros(sets, np.int32)
    held, dirty = np.empty(slots, np.int32), np.zeros(slots, np.bool_)
    for s in range(sets):
        head[s] = s * ways
    out = backs = 0
    reporting = len(events) > 0
    for p in range(len(lines)):
        line, kind = lines[p], kinds[p]
        slot = where[line]
        if kind & WRITE_BACK:  # written back from the level above: not a use, so recency is unchanged
            if slot >= 0:
                dirty[slot] = True
            elif reporting:
                events[out], event_kinds[out] = line, kind
                out += 1
            continue
        if slot >= 0:
            s = slot // ways
            first = head[s]
            if slot != first:
                if slot != newer[first]:  # newer of the head closes the ring: it is the tail
                    newer[older[slot]], older[newer[slot]] = newer[slot], older[slot]
                    tail = newer[first]
                    older[tail], newer[slot], older[slot], newer[first] = slot, tail, first, slot
                head[s] = slot
            dirty[slot] |= first_level and (kind & 1) != 0
            continue
        misses[kind] += 1
        s = numbers[line] % sets
        first = head[s]
        if used[s] < ways:
            slot = s * ways + used[s]
            if used[s] == 0:
                newer[slot] = older[slot] = slot
            else:
                tail = newer[first]
                older[tail], newer[slot], older[slot], newer[first] = slot, tail, first, slot
            used[s] += 1
        else:
            slot = newer[first]  # the tail becomes the head: the ring turns by one
            if dirty[slot]:
                backs += 1
                if reporting:
                    events[out], event_kinds[out] = held[slot], WRITE_BACK
                    out += 1
            where[held[slot]] = -1
        head[s] = slot
        held[slot], where[line] = line, slot
        dirty[slot] = first_level and (kind & 1) != 0
        if reporting:
            events[out], event_kinds[out] = line, kind
            out += 1
    for s in range(sets):
        for slot in range(s * ways, s * ways + used[s]):
            if dirty[slot]:
                backs += 1
                if reporting:
                    events[out], event_kinds[out] = held[slot], WRITE_BACK
                    out += 1
    return out, backs


@njit(nogil=True)
def run_one_set(
    lines: np.ndarray, kinds: np.ndarray, count: int, room: int, first_level: bool, events: np.ndarray,
    event_kinds: np.ndarray, misses: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Run accesses through a fully associative LRU level of ``room`` lines.

    As :func:`run_level`, but only the time of each line's last use is stored. The least recently
    used line is found by walking along the trace to the first access that is still its line's
    last; lines last used before that position have been evicted.
    """
    last, dirty = np.full(count, -1, np.int64), np.zeros(count, np.bool_)
    oldest = held = out = backs = 0
    reporting = len(events) > 0
    for p in range(len(lines)):
        line, kind = lines[p], kinds[p]
        if last[line] >= oldest:
            if kind & WRITE_BACK:  # written back from the level above: not a use, so recency is unchanged
                dirty[line] = True
            else:
                last[line] = p
                dirty[line] |= first_level and (kind & 1) != 0
            continue
        if kind & WRITE_BACK:
            if reporting:
                events[out], event_kinds[out] = line, kind
                out += 1
            continue
        misses[kind] += 1
        if held == room:
            while last[lines[oldest]] != oldest:
                oldest += 1
            gone = lines[oldest]
            oldest += 1
            if dirty[gone]:
                backs += 1
                if reporting:
                    events[out], event_kinds[out] = gone, WRITE_BACK
                    out += 1
        else:
            held += 1
        last[line], dirty[line] = p, first_level and (kind & 1) != 0
        if reporting:
            events[out], event_kinds[out] = line, kind
            out += 1
    for line in range(count):
        if last[line] >= oldest and dirty[line]:
            backs += 1
            if reporting:
                events[out], event_kinds[out] = line, WRITE_BACK
                out += 1
    return out, backs


@njit(nogil=True)
def reuse_distances(lines: np.ndarray, count: int, histogram: np.ndarray) -> None:
    """Add a histogram of the reuse distances of all accesses whose line was touched before.

    The distance is the number of distinct other lines touched since. A Fenwick tree over time has
    a one at the last touch of each line; when its time slots are used up, touches are renumbered.
    """
    room = 1
    while room < 2 * count + 64:
        room *= 2
    tree = np.zeros(room + 1, np.int32)
    last = np.full(count, -1, np.int64)  # the time of each line's last touch
    touched_at = np.full(room, -1, np.int64)  # the line that was touched at each time
    touched = now = 0
    before = -1
    for p in range(len(lines)):
        line = lines[p]
        if line == before:
            histogram[0] += 1
            continue
        before = line
        if now == room:
            now = 0
            for time in range(room):
                other = touched_at[time]
                if other >= 0 and last[other] == time:
                    touched_at[now], last[other] = other, now
                    now += 1
            tree[:] = 0
            for i in range(1, room + 1):  # a one at each time before now
                tree[i] = min(i, now) - min(i - (i & -i), now)
            touched_at[now:] = -1
        time = last[line]
        if time >= 0:
            later = touched
            i = time + 1
            while i > 0:
                later -= tree[i]
                i &= i - 1
            histogram[later] += 1
            i = time + 1
            while i <= room:
                tree[i] -= 1
                i += i & -i
            touched -= 1
        i = now + 1
        while i <= room:
            tree[i] += 1
            i += i & -i
        touched += 1
        last[line], touched_at[now] = now, line
        now += 1
