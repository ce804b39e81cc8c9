"""Checks of arguments: units, ranges, types and names.

``@quantity_function`` wraps a formula: arguments are checked and converted to the units that the
formula is written in, the plain function computes with floats, and the result is
a quantity that records how it was computed. The plain function remains available as
``.bare`` for sweeps over floats and NumPy arrays.

Examples
--------
>>> @quantity_function("FLOP/byte", peak=positive("FLOP/s"), bandwidth=positive("byte/s"))
... def balance(peak, bandwidth):
...     return peak / bandwidth
>>> from mlsys.units import Q_
>>> print(f"{balance(Q_(312, 'TFLOP/s'), Q_(2039, 'GB/s')):.1f~P}")
153.0 FLOP/B
>>> balance.bare(312e12, 2039e9)
153.01618440411966
>>> balance(312, Q_(2039, "GB/s"))
Traceback (most recent call last):
    ...
mlsys.errors.ArgumentUnitError: balance(): `peak` must be a quantity in FLOP/s, got the bare number 312.
    Write e.g. peak=Q_(312, "FLOP/s")
"""

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mlsys.errors import ArgumentError, ArgumentUnitError, UnknownNameError, did_you_mean
from mlsys.faults import short
from mlsys.provenance import Step
from mlsys.units import DimensionalityError, Quantity, plain_number, ureg

_LARGEST = sys.float_info.max


Function = TypeVar("Function", bound=Callable[..., Any])
Choice = TypeVar("Choice", bound=str)
_ABSENT = object()


def check_types(**types: tuple[Any, str]) -> Callable[[Function], Function]:
    """Return a decorator that checks the types of arguments, each given as a class or classes and a description.

    Examples
    --------
    >>> @check_types(count=(int, "a whole number, such as 3"))
    ... def twice(count):
    ...     return 2 * count
    >>> twice("3")
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: twice(): `count` must be a whole number, such as 3, got '3'
    """

    def decorate(function: Function) -> Function:
        names = tuple(inspect.signature(function).parameters)
        checks = [(names.index(name), name, *expected) for name, expected in types.items()]

        @functools.wraps(function)
        def checked(*args: Any, **named: Any) -> Any:
            for position, name, classes, description in checks:
                value = args[position] if position < len(args) else named.get(name, _ABSENT)
                if value is _ABSENT:
                    continue
                if isinstance(value, np.generic):
                    value = plain_number(value)
                    if position < len(args):
                        args = (*args[:position], value, *args[position + 1 :])
                    else:
                        named[name] = value
                if not isinstance(value, classes):
                    raise ArgumentError(f"{function.__name__}(): `{name}` must be {description}, got {short(value)}")
            return function(*args, **named)

        return checked  # type: ignore[return-value]

    return decorate


def plain_arguments(function: Function) -> Function:
    """Convert NumPy scalars among the arguments of a function to Python numbers, which do not overflow.

    Examples
    --------
    >>> @plain_arguments
    ... def area(height, width):
    ...     return height * width
    >>> area(np.int8(100), width=np.int8(100))
    10000
    """

    @functools.wraps(function)
    def converted(*args: Any, **named: Any) -> Any:
        return function(
            *(plain_number(value) if isinstance(value, np.generic) else value for value in args),
            **{name: plain_number(value) if isinstance(value, np.generic) else value for name, value in named.items()},
        )

    return converted  # type: ignore[return-value]


def plain_fields(record: Any) -> None:
    """Convert NumPy scalars among the fields of a dataclass to Python numbers; for ``__post_init__``.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Tensor:
    ...     rows: int
    ...     __post_init__ = plain_fields
    >>> Tensor(np.int8(100)).rows * 100
    10000
    """
    for name, value in vars(record).items():
        if isinstance(value, np.generic):
            object.__setattr__(record, name, plain_number(value))


@dataclass(frozen=True)
class Argument:
    """Specification of one argument of a formula: its unit, its range, and whether it must be a whole number."""

    unit: str
    low: float = -math.inf
    low_is_allowed: bool = True
    high: float = math.inf
    high_is_allowed: bool = True
    whole: bool = False

    def wanted(self) -> str:
        """Return the valid range in words, such as ``"a finite number > 0"``."""
        number = "a whole number" if self.whole else "a finite number"
        above = ">=" if self.low_is_allowed else ">"
        bounds = [f"{above} {self.low:g}"] if self.low > -math.inf else []
        below = "<=" if self.high_is_allowed else "<"
        bounds += [f"{below} {self.high:g}"] if self.high < math.inf else []
        return f"{number} {' and '.join(bounds)}".strip()


def positive(unit: str = "") -> Argument:
    """Return the spec of a finite value above zero in ``unit``."""
    return Argument(unit, low=0, low_is_allowed=False)


def nonnegative(unit: str = "") -> Argument:
    """Return the spec of a finite value of zero or more in ``unit``."""
    return Argument(unit, low=0)


def at_least(low: float, unit: str = "") -> Argument:
    """Return the spec of a finite value of ``low`` or more in ``unit``."""
    return Argument(unit, low=low)


def fraction(*, below_one: bool = False) -> Argument:
    """Return the spec of a fraction from 0 to 1; 1 is excluded if ``below_one``."""
    return Argument("", low=0, high=1, high_is_allowed=not below_one)


def efficiency() -> Argument:
    """Return the spec of an efficiency: the fraction of a peak that is reached, above 0 and up to 1."""
    return Argument("", low=0, low_is_allowed=False, high=1)


def count() -> Argument:
    """Return the spec of a positive whole number without a unit, such as a size or a number of devices."""
    return Argument("", low=1, whole=True)


_COUNT = count()


def checked_number(where: str, name: str, value: object, spec: Argument, factors: dict[Any, float]) -> Any:
    """Return ``value`` as a float or float array in ``spec.unit``, or raise if it violates ``spec``.

    ``factors`` caches the conversion factors of one argument, by unit.
    """
    if isinstance(value, Quantity):
        units = value._units
        factor = factors.get(units)
        if factor is None:
            factor = factors[units] = _factor(where, name, value, spec)
        number = value._magnitude * factor if factor != 1.0 else value._magnitude
    elif spec.unit or not _is_number(value):
        raise ArgumentUnitError(_no_unit_message(where, name, value, spec))
    else:
        number = plain_number(value)
    if not _complies(number, spec):
        raise ArgumentError(_range_message(where, name, value, spec))
    return number


def checked_count(where: str, name: str, value: object) -> int:
    """Return a positive whole number as an int, or raise like :func:`checked_number`.

    Examples
    --------
    >>> checked_count("network", "batch", 32.0)
    32
    >>> checked_count("network", "batch", [8])
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentUnitError: network(): `batch` must be a whole number >= 1, got [8]. Write e.g. batch=1
    """
    number = checked_number(where, name, value, _COUNT, {})
    if np.ndim(number):
        raise ArgumentError(_range_message(where, name, value, _COUNT))
    return int(number)


def checked_counts(where: str, **values: object) -> tuple[int, ...]:
    """Return several positive whole numbers as ints, or raise for the first invalid one.

    Examples
    --------
    >>> checked_counts("gemm", m=np.int8(64), n=32.0)
    (64, 32)
    """
    return tuple(checked_count(where, name, value) for name, value in values.items())


def checked_choice(where: str, name: str, value: object, known: Iterable[Choice]) -> Choice:
    """Return ``value`` if it is one of the names in ``known``; otherwise raise and list them.

    Values of a mapping describe its names in the message; for a ``Literal``, pass its ``get_args``.

    Raises
    ------
    UnknownNameError
        If the name is unknown.

    Examples
    --------
    >>> checked_choice("plan", "goal", "latency", ("latency", "throughput"))
    'latency'
    >>> checked_choice("plan", "goal", "latenci", ("latency", "throughput"))
    Traceback (most recent call last):
        ...
    mlsys.errors.UnknownNameError: plan(): `goal` must be one of latency, throughput, got 'latenci'. ... 'latency'?
    """
    meanings = known if isinstance(known, Mapping) else dict.fromkeys(known)
    for each in meanings:
        if each == value:
            return each
    listed = ", ".join(
        f"{each} ({meaning})" if isinstance(meaning, str) else each for each, meaning in meanings.items()
    )
    raise UnknownNameError(
        f"{where}(): `{name}` must be one of {listed}, got {short(value)}.{did_you_mean(value, meanings)}"
    )


def _is_number(value: Any) -> bool:
    """Return whether ``value`` is a real number or a numeric array; booleans are not."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "iuf"
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _complies(number: Any, spec: Argument) -> bool:
    """Return whether a number, or every element of an array, is in the range of ``spec``."""
    if isinstance(number, np.ndarray) and number.ndim:
        if not _is_number(number) or not number.size:
            return False
        good = np.isfinite(number) & (number >= spec.low) & (number <= spec.high)
        good &= (spec.low_is_allowed | (number > spec.low)) & (spec.high_is_allowed | (number < spec.high))
        return bool(good.all()) and not (spec.whole and (number != np.floor(number)).any())
    return (
        (type(number) in (float, int) or _is_number(number))
        and -_LARGEST <= number <= _LARGEST
        and spec.low <= number <= spec.high
        and (number != spec.low or spec.low_is_allowed)
        and (number != spec.high or spec.high_is_allowed)
        and not (spec.whole and number != math.floor(number))
    )


def _factor(where: str, name: str, value: Quantity, spec: Argument) -> float:
    try:
        return float(ureg.Quantity(1.0, value.units).to(spec.unit).magnitude)
    except DimensionalityError:
        wanted = f"a quantity in {spec.unit}" if spec.unit else "a pure number"
        example = f'{name}=Q_({_example(spec)}, "{spec.unit}")' if spec.unit else f"{name}={_example(spec)}"
        raise ArgumentUnitError(
            f"{where}(): `{name}` must be {wanted}, got {_show(value)}, which is {value.dimensionality}. "
            f"Write e.g. {example}"
        ) from None


def _no_unit_message(where: str, name: str, value: Any, spec: Argument) -> str:
    given = f"the bare number {_show(value)}" if _is_number(value) else repr(value)
    usable = np.ndim(value) == 0 and _is_number(value) and _complies(value, spec)
    example = f"{value}" if usable else _example(spec)
    if spec.unit:
        return (
            f"{where}(): `{name}` must be a quantity in {spec.unit}, got {given}. "
            f'Write e.g. {name}=Q_({example}, "{spec.unit}")'
        )
    return f"{where}(): `{name}` must be {spec.wanted()}, got {given}. Write e.g. {name}={_example(spec)}"


def _range_message(where: str, name: str, value: Any, spec: Argument) -> str:
    shown = f'Q_({_example(spec)}, "{spec.unit}")' if spec.unit else _example(spec)
    unit = f" in {spec.unit}" if spec.unit else ""
    return f"{where}(): `{name}` must be {spec.wanted()}{unit}, got {_show(value)}. Write e.g. {name}={shown}"


def _example(spec: Argument) -> str:
    if spec.high == 1:
        return "0.95"
    value = min(max(spec.low, 1), spec.high)
    return f"{value + 1 if value == spec.low and not spec.low_is_allowed else value:g}"


def _show(value: Any) -> str:
    if isinstance(value, Quantity):
        return f"{value:~P}"
    return str(plain_number(value)) if isinstance(value, np.generic) else repr(value)


class Formula:
    """A formula with checked arguments; call it with quantities, or call ``.bare`` with floats.

    Attributes
    ----------
    bare
        The plain function, over floats and NumPy arrays in the units of ``specs``.
    specs
        Specification of each argument, by name.
    unit
        Unit of the result.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        unit: str,
        specs: dict[str, Argument],
        requires: Callable[..., str | None] | None,
    ) -> None:
        self.signature = inspect.signature(function)
        missing = set(self.signature.parameters) - set(specs)
        if missing:
            raise TypeError(f"quantity_function: {function.__name__}() has arguments without a spec: {sorted(missing)}")
        self.bare: Callable[..., Any] = function
        self.unit = unit
        self.specs = specs
        self._requires = requires
        self._unit = ureg.Unit(unit)
        self._names = tuple(self.signature.parameters)
        self._factors: dict[str, dict[Any, float]] = {name: {} for name in self._names}
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Quantity:
        """Check and convert the arguments, and return the result as a quantity that records its inputs."""
        if kwargs or len(args) != len(self._names):
            bound = self.signature.bind(*args, **kwargs).arguments
        else:
            bound = dict(zip(self._names, args, strict=True))
        where, specs, factors = self.__name__, self.specs, self._factors
        inside: Any = {
            name: checked_number(where, name, value, specs[name], factors[name]) for name, value in bound.items()
        }
        if self._requires is not None:
            problem = self._requires(**inside)
            if problem:
                raise ArgumentError(f"{where}(): {problem}")
        result: Quantity = ureg.Quantity(self.bare(**inside), self._unit)
        result._origin = Step(where, tuple(bound.values()), tuple(bound))
        return result

    __name__: str

    def __repr__(self) -> str:
        return f"<formula {self.__name__}{self.signature} -> {self.unit or 'pure number'}>"


def quantity_function(
    returns: str, requires_: Callable[..., str | None] | None = None, /, **specs: Argument
) -> Callable[[Callable[..., Any]], Formula]:
    """Return a decorator that makes a :class:`Formula` with a result in the unit ``returns``; one spec per argument.

    ``requires_`` checks conditions on several arguments: it takes the converted arguments and
    returns an error message, or None.
    """

    def decorate(function: Callable[..., Any]) -> Formula:
        return Formula(function, returns, specs, requires_)

    return decorate
