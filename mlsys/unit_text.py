"""Validation of quantity strings, before pint silently drops characters or implies a product."""

import re
from typing import Any

from mlsys.errors import ArgumentError

_SHOWN = 60  # characters of a string quoted in a message
_PLAIN = re.compile(r"[A-Za-z_%/*^ µ]*|[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)? ?[A-Za-zµ/%]*")
_MINUS = re.compile("[\N{MINUS SIGN}\N{HYPHEN}-\N{HORIZONTAL BAR}]")
_STRANGE = re.compile(r"[^\w\s.+\-*/^()%°·⁻×]|(?![0-9])\d")
_NO_OPERATOR = re.compile(r"[\w)]\s+(?!1/)[.\d]|\d\s*·\s*\d|\.\d*\.|\d\s*\(\s*\d")


def check_unit_text(text: Any) -> None:
    """Raise if pint would read a string differently from how it is written; other types pass.

    Parameters
    ----------
    text
        A number with a unit, a unit alone, or an expression of them.

    Raises
    ------
    ArgumentError
        If there is a comma, a character that pint drops, or two numbers without an operator between them.

    Examples
    --------
    >>> check_unit_text("4.87 ms"), check_unit_text("J/(s·m²)"), check_unit_text(3)
    (None, None, None)
    >>> check_unit_text("4,87 ms")
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: '4,87 ms' has a comma. Write '4.87 ms', or '487 ms' if the comma groups thousands
    >>> check_unit_text("1 000 ms")
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: '1 000 ms' has two numbers without an operator. Write '1000 ms', or '1 * 000 ms'
    """
    if not isinstance(text, str) or _PLAIN.fullmatch(text):
        return
    shown = repr(text[:_SHOWN])
    if "," in text:
        raise ArgumentError(f"{shown} has a comma. {_without_comma(text)}")
    if _MINUS.search(text):
        raise ArgumentError(f"{shown} has a dash that is not a minus sign. Write {_MINUS.sub('-', text)[:_SHOWN]!r}")
    if strange := _STRANGE.search(text):
        raise ArgumentError(
            f"{shown} has {strange[0]!r}, which cannot be part of a number or unit. Write a number with a decimal "
            "point, a space and a unit, such as '4.87 ms'"
        )
    if found := _NO_OPERATOR.search(text):
        gap = found[0]
        joined = text.replace(gap, "".join(gap.split()), 1)
        product = text.replace(gap, " * ".join(gap.split()), 1)
        numbers = gap[0].isdecimal() and gap[1:-1].isspace()
        fix = f"{joined[:_SHOWN]!r}, or {product[:_SHOWN]!r}" if numbers else "one number, such as '4.87 ms'"
        raise ArgumentError(f"{shown} has two numbers without an operator. Write {fix}")


def _without_comma(text: str) -> str:
    plain = text.replace(",", "")
    if not re.search(r"\d,\d", text):
        before = re.sub(r"(?<!\d),(?=\d)", "0.", text, count=1).replace(",", "")
        return f"Write {(plain if '.' in plain else before)[:_SHOWN]!r}"
    once = text.count(",") == 1 and "." not in text.partition(",")[2]
    point = text.replace(".", "").replace(",", ".")
    decimal = f"{point[:_SHOWN]!r}, or " if once else ""
    grouped = " if the comma groups thousands" if once else ""
    return f"Write {decimal}{plain[:_SHOWN]!r}{grouped}"
