"""Accessibility that core widgets lack, for screen readers and keyboards; see ``access.js``.

The script runs wherever outputs may run scripts (JupyterLab, Colab, Voilà) and changes nothing else.
"""

import hashlib

from mlsys.inputs import shipped_text

_SOURCE = shipped_text("mlsys.widgets", "access.js")
_VERSION = hashlib.sha256(_SOURCE.encode("utf-8")).hexdigest()[:12]
SCRIPT = f"<script>\n{_SOURCE.replace('VERSION', _VERSION)}</script>"
