"""Notification of an open page about the tables and figures that it shows."""

import contextlib
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class PageExhibit:
    """A table or figure that a page shows besides its claims.

    Attributes
    ----------
    kind, name
        ``"table"`` or ``"picture"``, and its name.
    digest
        Function that returns a short hash of the content.
    facts
        Names of the facts that were read while it was made.
    frame
        Stack frame of the line of the page that made it.
    """

    kind: str
    name: str
    digest: Callable[[], str]
    facts: tuple[str, ...]
    frame: types.FrameType | None


_listeners: list[Callable[[PageExhibit], None]] = []


def announce(kind: str, name: str, digest: Callable[[], str], facts: Iterable[str] = ()) -> None:
    """Notify the open page, if any, of a table or a figure."""
    if _listeners:
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "mlsys":
            frame = frame.f_back
        shown = PageExhibit(kind, name, digest, tuple(facts), frame)
        for listener in _listeners:
            listener(shown)


def hear(listener: Callable[[PageExhibit], None]) -> Callable[[], None]:
    """Call ``listener`` with everything shown from now on; return a function that stops it.

    Examples
    --------
    >>> stop = hear(lambda shown: print(shown.kind, shown.name))
    >>> announce("table", "Ridges", lambda: "…")
    table Ridges
    >>> stop()
    >>> announce("table", "Ridges", lambda: "…")
    """
    _listeners.append(listener)

    def stop() -> None:
        _listeners[:] = [other for other in _listeners if other is not listener]

    return stop


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Suppress notifications inside the block, for parts of something that is announced as a whole.

    Examples
    --------
    >>> stop = hear(lambda shown: print(shown.kind, shown.name))
    >>> with unheard():
    ...     announce("picture", "a frame", lambda: "…")
    >>> stop()
    """
    listeners = _listeners[:]
    _listeners.clear()
    try:
        yield
    finally:
        _listeners[:] = listeners
