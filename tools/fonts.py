"""A Matplotlib font cache per environment, so that pages do not depend on the home directory.

Matplotlib keeps its font list in the home directory, shared by all environments. A process that draws while its
environment is being deleted finds none of Matplotlib's own fonts and writes a list without them; from then on every
formula in every environment warns "findfont: Font family 'STIXGeneral' not found". Without a list, Matplotlib also
warns if it takes longer than 5 s to build one. Neither may decide whether a test passes.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def own_font_list() -> Path:
    """Make child processes keep Matplotlib's font list in this environment, and create it if missing.

    Returns
    -------
    Path
        The folder, to which ``MPLCONFIGDIR`` is set.

    """
    home = Path(sys.prefix) if sys.prefix != sys.base_prefix else ROOT / "_build"
    folder = home / "matplotlib"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["MPLCONFIGDIR"] = str(folder)
    if not any(folder.glob("fontlist-*.json")):
        made = [sys.executable, "-c", "import matplotlib.font_manager"]
        subprocess.run(made, check=True, stderr=subprocess.DEVNULL)  # stderr says that it may take a moment
    return folder
