"""Where the time of a log went, as one interactive HTML file: causes inside, layers outside, a click looks closer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mlsys.cli.page import whole_page, wide_table

if TYPE_CHECKING:
    from mlsys.explain import Attribution, Log

__all__ = ["sunburst_page", "sunburst_parts"]

_LOOK = """
#picture{display:block;width:100%;max-width:32rem;margin:0 auto}
path{stroke:#fff;stroke-width:1.5;cursor:pointer}
path:hover,path:focus{opacity:.75;outline:none;stroke:#1f2933}
@media (max-width:600px){#picture text{font-size:10px}}
#told{min-height:3em;text-align:center}
"""
# Angles are parts of a turn; an arc of a whole turn is drawn as two halves.
_SCRIPT = """
const parts = JSON.parse(document.getElementById("parts").textContent);
const picture = document.getElementById("picture"), told = document.getElementById("told");
const total = parts.reduce((sum, cause) => sum + cause.ms, 0);
function at(turn, radius) {
  const angle = 2 * Math.PI * turn;
  return (radius * Math.sin(angle)).toFixed(3) + " " + (-radius * Math.cos(angle)).toFixed(3);
}
function ring(from, to, inner, outer) {
  if (to - from > 0.999) return ring(0, 0.5, inner, outer) + ring(0.5, 0.9999, inner, outer);
  const large = to - from > 0.5 ? 1 : 0;
  return `M${at(from, outer)}A${outer} ${outer} 0 ${large} 1 ${at(to, outer)}L${at(to, inner)}` +
    `A${inner} ${inner} 0 ${large} 0 ${at(from, inner)}Z`;
}
function words(name, ms, whole) {
  return `${name}: ${ms.toPrecision(3)} ms, ${(100 * ms / whole).toFixed(1)} % of the time`;
}
function arc(shape, fill, text, chosen) {
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", shape);
  path.setAttribute("fill", fill);
  path.setAttribute("tabindex", "0");
  path.setAttribute("role", "button");
  path.setAttribute("aria-label", text);
  path.addEventListener("focus", () => { told.textContent = text; });
  path.addEventListener("mouseenter", () => { told.textContent = text; });
  path.addEventListener("click", chosen);
  path.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") chosen(); });
  picture.append(path);
}
function label(text, turn, size, radius, colour, least) {
  if (size < least) return;
  const words = document.createElementNS("http://www.w3.org/2000/svg", "text");
  const [x, y] = at(turn + size / 2, radius).split(" ");
  Object.entries({x, y, fill: colour, "text-anchor": "middle", "dominant-baseline": "middle", "font-size": 8,
    "pointer-events": "none", "aria-hidden": "true"}).forEach(([name, value]) => words.setAttribute(name, value));
  words.textContent = text;
  picture.append(words);
}
function draw(only) {
  picture.replaceChildren();
  const shown = only === null ? parts : [parts[only]];
  const whole = shown.reduce((sum, cause) => sum + cause.ms, 0);
  let turn = 0;
  for (const cause of shown) {
    const end = turn + cause.ms / whole, next = only === null ? parts.indexOf(cause) : null;
    arc(ring(turn, end, 40, 95), cause.fill, words(cause.name, cause.ms, total), () => draw(next));
    label(cause.name, turn, cause.ms / whole, 68, "#fff", 0.22);
    for (const layer of cause.layers) {
      const stop = turn + layer.ms / whole;
      const text = words(`${layer.name}, ${cause.name}`, layer.ms, total);
      arc(ring(turn, stop, 100, 150), cause.pale, text, () => draw(next));
      label(layer.name, turn, layer.ms / whole, 125, "#1f2933", 0.04);
      turn = stop;
    }
    turn = end;
  }
  const help = only === null ? "a click looks closer" : "a click shows all again";
  told.textContent = `${words(only === null ? "All" : parts[only].name, whole, total)}; ${help}`;
}
draw(null);
"""


def sunburst_parts(found: Attribution) -> list[dict[str, Any]]:
    """Return the causes with their time, each with its layers, largest first; what is nothing is left out.

    Parameters
    ----------
    found
        Where the time went; the layers of a cause sum to it, and the causes to the whole.
    """
    from mlsys.explain.attribution import CAUSES
    from mlsys.viz.explain import LOOKS
    from mlsys.viz.style import COLORS

    causes = []
    for cause in CAUSES:
        colour, _, name = LOOKS[cause]
        parts = [(layer.name, layer.parts[cause]) for layer in found.layers]
        outside = found.entry if cause == "launch" else found.between if cause == "residual" else 0.0
        listed = sorted([*parts, ("outside layers", outside)], key=lambda part: -part[1])
        layers = [{"name": layer, "ms": size} for layer, size in listed if size > 0]
        if layers:
            pale = COLORS[colour.replace("Line", "L")]
            whole = sum(size for _, size in listed)
            causes.append({"name": name, "ms": whole, "fill": COLORS[colour], "pale": pale, "layers": layers})
    return causes


def sunburst_page(found: Attribution, log: Log) -> str:
    """Return the page: picture, what is pointed at in words, and the same as a table; nothing is fetched.

    Parameters
    ----------
    found, log
        Where the time of the log went.
    """
    title = f"Where the time of {log.name} goes"
    causes = sunburst_parts(found)
    total = sum(cause["ms"] for cause in causes)
    rows = [
        (cause["name"], layer["name"], f"{layer['ms']:.4g}", f"{100 * layer['ms'] / total:.1f}")
        for cause in causes
        for layer in cause["layers"]
    ]
    table = wide_table("The same as a table, largest first in each cause.", ("cause", "layer", "ms", "share, %"), rows)
    data = json.dumps(causes).replace("<", "\\u003c")
    parts = [
        "<p>Causes inside, layers outside. Point at a part, or go there with the tabulator key; "
        "a click or Enter looks closer.</p>",
        "<figure><svg id='picture' viewBox='-155 -155 310 310' role='group' "
        "aria-label='Two rings, causes inside and layers outside; the table below says the same'></svg></figure>",
        f"<p id='told' aria-live='polite'></p>\n{table}",
        f"<script type='application/json' id='parts'>{data}</script>\n<script>{_SCRIPT}</script>",
    ]
    return whole_page(title, parts, _LOOK)
