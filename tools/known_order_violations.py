"""Pairs of orderings.py that are known to be mispredicted, with the reason; a test checks that they still are."""

from collections.abc import Callable

from orderings import Pair


def _half_a_mobilenet(pair: Pair) -> bool:
    """Return whether a pair is MobileNet v2 0.5 in INT8 on a GroqChip, where the full width is predicted to be faster.

    No NPU compiler has an INT8 row of the half-width network; the full width is predicted from rows of other machines.
    A GroqChip, which holds either network on-chip, takes about the same time for both.
    """
    question = pair[0]
    return question.network == "mobilenet_v2_0.5" and question.device == "GroqChip1" and question.precision == "int8"


# Known mispredictions by ordering.
KNOWN_VIOLATIONS: dict[str, Callable[[Pair], bool]] = {"a deeper network": _half_a_mobilenet}


def is_known_violation(name: str, pair: Pair) -> bool:
    """Return whether a pair is a known misprediction."""
    return name in KNOWN_VIOLATIONS and KNOWN_VIOLATIONS[name](pair)
