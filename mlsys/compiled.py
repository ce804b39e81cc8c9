"""Numba compilation that also works on read-only file systems."""

from collections.abc import Callable
from typing import Any


def njit(**options: Any) -> Callable[[Any], Any]:
    """Return Numba's ``njit`` decorator, with its on-disk cache where a folder is writable.

    Numba caches machine code beside the source or, if that is read-only, in the user's cache
    folder. If neither is writable, it raises; the function is then compiled without a cache,
    once per process.

    Parameters
    ----------
    **options
        Options of ``numba.njit``, except ``cache``.

    Examples
    --------
    >>> @njit()
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    import numba

    def decorated(function: Any) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # no writable cache folder
            return numba.njit(**options)(function)

    return decorated
