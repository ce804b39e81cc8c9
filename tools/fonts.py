"""A list of fonts for matplotlib that belongs to one environment: a page is drawn the same whatever the home holds.

Matplotlib keeps the list in the home, for all environments together. A process that draws while its environment is
being deleted finds no font of matplotlib's own, and writes a list without them there; from then on every formula in
every environment warns "findfont: Font family 'STIXGeneral' not found". A home without a list warns too, where it
takes longer than 5 s to make one. Neither may decide whether a test passes.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def own_font_list() -> Path:
    """Let every process started from here keep matplotlib's list in this environment, and make it where there is none.

    Returns
    -------
    Path
        The folder, which ``MPLCONFIGDIR`` names from now on.

    """
    home = Path(sys.prefix) if sys.prefix != sys.base_prefix else ROOT / "_build"
    folder = home / "matplotlib"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["MPLCONFIGDIR"] = str(folder)
    if not any(folder.glob("fontlist-*.json")):
        made = [sys.executable, "-c", "import matplotlib.font_manager"]
        subprocess.run(made, check=True, stderr=subprocess.DEVNULL)  # it says that it may take a moment
    return folder
