"""The errors mlsys raises when it is handed something it cannot use.

Each message says which function and argument, what was wanted, what was
given, and the line to type instead.
"""

import difflib
from collections.abc import Iterable


class ArgumentError(ValueError):
    """An argument has a value outside the range where the formula makes sense."""


class ArgumentUnitError(ArgumentError, TypeError):
    """An argument has no unit, or one of the wrong dimension."""


class UnknownNameError(AttributeError, KeyError, ValueError):
    """A device, precision, memory level or link was asked for that does not exist."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnreadableError(OSError, ValueError):
    """A file that was named cannot be read; ``strerror`` says why."""

    def __str__(self) -> str:
        return f"{self.filename}: cannot be read ({self.strerror})"


class UnwrittenError(OSError):
    """A file could not be written; what was there before is as it was."""


class DeviceFileError(ValueError):
    """A device file is not acceptable; the message lists every fault with file and line."""


class LogFileError(ValueError):
    """A log of a measurement is not acceptable; the message lists every fault with its line."""


class ScenarioFileError(ValueError):
    """A scenario or instance of placement is not acceptable; the message lists every fault with its place."""


class EdgeFileError(ValueError):
    """A configuration of the edge optimiser is not acceptable; the message lists every fault with its place."""


class SweepFileError(ValueError):
    """A specification of a sweep is not acceptable; the message lists every fault with its place."""


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return `` Did you mean 'A100'?`` when a known name is close, else an empty string.

    Examples
    --------
    >>> did_you_mean("A10O", ["A100", "H100"])
    " Did you mean 'A100'?"
    """
    if not isinstance(given, str):
        return ""
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(given.lower(), names, n=1, cutoff=0.6)
    return f" Did you mean {names[close[0]]!r}?" if close else ""


def first_line(error: BaseException, most: int = 200) -> str:
    r"""Return what an error says, in one line of at most ``most`` letters; its class where it says nothing.

    Examples
    --------
    >>> first_line(ValueError("no such file\nhint: look again"))
    'no such file'
    >>> first_line(KeyError())
    'KeyError'
    """
    try:
        text = str(error)
    except Exception:  # the error of somebody else's class may not even print
        text = ""
    line = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    return line if len(line) <= most else line[:most] + "…"
