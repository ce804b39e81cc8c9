"""A Sphinx extension that reads and writes pages in as many processes as there are cores.

Jupyter Book 1 has no option for it. One of its extensions does not say whether it may be read in parallel: it only
changes how sections are numbered, once, when all pages have been read.
"""

import os
from typing import Any

__all__ = ["setup"]

NUMBERING = "sphinx_multitoc_numbering"


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.parallel = max(1, min(4, os.cpu_count() or 1))
    if NUMBERING in app.extensions:
        app.extensions[NUMBERING].parallel_read_safe = True
    return {"parallel_read_safe": True, "parallel_write_safe": True}
