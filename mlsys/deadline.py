"""Time limits of long searches."""

import contextlib
import ctypes
import signal
import threading
from collections.abc import Iterator
from time import monotonic
from typing import Any


class TimeIsUpError(BaseException):
    """The time of a search is used up; no ``except Exception`` of somebody else's code may catch it."""


class Deadline:
    """A point in time at which a search ends with the best result it has.

    Parameters
    ----------
    seconds
        From now.

    Examples
    --------
    >>> Deadline(60).passed, Deadline(0).passed
    (False, True)
    """

    def __init__(self, seconds: float) -> None:
        self.end = monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left, never below zero."""
        return max(self.end - monotonic(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return monotonic() >= self.end

    def check(self) -> None:
        """Raise once no time is left.

        Raises
        ------
        TimeIsUpError
            Always after the end.
        """
        if self.passed:
            raise TimeIsUpError

    def part(self, share: float) -> "Deadline":
        """Return a deadline after a share of the time that is left."""
        return Deadline(share * self.left)


@contextlib.contextmanager
def interrupted_at(deadline: Deadline) -> Iterator[None]:
    """Run code that knows no deadline, such as a cell of a page, and interrupt it then.

    In the main thread a signal interrupts what waits, too; elsewhere, the next line of Python.

    Raises
    ------
    TimeIsUpError
        If the code was interrupted.

    Examples
    --------
    >>> with interrupted_at(Deadline(0.05)):
    ...     while True:
    ...         pass
    Traceback (most recent call last):
        ...
    mlsys.deadline.TimeIsUpError
    """
    deadline.check()
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):

        def ring(*_: Any) -> None:
            raise TimeIsUpError

        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, max(deadline.left, 1e-6), 1.0)  # again, should the code have caught it
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return
    thread, error = ctypes.c_ulong(threading.get_ident()), ctypes.py_object(TimeIsUpError)
    timer = threading.Timer(deadline.left, lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
