"""Requirements of printing (programs and fonts), and the settings of an edition."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from mlsys import __version__
from mlsys.files import write_text

__all__ = [
    "FINE",
    "PROGRAMS",
    "SETTINGS",
    "TEXT_WIDTH",
    "coarse_figures",
    "edition",
    "edition_without_solutions",
    "epub_edition",
    "missing",
    "printed_contents",
]

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
CONTENTS = "_toc.yml"
TEXT_WIDTH = (210 - 2 * 25) / 25.4
"""Inches of an A4 page within the margins of the settings; a wider figure is shrunk to it."""
FINE = 300
"""Pixels per inch from which a printed picture looks like one of vectors."""
_INCLUDED = re.compile(r"includegraphics(?:\[[^]]*\])?\{\{([^{}]+)\}(\.\w+)\}")


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


def printed_contents(root: Path, folder: Path) -> Path:
    """Write the table of contents of the printed book, which leaves out the reference, and return the file."""
    contents: Any = yaml.safe_load((root / CONTENTS).read_text(encoding="utf-8"))
    for part in contents["parts"]:
        part["chapters"] = [each for each in part["chapters"] if not each["file"].startswith("book/reference/")]
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "printed-toc.yml"
    write_text(target, yaml.safe_dump(contents, sort_keys=False, allow_unicode=True))
    return target


def edition(root: Path, folder: Path, *, solutions: bool) -> Path:
    """Write the settings of a printed edition, with or without solutions, and return the file."""
    settings: Any = yaml.safe_load((root / SETTINGS).read_text(encoding="utf-8"))
    settings["sphinx"]["config"]["printed_solutions"] = solutions
    settings["sphinx"]["config"]["extensions"].append("printed")  # tools/printed.py
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"config-{'with' if solutions else 'without'}-solutions.yml"
    write_text(target, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    return target


def edition_without_solutions(root: Path, folder: Path) -> Path:
    """Write the settings of the HTML edition without solutions, and return the file.

    Its pages link to no notebook of the repository, which has the solutions.
    """
    settings: Any = yaml.safe_load((root / SETTINGS).read_text(encoding="utf-8"))
    settings["sphinx"]["config"]["extensions"].append("unsolved")  # tools/unsolved.py
    settings["sphinx"].setdefault("local_extensions", {})["unsolved"] = "tools"
    settings["launch_buttons"] = {}
    settings["html"] |= {"use_repository_button": False, "use_issues_button": False, "use_edit_page_button": False}
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "config-html-without-solutions.yml"
    write_text(target, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    return target


def epub_edition(root: Path, folder: Path, *, solutions: bool) -> Path:
    """Write the settings of the edition for e-readers, with or without solutions, and return the file."""
    settings: Any = yaml.safe_load((root / SETTINGS).read_text(encoding="utf-8"))
    config = settings["sphinx"]["config"]
    scripts = ("sphinx_togglebutton", "sphinx_copybutton", "searchindex", "narrowfigures")
    config["extensions"] = [each for each in config["extensions"] if each not in scripts] + ["epubbook"]
    settings["launch_buttons"] = {}
    config["nb_mime_priority_overrides"].append(["epub", "application/vnd.jupyter.widget-view+json", None])
    config |= {
        "printed_solutions": solutions,
        "html_math_renderer": "mathml",
        "html_js_files": [],
        "html_static_path": ["book/epub"],
        "html_css_files": [],
        "epub_css_files": ["epub.css"],
        "epub_basename": "book",
        "epub_show_urls": "no",
        "epub_tocdepth": 2,
        "epub_description": "How fast machine learning runs on a machine, and why: every number is computed.",
        "epub_identifier": "mlsys-book",
        "epub_uid": "mlsys-book",
        "version": __version__,
        "suppress_warnings": [*config["suppress_warnings"], "epub.duplicated_toc_entry"],
    }
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"config-epub-with{'' if solutions else 'out'}-solutions.yml"
    write_text(target, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    return target


def coarse_figures(folder: Path) -> dict[str, int]:
    """Return the pixels per inch of each bitmap that a book in TeX includes, where they are too few for print.

    Parameters
    ----------
    folder
        Where Sphinx wrote ``book.tex`` and the pictures.
    """
    found = {}
    for stem, suffix in _INCLUDED.findall((folder / "book.tex").read_text(encoding="utf-8")):
        if suffix.lower() in (".png", ".jpg", ".jpeg"):
            with Image.open(folder / f"{stem}{suffix}") as picture:
                own = picture.info.get("dpi", (72.0, 72.0))[0]  # without a word of its own, TeX takes 72
                pixels = round(max(own, picture.width / TEXT_WIDTH))
            if pixels < FINE:
                found[f"{stem}{suffix}"] = pixels
    return found


def _answer(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
