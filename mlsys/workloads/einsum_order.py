"""Contraction orders of an einsum with several operands, and their work."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

Labels = frozenset[str]

_MOST_OPERANDS = 7  # up to this number, every order is tried


def einsum_labels(equation: str, shapes: Sequence[Sequence[int]]) -> tuple[list[list[str]], list[str]]:
    """Return the labels of each operand and of the output; axes of an ellipsis are numbered from the last.

    Examples
    --------
    >>> einsum_labels("...ij,jk->...ik", [(4, 2, 3), (3, 5)])
    ([['...1', 'i', 'j'], ['j', 'k']], ['...1', 'i', 'k'])
    """
    given, arrow, result = equation.replace(" ", "").partition("->")
    terms, most = [], 0
    for term, shape in zip(given.split(","), shapes, strict=True):
        before, dots, after = term.partition("...")
        rest = len(shape) - len(before) - len(after)
        most = max(most, rest)
        terms.append([*before, *(f"...{rest - slot}" for slot in range(rest if dots else 0)), *after])
    if arrow:
        before, dots, after = result.partition("...")
        return terms, [*before, *(f"...{most - slot}" for slot in range(most if dots else 0)), *after]
    every = [label for term in terms for label in term]
    return terms, sorted(label for label in set(every) if label.startswith("...") or every.count(label) == 1)


def label_sizes(terms: Sequence[Sequence[str]], shapes: Sequence[Sequence[int]]) -> dict[str, int]:
    """Return the size of each label; a size of 1 is broadcast to that of another operand.

    Examples
    --------
    >>> label_sizes([["i", "j"], ["j", "k"]], [(2, 1), (3, 4)])
    {'i': 2, 'j': 3, 'k': 4}
    """
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    return sizes


def order_in_words(
    equation: str, shapes: Sequence[Sequence[int]], order: str, pairs: Sequence[tuple[int, int]] | None, outer: int
) -> str:
    """Return a description of the counted contraction order, its work, and that of the cheapest order.

    Parameters
    ----------
    equation, shapes
        The einsum, and the shapes of its operands.
    order
        Description of the order.
    pairs
        The operands multiplied at each step, with the result appended; None for left to right.
    outer
        FLOP per product without a sum: 1, or 2 where it is counted as a matrix product.

    Examples
    --------
    >>> order_in_words("...ij,jk,kl->...il", [(4, 2, 3), (3, 5), (5, 7)], "left to right", None, 1)
    'einsum ...ij,jk,kl->...il is counted left to right: 800 FLOP; its cheapest order takes 546 FLOP'
    """
    text = f"einsum {equation.replace(' ', '')} is counted {order}"
    if len(shapes) > _MOST_OPERANDS:
        return f"{text}; with {len(shapes)} operands the cheapest order is not searched"
    terms, result = einsum_labels(equation, shapes)
    sizes = label_sizes(terms, shapes)
    operands = tuple(map(frozenset, terms))
    own = _flops_in_order(operands, frozenset(result), sizes, pairs, outer)
    least = _least_flops(operands, frozenset(result), sizes, outer)
    cheaper = f"; its cheapest order takes {least:,} FLOP" if least < own else ", the minimum of all orders"
    return f"{text}: {own:,} FLOP{cheaper}"


def _contracted(
    operands: tuple[Labels, ...], pair: tuple[int, int], result: Labels, sizes: Mapping[str, int], outer: int
) -> tuple[tuple[Labels, ...], int]:
    """Return the operands after multiplying two of them, and the FLOP of that step.

    Labels that occur in one operand only are summed first, as in torch and ONNX Runtime.
    """
    rest = tuple(operand for position, operand in enumerate(operands) if position not in pair)
    wanted = result.union(*rest)
    flops = 0
    left, right = (operands[position] for position in pair)
    both = (left & (wanted | right), right & (wanted | left))
    for before, after in zip((left, right), both, strict=True):
        flops += _elements(before, sizes) if before != after else 0
    every = both[0] | both[1]
    kept = every & wanted
    return (*rest, kept), flops + _elements(every, sizes) * (2 if kept != every else outer)


def _elements(labels: Labels, sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[label] for label in labels)


def _flops_in_order(
    operands: tuple[Labels, ...],
    result: Labels,
    sizes: Mapping[str, int],
    pairs: Sequence[tuple[int, int]] | None,
    outer: int,
) -> int:
    flops = 0
    for step in range(len(operands) - 1):
        operands, more = _contracted(operands, pairs[step] if pairs else (0, 1), result, sizes, outer)
        flops += more
        if not pairs:
            operands = (operands[-1], *operands[:-1])
    return flops


def _least_flops(operands: tuple[Labels, ...], result: Labels, sizes: Mapping[str, int], outer: int) -> int:
    """Return the FLOP of the cheapest of all orders."""
    if len(operands) < 2:
        return 0
    pairs = itertools.combinations(range(len(operands)), 2)
    ways = (_contracted(operands, pair, result, sizes, outer) for pair in pairs)
    return min(more + _least_flops(rest, result, sizes, outer) for rest, more in ways)
