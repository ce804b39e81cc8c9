"""Tables of measurements for pages."""

from collections.abc import Sequence

from mlsys.formatting import natural
from mlsys.measure.compile.passes import PassResult
from mlsys.measure.compile.result import CompileResult
from mlsys.measure.timing import Ratio
from mlsys.tables import Table


def compile_table(results: Sequence[CompileResult], caption: str) -> Table:
    """Return one row per network and batch: times, kernels, speed-up with its interval, and the prediction.

    Parameters
    ----------
    results
        Results for one or several ways of compiling.
    caption
        Caption of the table.
    """
    columns = ("network", "batch", "eager, ms", "compiled, ms", "kernels", "speed-up", "95 % interval", "predicted")
    rows = []
    for each in results:
        ratio, guess = each.speedup, each.predicted
        rows.append(
            (
                each.model,
                str(each.batch),
                natural(each.eager.median.m_as("ms")),
                natural(each.compiled.median.m_as("ms")),
                f"{each.operators}\u00a0→\u00a0{each.kernels}",
                f"{ratio.value:.2f}×",
                _between(ratio),
                f"{guess.speedup:.2f}×" if guess else "—",
            )
        )
    return Table(caption, columns, rows, printed=(0, 1, 2, 3, 5, 7))


def _between(ratio: Ratio) -> str:
    """Return an interval without a possible line break."""
    return f"{ratio.low:.2f}\u00a0to\u00a0{ratio.high:.2f}"


def pass_table(result: PassResult, caption: str) -> Table:
    """Return one row per pass: the time, the kernels, and the pass's factor with its interval."""
    rows = []
    for step, factor in zip(result.steps, (None, *result.factors), strict=True):
        rows.append(
            (
                step.name,
                natural(step.timing.median.m_as("ms")),
                str(step.kernels),
                f"{factor.value:.2f}×" if factor else "—",
                _between(factor) if factor else "—",
            )
        )
    total = result.total
    rows.append(("all passes", "—", "—", f"{total.value:.2f}×", _between(total)))
    return Table(caption, ("pass", "time, ms", "kernels", "factor", "95 % interval"), rows)
