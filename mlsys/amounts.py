"""Parsing of numbers with units in user input: device files, command-line options, answers.

A comma groups thousands and is never a decimal sign. Prefixes are taken literally, so that millibytes
are refused. No input, however hostile, can stall the parser.
"""

import functools
import math
import re
from collections import Counter

from mlsys.units import Q_, DimensionalityError, Quantity, UndefinedUnitError, Unit, ureg

# Unit names joined by * and /, with powers of one digit. Anything more could stall pint's parser.
_NAME = r"(?:[^\W\d]\w*|%)(?:\*\*\d)?"
_UNIT = re.compile(rf"(?:{_NAME}(?: ?[*/] ?{_NAME})*)?")
_FACTOR = re.compile(r"(^|[*/]) ?([^\W\d]\w*|%)(?:\*\*(\d))?")
_NUMBER = re.compile(r"[+-]?(?:(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?", re.ASCII)
# Small prefixes on units that are counted in integers: almost certainly `m` typed for `M`, a factor of 10**9.
_MILLI = re.compile(r"\b(?P<prefix>[munpµ])(?P<unit>B|b|bit|byte|FLOP|OP|MAC|Hz)\b")
_LONGEST = 200


def parsed_number(text: str) -> float:
    """Return the number in ``text``; commas may only separate thousands.

    Raises
    ------
    ValueError
        If it is not a finite number, or has a comma elsewhere; the message says what to type.

    Examples
    --------
    >>> parsed_number("2,039"), parsed_number("1.5e3")
    (2039.0, 1500.0)
    >>> parsed_number("19,5")
    Traceback (most recent call last):
        ...
    ValueError: '19,5' has a comma that does not separate thousands. Write 19.5, or 195 if no decimal point was meant
    """
    written = text.strip()
    if _DECIMAL_COMMA.fullmatch(written) and not _NUMBER.fullmatch(written):
        point, plain = (written[:_LONGEST].replace(",", other) for other in (".", ""))
        grouped = "" if plain.lstrip("+-").startswith("0") else f", or {plain} if no decimal point was meant"
        raise ValueError(f"{written[:_LONGEST]!r} has a comma that does not separate thousands. Write {point}{grouped}")
    if _NOT_FINITE.fullmatch(written):
        raise ValueError(f"{written!r} must be finite")
    if len(written) > _LONGEST or not _NUMBER.fullmatch(written):
        raise ValueError(f"{written[:_LONGEST]!r} is not a number such as 1,410 or 1.41e3")
    value = float(written.replace(",", ""))
    if not math.isfinite(value):
        raise ValueError(f"{written!r} must be finite")
    return value


def parsed_whole(text: str) -> int:
    """Return the whole number in ``text``, exact to the last digit.

    Raises
    ------
    ValueError
        If it is not a whole number; the message says what to type.

    Examples
    --------
    >>> parsed_whole("4,096"), parsed_whole("8.0"), parsed_whole("12345678901234567890")
    (4096, 8, 12345678901234567890)
    >>> parsed_whole("1_0")
    Traceback (most recent call last):
        ...
    ValueError: '1_0' is not a number such as 1,410 or 1.41e3
    """
    number = parsed_number(text)
    if not number.is_integer():
        raise ValueError(f"{text.strip()!r} is not a whole number")
    digits = text.strip().replace(",", "")
    return int(digits) if digits.lstrip("+-").isdigit() else int(number)


def amount(text: str, unit: str) -> Quantity:
    """Return the positive quantity in a string such as ``"312 TFLOP/s"``, which must convert to ``unit``.

    Parameters
    ----------
    text
        A number, a space and a unit; a count needs no unit.
    unit
        Unit that it must convert to.

    Raises
    ------
    ValueError
        If it is not such a quantity; the message says why, and what to type.

    Examples
    --------
    >>> print(amount("19.5 TFLOP/s", "FLOP/s"))
    19.5 TFLOP/s
    >>> amount("80 mB", "byte")
    Traceback (most recent call last):
        ...
    ValueError: '80 mB' is in thousandths of B. Write 80 MB for millions
    """
    if len(text) > _LONGEST:
        raise ValueError(f"{text[:40]!r}… is too long for a quantity such as '1 {unit}'")
    figures, _, written = text.strip().partition(" ")
    written = written.strip()
    if not _UNIT.fullmatch(written):
        raise ValueError(f"{text!r}: {written!r} is not a unit such as '{unit}'")
    if slip := _MILLI.search(written):
        big = written.replace(slip[0], "M" + slip["unit"])
        raise ValueError(f"{text!r} is in thousandths of {slip['unit']}. Write {figures} {big} for millions")
    try:
        magnitude = parsed_number(figures)
    except ValueError as error:
        if "finite" in str(error):
            raise ValueError(f"{text!r} must be finite and above zero") from None
        if "comma" in str(error):
            raise ValueError(f"{text!r}: {error}") from None
        raise ValueError(f"{text!r} must be a number, a space and a unit, such as '1 {unit}'") from None
    if magnitude <= 0:
        raise ValueError(f"{text!r} must be finite and above zero")
    try:
        parsed = _parsed_unit(written or "count")
        if written != unit:
            _check_convertible(parsed, unit)
    except UndefinedUnitError as error:
        raise ValueError(f"{text!r}: {error}") from None
    except DimensionalityError:
        raise ValueError(f"{text!r} must be in {unit} or a multiple of it") from None
    except Exception as error:  # pint raises many kinds of error; all are caused by the text
        raise ValueError(f"{text!r} is not a quantity ({type(error).__name__})") from None
    quantity: Quantity = Q_(int(magnitude) if magnitude.is_integer() else magnitude, parsed)
    return quantity


@functools.cache
def _parsed_unit(written: str) -> Unit:
    """Return the unit in a string; cached, as the catalogue has a few dozen units for thousands of values.

    Names are looked up one by one, which is twice as fast as pint's parser for whole expressions.
    """
    powers: Counter[str] = Counter()
    for sign, name, power in _FACTOR.findall(written):
        powers[ureg.get_name(name) if name != "%" else "percent"] += int(power or 1) * (-1 if sign == "/" else 1)
    return ureg.Unit(ureg.UnitsContainer({name: power for name, power in powers.items() if power}))


@functools.cache
def _check_convertible(given: Unit, wanted: str) -> None:
    """Raise DimensionalityError unless ``given`` converts to ``wanted``."""
    Q_(1, given).to(wanted)
