"""Consistency checks of a device file: contradictory values and impossible dates.

The schema checks each field separately; these rules compare fields. Malformed fields are skipped
here, because the schema reports them.
"""

import datetime
import itertools
import re
from collections.abc import Iterator
from typing import Any

from mlsys.amounts import amount
from mlsys.hardware.document import Place

_DATE = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?", re.ASCII)
_TOMORROW = datetime.timedelta(days=1)  # a file may come from a time zone where it is already tomorrow


def check_date(text: Any) -> bool:
    """Return whether a date exists and has passed; dates are ``YYYY``, ``YYYY-MM`` or ``YYYY-MM-DD``.

    Raises
    ------
    ValueError
        If there is no such day, or it is in the future; the message says what to type.

    Examples
    --------
    >>> check_date("2024-02-29"), check_date("2021")
    (True, True)
    >>> check_date("2023-02-29")
    Traceback (most recent call last):
        ...
    ValueError: '2023-02-29' is not in the calendar. Write an existing date, such as '2023-02-01', '2023-02' or '2023'
    """
    match = _DATE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return True  # malformed: reported by the schema's pattern
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        first = datetime.date(year, month, day)
    except ValueError:
        month = month if 1 <= month <= 12 else 1
        examples = f"'{year:04}-{month:02}-01', '{year:04}-{month:02}' or '{year:04}'"
        raise ValueError(f"{text!r} is not in the calendar. Write an existing date, such as {examples}") from None
    today = datetime.date.today()
    if first > today + _TOMORROW:
        raise ValueError(f"{text!r} is in the future: today is {today}. Write the date of publication")
    return True


def check_whole(text: Any) -> bool:
    """Return True if a count is a whole number, such as ``"108"``; raise otherwise.

    Raises
    ------
    ValueError
        If it is not a number above zero, or not whole.

    Examples
    --------
    >>> check_whole("108"), check_whole("54.2e9")
    (True, True)
    >>> check_whole("0.3")
    Traceback (most recent call last):
        ...
    ValueError: '0.3' counts parts of a chip: write a whole number of at least 1, such as '4'
    """
    if isinstance(text, str) and not float(amount(text, "count").m_as("count")).is_integer():
        raise ValueError(f"{text!r} counts parts of a chip: write a whole number of at least 1, such as '4'")
    return True


# Pairs of fields of a block of which the first must not exceed the second: both names, unit, reason.
_LEVEL = (("usable", "capacity", "byte", "a program cannot allocate more than the capacity"),)
_POWER = (("idle", "tdp", "W", "an idle device draws less than its thermal design power"),)
_CHIP = (("clock", "boost", "Hz", "`clock` is reached by all units at once, `boost` by one alone"),)
_RATES = (("dense", "2:4", "FLOP/s", "skipping zeros does not slow a unit down"),)


def contradictions(data: Any) -> Iterator[tuple[Place, str]]:
    """Yield contradictions between values as pairs of a location in the file and a message.

    Parameters
    ----------
    data
        Content of the device file.

    Examples
    --------
    >>> level = {"capacity": {"value": "8 GB"}, "usable": {"value": "9 GB"}}
    >>> list(contradictions({"memory": {"DRAM": level}}))
    [(('memory', 'DRAM', 'usable'), '9 GB exceeds `capacity`, 8 GB: a program cannot allocate more than the capacity')]
    """
    for name, level in _items(data, "memory"):
        yield from _exceeding(level, ("memory", name), _LEVEL)
    for precision, units in _items(data, "peaks"):
        for unit, rates in units.items():
            yield from _exceeding(rates, ("peaks", precision, unit), _RATES)
    if isinstance(data, dict):
        yield from _exceeding(data.get("power"), ("power",), _POWER)
        yield from _exceeding(data.get("chip"), ("chip",), _CHIP)
        yield from _falling(data.get("power"))


def _items(data: Any, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    block = data.get(key) if isinstance(data, dict) else None
    for name, value in block.items() if isinstance(block, dict) else ():
        if isinstance(value, dict):
            yield name, value


def _exceeding(block: Any, where: Place, pairs: tuple[tuple[str, str, str, str], ...]) -> Iterator[tuple[Place, str]]:
    """Yield the pairs of a block whose first value exceeds the second."""
    for less, more, unit, why in pairs:
        low, high = _value(block, less, unit), _value(block, more, unit)
        if low is not None and high is not None and low > high:
            text = f"{block[less]['value']} exceeds `{more}`, {block[more]['value']}: {why}"
            yield (*where, less), text


def _falling(power: Any) -> Iterator[tuple[Place, str]]:
    """Yield a fault for each operating point that is not faster than the previous one."""
    points = power.get("points") if isinstance(power, dict) else None
    clocks = [_value(point, "clock", "Hz") for point in points] if isinstance(points, list) else []
    for at, (before, here) in enumerate(itertools.pairwise(clocks), start=1):
        if before is not None and here is not None and here <= before:
            yield ("power", "points", at, "clock"), "operating points are listed from the slowest to the fastest"


def _value(block: Any, key: str, unit: str) -> float | None:
    """Return a value in ``unit``; None if it is missing or malformed."""
    field = block.get(key) if isinstance(block, dict) else None
    text = field.get("value") if isinstance(field, dict) else None
    try:
        return float(amount(text, unit).m_as(unit)) if isinstance(text, str) else None
    except ValueError:
        return None
