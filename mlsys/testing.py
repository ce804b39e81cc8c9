"""Unit-aware assertions, for tests and for the checks of a page.

A thin layer over :mod:`numpy.testing`: units are converted first, and a bare number is never given a unit implicitly.

Examples
--------
>>> from mlsys.units import Q_
>>> assert_quantity_close(Q_(1, "GB/s"), Q_(8, "Gbps"))
>>> assert_quantity_close(Q_(1, "GB/s"), 1e9)
Traceback (most recent call last):
    ...
AssertionError: units differ: 1 GB/s is [information] / [time], 1000000000.0 has no unit
"""

from typing import Any

import numpy as np

from mlsys.units import Quantity, ureg


def assert_same_dimension(actual: object, desired: object) -> None:
    """Assert that two quantities have compatible dimensions.

    Parameters
    ----------
    actual, desired
        Quantities, units, unit names such as ``"GB/s"``, or pure numbers.

    Raises
    ------
    AssertionError
        If one is, say, a time and the other a rate, or only one has a unit.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> assert_same_dimension(Q_(3, "ms"), "hour")
    >>> assert_same_dimension(Q_(3, "MAC"), "byte")
    Traceback (most recent call last):
        ...
    AssertionError: units differ: 3 MAC is [computation], byte is [information]
    """
    if _dimension(actual) != _dimension(desired):
        raise AssertionError(f"units differ: {_describe(actual)}, {_describe(desired)}")


def assert_quantity_close(actual: object, desired: object, rtol: float = 1e-9, atol: Quantity | None = None) -> None:
    """Assert that two quantities are equal up to a relative tolerance, whatever their units.

    Parameters
    ----------
    actual, desired
        Quantities, scalar or array, or pure numbers.
    rtol
        Allowed relative difference, of ``desired``; pure number.
    atol
        Allowed absolute difference, in a unit of the same dimension; by default none.

    Raises
    ------
    AssertionError
        If the dimensions or the values differ; the message shows both in ``desired``'s unit.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> assert_quantity_close(Q_(1, "GMAC"), Q_(2, "GFLOP"))
    >>> assert_quantity_close(Q_(153.1, "FLOP/byte"), Q_(153, "FLOP/byte"), rtol=1e-3)
    >>> assert_quantity_close(Q_(1, "GB"), Q_(1, "GiB"))
    Traceback (most recent call last):
        ...
    AssertionError: ...Not equal to tolerance rtol=1e-09, atol=0 in GiB...
    """
    assert_same_dimension(actual, desired)
    if atol is not None:
        assert_same_dimension(atol, desired)
    unit = desired.units if isinstance(desired, Quantity) else ureg.Unit("")
    actual_number, desired_number, slack = (_number(value, unit) for value in (actual, desired, atol))
    np.testing.assert_allclose(
        actual_number, desired_number, rtol=rtol, atol=slack, err_msg=f"in {unit:~P}" if f"{unit:~P}" else ""
    )


def assert_depends_on(quantity: object, *names: str) -> None:
    """Assert that a result was computed from exactly the facts of these names.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> assert_depends_on(2 * Hardware.Cloud.A100.tdp, "A100_80GB/power/tdp")
    >>> assert_depends_on(2 * Hardware.Cloud.A100.tdp, "V100/power/tdp")
    Traceback (most recent call last):
        ...
    AssertionError: depends on A100_80GB/power/tdp, expected V100/power/tdp
    """
    operands = sorted(fact.name for fact in getattr(quantity, "facts", ()))
    if operands != sorted(names):
        raise AssertionError(
            f"depends on {', '.join(operands) or 'no fact'}, expected {', '.join(sorted(names)) or 'none'}"
        )


assert_leans_on = assert_depends_on  # former name, for one release


def _dimension(value: Any) -> Any:
    if isinstance(value, str):
        return ureg.Unit(value).dimensionality
    return getattr(value, "dimensionality", ureg.Unit("").dimensionality)


def _describe(value: Any) -> str:
    if isinstance(value, str):
        return f"{value} is {_dimension(value)}"
    if hasattr(value, "dimensionality"):
        return f"{value:~P} is {value.dimensionality}"
    return f"{value!r} has no unit"


def _number(value: Any, unit: Any) -> Any:
    if value is None:
        return 0
    return value.to(unit).magnitude if isinstance(value, Quantity) else value
