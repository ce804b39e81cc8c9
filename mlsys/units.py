"""The unit registry of mlsys, with its own dimensions for information, compute and currency.

``ureg`` is the only registry of the package and ``Q_`` its quantity class. Bits,
flops, cycles, parameters, tokens, inferences, dollars and grams of CO2e are
separate dimensions (see ``units.txt``), and every quantity records where it
came from (see :mod:`mlsys.provenance`).

Pint's application registry is left unchanged, so that other packages are not affected.

Examples
--------
>>> from mlsys.units import Q_
>>> Q_(312, "TFLOP/s") / Q_(2039, "GB/s")
<Quantity(0.153016184, 'TFLOP / GB')>
>>> Q_("1 byte") + 1
Traceback (most recent call last):
    ...
pint.errors.DimensionalityError: Cannot convert from 'byte' to 'dimensionless'
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from typing import Any

import numpy as np
import pint
from pint.registry import GenericUnitRegistry
from pint.util import UnitsContainer

from mlsys.errors import ArgumentError
from mlsys.provenance import Fact, Origin, Step, origin_of
from mlsys.unit_text import check_unit_text

__all__ = [
    "Q_",
    "DimensionalityError",
    "Quantity",
    "UndefinedUnitError",
    "Unit",
    "computed",
    "number_in",
    "plain_number",
    "total",
    "ureg",
]

DimensionalityError = pint.DimensionalityError
UndefinedUnitError = pint.UndefinedUnitError
_SHOWN = 60  # characters of a string quoted in a message


def plain_number(value: Any) -> Any:
    """Return a NumPy scalar as a Python number, a numeric array as float64, and anything else unchanged.

    Fixed-width integers overflow silently and narrow floats lose precision, so counts and magnitudes are
    converted where they enter the package. A list or tuple of numbers becomes a float64 array too; pint
    would derive the dtype from the numbers.

    Parameters
    ----------
    value
        Any object; only NumPy integers and floats, and arrays and lists of numbers, are converted.

    Examples
    --------
    >>> plain_number(np.int8(100)) * 100, plain_number(np.array(7, np.uint16))
    (10000, 7)
    >>> plain_number(np.array([100, 120], np.int8)) * 100
    array([10000., 12000.])
    >>> plain_number([2**62, np.int8(100)]) * 100
    array([4.61168602e+20, 1.00000000e+04])
    """
    if isinstance(value, (list, tuple)) and _all_numbers(value):
        with contextlib.suppress(ValueError):  # ragged rows are left to pint
            return np.asarray(value, np.float64)
        return value
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind not in "iuf":
        return value
    if value.ndim:
        return value.astype(np.float64, copy=False)
    return float(value) if value.dtype.kind == "f" else int(value)


def _all_numbers(values: Any) -> bool:
    """Return whether a list contains only numbers, or lists of numbers."""
    if isinstance(values, (list, tuple)):
        return bool(values) and all(_all_numbers(value) for value in values)
    if isinstance(values, (np.ndarray, np.generic)):
        return values.dtype.kind in "iuf"
    return type(values) in (int, float)


def _check_magnitude(value: Any) -> None:
    """Raise ArgumentError for a string magnitude, which pint would accept: 2 * '7' would be '77'."""
    numpy = isinstance(value, (np.ndarray, np.generic))
    parts = value if isinstance(value, (list, tuple)) else (value,)
    if (numpy and value.dtype.kind in "SU") or any(isinstance(part, (str, bytes)) for part in parts):
        raise ArgumentError(
            f"Q_(): the value must be a number, got {str(value)[:_SHOWN]!r}. Write e.g. Q_(4.87, 'ms') or Q_('4.87 ms')"
        )


def _rebuild_quantity(magnitude: Any, units: str, origin: Origin | None) -> Quantity:
    quantity = ureg.Quantity(magnitude, units)
    quantity._origin = origin
    return quantity


def _rebuild_unit(units: str) -> Unit:
    return ureg.Unit(units)


class Unit(pint.UnitRegistry.Unit):
    """A unit of the mlsys registry; pickled by name, independently of pint's application registry."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_unit, (str(self._units),)


def _traced(symbol: str, operation: Callable[..., Any], reflected: bool = False) -> Callable[..., Any]:
    """Wrap a binary operation of pint so that its result records its operands."""

    def method(self: Quantity, other: Any) -> Any:
        other = plain_number(other)
        result = operation(self, other)
        if isinstance(result, Quantity):
            left, right = (other, self) if reflected else (self, other)
            if self._origin is not None or getattr(other, "_origin", None) is not None:
                result._origin = Step.of(symbol, left, right)
        return result

    return method


def _keeps_facts(name: str | None, operation: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a pint method so that its result keeps the origin of this quantity.

    With a ``name`` the origin of the result is a step of that name; without one it is unchanged.
    """

    @functools.wraps(operation)
    def method(self: Quantity, *args: Any, **kwargs: Any) -> Any:
        result = operation(self, *args, **kwargs)
        if isinstance(result, Quantity) and self._origin is not None:
            result._origin = Step(name, (self,)) if name else self._origin
        return result

    return method


_UFUNC_SYMBOLS = {"multiply": "×", "true_divide": "÷", "divide": "÷", "add": "+", "subtract": "−", "power": "^"}


_PINT: Any = pint.UnitRegistry.Quantity


class Quantity(pint.UnitRegistry.Quantity):
    """A number with a unit and, if known, an origin."""

    _origin: Origin | None = None
    _handed_out: bool = False  # returned by `read`, with what-ifs applied

    def __new__(cls, value: Any, units: Any = None) -> Quantity:
        """Return a quantity; a plain number with a parsed unit bypasses the slower constructor of pint."""
        value = plain_number(value)
        if type(value) not in (int, float) or not isinstance(units, (Unit, UnitsContainer)):
            if units is not None or not isinstance(value, str):
                _check_magnitude(value)
            return super().__new__(cls, value, units)  # type: ignore[return-value]
        quantity = object.__new__(cls)
        quantity._magnitude, quantity._units = value, units._units if isinstance(units, Unit) else units
        return quantity

    @property
    def origin(self) -> Origin | None:
        """The published fact, or the step that computed this quantity; None for a literal."""
        return self._origin

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Every fact this quantity depends on, in order of appearance."""
        return () if self._origin is None else self._origin.facts()

    @property
    def source(self) -> str:
        """Where the number comes from: one source, or several joined by semicolons."""
        return "; ".join(dict.fromkeys(fact.source for fact in self.facts))

    def __repr__(self) -> str:
        if isinstance(self._origin, Fact):
            return self._origin.describe(self)
        return f"<Quantity({_plain(self.magnitude)}, '{self.units:~}')>"

    def __format__(self, spec: str) -> str:
        """Format the number by ``spec`` and the unit in its short, pretty form."""
        if not spec and isinstance(self.magnitude, float):
            spec = ".9g"
        if not any(mark in spec for mark in "~PLHCD"):
            spec += "~P"
        return super().__format__(spec).strip()

    def __str__(self) -> str:
        return format(self, "")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the plain-text representation in a notebook too; a fact shows its provenance."""
        printer.text(repr(self))

    def _repr_html_(self) -> Any:
        """Return None, so that notebooks fall back to plain text."""
        return None

    def _repr_latex_(self) -> Any:
        """Return None, so that notebooks fall back to plain text."""
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_quantity, (self.magnitude, str(self._units), self._origin)

    def to(self, other: Any = None, *contexts: Any, **ctx_kwargs: Any) -> Quantity:
        """Return the quantity in another unit of the same dimension, with the same origin."""
        result: Quantity = super().to(other, *contexts, **ctx_kwargs)
        result._origin = self._origin
        return result

    def __copy__(self) -> Quantity:
        result: Quantity = super().__copy__()  # type: ignore[assignment]
        result._origin = self._origin
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> Quantity:
        result: Quantity = super().__deepcopy__(memo)  # type: ignore[assignment]
        result._origin = self._origin
        return result

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        inputs = tuple(plain_number(value) for value in inputs)
        result = super().__array_ufunc__(ufunc, method, *inputs, **kwargs)  # type: ignore[no-untyped-call]
        return _with_step(result, _UFUNC_SYMBOLS.get(ufunc.__name__, ufunc.__name__), inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        inputs = [item for value in args for item in (value if isinstance(value, (list, tuple)) else [value])]
        result = super().__array_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]
        return _with_step(result, func.__name__, tuple(inputs))

    def _numpy_method_wrap(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        result = super()._numpy_method_wrap(func, *args, **kwargs)  # type: ignore[no-untyped-call]
        return _with_step(result, func.__name__, (self, *args))

    def __iter__(self) -> Iterator[Any]:
        if self._origin is None:
            return iter(super().__iter__())
        return (_with_origin(item, self._origin) for item in super().__iter__())

    __getitem__ = _keeps_facts(None, _PINT.__getitem__)
    to_base_units = _keeps_facts(None, _PINT.to_base_units)
    to_root_units = _keeps_facts(None, _PINT.to_root_units)
    __neg__ = _keeps_facts("negative", _PINT.__neg__)
    __abs__ = _keeps_facts("abs", _PINT.__abs__)
    __round__ = _keeps_facts("round", _PINT.__round__)
    __mul__ = _traced("×", _PINT.__mul__)
    __rmul__ = _traced("×", _PINT.__rmul__, reflected=True)
    __truediv__ = _traced("÷", _PINT.__truediv__)
    __rtruediv__ = _traced("÷", _PINT.__rtruediv__, reflected=True)
    __add__ = _traced("+", _PINT.__add__)
    __radd__ = _traced("+", _PINT.__radd__, reflected=True)
    __sub__ = _traced("−", _PINT.__sub__)
    __rsub__ = _traced("−", _PINT.__rsub__, reflected=True)
    __pow__ = _traced("^", _PINT.__pow__)
    __floordiv__ = _traced("//", _PINT.__floordiv__)
    __mod__ = _traced("mod", _PINT.__mod__)
    # `total += part` makes a new quantity, so that quantities held elsewhere are never modified in place.
    __iadd__, __isub__, __imul__, __itruediv__ = __add__, __sub__, __mul__, __truediv__
    __ifloordiv__, __ipow__ = __floordiv__, __pow__


def _with_origin(value: Any, origin: Origin | None) -> Any:
    if isinstance(value, Quantity):
        value._origin = origin
    return value


def _with_step(result: Any, symbol: str, inputs: tuple[Any, ...]) -> Any:
    """Record the inputs of a NumPy function as the origin of its result."""
    if isinstance(result, Quantity) and any(origin_of(value) is not None for value in inputs):
        result._origin = Step(symbol, tuple(inputs))
    return result


def _plain(magnitude: Any) -> str:
    return f"{magnitude:.9g}" if isinstance(magnitude, float) else str(magnitude)


class Registry(GenericUnitRegistry[Quantity, Unit]):
    """The unit registry of mlsys, loaded from ``units.txt``."""

    Quantity = Quantity
    Unit = Unit
    _closed = False

    def parse_expression(self, input_string: str, *args: Any, **kwargs: Any) -> Any:
        """Parse a quantity such as ``"4.87 ms"``; characters that pint would drop, such as a comma, are refused.

        Raises
        ------
        ArgumentError
            If pint would read the text differently from how it is written.

        Examples
        --------
        >>> ureg.parse_expression("4,87 ms")
        Traceback (most recent call last):
            ...
        mlsys.errors.ArgumentError: '4,87 ms' has a comma. Write '4.87 ms', or '487 ms' if the comma groups thousands
        """
        check_unit_text(input_string)
        return super().parse_expression(input_string, *args, **kwargs)

    def parse_units(self, input_string: str, *args: Any, **kwargs: Any) -> Any:
        """Parse a unit such as ``"GB/s"``; invalid text is refused as by :meth:`parse_expression`."""
        check_unit_text(input_string)
        return super().parse_units(input_string, *args, **kwargs)

    def parse_units_as_container(self, input_string: str, *args: Any, **kwargs: Any) -> UnitsContainer:
        """Parse a unit such as ``"GB/s"`` into a ``UnitsContainer``; invalid text is refused."""
        check_unit_text(input_string)
        return super().parse_units_as_container(input_string, *args, **kwargs)

    __call__ = parse_expression

    def define(self, definition: Any) -> None:
        """Define a unit while ``units.txt`` is loaded; raise afterwards.

        Raises
        ------
        TypeError
            Once ``units.txt`` is loaded: a redefined byte would change every later result.
        """
        if self._closed:
            raise TypeError(
                f"ureg.define(): the units of mlsys are fixed, got {str(definition)!r}. "
                "Add a unit to mlsys/units.txt, or use a registry of your own: pint.UnitRegistry()"
            )
        super().define(definition)

    def load_definitions(self, *args: Any, **kwargs: Any) -> Any:
        """Load unit definitions while the registry is created; raise afterwards, as :meth:`define` does."""
        if self._closed:
            self.define("a file of definitions")
        return super().load_definitions(*args, **kwargs)


ureg = Registry(filename=str(resources.files("mlsys") / "units.txt"))
ureg._closed = True
ureg.formatter.default_format = "~P"
Q_ = ureg.Quantity


def computed(value: float, unit: Unit, origin: Origin | None = None) -> Quantity:
    """Return a quantity from a plain number, a unit and an origin.

    For the inner loops of models: ten times as fast as ``ureg.Quantity``, which accepts every
    kind of value and unit.

    Parameters
    ----------
    value
        A plain number.
    unit
        A unit of :data:`ureg`, created once: ``ureg.Unit("s")``.
    origin
        The step that computed it.

    Examples
    --------
    >>> print(computed(2.5, ureg.Unit("GB/s")))
    2.5 GB/s
    """
    result: Quantity = object.__new__(ureg.Quantity)
    result._magnitude = value
    result._units = unit._units
    result._origin = origin
    return result


def number_in(quantity: Quantity, unit: Unit) -> float:
    """Return the magnitude of a quantity in a unit, as a float; the conversion is skipped where units match.

    Examples
    --------
    >>> number_in(Q_(24, "kB"), ureg.Unit("byte"))
    24000.0
    """
    same = quantity._units is unit._units or quantity._units == unit._units
    return float(quantity._magnitude if same else quantity.m_as(unit))


def total(values: Iterable[Quantity], unit: str) -> Quantity:
    """Return the sum of many quantities in ``unit``; its origin is one step over all of them.

    Parameters
    ----------
    values
        Quantities of the dimension of ``unit``; the sum of an empty iterable is zero.
    unit
        Unit of the sum.

    Examples
    --------
    >>> print(total([Q_(1, "kB"), Q_(24, "byte")], "byte"))
    1024 B
    """
    terms = tuple(values)
    target = ureg.Unit(unit)
    amounts = (term.magnitude if term._units == target._units else term.m_as(target) for term in terms)
    return computed(sum(amounts), target, Step("+", terms))
