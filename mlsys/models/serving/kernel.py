"""Numba kernel of the server simulator: continuous batching, iteration by iteration.

All decoding sequences advance by one token in an iteration that decodes, so a counter of such iterations serves
everything that depends on their lengths in O(1):

- a sequence finishes at a known count, and waits for it in a ring of linked lists, one for each count;
- a sequence needs another block when its length is a multiple of the block size; a histogram of lengths modulo the
  block size, less the count, says how many do.

Between two events (an arrival, an end, a lack of blocks) an iteration only adds a number that is linear in the
tokens attended to, and a short inner loop advances through them.
"""

import numpy as np

from mlsys.compiled import njit
from mlsys.models.serving.steps import line_over_context, segment, step_seconds

# Whole numbers of the state of a replica.
CLOCK_TICKS, BATCH, CONTEXT, USED, RUNNING, PARTIAL, LAST_RUN, HEAD, TAIL, OUTSTANDING, BEFORE = range(11)
ITERATIONS, PREEMPTIONS, MOST_USED, PREFILLED, FINISHED = range(11, 16)
INTEGERS = 16
# Real numbers of the state of a replica.
NOW, BUSY, BLOCK_SECONDS, BATCH_SECONDS, SWAPPING = range(5)
REALS = 5
# What is kept for each request, as rows of one array.
# Of CACHED tokens keys and values are found and not computed; SHARED ones of these take no blocks of the request.
STORED, GENERATED, WANTED, DONE, PHASE, NEXT_WAIT, NEXT_RING, PREV_RING, NEXT_RUN, PREV_RUN = range(10)
SWAPPED, SLOT, CACHED, SHARED = range(10, 14)
FIELDS = 14
NONE = -1
# How sequences are preempted.
RECOMPUTE, SWAP, RESERVE = 0, 1, 2


@njit(nogil=True, error_model="numpy")
def blocks_of(tokens, size):  # type: ignore[no-untyped-def]
    """Return the blocks that hold a number of tokens."""
    return (tokens + size - 1) // size


@njit(nogil=True, error_model="numpy")
def _to_back(state, rows, r):  # type: ignore[no-untyped-def]
    rows[NEXT_WAIT, r] = NONE
    if state[HEAD] == NONE:
        state[HEAD] = r
    else:
        rows[NEXT_WAIT, state[TAIL]] = r
    state[TAIL] = r


@njit(nogil=True, error_model="numpy")
def _to_front(state, rows, r):  # type: ignore[no-untyped-def]
    rows[NEXT_WAIT, r] = state[HEAD]
    if state[HEAD] == NONE:
        state[TAIL] = r
    state[HEAD] = r


@njit(nogil=True, error_model="numpy")
def _admit(state, rows, r):  # type: ignore[no-untyped-def]
    """Move the first waiting request to the end of those that run."""
    state[HEAD] = rows[NEXT_WAIT, r]
    if state[HEAD] == NONE:
        state[TAIL] = NONE
    rows[PREV_RUN, r], rows[NEXT_RUN, r] = state[LAST_RUN], NONE
    if state[LAST_RUN] != NONE:
        rows[NEXT_RUN, state[LAST_RUN]] = r
    state[LAST_RUN] = r
    state[RUNNING] += 1


@njit(nogil=True, error_model="numpy")
def _stop_running(state, rows, r):  # type: ignore[no-untyped-def]
    before, after = rows[PREV_RUN, r], rows[NEXT_RUN, r]
    if before != NONE:
        rows[NEXT_RUN, before] = after
    if after != NONE:
        rows[PREV_RUN, after] = before
    else:
        state[LAST_RUN] = before
    state[RUNNING] -= 1


@njit(nogil=True, error_model="numpy")
def _begin_decoding(state, rows, ring, phases, outputs, r, size):  # type: ignore[no-untyped-def]
    """Add a sequence whose cache holds ``STORED`` tokens to those that decode."""
    tick = state[CLOCK_TICKS]
    phase = (rows[STORED, r] - tick) % size
    slot = (tick + outputs[r] - rows[GENERATED, r]) % len(ring)
    rows[PHASE, r], rows[SLOT, r] = phase, slot
    phases[phase] += 1
    first = ring[slot]
    rows[NEXT_RING, r], rows[PREV_RING, r] = first, NONE
    if first != NONE:
        rows[PREV_RING, first] = r
    ring[slot] = r
    state[BATCH] += 1
    state[CONTEXT] += rows[STORED, r] + 1


@njit(nogil=True, error_model="numpy")
def _preempt(state, rows, ring, phases, prompts, outputs, preempted, size, how):  # type: ignore[no-untyped-def]
    """Preempt the sequence that was admitted last; return how many blocks are swapped out."""
    r = state[LAST_RUN]
    _stop_running(state, rows, r)
    _to_front(state, rows, r)
    state[PREEMPTIONS] += 1
    preempted[r] += 1
    if rows[DONE, r] < rows[WANTED, r]:  # its prompt is not finished: it begins again
        state[USED] -= blocks_of(rows[WANTED, r] - rows[SHARED, r], size)
        state[PARTIAL] = NONE
        rows[DONE, r] = 0
        return 0
    # Tokens that it generated since it began to decode: the ring says when it would end.
    left = (rows[SLOT, r] - state[CLOCK_TICKS]) % len(ring)
    stored = rows[STORED, r] + (outputs[r] - rows[GENERATED, r]) - left
    rows[GENERATED, r], rows[STORED, r] = outputs[r] - left, stored
    before, after = rows[PREV_RING, r], rows[NEXT_RING, r]
    if before == NONE:
        ring[rows[SLOT, r]] = after
    else:
        rows[NEXT_RING, before] = after
    if after != NONE:
        rows[PREV_RING, after] = before
    phases[rows[PHASE, r]] -= 1
    state[BATCH] -= 1
    state[CONTEXT] -= stored + 1
    held = blocks_of(stored - rows[SHARED, r], size)
    state[USED] -= held
    if how == SWAP:
        rows[SWAPPED, r] = 1
        return held
    rows[WANTED, r], rows[DONE, r] = prompts[r] + rows[GENERATED, r], 0
    return 0


@njit(nogil=True, error_model="numpy")
def _first_need(rows, prompts, outputs, r, size, how):  # type: ignore[no-untyped-def]
    """Return the blocks that a request needs to be admitted."""
    if how == RESERVE:
        return blocks_of(prompts[r] + outputs[r] - 1 - rows[SHARED, r], size)
    if rows[SWAPPED, r]:
        return blocks_of(rows[STORED, r] - rows[SHARED, r], size)
    return blocks_of(rows[WANTED, r] - rows[SHARED, r], size)


@njit(nogil=True, error_model="numpy")
def _finish(state, rows, reals, prompts, outputs, ends, r, size, how):  # type: ignore[no-untyped-def]
    ends[r] = reals[NOW]
    state[USED] -= blocks_of(prompts[r] + outputs[r] - 1 - rows[SHARED, r], size)
    state[OUTSTANDING] -= 1
    state[FINISHED] += 1
    _stop_running(state, rows, r)


@njit(nogil=True, error_model="numpy")
def _collect_ends(state, rows, reals, ring, phases, prompts, outputs, ends, size, how):  # type: ignore[no-untyped-def]
    """End the sequences that generated their last token in the iteration before."""
    slot = state[CLOCK_TICKS] % len(ring)
    r = ring[slot]
    ring[slot] = NONE
    while r != NONE:
        after = rows[NEXT_RING, r]
        phases[rows[PHASE, r]] -= 1
        state[BATCH] -= 1
        state[CONTEXT] -= prompts[r] + outputs[r]
        _finish(state, rows, reals, prompts, outputs, ends, r, size, how)
        r = after


@njit(nogil=True, error_model="numpy")
def _advance(  # type: ignore[no-untyped-def]
    until, state, reals, ring, phases, rows, prompts, outputs, begins, firsts, ends, preempted, grid, limits
):
    """Run iterations of one replica that begin before ``until``, as long as there is work."""
    prefill_axis, batch_axis, context_axis, table, pair_seconds, block_swap = grid
    most_batch, budget, size, total, reserve, chunked, how = limits
    while reals[NOW] < until and (state[RUNNING] > 0 or state[HEAD] != NONE):
        state[BEFORE] = state[OUTSTANDING]
        swapped, short = 0, False
        # 1. Blocks for the tokens that decoding sequences are about to write.
        decodes = True
        if not chunked:
            decodes = not _prompts_first(state, rows, prompts, outputs, limits)
        if decodes and how != RESERVE and state[BATCH] > 0:
            while state[BATCH] > 0 and state[USED] + phases[-state[CLOCK_TICKS] % size] > total:
                short = True
                swapped += _preempt(state, rows, ring, phases, prompts, outputs, preempted, size, how)
            state[USED] += phases[-state[CLOCK_TICKS] % size]
        batch = state[BATCH] if decodes else 0
        # 2. Prompts: the one already started, then those that wait, in order.
        room = budget - batch if chunked else budget
        tokens, pairs, ended = 0, 0.0, NONE
        r = state[PARTIAL]
        if r != NONE:
            part = min(rows[WANTED, r] - rows[DONE, r], room)
            pairs += part * rows[DONE, r] + part * (part + 1) * 0.5
            rows[DONE, r] += part
            tokens, room = tokens + part, room - part
            if rows[DONE, r] == rows[WANTED, r]:
                rows[NEXT_RING, r], ended, state[PARTIAL] = ended, r, NONE
        while (chunked or not decodes) and not short and state[PARTIAL] == NONE:
            r = state[HEAD]
            if r == NONE or state[RUNNING] >= most_batch:
                break
            need = _first_need(rows, prompts, outputs, r, size, how)
            if state[USED] + need > total - (reserve if state[RUNNING] > 0 else 0):
                break
            if rows[SWAPPED, r]:
                swapped += need
            elif room <= 0 or (not chunked and tokens > 0 and rows[WANTED, r] - rows[CACHED, r] > room):
                break
            _admit(state, rows, r)
            state[USED] += need
            if begins[r] < 0:
                begins[r] = reals[NOW]
            if not rows[SWAPPED, r]:
                cached = rows[CACHED, r]  # found in a cache of prefixes: attended to, and not computed
                part = min(rows[WANTED, r] - cached, room) if chunked else rows[WANTED, r] - cached
                rows[DONE, r] = cached + part
                pairs += part * cached + part * (part + 1) * 0.5
                tokens, room = tokens + part, room - part
                if rows[DONE, r] < rows[WANTED, r]:
                    state[PARTIAL] = r
                    continue
            rows[NEXT_RING, r], ended = ended, r
        state[MOST_USED] = max(state[MOST_USED], state[USED])
        # 3. The iteration itself.
        span = swapped * block_swap
        reals[SWAPPING] += span
        if tokens > 0 or batch > 0:
            attended = state[CONTEXT] if batch > 0 else 0
            span += step_seconds(prefill_axis, batch_axis, context_axis, table, tokens, batch, attended)
            span += pairs * pair_seconds
        reals[NOW] += span
        reals[BUSY] += span
        reals[BLOCK_SECONDS] += state[USED] * span
        reals[BATCH_SECONDS] += batch * span
        state[ITERATIONS] += 1
        state[PREFILLED] += tokens
        if batch > 0:
            state[CLOCK_TICKS] += 1
            state[CONTEXT] += batch
            if ring[state[CLOCK_TICKS] % len(ring)] != NONE:
                _collect_ends(state, rows, reals, ring, phases, prompts, outputs, ends, size, how)
        while ended != NONE:
            r, ended = ended, rows[NEXT_RING, ended]
            if rows[SWAPPED, r]:
                rows[SWAPPED, r] = 0
            else:
                rows[STORED, r] = rows[WANTED, r]
                rows[GENERATED, r] += 1
                if firsts[r] < 0:
                    firsts[r] = reals[NOW]
            if rows[GENERATED, r] == outputs[r]:
                _finish(state, rows, reals, prompts, outputs, ends, r, size, how)
            else:
                _begin_decoding(state, rows, ring, phases, outputs, r, size)
        # 4. Iterations that only decode, until something happens: admission waits for an end.
        if tokens == 0 and swapped == 0 and not short and batch > 0 and state[BATCH] == batch:
            _decode_on(until, state, reals, ring, phases, grid, size, total, how)
            if ring[state[CLOCK_TICKS] % len(ring)] != NONE:
                _collect_ends(state, rows, reals, ring, phases, prompts, outputs, ends, size, how)


@njit(nogil=True, error_model="numpy")
def _prompts_first(state, rows, prompts, outputs, limits):  # type: ignore[no-untyped-def]
    """Return whether a prompt can be admitted now; without chunked prefill, prompts and decodes do not mix."""
    most_batch, _, size, total, reserve, _, how = limits
    r = state[HEAD]
    if r == NONE or state[RUNNING] >= most_batch:
        return False
    need = _first_need(rows, prompts, outputs, r, size, how)
    return state[USED] + need <= total - (reserve if state[RUNNING] > 0 else 0)


@njit(nogil=True, error_model="numpy")
def _decode_on(until, state, reals, ring, phases, grid, size, total, how):  # type: ignore[no-untyped-def]
    """Decode without change of the batch, up to an end, a lack of blocks, or the first iteration after ``until``."""
    prefill_axis, batch_axis, context_axis, table, _, _ = grid
    batch, context, tick, used = state[BATCH], state[CONTEXT], state[CLOCK_TICKS], state[USED]
    now, busy, block_seconds = reals[NOW], reals[BUSY], reals[BLOCK_SECONDS]
    batch_seconds, before = reals[BATCH_SECONDS], tick
    grows = how != RESERVE
    phase, slot = -tick % size, tick % len(ring)
    while now < until and ring[slot] == NONE:
        k = segment(context_axis, context)
        first, slope = line_over_context(prefill_axis, batch_axis, context_axis, table, 0, batch, k)
        start = context_axis[k]
        stop = context_axis[k + 1] if k < len(context_axis) - 2 else np.inf
        full = False
        while now < until and context < stop:
            need = phases[phase] if grows else 0
            if used + need > total:
                full = True
                break
            used += need
            span = first + slope * (context - start)
            now += span
            busy += span
            block_seconds += used * span
            batch_seconds += batch * span
            context += batch
            tick += 1
            phase = phase - 1 if phase > 0 else size - 1
            slot = slot + 1 if slot + 1 < len(ring) else 0
            if ring[slot] != NONE:
                break
        if full:
            break
    if tick > before:
        state[BEFORE] = state[OUTSTANDING]
    state[CONTEXT], state[CLOCK_TICKS], state[USED] = context, tick, used
    state[ITERATIONS] += tick - before
    state[MOST_USED] = max(state[MOST_USED], used)
    reals[NOW], reals[BUSY], reals[BLOCK_SECONDS], reals[BATCH_SECONDS] = now, busy, block_seconds, batch_seconds


@njit(nogil=True, error_model="numpy")
def run(  # type: ignore[no-untyped-def]
    start, stop, arrivals, prompts, outputs, states, reals, rings, phases, rows, outcome, grid, limits, balance
):
    """Route the requests from ``start`` to ``stop`` at their arrival; after the last one, run until all have ended."""
    begins, firsts, ends, preempted, homes = outcome
    replicas, number = len(states), len(arrivals)
    for i in range(start, stop + (1 if stop == number else 0)):
        last = i == number
        time = np.inf if last else arrivals[i]
        home, fewest = i % replicas, np.int64(2**62)
        for q in range(replicas):
            if not last and not balance and q != home:
                continue
            _advance(time, states[q], reals[q], rings[q], phases[q], rows, prompts, outputs, begins, firsts, ends,
                     preempted, grid, limits)  # fmt: skip
            # What ends in an iteration that is still running is outstanding.
            waiting = states[q, BEFORE] if reals[q, NOW] > time else states[q, OUTSTANDING]
            if balance and waiting < fewest:
                home, fewest = q, waiting
        if last:
            break
        state = states[home]
        if state[OUTSTANDING] == 0 and reals[home, NOW] < time:
            reals[home, NOW] = time
        rows[WANTED, i] = prompts[i]
        homes[i] = home
        state[OUTSTANDING] += 1
        state[BEFORE] += 1
        _to_back(state, rows, i)
