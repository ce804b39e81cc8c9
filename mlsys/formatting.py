"""Formatting of numbers for pages.

``fmt`` refuses to print a non-zero value as zero; ``check`` is the assertion that
pages use. :func:`natural` chooses the number of decimals from the size of the number.
"""

import math
import os

from mlsys.units import Quantity, Unit, plain_number

_MOST_DIGITS = 50


def fmt(
    quantity: Quantity | float,
    unit: str | Unit | None = None,
    precision: int = 1,
    commas: bool = True,
    allow_zero: bool = False,
) -> str:
    """Return the magnitude of ``quantity`` in ``unit`` as text, without the unit.

    Parameters
    ----------
    quantity
        A quantity, or a pure number.
    unit
        Unit to convert to first; by default the unit of the quantity, and none for a ratio.
    precision
        Digits after the decimal point, 0 or more.
    commas
        Whether to separate thousands by commas.
    allow_zero
        Whether a non-zero value may print as zero.

    Raises
    ------
    ValueError
        If a non-zero value would print as zero, or the value is not finite.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> fmt(Q_(312, "TFLOP/s"), "GFLOP/s", precision=0)
    '312,000'
    >>> fmt(Q_(3.35, "TB/s") / Q_(2039, "GB/s"), precision=4)
    '1.6430'
    >>> fmt(Q_(3, "ms"), "s", precision=1)
    Traceback (most recent call last):
        ...
    ValueError: fmt(): 0.003 s would print as '0.0'.
        Raise `precision` (now 1), choose a smaller `unit`, or pass allow_zero=True
    """
    if unit is not None:
        if not isinstance(unit, (str, Unit)):
            raise ValueError(f"fmt(): `unit` must be a unit, such as 'GB/s', got {unit!r}")
        if not isinstance(quantity, Quantity):
            raise ValueError(
                f"fmt(): `quantity` must be a quantity to be converted to {unit}, got the bare number {quantity!r}. "
                f'Write e.g. fmt(Q_({quantity!r}, "{unit}"), "{unit}")'
            )
        quantity = quantity.to(unit)
    elif isinstance(quantity, Quantity) and quantity.dimensionless:
        quantity = quantity.to("")  # a ratio of TB/s to GB/s is a pure number, not in TB/GB
    value = float(quantity.magnitude if isinstance(quantity, Quantity) else quantity)
    if not math.isfinite(value):
        raise ValueError(f"fmt(): `quantity` must be finite, got {value!r}.")
    precision = plain_number(precision)
    if isinstance(precision, bool) or not isinstance(precision, int) or not 0 <= precision <= _MOST_DIGITS:
        raise ValueError(f"fmt(): `precision` must be a whole number from 0 to {_MOST_DIGITS}, got {precision!r}")
    text = f"{value:{',' if commas else ''}.{precision}f}"
    if value != 0 and not allow_zero and float(text.replace(",", "")) == 0:
        shown = f"{quantity:.6g~P}" if isinstance(quantity, Quantity) else f"{value:.6g}"
        raise ValueError(
            f"fmt(): {shown} would print as '{text}'. Raise `precision` (now {precision}), "
            "choose a smaller `unit`, or pass allow_zero=True"
        )
    return text


def fmt_percent(ratio: Quantity | float, precision: int = 1, commas: bool = False) -> str:
    """Return a ratio in percent as text, without the percent sign: 0.2 gives ``'20.0'``.

    Raises
    ------
    ValueError
        If ``ratio`` has a dimension, or a non-zero ratio would print as zero.

    Examples
    --------
    >>> fmt_percent(0.203)
    '20.3'
    """
    if isinstance(ratio, Quantity):
        if not ratio.dimensionless:
            raise ValueError(
                f"fmt_percent(): `ratio` must be a pure number, got {ratio:~P}. "
                "Divide it by a quantity of the same kind"
            )
        ratio = ratio.to("").magnitude
    return fmt(float(ratio) * 100, precision=precision, commas=commas)


NO_LONGER = "This check no longer holds"


def check(condition: object, message: str) -> None:
    """Raise ``ValueError(message)`` unless ``condition`` holds.

    Where ``MLSYS_CHECKS=report``, as in a book with changed facts, the message is printed instead.

    Examples
    --------
    >>> check(1 + 1 == 3, "arithmetic is off")
    Traceback (most recent call last):
        ...
    ValueError: arithmetic is off
    """
    if condition:
        return
    if os.environ.get("MLSYS_CHECKS") == "report":
        print(f"{NO_LONGER}: {message}")
        return
    raise ValueError(message)


def natural(value: float, digits: int = 3) -> str:
    """Return ``value`` as text with about ``digits`` significant digits; the integer part is never rounded.

    Examples
    --------
    >>> natural(math.inf), natural(math.nan)
    ('∞', 'not a number')
    >>> [natural(x) for x in (153.016, 2039.0, 9.2, 0.00654, 3.12e14)]
    ['153', '2,039', '9.20', '0.00654', '3.12e+14']
    """
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "not a number")
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}"
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-4:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(size)))
    return f"{value:,.{decimals}f}"


def significant(value: float, digits: int) -> float:
    """Return a number rounded to significant digits, such as those that a clock resolves.

    Examples
    --------
    >>> significant(0.123456789, 5), significant(153_016.0, 2)
    (0.12346, 150000.0)
    """
    return float(f"{value:.{digits}g}")


def compact(amount: Quantity, nothing: str = "0 B") -> str:
    """Return a quantity as text, with four significant digits and a suitable unit prefix.

    Parameters
    ----------
    amount
        A quantity.
    nothing
        Text for zero, which has no suitable prefix.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> compact(Q_(231_211_008, "byte")), compact(Q_(0, "byte"))
    ('231.2 MB', '0 B')
    """
    return f"{amount.to_compact():.4g~P}" if amount.magnitude else nothing


_SCALES = {"k": "thousand", "M": "million", "G": "billion", "T": "trillion"}
_COUNTED = {"param": "parameters", "token": "tokens", "h": "hours"}
_NOUNS = {"yr": "year", "d": "day", "param": "parameter"}
_NOUNS |= {word: word for word in ("year", "month", "week", "day", "hour", "cycle", "byte", "token", "request")}
_SYMBOLS = {"FLOP/B": "FLOP/byte", "pJ/B": "pJ/byte", "token/s": "tokens/s"}


def number_with_unit(number: str, unit: str) -> str:
    """Return a number and its unit as a sentence has them: nouns are in the plural, counts have their scale in words.

    Symbols of units stay symbols.

    Parameters
    ----------
    number
        The number, already as text.
    unit
        A unit as :func:`mlsys.claim` takes it; ``"%"`` and ``"×"`` follow the number without a space.

    Examples
    --------
    >>> [number_with_unit("10.1", unit) for unit in ("year", "yr", "Gparam", "ms", "%", "")]
    ['10.1 years', '10.1 years', '10.1 billion parameters', '10.1 ms', '10.1%', '10.1']
    >>> [number_with_unit("3", unit) for unit in ("day", "FLOP/B", "Mh", "tCO2e")], number_with_unit("1", "day")
    (['3 days', '3 FLOP/byte', '3 million hours', '3 tCO₂e'], '1 day')
    """
    if unit in ("", "%", "×"):
        return f"{number}{unit}"
    scale, noun = _SCALES.get(unit[0]), _COUNTED.get(unit[1:])
    if scale and noun:
        return f"{number} {scale} {noun}"
    if unit in _NOUNS:
        return f"{number} {_NOUNS[unit]}{'' if number == '1' else 's'}"
    return f"{number} {_SYMBOLS.get(unit, unit).replace('CO2e', 'CO₂e')}"
