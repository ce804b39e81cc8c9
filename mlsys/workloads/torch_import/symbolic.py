"""Expressions in the free sizes of a network, compiled once and evaluated at many values."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlsys.workloads.torch_import.calls import Unknown


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
    """A table of expressions in the free sizes, each distinct one once.

    Parameters
    ----------
    sources
        Expressions as Python writes them, such as ``"(s0 - 1)//2 + 1"``; see :attr:`sources`.
    symbols
        Names of the sizes that they contain.
    """

    def __init__(self, sources: Sequence[str] = (), symbols: Sequence[str] = ()) -> None:
        self.bounds: dict[str, int] = {}  # of sizes that values decide, which are taken at their largest
        self._expressions: list[Any] = []
        self._index: dict[Any, int] = {}
        self._sources, self._symbols = tuple(sources), tuple(symbols)
        self._function: Callable[..., Sequence[Any]] | None = None

    def __len__(self) -> int:
        return max(len(self._expressions), len(self._sources))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_function": None}

    def size(self, expression: Any) -> int | Unknown:
        """Return the number if the sympy expression is constant, else its index in the table."""
        if expression.is_number:
            return int(expression)
        index = self._index.get(expression)
        if index is None:
            index = self._index[expression] = len(self._expressions)
            self._expressions.append(expression)
            self._sources, self._function = (), None
        return Unknown(index)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the free sizes."""
        if not self._expressions:
            return self._symbols
        return tuple(sorted({str(symbol) for item in self._expressions for symbol in item.free_symbols}))

    @property
    def sources(self) -> tuple[str, ...]:
        """The expressions as Python source: they are stored and evaluated in this form."""
        if self._expressions and not self._sources:
            from sympy.printing.lambdarepr import LambdaPrinter

            settings = {"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True}
            printer = LambdaPrinter({**settings, "user_functions": {name: name for name in _FUNCTIONS}})
            self._sources = tuple(printer.doprint(expression) for expression in self._expressions)
        return self._sources

    def at(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """Return every expression as a number, given a number for each free size."""
        if not len(self):
            return ()
        symbols = self.symbols
        if self._function is None:
            known = {**{name: getattr(math, name) for name in dir(math)}, **_FUNCTIONS, "__builtins__": {}}
            body = ", ".join(self.sources)
            self._function = eval(f"lambda {', '.join(symbols)}: ({body},)", known)
        return tuple(int(value) for value in self._function(*(values[name] for name in symbols)))
