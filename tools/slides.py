"""Make slides for each chapter from its notebook: figures with captions, the sentences with the numbers, the summary.

python tools/slides.py                  all chapters, as HTML, and as PDF where Chromium is found
python tools/slides.py amdahl carbon    only these
python tools/slides.py --html           without PDF

Everything comes from the committed notebooks, whose outputs are held to their pages by the tests, so that a number on a
slide is the number of the book. Each deck is one HTML file that opens without a network: arrow keys turn the slides.
"""

import argparse
import html
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from markdown_it import MarkdownIt

from mlsys.files import write_text
from pages import ROOT, read_notebook

__all__ = ["BROWSERS", "Slide", "chapters", "deck", "slides_of"]

OUT = ROOT / "_build" / "slides"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
MOST_SENTENCES = 3
"""Sentences on a slide without a figure."""
LONGEST = 260
"""Characters of a sentence that a slide can hold."""
_NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*(?:\s?(?:%|×|[A-Za-zµ]+(?:/[A-Za-z]+)?))?")
_MEASURED = re.compile(
    r"(?<![\w.])\d[\d,.]*\s?"
    r"(?:%|×|[kMGTPmnµp]?(?:B|s|J|W|Hz|FLOP|OP|byte)\b|[kMG]iB\b|FLOP|TOP|USD|ns|ms|pJ)"
)
_POINTING = re.compile(
    r"(?:It|Its|This|That|These|Those|They|Their|Both|He|She|There|What is left|If your|So|But|And|Then|Such|"
    r"The (?:first|second|last|other|former|latter|same))\b"
)
_REFERENCES = re.compile(r"\b(?:Figure|Section|Table|Equation|Chapter|Lab|Exercise|page)\s+\d+|\(\d+\)")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MATH = re.compile(r"\$([^$\n]+)\$")
_SYMBOLS = {
    r"\times": "×", r"\cdot": "·", r"\eta": "η", r"\alpha": "α", r"\beta": "β", r"\lambda": "λ", r"\rho": "ρ",
    r"\mu": "µ", r"\sigma": "σ", r"\tau": "τ", r"\pi": "π", r"\le": "≤", r"\ge": "≥", r"\approx": "≈", r"\infty": "∞",
    r"\max": "max", r"\min": "min", r"\log": "log", r"\sum": "Σ", r"\lceil": "⌈", r"\rceil": "⌉", r"\lfloor": "⌊",
    r"\rfloor": "⌋", r"\to": "→", r"\pm": "±", r"\ll": "≪", r"\gg": "≫", r"\dots": "…", r"\ldots": "…", r"\%": "%",
    r"\,": " ", r"\;": " ", r"\ ": " ", r"\left": "", r"\right": "", r"\!": "",
}  # fmt: skip
_MARKDOWN = MarkdownIt("commonmark", {"html": False})


@dataclass(frozen=True)
class Slide:
    """One slide.

    Attributes
    ----------
    title
        Heading, in Markdown.
    kind
        ``"title"``, ``"question"``, ``"figure"``, ``"points"`` or ``"summary"``.
    lines
        Sentences, in Markdown.
    picture, alt, caption
        A PNG in base64 with its alternative text and caption; empty if there is none.
    """

    title: str
    kind: str
    lines: tuple[str, ...] = ()
    picture: str = ""
    alt: str = ""
    caption: str = ""


def chapters() -> list[Path]:
    """Return the text sources of the numbered chapters, in the order of the book."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    parts = [part for part in contents["parts"] if part.get("numbered")]
    return [ROOT / f"{each['file']}.md" for part in parts for each in part["chapters"]]


def slides_of(notebook: Any) -> list[Slide]:
    """Return the slides of a chapter.

    Parameters
    ----------
    notebook
        The committed notebook, in which the numbers stand in the prose.
    """
    cells = notebook.cells
    title, opening, question = _opening(cells[0].source)
    made = [Slide(title, "title", opening)]
    if question:
        made.append(Slide("Predict first", "question", question))
    for heading, part in _sections(cells):
        if heading in ("Your turn", "What this page claims"):
            break
        if heading == "Summary":
            lines = [line for kind, line in part if kind == "text"]
            made.append(Slide("Summary", "summary", tuple(lines)))
            break
        if heading != "What must hold":  # checks of the page itself
            made += _of_section(heading, part)
    errors = list(_errors_to_find(cells))
    if errors:
        made.insert(len(made) - 1, Slide("Find the error", "question", errors[0]))
    return made


def _opening(source: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the title, the first sentences, and the question to predict."""
    title = next(line[2:] for line in source.splitlines() if line.startswith("# "))
    before = source.split("\n> **Predict first**")[0]
    opening = tuple(line for line in _sentences(before) if not line.startswith("#"))[:4]
    quoted = [line[1:].strip() for line in source.splitlines() if line.startswith(">")]
    question = tuple(line for line in quoted if line and line != "**Predict first**" and "answer follows" not in line)
    return title, opening, question


def _sections(cells: Sequence[Any]) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Yield each section with its sentences and figures, in order."""
    heading = ""
    part: list[tuple[str, Any]] = []
    for number, cell in enumerate(cells):
        if cell.cell_type == "code":
            figure = (cell.metadata.get("mystnb") or {}).get("figure")
            picture = next(
                (o.data["image/png"] for o in cell.get("outputs", []) if "image/png" in o.get("data", {})), ""
            )
            if figure and picture:
                part.append(("figure", (picture, cell.metadata["mystnb"].get("image", {}).get("alt", ""))))
            continue
        if cell.source.startswith("**Figure "):
            part.append(("caption", cell.source))
            continue
        for line in _sentences(cell.source if number else ""):
            if line.startswith("## "):
                yield heading, part
                heading, part = line[3:], []
            else:
                part.append(("text", line))
    yield heading, part


def _of_section(heading: str, part: list[tuple[str, Any]]) -> Iterator[Slide]:
    """Yield a slide for each figure of a section, or one with the sentences that state numbers."""
    texts = [(at, line) for at, (kind, line) in enumerate(part) if kind == "text"]
    figures = [at for at, (kind, _) in enumerate(part) if kind == "figure"]
    used: set[int] = set()
    for nth, at in enumerate(figures):
        picture, alt = part[at][1]
        end = figures[nth + 1] if nth + 1 < len(figures) else len(part)
        caption = next((line for kind, line in part[at:end] if kind == "caption"), "")
        after = [(place, line) for place, line in texts if at < place < end and place not in used and _states(line)]
        before = [(place, line) for place, line in texts if place < at and place not in used and _states(line)]
        chosen = _best(after, 1) or _best(before, 1)
        used |= {place for place, _ in chosen}
        yield Slide(heading, "figure", tuple(line for _, line in chosen), picture, alt, caption)
    stated = [(place, line) for place, line in texts if place not in used and _states(line)]
    if heading and not figures and stated:
        yield Slide(heading, "points", tuple(line for _, line in _best(stated, MOST_SENTENCES)))


def _best(stated: Sequence[tuple[int, str]], most: int) -> list[tuple[int, str]]:
    """Return the sentences that stand best alone, in their order: with measured numbers, and not pointing backwards."""
    standing = [each for each in stated if not _POINTING.match(each[1])] or list(stated)
    ranked = sorted(standing, key=lambda each: -len(_MEASURED.findall(_plain(each[1]))))
    return sorted(ranked[:most])


def _plain(line: str) -> str:
    return _REFERENCES.sub("", _MATH.sub("", _LINK.sub(r"\1", line)))


def _states(line: str) -> bool:
    """Return whether a sentence states a number that a reader can take along."""
    return len(line) <= LONGEST and bool(_NUMBER.search(_plain(line))) and not line.startswith(("|", "- ", "**Figure"))


def _sentences(source: str) -> list[str]:
    """Return the lines of prose, without lists, tables, formulas, quotations and folded boxes; headings stay."""
    text = re.sub(r"<details>.*?</details>|\$\$.*?\$\$|^```.*?^```", "", source, flags=re.DOTALL | re.MULTILINE)
    lines = (line.strip() for line in text.splitlines())
    return [
        line for line in lines if line and not line.startswith(("|", ">", "<", "-", "*Solution", "![", "# ", ":::"))
    ]


def _errors_to_find(cells: Sequence[Any]) -> Iterator[tuple[str, ...]]:
    """Yield the text of each exercise in which an error is to be found, without its solution."""
    for cell in cells:
        if cell.cell_type != "markdown" or "*Find the error.*" not in cell.source:
            continue
        text = cell.source.partition("*Find the error.*")[2]
        text = re.split(r"\n(?:#|<details|\*\*Solution|> \*\*Solution|\*\*★|\*\*Exercise)", text)[0]
        lines = [line.lstrip("> ").strip() for line in text.splitlines()]
        result = tuple(line for line in lines if line and not line.startswith(("|", "<", "$")))
        if result:
            yield result[:6]


def deck(name: str, slides: Sequence[Slide]) -> str:
    """Return a deck as one HTML page.

    Parameters
    ----------
    name
        Of the chapter, for the foot of each slide.
    slides
        In order.
    """
    topic = _text(slides[0].title)
    body = "\n".join(_section(slide, number, len(slides), topic) for number, slide in enumerate(slides, start=1))
    return _PAGE.format(title=html.escape(topic), style=_STYLE, script=_SCRIPT, body=body, name=html.escape(name))


def _section(slide: Slide, number: int, count: int, topic: str) -> str:
    level = "h1" if slide.kind == "title" else "h2"
    parts = [f"<{level}>{_inline(slide.title)}</{level}>"]
    lines = [f"<p>{_inline(line)}</p>" for line in slide.lines]
    if slide.kind == "summary" or (slide.kind == "points" and len(lines) > 1):
        lines = [f"<ul>{''.join(f'<li>{_inline(line)}</li>' for line in slide.lines)}</ul>"]
    if slide.picture:
        caption = re.sub(r"^\*\*Figure \d+\.\*\*\s*", "", slide.caption)
        parts.append(
            f'<figure><img src="data:image/png;base64,{slide.picture.strip()}" alt="{html.escape(slide.alt)}">'
            f"<figcaption>{_inline(caption)}</figcaption></figure>"
        )
    foot = f"<footer><span>{html.escape(topic.partition(':')[0])}</span><span>{number} / {count}</span></footer>"
    size = " dense" if sum(map(len, slide.lines)) > 480 else ""
    return f'<section class="{slide.kind}{size}" id="s{number}">{"".join(parts + lines)}{foot}</section>'


def _inline(text: str) -> str:
    """Return a sentence in Markdown as HTML; links become their text, formulas plain symbols."""
    maths: list[str] = []

    def keep(match: re.Match[str]) -> str:
        maths.append(_formula(match[1]))
        return f"\ue000{len(maths) - 1}\ue001"

    kept = _MATH.sub(keep, _LINK.sub(r"\1", text))
    kept = re.sub(r"\b(?:In|See|from) Figure \d+\b", lambda match: match[0].split()[0] + " the figure", kept)
    kept = re.sub(r"\bFigure \d+\b", "The figure" if kept.startswith("Figure") else "the figure", kept)
    rendered: str = _MARKDOWN.renderInline(kept)
    return re.sub("\ue000(\\d+)\ue001", lambda match: maths[int(match[1])], rendered)


def _formula(tex: str) -> str:
    tex = re.sub(r"\\(?:text|mathrm|mathit|operatorname)\{([^}]*)\}", r"\1", tex)
    tex = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", tex)
    for command, sign in sorted(_SYMBOLS.items(), key=lambda each: -len(each[0])):
        tex = tex.replace(command, sign)
    shown = html.escape(tex)
    shown = re.sub(r"_(?:\{([^}]*)\}|(\w))", lambda match: f"<sub>{match[1] or match[2]}</sub>", shown)
    shown = re.sub(r"\^(?:\{([^}]*)\}|(\w))", lambda match: f"<sup>{match[1] or match[2]}</sup>", shown)
    return f"<i>{shown.replace('{', '').replace('}', '')}</i>"


def _text(markdown: str) -> str:
    return re.sub(r"[*`$]", "", _LINK.sub(r"\1", markdown))


_STYLE = """
* { box-sizing: border-box; }
html { font: 22px/1.4 "TeX Gyre Heros", "Helvetica Neue", Arial, sans-serif; color: #1c2733; background: #fff; }
body { margin: 0; }
section { position: relative; width: 100vw; height: 100vh; padding: 2.2rem 3rem 2.4rem; display: none;
  flex-direction: column; justify-content: center; overflow: hidden; }
section.now { display: flex; }
h1 { font-size: 2.3rem; line-height: 1.15; margin: 0 0 1.2rem; max-width: 22em; }
h2 { font-size: 1.45rem; line-height: 1.2; margin: 0 0 .8rem; color: #0b4f8a; }
p { margin: .3rem 0; max-width: 46em; }
section.points p { font-size: 1.3rem; max-width: 38em; }
section.title p { font-size: 1.15rem; color: #3d4a57; }
section.question { background: #eef4fa; }
section.question p { font-size: 1.35rem; max-width: 34em; }
ul { margin: 0; padding-left: 1.1em; max-width: 40em; } li { margin: .6rem 0; font-size: 1.25rem; }
section.figure { justify-content: flex-start; }
section.figure > p { font-size: 1.2rem; border-left: .25rem solid #c2571a; padding-left: .7rem; max-width: 50em; }
figure { flex: 1 1 0; min-height: 0; margin: 0 0 .5rem; display: flex; flex-direction: column; align-items: center; }
figure img { flex: 0 1 auto; min-height: 0; max-width: 100%; object-fit: contain; height: 100%; }
figcaption { flex: none; font-size: .9rem; color: #3d4a57; max-width: 60em; margin-top: .4rem; }
section.dense p, section.dense li { font-size: 1.05rem; }
footer { position: absolute; left: 3rem; right: 3rem; bottom: .8rem; display: flex; justify-content: space-between;
  font-size: .7rem; color: #5a6672; }
code { font-family: "DejaVu Sans Mono", monospace; font-size: .85em; }
@page { size: 13.333in 7.5in; margin: 0; }
@media print { section, section.now { display: flex; width: 13.333in; height: 7.5in; break-after: page; }
  section:last-of-type { break-after: auto; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
@media screen and (max-width: 700px) { html { font-size: 15px; } section { padding: 1.2rem 1rem 2rem; }
  footer { left: 1rem; right: 1rem; } }
"""
_SCRIPT = """
const slides = [...document.querySelectorAll("section")];
let now = 0;
function turn(to) {
  slides[now].classList.remove("now");
  now = Math.max(0, Math.min(slides.length - 1, to));
  slides[now].classList.add("now");
  history.replaceState(null, "", "#s" + (now + 1));
}
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (["ArrowRight", "ArrowDown", "PageDown", " ", "Enter"].includes(event.key)) turn(now + 1);
  else if (["ArrowLeft", "ArrowUp", "PageUp", "Backspace"].includes(event.key)) turn(now - 1);
  else if (event.key === "Home") turn(0);
  else if (event.key === "End") turn(slides.length - 1);
  else return;
  event.preventDefault();
});
document.body.addEventListener("click", (event) => turn(now + (event.clientX < innerWidth / 3 ? -1 : 1)));
turn((parseInt(location.hash.slice(2), 10) || 1) - 1);
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<meta name="description" content="Slides of the chapter {name}; arrow keys turn them">
<style>{style}</style>
</head>
<body>
{body}
<script>{script}</script>
</body>
</html>
"""


def write_index(made: Sequence[tuple[Path, str, int, bool]]) -> Path:
    """Write the list of decks, and return its path."""
    items = "\n".join(
        f'<li><a href="{path.name}">{html.escape(_text(title))}</a> ({count} slides)'
        + (f', <a href="{path.stem}.pdf">PDF</a></li>' if printed else "</li>")
        for path, title, count, printed in made
    )
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Slides of the chapters</title>'
        "<style>body { font: 18px/1.6 sans-serif; max-width: 44em; margin: 2em auto; padding: 0 1em; }</style></head>"
        f"<body><h1>Slides of the chapters</h1><p>Arrow keys turn the slides.</p><ol>\n{items}\n</ol></body></html>\n"
    )
    return write_text(OUT / "index.html", page)


def print_pdf(browser: str, source: Path, target: Path) -> None:
    """Print a deck as PDF with Chromium.

    Raises
    ------
    OSError
        If it writes none.
    """
    options = ["--headless", "--disable-gpu", "--no-pdf-header-footer", f"--print-to-pdf={target}"]
    if sys.platform.startswith("linux"):
        options.append("--no-sandbox")  # of our own pages, also as root in a container
    target.unlink(missing_ok=True)
    done = subprocess.run(
        [browser, *options, source.as_uri()], capture_output=True, text=True, timeout=120, check=False
    )
    if not target.exists():
        raise OSError(f"{browser} printed nothing of {source.name}: {done.stderr[-300:]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the decks that the command line requests; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="chapters; by default all")
    parser.add_argument("--html", action="store_true", help="make no PDF")
    options = parser.parse_args(arguments)
    known = {path.stem: path for path in chapters()}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no chapter {unknown[0]!r}. Known: {', '.join(known)}")
    browser = None if options.html else next(filter(None, map(shutil.which, BROWSERS)), None)
    OUT.mkdir(parents=True, exist_ok=True)
    made = []
    for name in options.names or known:
        source = known[name].with_suffix(".ipynb")
        if not source.exists():
            print(f"{name}: no notebook yet. Run `python tools/notebooks.py book/{name}.md`", file=sys.stderr)
            continue
        slides = slides_of(read_notebook(source))
        target = write_text(OUT / f"{name}.html", deck(name, slides))
        if browser:
            print_pdf(browser, target, target.with_suffix(".pdf"))
        made.append((target, slides[0].title, len(slides), bool(browser)))
        print(f"{name}: {len(slides)} slides", flush=True)
    if not options.names:
        write_index(made)
    if browser is None and not options.html:
        print(f"No PDF: none of {', '.join(BROWSERS)} was found. The HTML prints from any browser")
    print(f"Open {(OUT / 'index.html' if not options.names else made[-1][0]).relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
