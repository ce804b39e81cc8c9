"""Interactive HTML sunburst of a log's time: causes inside, layers outside, click to zoom."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mlsys.cli.page import whole_page, wide_table
from mlsys.inputs import shipped_text

if TYPE_CHECKING:
    from mlsys.measure import Attribution, Log


def sunburst_parts(attribution: Attribution) -> list[dict[str, Any]]:
    """Return the causes with their times, each with its layers, largest first; zero entries are omitted.

    Parameters
    ----------
    attribution
        Attribution of the time; the layers of a cause sum to it, and the causes to the whole.
    """
    from mlsys.measure.attribution import CAUSES
    from mlsys.viz.explain import LOOKS
    from mlsys.viz.style import COLORS

    causes = []
    for cause in CAUSES:
        colour, _, name = LOOKS[cause]
        parts = [(layer.name, layer.parts[cause]) for layer in attribution.layers]
        outside = attribution.entry if cause == "launch" else attribution.between if cause == "residual" else 0.0
        listed = sorted([*parts, ("outside layers", outside)], key=lambda part: -part[1])
        layers = [{"name": layer, "ms": size} for layer, size in listed if size > 0]
        if layers:
            pale = COLORS[colour.replace("Line", "L")]
            whole = sum(size for _, size in listed)
            causes.append({"name": name, "ms": whole, "fill": COLORS[colour], "pale": pale, "layers": layers})
    return causes


def sunburst_page(attribution: Attribution, log: Log) -> str:
    """Return the page: sunburst, a description of the selected part, and the data as a table; nothing is downloaded.

    Parameters
    ----------
    attribution, log
        The log, and the attribution of its time.
    """
    title = f"Where the time of {log.name} goes"
    causes = sunburst_parts(attribution)
    total = sum(cause["ms"] for cause in causes)
    rows = [
        (cause["name"], layer["name"], f"{layer['ms']:.4g}", f"{100 * layer['ms'] / total:.1f}")
        for cause in causes
        for layer in cause["layers"]
    ]
    table = wide_table(
        "The same data as a table, largest first in each cause.", ("cause", "layer", "ms", "share, %"), rows
    )
    look, script = (shipped_text("mlsys.cli", f"sunburst.{kind}") for kind in ("css", "js"))
    data = json.dumps(causes).replace("<", "\\u003c")
    parts = [
        "<p>Causes inside, layers outside. Point at a part, or select it with the Tab key; "
        "click it or press Enter to zoom in.</p>",
        "<figure><svg id='picture' viewBox='-155 -155 310 310' role='group' "
        "aria-label='Two rings, causes inside and layers outside; the table below says the same'></svg></figure>",
        f"<p id='summary' aria-live='polite'></p>\n{table}",
        f"<script type='application/json' id='parts'>{data}</script>\n<script>{script}</script>",
    ]
    return whole_page(title, parts, look)
