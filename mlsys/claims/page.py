"""Claims of a page: named values that its text states.

``claim(ridge=chip.ridge_point("fp16"))`` formats the value once, makes it available to the
text (``{glue:}`ridge```) and adds it, with its formula and its sources, to the table
at the end of the page.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mlsys import provenance
from mlsys.claims import render
from mlsys.claims.filed import WITH_PROVENANCE, Cell, Claim, Page
from mlsys.claims.slicing import Basis, bases_of, names_assigned, watch_cells
from mlsys.formatting import natural, number_with_unit
from mlsys.provenance.shown import hear
from mlsys.units import Quantity

GIVEN, OWN_CODE = "given: this page sets it", "this page's own code"
_page = Page("")
_stop_listening: Callable[[], Any] | None = None


def current_page() -> Page:
    """Return the page whose claims are being collected."""
    return _page


def start_chapter(name: str) -> None:
    """Start a page: discard earlier claims and record every fact that is read from now on."""
    global _page, _stop_listening
    _stop_recording()
    _page = Page(name)
    stop_functions = [hear(_page.show), *([provenance.listen(_page.facts)] if WITH_PROVENANCE.get() else [])]
    _stop_listening = lambda: [stop() for stop in stop_functions]  # noqa: E731
    begin_cell(_source)


_source = ""
_stop_cell: Callable[[], None] = lambda: None  # noqa: E731


def begin_cell(source: str) -> None:
    """Record the names that the cell assigns, and the facts that are read from now on until the next cell."""
    global _source, _stop_cell
    _source = source
    _stop_cell()
    if _stop_listening is not None and WITH_PROVENANCE.get():
        cell = Cell(names_assigned(source))
        _page.cells.append(cell)
        _stop_cell = provenance.listen(cell.facts)


watch_cells(begin_cell)


def end_chapter(name: str) -> None:
    """End the page ``name``; raise ValueError if another page was started."""
    if _page.name != name:
        raise ValueError(f"end_chapter(): the open chapter is {_page.name!r}, not {name!r}.")
    _stop_recording()


def _stop_recording() -> None:
    global _stop_listening
    _stop_cell()
    if _stop_listening is not None:
        _stop_listening()
        _stop_listening = None


def claim(*, unit: str | None = None, precision: int | None = None, **values: Any) -> None:
    """Claim one or more named values on the page.

    Parameters
    ----------
    unit
        Unit to convert the values to, printed as typed; ``"%"`` and ``"×"`` for pure
        numbers. By default the unit of each quantity.
    precision
        Digits after the decimal point; by default three significant digits.
    **values
        Quantities, numbers, or strings such as ``bound="memory"``.

    Raises
    ------
    ValueError
        If a name is claimed again with another value, or a value is not finite, or
        would print as zero although it is not.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> start_chapter("demo")
    >>> claim(ridge=Hardware.Cloud.A100.ridge_point("fp16"), unit="FLOP/byte")
    ridge = 153 FLOP/byte  ←  ridge_point(peak=312 TFLOP/s, bandwidth=2039 GB/s)
    >>> claim(ridge=2)
    Traceback (most recent call last):
        ...
    ValueError: claim(): 'ridge' is already claimed on page 'demo' as 153 FLOP/byte, now as 2.
        Give the second value a name of its own
    >>> end_chapter("demo")
    """
    if not values:
        raise ValueError("claim(): name at least one value. Write e.g. claim(ridge=chip.ridge_point('fp16'))")
    claims = [_make(name, value, unit, precision) for name, value in values.items()]
    if not WITH_PROVENANCE.get():
        for item in claims:
            _page.add(item)
        return
    if any(item.formula == OWN_CODE for item in claims):
        bases = bases_of(sys._getframe(1))
        claims = [_with_basis(item, bases.get(item.name)) for item in claims]
    for item in claims:
        _page.add(item)
    sources = {name: fact.source for name, fact in _page.facts.items()}
    render.show_claims(claims, sources)


def given(*, unit: str | None = None, precision: int | None = None, **values: Any) -> Any:
    """Claim sizes and choices that the page itself sets, so that its text can refer to them.

    Parameters
    ----------
    unit, precision
        As for :func:`claim`; whole numbers are printed with all their digits.
    **values
        Quantities, numbers, strings, or tuples of whole numbers, which are printed as ``128 × 128``.

    Returns
    -------
    Any
        The value, or a tuple of the values if several are given.

    Raises
    ------
    ValueError
        As for :func:`claim`.

    Examples
    --------
    >>> start_chapter("demo")
    >>> edge = given(edge=128)
    edge = 128  ←  given: this page sets it
    >>> array = given(array=(128, 128))
    array = 128 × 128  ←  given: this page sets it
    >>> end_chapter("demo")
    """
    if not values:
        raise ValueError("given(): name at least one value. Write e.g. edge = given(edge=128)")
    claims = [_given(name, value, unit, precision) for name, value in values.items()]
    for item in claims:
        _page.add(item)
    render.show_claims(claims, {})
    return next(iter(values.values())) if len(values) == 1 else tuple(values.values())


def _given(name: str, value: Any, unit: str | None, precision: int | None) -> Claim:
    if isinstance(value, tuple):
        shown = " × ".join(f"{size:,}" for size in value)
        return Claim(name, shown, "", shown, GIVEN, ())
    whole = not isinstance(value, (str, bool, np.bool_)) and _number(name, value, unit)[0].is_integer()
    computed = _make(name, value, unit, 0 if whole and precision is None else precision)
    return replace(computed, formula=GIVEN, facts=(), compared=())


def _with_basis(item: Claim, basis: Basis | None) -> Claim:
    """Return a claim with the formula and facts of its expression, if its value has no origin."""
    formula = basis.formula(GIVEN) if basis is not None and item.formula == OWN_CODE else None
    if basis is None or formula is None:
        return item
    return replace(item, formula=formula, facts=basis.facts, compared=basis.compared)


def _make(name: str, value: Any, unit: str | None, precision: int | None) -> Claim:
    origin = provenance.origin_of(value) if WITH_PROVENANCE.get() else None
    formula = origin.expression() if origin is not None else OWN_CODE
    facts = tuple(fact.name for fact in origin.facts()) if origin is not None else ()
    compared = tuple(fact.name for fact in origin.compared()) if origin is not None else ()
    if isinstance(value, (str, bool, np.bool_)):
        return Claim(name, str(value), "", str(value), "a word this page computes", facts, compared)
    number, label = _number(name, value, unit)
    text = natural(number) if precision is None else f"{number:,.{precision}f}"
    if number != 0 and not any(digit in text for digit in "123456789"):
        raise ValueError(f"claim(): {name!r} is {number:.6g} and would print as {text}. Raise `precision`")
    return Claim(name, number, label, number_with_unit(text, label), formula, facts, compared)


def _number(name: str, value: Any, unit: str | None) -> tuple[float, str]:
    label = unit
    if isinstance(value, Quantity):
        own = "" if value.dimensionless else None
        target = {None: own, "×": "", "%": "percent"}.get(unit, unit)
        converted = value if target is None else value.to(target)
        number = converted.magnitude
        label = f"{converted.units:~P}" if unit is None else unit
    else:
        number = value * 100 if unit == "%" else value
        if unit not in (None, "%", "×"):
            raise ValueError(
                f"claim(): {name!r} is the bare number {value!r} and cannot be stated in {unit}. "
                f'Write e.g. claim({name}=Q_({value!r}, "{unit}"))'
            )
    number = float(number)
    if not math.isfinite(number):
        raise ValueError(f"claim(): {name!r} must be finite, got {number!r}.")
    return number, label or ""


def claims_table() -> Any:
    """Return the table of this page's claims and facts; show it in the last cell.

    The notebook tests compare its text on every run.
    """
    return render.ClaimsTable(_page.record())
