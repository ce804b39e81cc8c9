"""A page that Sphinx builds offers the narrow layout of its figures."""

import io
import subprocess
import sys
from pathlib import Path

import matplotlib

from mlsys import viz
from mlsys.viz.narrow import svg_with_narrow
from pages import ROOT

matplotlib.use("Agg")


def as_svg(figure) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg")
    return file.getvalue()


def test_a_built_page_has_both_layouts(tmp_path: Path) -> None:
    figure, ax, _, plt = viz.setup_plot(figsize=(7, 4))
    ax.set(xlabel="batch")
    (tmp_path / "wide.svg").write_text(svg_with_narrow(figure, as_svg), "utf-8")
    plt.close(figure)
    (tmp_path / "conf.py").write_text(f"import sys\nsys.path.insert(0, {str(ROOT / 'tools')!r})\n", "utf-8")
    (tmp_path / "index.rst").write_text("Page\n====\n\n.. image:: wide.svg\n   :alt: a figure\n", "utf-8")
    sphinx = (sys.executable, "-m", "sphinx", "-q", "-W", "-D", "extensions=narrowfigures", tmp_path, tmp_path / "html")
    subprocess.run(sphinx, check=True)
    page = (tmp_path / "html" / "index.html").read_text("utf-8")
    assert page.count("<picture>") == page.count('srcset="_images/wide-narrow.svg"') == 1
    images = tmp_path / "html" / "_images"
    wide, narrow = ((images / f"wide{end}.svg").read_text("utf-8") for end in ("", "-narrow"))
    assert "mlsys-narrow" not in wide and narrow.startswith("<?xml") and narrow != wide
