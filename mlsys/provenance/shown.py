"""Tables and pictures say here that they were made; a page that is open hears of them."""

import contextlib
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Shown:
    """Something that a page shows besides its claims.

    Attributes
    ----------
    kind, name
        ``"table"`` or ``"picture"``, and what it is called.
    digest
        Returns a short text that changes when what is seen changes.
    facts
        Names of the facts that were read while it was made.
    frame
        The line of the page that made it.
    """

    kind: str
    name: str
    digest: Callable[[], str]
    facts: tuple[str, ...]
    frame: types.FrameType | None


_hearers: list[Callable[[Shown], None]] = []


def announce(kind: str, name: str, digest: Callable[[], str], facts: Iterable[str] = ()) -> None:
    """Tell an open page of a table or a picture; where none is open, nothing happens."""
    if _hearers:
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "mlsys":
            frame = frame.f_back
        shown = Shown(kind, name, digest, tuple(facts), frame)
        for heard in _hearers:
            heard(shown)


def hear(heard: Callable[[Shown], None]) -> Callable[[], None]:
    """Call ``heard`` with all that is shown from now on; return what ends it.

    Examples
    --------
    >>> stop = hear(lambda shown: print(shown.kind, shown.name))
    >>> announce("table", "Ridges", lambda: "…")
    table Ridges
    >>> stop()
    >>> announce("table", "Ridges", lambda: "…")
    """
    _hearers.append(heard)

    def stop() -> None:
        _hearers[:] = [other for other in _hearers if other is not heard]

    return stop


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Tell nobody of what is drawn inside: it is a part of something that was announced as a whole.

    Examples
    --------
    >>> stop = hear(lambda shown: print(shown.kind, shown.name))
    >>> with unheard():
    ...     announce("picture", "a frame", lambda: "…")
    >>> stop()
    """
    hearers = _hearers[:]
    _hearers.clear()
    try:
        yield
    finally:
        _hearers[:] = hearers
