"""Compiled loops, also where nothing can be written."""

from collections.abc import Callable
from typing import Any


def njit(**options: Any) -> Callable[[Any], Any]:
    """Return Numba's decorator; machine code is kept on disk where there is a folder for it.

    Numba keeps code beside the source or, where that cannot be written, in the user's cache
    folder. Where neither can be written it refuses to decorate at all; then the code is
    compiled again in every process, and nothing else differs.

    Parameters
    ----------
    **options
        Of ``numba.njit``, but for ``cache``.

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
        except RuntimeError:  # no folder in which code can be kept
            return numba.njit(**options)(function)

    return decorated
