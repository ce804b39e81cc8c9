"""Sizes that are free: expressions in the free sizes, compiled once, evaluated at many values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlsys.workloads.torch_import.calls import Unknown

__all__ = ["Expressions"]


def _floor_divide(numerator: float, denominator: float) -> int:
    return math.floor(numerator / denominator) if isinstance(numerator, float) else int(numerator // denominator)


# torch's own sympy functions, by the name they are printed under.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "FloorDiv": _floor_divide,
    "CleanDiv": _floor_divide,
    "CeilDiv": lambda numerator, denominator: -(-numerator // denominator),
    "PythonMod": lambda value, modulus: value % modulus,
    "Mod": lambda value, modulus: value % modulus,
    "ModularIndexing": lambda value, divisor, modulus: value // divisor % modulus,
    "Where": lambda condition, yes, no: yes if condition else no,
    "CeilToInt": math.ceil,
    "FloorToInt": math.floor,
    "TruncToInt": math.trunc,
    "TruncToFloat": lambda value: float(math.trunc(value)),
    "RoundToInt": round,
    "RoundDecimal": round,
    "ToFloat": float,
    "IntTrueDiv": lambda numerator, denominator: numerator / denominator,
    "FloatTrueDiv": lambda numerator, denominator: numerator / denominator,
    "PowByNatural": pow,
    "FloatPow": pow,
    "LShift": lambda value, places: value << places,
    "RShift": lambda value, places: value >> places,
    "Identity": lambda value: value,
    "Max": max,
    "Min": min,
}


class Expressions:
    """A table of sympy expressions, each distinct one once."""

    def __init__(self) -> None:
        self.bounds: dict[str, int] = {}  # of sizes that values decide, which are taken at their largest
        self._expressions: list[Any] = []
        self._index: dict[Any, int] = {}
        self._function: Callable[..., Sequence[Any]] | None = None
        self._symbols: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self._expressions)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_function": None}

    def size(self, expression: Any) -> int | Unknown:
        """Return a number where the expression is one, else its place in the table."""
        if expression.is_number:
            return int(expression)
        index = self._index.get(expression)
        if index is None:
            index = self._index[expression] = len(self._expressions)
            self._expressions.append(expression)
            self._function = None
        return Unknown(index)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the free sizes."""
        return tuple(sorted({str(symbol) for item in self._expressions for symbol in item.free_symbols}))

    def at(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """Return every expression as a number, given a number for each free size."""
        if not self._expressions:
            return ()
        if self._function is None:
            import sympy

            self._symbols = self.symbols
            self._function = sympy.lambdify(self._symbols, self._expressions, modules=[_FUNCTIONS, "math"])
        return tuple(int(value) for value in self._function(*(values[name] for name in self._symbols)))
