"""The cycle-by-cycle simulator of a systolic array: the reference for every closed form.

Each cycle assigns the whole grid of registers. Operands step to the right (and, if outputs are
stationary, down), partial sums step down, stationary words are shifted in from the top row by
row, and memory is accessed only at the edges. Counts are taken from the simulated events, not
from formulas.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mlsys.choices import FoldOverlap, Stationary
from mlsys.errors import ArgumentError
from mlsys.models.systolic.accesses import Accesses
from mlsys.models.systolic.folds import OVERLAPS, Folds, folds
from mlsys.provenance import traced
from mlsys.unit_checks import checked_choice

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Frame:
    """State of every processing element at the end of one cycle; NaN marks an empty register."""

    cycle: int
    moving: Array  # the operand that steps to the right
    second: Array  # the one that stays (ws, is) or steps down (os)
    sums: Array
    busy: Array  # PEs that multiplied in this cycle
    entering: tuple[tuple[int, float], ...]  # (row, value) that came in from the left
    leaving: tuple[tuple[int, float], ...]  # (column, value) that left at the bottom
    phase: str


@dataclass(frozen=True)
class RequestTrace:
    """Requests in order of time, shape (requests, 2): fold and address; element (i, j) has address i·width + j."""

    ifmap: Array
    filter: Array
    ofmap: Array


@dataclass(frozen=True)
class Run:
    """Result of a simulation: the product, cycles, accesses, and optionally trace and frames."""

    product: Array
    cycles: int
    activity: Array
    sram: Accesses
    register_writes: int
    trace: RequestTrace
    frames: tuple[Frame, ...]


@traced
def simulate_array(
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    rows: int,
    columns: int,
    dataflow: Stationary = "ws",
    fold_overlap: FoldOverlap = "none",
    record: bool = False,
) -> Run:
    """Multiply two matrices on an array of ``rows`` × ``columns``, cycle by cycle.

    Parameters
    ----------
    left, right
        Operands, (m × k) and (k × n).
    rows, columns
        Rows and columns of processing elements.
    dataflow
        ``"ws"``, ``"os"`` or ``"is"``: which operand is stationary.
    fold_overlap
        ``"none"``, ``"load"`` or ``"full"``: how far consecutive folds overlap.
    record
        Whether to keep a :class:`Frame` for every cycle.

    Raises
    ------
    ArgumentError
        If the operands are not two matrices that can be multiplied.

    References
    ----------
    H. T. Kung, Why systolic architectures?, IEEE Computer 15(1), 1982.

    Examples
    --------
    >>> run = simulate_array([[2, 4], [1, 3]], [[1, 3], [5, 7]], 2, 2, "os")
    >>> run.product.tolist(), run.cycles
    ([[22.0, 34.0], [16.0, 24.0]], 6)
    """
    cut, a, b = operands("simulate_array", left, right, rows, columns, dataflow, fold_overlap)
    machine = _OutputStationary(cut, a, b) if dataflow == "os" else _OperandStationary(cut, a, b)
    starts = [machine.first + index * cut.step(fold_overlap) for index in range(cut.count)]
    frames = []
    cycle = 0
    while not machine.finished:
        machine.tick(cycle, starts)
        if record:
            frames.append(machine.frame(cycle, starts))
        cycle += 1
    trace = RequestTrace(*(np.array(requests, dtype=np.int64).reshape(-1, 2) for requests in machine.requested))
    return Run(machine.product, cycle, machine.activity, machine.accesses(), machine.latched, trace, tuple(frames))


def operands(
    where: str,
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    rows: int,
    columns: int,
    dataflow: Stationary,
    fold_overlap: FoldOverlap,
) -> tuple[Folds, Array, Array]:
    """Return the folds and the two matrices as floats, or raise if they cannot be multiplied."""
    a, b = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ArgumentError(
            f"{where}(): `left` and `right` must be an (m × k) and a (k × n) matrix, got shapes {a.shape} and "
            f"{b.shape}. Write e.g. {where}(np.ones((4, 3)), np.ones((3, 5)), 2, 2)"
        )
    checked_choice(where, "fold_overlap", fold_overlap, OVERLAPS)
    return folds(a.shape[0], b.shape[1], a.shape[1], rows, columns, dataflow, where), a, b


class _Machine:
    """Registers and counters common to all dataflows."""

    first = 0  # cycle in which the first operand enters

    def __init__(self, cut: Folds, a: Array, b: Array) -> None:
        self.cut, self.a, self.b = cut, a, b
        shape = cut.array_rows, cut.array_columns
        self.row, self.column = np.indices(shape)
        self.moving = np.full(shape, np.nan)
        self.fold = np.full(shape, -1)  # fold that the moving operand belongs to
        self.sums = np.full(shape, np.nan)
        self.busy = np.zeros(shape, dtype=bool)
        self.activity = np.zeros(shape, dtype=np.int64)
        self.product = np.zeros((cut.m, cut.n))
        self.written = np.zeros((cut.m, cut.n), dtype=np.int64)
        self.requested: tuple[list[tuple[int, int]], ...] = ([], [], [])  # of ifmap, filter and ofmap
        self.reread = self.latched = 0
        self.entering: list[tuple[int, float]] = []
        self.leaving: list[tuple[int, float]] = []
        # Offset of each fold in the operands, and how many rows and columns of the array it uses.
        size, width = shape
        self.corner = [(r * size, c * width) for c in range(cut.column_folds) for r in range(cut.row_folds)]
        self.used = [(min(size, cut.along_rows - r), min(width, cut.along_columns - c)) for r, c in self.corner]
        self.outstanding = sum(c * self._outputs(r) for r, c in self.used)

    def _outputs(self, rows: int) -> int:
        return int(self.cut.streamed)

    @property
    def finished(self) -> bool:
        """Whether all outputs have been written and no operand is still moving through the array."""
        return self.outstanding == 0 and not (self.fold[:, :-1] >= 0).any()

    def accesses(self) -> Accesses:
        ifmap, filter_, ofmap = map(len, self.requested)
        return Accesses(ifmap, filter_, ofmap, self.reread)

    @staticmethod
    def live(cycle: int, starts: list[int], before: int, after: int) -> list[int]:
        """Return the folds in progress: from ``before`` cycles before their start to ``after`` cycles after it."""
        return [f for f, start in enumerate(starts) if start - before <= cycle <= start + after]

    def read_left(self, f: int, i: int, j: int) -> float:
        self.requested[0].append((f, i * self.cut.k + j))
        return float(self.a[i, j])

    def read_right(self, f: int, i: int, j: int) -> float:
        self.requested[1].append((f, i * self.cut.n + j))
        return float(self.b[i, j])

    def write(self, f: int, i: int, j: int, value: float) -> None:
        self.requested[2].append((f, i * self.cut.n + j))
        if self.written[i, j]:
            self.reread += 1
        self.written[i, j] += 1
        self.product[i, j] += value
        self.outstanding -= 1

    def step_right(self, edge: Array, edge_fold: Array) -> Array:
        """Shift operands one PE to the right and return which PEs their fold uses; the others do not latch."""
        self.moving[:, 1:], self.fold[:, 1:] = self.moving[:, :-1].copy(), self.fold[:, :-1].copy()
        self.moving[:, 0], self.fold[:, 0] = edge, edge_fold
        height, width = np.array(self.used)[self.fold].transpose(2, 0, 1)
        in_use: Array = (self.fold >= 0) & (self.row < height) & (self.column < width)
        self.moving[~in_use] = np.nan
        self.latched += int((~np.isnan(self.moving)).sum())
        return in_use

    def tick(self, cycle: int, starts: list[int]) -> None:
        raise NotImplementedError

    def frame(self, cycle: int, starts: list[int]) -> Frame:
        raise NotImplementedError


class _OperandStationary(_Machine):
    """Weight-stationary array (input-stationary on the transposed product): operands step right, sums down."""

    def __init__(self, cut: Folds, a: Array, b: Array) -> None:
        super().__init__(cut, a, b)
        self.first = cut.array_rows
        self.banks = np.full((2, cut.array_rows, cut.array_columns), np.nan)  # even and odd folds

    def _streamed(self, f: int, t: int, row: int) -> float:
        return self.read_left(f, t, row) if self.cut.dataflow == "ws" else self.read_right(f, row, t)

    def _staying(self, f: int, row: int, column: int) -> float:
        return self.read_right(f, row, column) if self.cut.dataflow == "ws" else self.read_left(f, column, row)

    def tick(self, cycle: int, starts: list[int]) -> None:
        size = self.cut.array_rows
        self.load(cycle, starts)
        edge, edge_fold = np.full(size, np.nan), np.full(size, -1)
        self.entering, self.leaving = [], []
        for f in self.live(cycle, starts, 0, self.cut.streamed + size):
            for row in range(size):
                t = cycle - starts[f] - row  # skew: row i starts i cycles later
                if 0 <= t < self.cut.streamed:
                    edge_fold[row] = f
                    if row < self.used[f][0]:
                        edge[row] = self._streamed(f, t, self.corner[f][0] + row)
                        self.entering.append((row, float(edge[row])))
        self.step_right(edge, edge_fold)
        weight = np.where(self.fold % 2 == 0, self.banks[0], self.banks[1])
        self.busy = ~np.isnan(self.moving)
        above = np.vstack([np.where(self.busy[0], 0.0, np.nan), self.sums[:-1]])
        self.sums = above + np.where(self.busy, weight * self.moving, 0.0)
        self.activity += self.busy
        self.latched += int((~np.isnan(self.sums)).sum())
        for f in self.live(cycle, starts, 0, self.cut.fold_cycles):
            for column in range(self.used[f][1]):
                t = cycle - starts[f] - (size - 1) - column
                if 0 <= t < self.cut.streamed:
                    value, across = float(self.sums[-1, column]), self.corner[f][1] + column
                    self.write(f, *((t, across) if self.cut.dataflow == "ws" else (across, t)), value)
                    self.leaving.append((column, value))

    def load(self, cycle: int, starts: list[int]) -> None:
        """Shift stationary words down one row; column j lags by j cycles, just ahead of the operands."""
        size = self.cut.array_rows
        for f in self.live(cycle, starts, size, self.cut.array_columns):
            bank, (rows, columns) = self.banks[f % 2], self.used[f]
            for column in range(columns):
                step = cycle - starts[f] + size - column
                if 0 <= step < size:
                    row = size - 1 - step  # the lowest row goes first
                    bank[1 : step + 1, column] = bank[:step, column].copy()
                    inside = row < rows
                    here = (self.corner[f][0] + row, self.corner[f][1] + column)
                    bank[0, column] = self._staying(f, *here) if inside else np.nan
                    self.latched += int((~np.isnan(bank[: step + 1, column])).sum())

    def frame(self, cycle: int, starts: list[int]) -> Frame:
        f = max((f for f, start in enumerate(starts) if start - self.cut.array_rows <= cycle), default=0)
        used_bank = np.where(self.fold >= 0, self.fold, f) % 2
        staying = np.where(used_bank == 0, self.banks[0], self.banks[1])
        return _frame(self, cycle, staying, "load" if cycle < starts[f] else "stream")


class _OutputStationary(_Machine):
    """Output-stationary array: one operand steps right, the other down; finished sums drain at the bottom."""

    def __init__(self, cut: Folds, a: Array, b: Array) -> None:
        super().__init__(cut, a, b)
        self.down = np.full_like(self.moving, np.nan)
        self.banks = np.full((2, cut.array_rows, cut.array_columns), np.nan)  # even and odd folds
        self.left = np.zeros(cut.array_columns, dtype=np.int64)  # shifts left until a column is drained
        self.draining = np.full(cut.array_columns, -1)

    def _outputs(self, rows: int) -> int:
        return rows

    @property
    def finished(self) -> bool:
        return self.outstanding == 0 and not (self.fold >= 0).any() and not self.left.any()

    def tick(self, cycle: int, starts: list[int]) -> None:
        size, width, streamed = self.cut.array_rows, self.cut.array_columns, self.cut.streamed
        self.entering, self.leaving = [], []
        edge, edge_fold, top = np.full(size, np.nan), np.full(size, -1), np.full(width, np.nan)
        for f in self.live(cycle, starts, 0, streamed + size + width):
            rows, columns = self.used[f]
            for row in range(size):
                t = cycle - starts[f] - row
                if 0 <= t < streamed:
                    edge_fold[row] = f
                    if row < rows:
                        edge[row] = self.read_left(f, self.corner[f][0] + row, t)
                        self.entering.append((row, float(edge[row])))
            for column in range(columns):
                t = cycle - starts[f] - column
                if 0 <= t < streamed:
                    top[column] = self.read_right(f, t, self.corner[f][1] + column)
        lowest = self.fold[-1].copy()
        self.busy = self.step_right(edge, edge_fold)
        self.down = np.where(self.busy, np.vstack([top, self.down[:-1]]), np.nan)
        for parity, bank in enumerate(self.banks):
            here = self.busy & (self.fold % 2 == parity)
            bank[here] = np.nan_to_num(bank[here]) + self.moving[here] * self.down[here]
        self.activity += self.busy
        self.latched += 2 * int(self.busy.sum())  # the operand from above, and the sum
        ended = (lowest >= 0) & (self.fold[-1] != lowest)
        self.left[ended], self.draining[ended] = size, lowest[ended]
        self.drain()

    def drain(self) -> None:
        """Shift finished sums down one row; a column starts to drain once its lowest row has finished."""
        for column in np.flatnonzero(self.left):
            f = int(self.draining[column])
            bank, (rows, columns), row = self.banks[f % 2], self.used[f], int(self.left[column]) - 1
            if row < rows and column < columns:
                value = float(bank[-1, column])
                self.write(f, self.corner[f][0] + row, self.corner[f][1] + int(column), value)
                self.leaving.append((int(column), value))
            pushed = self.cut.array_rows - row  # rows at the top already vacated by this fold; the next may use them
            bank[pushed:, column] = bank[pushed - 1 : -1, column].copy()
            bank[pushed - 1, column] = np.nan
            self.latched += int((~np.isnan(bank[pushed:, column])).sum())
            self.left[column] -= 1

    def frame(self, cycle: int, starts: list[int]) -> Frame:
        f = max((f for f, start in enumerate(starts) if start <= cycle), default=0)
        self.sums = np.where(np.isnan(self.banks[f % 2]), self.banks[1 - f % 2], self.banks[f % 2])
        return _frame(self, cycle, self.down, "drain" if self.leaving else "stream")


def _frame(machine: _Machine, cycle: int, second: Array, phase: str) -> Frame:
    return Frame(
        cycle, machine.moving.copy(), second.copy(), machine.sums.copy(), machine.busy.copy(),
        tuple(machine.entering), tuple(machine.leaving), phase,
    )  # fmt: skip
