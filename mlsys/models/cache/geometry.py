"""The geometry of a cache: capacity, lines, ways."""

from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.unit_checks import Argument, checked_count, checked_number
from mlsys.units import Quantity

_BYTES = Argument("byte", low=1, whole=True)


def whole_bytes(where: str, name: str, value: object) -> int:
    """Return a quantity of a whole number of bytes, at least one, as an int, else raise."""
    return int(checked_number(where, name, value, _BYTES, {}))


@dataclass(frozen=True)
class Cache:
    """One level of cache, with LRU replacement, write-back and write-allocate.

    Attributes
    ----------
    capacity
        Data capacity, byte.
    line
        Size of a line, byte.
    ways
        Lines in a set; None for a fully associative cache.
    name
        Name used in results.

    Raises
    ------
    ArgumentError
        If the line does not divide the capacity, or the ways do not divide the number of lines.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> l1 = Cache(Q_(32, "KiB"), line=Q_(64, "byte"), ways=8)
    >>> l1.lines, l1.sets
    (512, 64)
    >>> Cache(Q_(32, "KiB"), line=Q_(64, "byte"), ways=7)
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: Cache(): `ways` of 7 must divide the 512 lines of the cache. Write e.g. ways=8
    """

    capacity: Quantity
    line: Quantity
    ways: int | None = None
    name: str = "cache"

    def __post_init__(self) -> None:
        capacity, line = (whole_bytes("Cache", name, getattr(self, name)) for name in ("capacity", "line"))
        if capacity % line:
            best = next(size for size in range(min(line, capacity), 0, -1) if capacity % size == 0)
            raise ArgumentError(
                f"Cache(): `line` of {line} bytes must divide the capacity of {capacity} bytes. "
                f'Write e.g. line=Q_({best}, "byte")'
            )
        if self.ways is not None:
            ways, lines = checked_count("Cache", "ways", self.ways), capacity // line
            if lines % ways:
                near = min((n for n in range(1, lines + 1) if lines % n == 0), key=lambda n: (abs(n - ways), -n))
                raise ArgumentError(
                    f"Cache(): `ways` of {ways} must divide the {lines} lines of the cache. Write e.g. ways={near}"
                )
            object.__setattr__(self, "ways", ways)

    @property
    def line_bytes(self) -> int:
        """Bytes of a line."""
        return whole_bytes("Cache", "line", self.line)

    @property
    def lines(self) -> int:
        """Number of lines."""
        return whole_bytes("Cache", "capacity", self.capacity) // self.line_bytes

    @property
    def sets(self) -> int:
        """Number of sets; the address of a line determines its set."""
        return self.lines // (self.ways or self.lines)

    def __repr__(self) -> str:
        how = f"{self.ways}-way" if self.ways else "fully associative"
        return f"<{self.name} {self.capacity.to('KiB'):.4g}, {self.line_bytes}-byte lines, {how}>"
