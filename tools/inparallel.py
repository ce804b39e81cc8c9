"""A Sphinx extension that reads and writes pages in as many processes as there are cores.

Jupyter Book 1 has no option for it. Two of its extensions do not say whether pages may be read in parallel: one changes
how sections are numbered, once, when all pages have been read; the other changes pages for TeX, each by itself.
"""

import os
from typing import Any

__all__ = ["setup"]

SILENT = ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex")


def read_in_parallel(app: Any, config: object) -> None:
    """Use all cores, and declare safe what does not declare itself."""
    app.parallel = max(1, min(4, os.cpu_count() or 1))
    for name in SILENT:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("config-inited", read_in_parallel)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
