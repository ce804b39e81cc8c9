"""Exceptions that mlsys raises for invalid input.

Each message names the function and the argument, what was expected and what was
given, and the line to type instead.
"""

import difflib
from collections.abc import Iterable


class ArgumentError(ValueError):
    """An argument has an invalid type or a value outside its valid range."""


class ArgumentUnitError(ArgumentError, TypeError):
    """An argument has no unit, or one of the wrong dimension."""


class UnrecordedError(ArgumentError):
    """A fact that an answer needs is not recorded, and was not given."""


class UnknownNameError(AttributeError, KeyError, ValueError):
    """A requested name, such as a device, precision, memory level or link, does not exist."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnreadableError(OSError, ValueError):
    """An input file cannot be read; ``strerror`` says why."""

    def __str__(self) -> str:
        return f"{self.filename}: cannot be read ({self.strerror})"


class UnwrittenError(OSError):
    """A file could not be written; an existing file is left unchanged."""


class DeviceFileError(ValueError):
    """A device file is invalid; the message lists every fault with file and line."""


class LogFileError(ValueError):
    """A measurement log is invalid; the message lists every fault with its line."""


class ScenarioFileError(ValueError):
    """A scenario or problem instance of placement is invalid; the message lists every fault with its location."""


class EdgeFileError(ValueError):
    """A configuration of the edge optimiser is invalid; the message lists every fault with its location."""


class SweepFileError(ValueError):
    """A sweep specification is invalid; the message lists every fault with its location."""


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
    r"""Return the first line of an error message, cut to ``most`` characters, or the class name if it is empty.

    Examples
    --------
    >>> first_line(ValueError("no such file\nhint: look again"))
    'no such file'
    >>> first_line(KeyError())
    'KeyError'
    """
    try:
        text = str(error)
    except Exception:  # __str__ of a third-party exception may itself fail
        text = ""
    line = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    return line if len(line) <= most else line[:most] + "…"
