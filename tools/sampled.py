"""Sampling of test cases: a few drawn by a seed, or all of them.

``MLSYS_SEED`` repeats a draw, which conftest.py prints at the end of a run. ``MLSYS_TIMES=8`` draws eight times as
many, and ``MLSYS_ALL=1``, as ``make mutants`` sets it, takes every case.
"""

import functools
import os
import random
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def everything() -> bool:
    """Return whether this run tests every case."""
    return os.environ.get("MLSYS_ALL", "") not in ("", "0")


def seed() -> int:
    """Return the seed of this run; the same in all its processes."""
    return int(os.environ.get("MLSYS_SEED") or 0)


def drawn(cases: Sequence[T], most: int, purpose: str) -> list[T]:
    """Return at most ``most`` of the cases, in order; ``purpose`` makes draws of different tests independent."""
    most *= int(os.environ.get("MLSYS_TIMES") or 1)
    if everything() or len(cases) <= most:
        return list(cases)
    chosen = random.Random(f"{seed()} {purpose}").sample(range(len(cases)), most)
    return [cases[index] for index in sorted(chosen)]


def over_all(cases: Iterable[T], *, spread: bool = False) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Return a decorator that makes one test of a law over many cases, which reports all violations.

    As separate tests, thousands of cases take longer to collect and report than to run.

    Parameters
    ----------
    cases
        The cases, at least one.
    spread
        Whether each case is a tuple of several arguments.
    """
    tried_cases = list(cases)
    if not tried_cases:
        raise ValueError("over_all(): there is no case: the law would hold over nothing")

    def tried(law: Callable[..., None]) -> Callable[[], None]:
        @functools.wraps(law)
        def every() -> None:
            broken: list[Exception] = []
            for case in tried_cases:
                arguments = tuple(case) if spread else (case,)  # type: ignore[arg-type]
                try:
                    law(*arguments)
                except Exception as error:
                    error.add_note(f"of {', '.join(str(getattr(each, 'id', each)) for each in arguments)}")
                    broken.append(error)
            if broken:
                raise ExceptionGroup(", ".join(error.__notes__[-1] for error in broken), broken)

        del every.__wrapped__  # else pytest would ask for a fixture named as the law's argument
        return every

    return tried
