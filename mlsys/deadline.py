"""Time limits of long searches."""

import contextlib
import ctypes
import signal
import threading
from collections.abc import Iterator
from time import monotonic
from typing import Any


class TimeIsUpError(BaseException):
    """The time limit has expired; a BaseException, so that no ``except Exception`` catches it."""


class Deadline:
    """A point in time at which a search stops and returns its best result so far.

    Parameters
    ----------
    seconds
        Time from now, in seconds.

    Examples
    --------
    >>> Deadline(60).passed, Deadline(0).passed
    (False, True)
    """

    def __init__(self, seconds: float) -> None:
        self.end = monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Remaining time in seconds, never negative."""
        return max(self.end - monotonic(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether the deadline has passed."""
        return monotonic() >= self.end

    def check(self) -> None:
        """Raise if the deadline has passed.

        Raises
        ------
        TimeIsUpError
            If no time is left.
        """
        if self.passed:
            raise TimeIsUpError

    def part(self, share: float) -> "Deadline":
        """Return a deadline after ``share`` of the remaining time."""
        return Deadline(share * self.remaining)


@contextlib.contextmanager
def interrupted_at(deadline: Deadline) -> Iterator[None]:
    """Interrupt the block at the deadline, such as a cell of a page that does not check one itself.

    In the main thread a signal interrupts blocking calls too; in other threads only the next Python
    instruction is interrupted.

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

        def expire(*_: Any) -> None:
            raise TimeIsUpError

        before = signal.signal(signal.SIGALRM, expire)
        signal.setitimer(signal.ITIMER_REAL, max(deadline.remaining, 1e-6), 1.0)  # repeats, if the code caught it
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return
    thread, error = ctypes.c_ulong(threading.get_ident()), ctypes.py_object(TimeIsUpError)
    timer = threading.Timer(deadline.remaining, lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
