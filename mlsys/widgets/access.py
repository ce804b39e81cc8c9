"""What screen readers and keyboards need and core widgets do not give; see ``access.js``.

The script runs where outputs may run scripts (JupyterLab, Colab, Voilà) and changes nothing else.
"""

from __future__ import annotations

from importlib.resources import files

__all__ = ["SCRIPT"]

SCRIPT = f"<script>\n{files('mlsys.widgets').joinpath('access.js').read_text(encoding='utf-8')}</script>"
