"""What matplotlib remembers in somebody's home does not reach the pages."""

import json
import os
import subprocess
import sys
from pathlib import Path

from fonts import own_font_list

DRAW = """
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
ax.set_title("$10^3$")
fig.canvas.draw()
"""


def drawn(**environment: str) -> str:
    """Draw a formula in a process of its own; what it says on the standard error stream."""
    done = subprocess.run([sys.executable, "-c", DRAW], capture_output=True, text=True, check=True, env=environment)
    return done.stderr


def test_a_list_without_fonts_in_the_home_is_not_read(tmp_path: Path) -> None:
    """As one that a process wrote while its environment was being deleted: it has none of matplotlib's own fonts."""
    (good,) = own_font_list().glob("fontlist-*.json")
    spoiled = json.loads(good.read_text())
    own = [font for font in spoiled["ttflist"] if not os.path.isabs(font["fname"])]
    spoiled["ttflist"] = [font for font in spoiled["ttflist"] if font["name"] == "DejaVu Sans"]
    cache = tmp_path / ".cache" / "matplotlib"
    cache.mkdir(parents=True)
    (cache / good.name).write_text(json.dumps(spoiled))
    home = {name: text for name, text in os.environ.items() if name not in {"MPLCONFIGDIR", "XDG_CACHE_HOME"}}
    home |= {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    assert own and "findfont: Font family" in drawn(**home)
    assert drawn(**home, MPLCONFIGDIR=os.environ["MPLCONFIGDIR"]) == ""
