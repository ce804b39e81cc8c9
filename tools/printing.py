"""Requirements of printing (programs and fonts), and the settings of an edition."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from mlsys.files import write_text

__all__ = ["PROGRAMS", "SETTINGS", "edition", "missing"]

PROGRAMS = {"xelatex": "texlive-xetex", "latexmk": "latexmk", "xindy": "xindy", "kpsewhich": "texlive-xetex"}
"""Programs, each with the Debian package that has it."""
FONTS = {
    "TeX Gyre Pagella": "fonts-texgyre",
    "TeX Gyre Heros": "fonts-texgyre",
    "DejaVu Sans Mono": "fonts-dejavu-core",
}
"""Fonts of the book, by the names in ``_config.yml``, each with its Debian package."""
STYLES = {
    "tabulary.sty": "texlive-latex-extra",
    "fontspec.sty": "texlive-latex-recommended",
    "pzdr.tfm": "texlive-fonts-recommended",
}
"""Files that TeX must find, each with its Debian package."""
SETTINGS = "_config.yml"


def missing(
    which: Callable[[str], str | None] = shutil.which, answer: Callable[[list[str]], str] | None = None
) -> dict[str, str]:
    """Return the missing requirements, each with the Debian package that provides it.

    Parameters
    ----------
    which
        Finds a program.
    answer
        Runs a command and returns what it prints.
    """
    answer = answer or _answer
    lost = {program: package for program, package in PROGRAMS.items() if which(program) is None}
    if which("fc-list") is None:
        lost["fc-list"] = "fontconfig"
    else:
        known = answer(["fc-list", ":", "family"])
        lost |= {font: package for font, package in FONTS.items() if font not in known}
    if "kpsewhich" not in lost:
        lost |= {file: package for file, package in STYLES.items() if not answer(["kpsewhich", file]).strip()}
    return lost


def edition(root: Path, folder: Path, *, solutions: bool) -> Path:
    """Write the settings of a printed edition, with or without solutions, and return the file."""
    settings: Any = yaml.safe_load((root / SETTINGS).read_text(encoding="utf-8"))
    settings["sphinx"]["config"]["printed_solutions"] = solutions
    settings["sphinx"]["config"]["extensions"].append("printed")  # tools/printed.py
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"config-{'with' if solutions else 'without'}-solutions.yml"
    write_text(target, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    return target


def _answer(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
