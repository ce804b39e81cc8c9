"""Time limits of long searches."""

from time import monotonic


class TimeIsUpError(Exception):
    """A search has used up its time."""


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
