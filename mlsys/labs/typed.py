"""Parsing of typed numbers, with error messages that say what to type instead."""

import re

_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_MOST_LETTERS = 40


class AnswerError(ValueError):
    """The input is not a possible answer; the message says what to type."""


def read_number(text: str, unit: str = "") -> float:
    """Return the number in a text, with decimal point, optional thousands commas and an optional ``unit``.

    Raises
    ------
    AnswerError
        If it is empty, not a number, or has a decimal comma.

    Examples
    --------
    >>> read_number(" 1,040 "), read_number("6.5 kB", "kB"), read_number("\N{MINUS SIGN}2")
    (1040.0, 6.5, -2.0)
    >>> read_number("0,5")
    Traceback (most recent call last):
        ...
    mlsys.labs.typed.AnswerError: Write a decimal point, not a comma: 0.5. A comma only groups thousands, as in \
1,000.
    """
    typed = text.strip().replace("\N{MINUS SIGN}", "-")
    for sign in (unit, "%", "×", "x"):
        typed = typed.removesuffix(sign).rstrip() if sign else typed
    if not typed:
        raise AnswerError("Please type a number first.")
    if _GROUPED.fullmatch(typed):
        typed = typed.replace(",", "")
    if not _PLAIN.fullmatch(typed):
        pointed = typed.replace(",", ".")
        if typed.count(",") == 1 and _PLAIN.fullmatch(pointed):
            raise AnswerError(
                f"Write a decimal point, not a comma: {pointed}. A comma only groups thousands, as in 1,000."
            )
        shown = typed if len(typed) <= _MOST_LETTERS else typed[:_MOST_LETTERS] + "…"
        raise AnswerError(f"“{shown}” is no number. Type one such as 12.5, without words.")
    return float(typed)
