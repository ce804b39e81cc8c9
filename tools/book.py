"""Build the book: run the pages that need it, then build them with Jupyter Book.

python tools/book.py html            the whole book; warnings are errors; with --solutions no, an edition without them
python tools/book.py test            the book for the browser tests, in a folder of its own: a copy of the whole book
                                     if it is up to date, else built from the outputs in the committed notebooks, with
                                     only the labs run, so that they work without a kernel
python tools/book.py pdf             the whole book as one PDF, through xelatex
python tools/book.py epub            the whole book for e-readers, formulas as MathML
python tools/book.py page roofline   one page, quickly
python tools/book.py whatif "H100/memory/HBM/bandwidth=1.4"     the book as it would be with other facts
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn

from bookplace import BOOK, EPUB_BOOK, TEST_BOOK, UNSOLVED_BOOK, WHATIF_BOOK, BookError, BookPlace, page_place
from epubbook import mend_package
from kernels import forked_kernels
from mlsys.claims.render import MIME
from mlsys.files import write_text
from mlsys.widgets.static import INVITATION, TO_ANSWER
from notebooks import disagreements
from pages import (
    FOLDERS,
    ROOT,
    is_notebook,
    notebook_files,
    prepare_environment,
    read_notebook,
    read_page,
    run_page,
    workers,
)
from printing import FINE, coarse_figures, edition, edition_without_solutions, epub_edition, missing, printed_contents
from whatif import Affected, changed_facts, compared, mark, parsed, reading, report

STRICT = ("-W", "-n", "--keep-going")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
PRINTED = ("pdf", "epub")
"""Books whose pages are run with figures as PDF and PNG beside their SVG."""
TEX_PACKAGES = (
    "texlive-xetex texlive-latex-recommended texlive-latex-extra texlive-fonts-recommended "
    "latexmk xindy make fontconfig fonts-freefont-otf lmodern fonts-texgyre fonts-dejavu-core"
)


def fingerprint() -> str:
    """Return a digest of everything that the outputs depend on besides the pages themselves."""
    digest = hashlib.sha256()
    files = {ROOT / "constraints.txt", ROOT / "requirements.txt"}
    for package in (ROOT / "mlsys", ROOT / "evidence" / "mlsys_evidence"):
        files |= {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    for path in sorted(files):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def digest_of_book() -> str:
    """Return a digest of everything that a built book depends on: pages, styles, and what outputs depend on."""
    digest = hashlib.sha256(fingerprint().encode())
    folders = (*(ROOT / folder for folder in FOLDERS), ROOT / "vendor" / "static", ROOT / "tools")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    sources = [path for path in files if path.suffix not in (".ipynb", ".pyc") and "_build" not in path.parts]
    for path in sorted([*sources, *(ROOT.glob("_*.yml")), *ROOT.glob("*.md")]):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def keep_outputs(place: BookPlace, *, printed: bool = False) -> None:
    """Forget the outputs of a folder unless they are of this package, with the figures that the book needs.

    Parameters
    ----------
    place
        Build folder.
    printed
        Whether figures are needed for print too, as PDF: for HTML they are drawn as SVG alone, in half the time.
    """
    print_too = f"run for print {fingerprint()}"
    place.forget_stale_outputs(*([print_too] if printed else [f"run {fingerprint()}", print_too]))


def run_new_pages(place: BookPlace, pages: Sequence[Path] | None = None) -> None:
    """Run in parallel the pages that are not in the cache; an error on one fails the build.

    Parameters
    ----------
    place
        Build folder whose cache takes the outputs.
    pages
        Source files; all pages if None.
    """
    cache = get_cache(str(place.cache))
    outdated = [path for path in (notebook_files() if pages is None else pages) if not _is_cached(cache, path)]
    failures: list[str] = []
    with forked_kernels(len(outdated)), ThreadPoolExecutor(workers()) as pool:
        started = {pool.submit(_timed_run, path): path for path in outdated}
        for done, future in enumerate(as_completed(started), start=1):
            path = started[future]
            name = path.relative_to(ROOT)
            try:
                notebook, seconds = future.result()
            except Exception as error:
                failures.append(f"{name} failed:\n{_COLOURS.sub('', str(error))}")
                print(f"[{done}/{len(outdated)}] {name}: failed", flush=True)
                continue
            _keep(cache, notebook, path, seconds)
            print(f"[{done}/{len(outdated)}] {name}: run in {seconds:.1f} s", flush=True)
    if failures:
        raise BookError("\n\n".join(failures))


def take_committed_outputs(place: BookPlace, pages: Sequence[Path] | None = None) -> None:
    """Fill the cache with the outputs of committed notebooks, each of which must match its page.

    Parameters
    ----------
    place
        Build folder whose cache takes the outputs.
    pages
        Source files; all pages if None.
    """
    cache = get_cache(str(place.cache))
    for path in notebook_files() if pages is None else pages:
        refuse_disagreement(path)
        page, committed = read_page(path), read_notebook(path.with_suffix(".ipynb"))
        outputs = {cell.id: cell.outputs for cell in committed.cells if cell.cell_type == "code"}
        for count, cell in enumerate((cell for cell in page.cells if cell.cell_type == "code"), start=1):
            cell.outputs, cell.execution_count = outputs.get(cell.id, []), count
        _keep(cache, page, path, 0.0)


def refuse_disagreement(path: Path) -> None:
    """Raise a BookError if a committed notebook does not match its page."""
    if faults := list(disagreements(path)):
        raise BookError("\n".join([f"{path.relative_to(ROOT)} does not match its page. Run `make notebooks`", *faults]))


def write_claims(place: BookPlace) -> None:
    """Write the claims of every page, taken from its outputs, for the appendix of the printed book."""
    cache = get_cache(str(place.cache))
    claims = {}
    for path in notebook_files():
        notebook = cache.get_cache_bundle(cache.match_cache_notebook(read_page(path)).pk).nb
        outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
        records = [output["data"][MIME] for output in outputs if MIME in output.get("data", {})]
        if records:
            claims[path.relative_to(ROOT).with_suffix("").as_posix()] = records[-1]
    write_text(place.build / "claims.json", json.dumps(claims), folders=True)


def _keep(cache: Any, notebook: Any, path: Path, seconds: float) -> None:
    bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": seconds})
    cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def _is_cached(cache: Any, path: Path) -> bool:
    try:
        cache.match_cache_notebook(read_page(path))
    except KeyError:
        return False
    return True


def _timed_run(path: Path) -> tuple[Any, float]:
    start = time.perf_counter()
    return run_page(read_page(path), path.parent), time.perf_counter() - start


def jupyter_book(place: BookPlace, target: Path, *options: str) -> None:
    """Run Jupyter Book on the whole book or on one page."""
    program = Path(sys.executable).with_name("jupyter-book")
    command = [str(program), "build", str(target), "--quiet", *options]
    extensions = os.pathsep.join(filter(None, [str(ROOT / "tools"), os.environ.get("PYTHONPATH")]))
    if subprocess.run(command, cwd=ROOT, check=False, env={**os.environ, "PYTHONPATH": extensions}).returncode:
        place.forget_pages()  # the next build must read, and warn about, all of them again
        raise BookError("Jupyter Book failed; see its warnings above, which count as errors")


def build_html() -> Path:
    """Build the whole book as HTML with every page run, and return its first page."""
    with BOOK.locked():
        keep_outputs(BOOK)
        BOOK.finished.unlink(missing_ok=True)
        sources = digest_of_book()
        run_new_pages(BOOK)
        made = set_html(BOOK)
        write_text(BOOK.finished, sources)
        return made


def build_unsolved_html() -> Path:
    """Build the book as HTML without solutions, neither in pages nor in sources or search; return its first page."""
    with BOOK.locked():
        keep_outputs(BOOK)
        run_new_pages(BOOK)
        write_claims(BOOK)
        with UNSOLVED_BOOK.locked():
            for folder in (UNSOLVED_BOOK.cache, UNSOLVED_BOOK.html):
                shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(BOOK.cache, UNSOLVED_BOOK.cache)
            UNSOLVED_BOOK.forget_pages()
            settings = edition_without_solutions(ROOT, UNSOLVED_BOOK.build)
            print("Building the pages, without solutions", flush=True)
            where = ("--path-output", str(UNSOLVED_BOOK.build.parent), "--config", str(settings))
            jupyter_book(UNSOLVED_BOOK, ROOT, *where, "--builder", "html", *STRICT)
            bring_static_files(UNSOLVED_BOOK.html)
    return UNSOLVED_BOOK.html / "index.html"


def build_test_book() -> Path:
    """Build the book for the browser tests: committed outputs, but labs run as for the web; return its first page."""
    labs = [path for path in notebook_files() if path.parent.name == "labs"]
    with TEST_BOOK.locked():
        if copy_finished_book():
            return TEST_BOOK.html / "index.html"
        TEST_BOOK.forget_stale_outputs(f"committed, labs run {fingerprint()}")
        for lab in labs:
            refuse_disagreement(lab)
        take_committed_outputs(TEST_BOOK, [path for path in notebook_files() if path not in labs])
        run_new_pages(TEST_BOOK, labs)
        return set_html(TEST_BOOK)


def copy_finished_book() -> bool:
    """Copy the whole book to the folder of the tests' book if it is up to date; return whether it was."""
    if not BOOK.finished.exists():
        return False
    with BOOK.locked():
        if not BOOK.finished.exists() or BOOK.finished.read_text(encoding="utf-8") != digest_of_book():
            return False
        print("Taking a copy of the whole book, which is up to date", flush=True)
        shutil.rmtree(TEST_BOOK.html, ignore_errors=True)
        shutil.copytree(BOOK.html, TEST_BOOK.html)
    return True


def set_html(place: BookPlace) -> Path:
    """Build HTML pages from the outputs in a folder's cache, and return the first."""
    print("Building the pages", flush=True)
    jupyter_book(place, ROOT, "--path-output", str(place.build.parent), "--builder", "html", *STRICT)
    bring_static_files(place.html)
    refuse_dead_labs(place.html)
    return place.html / "index.html"


def build_whatif(change: str) -> Path:
    """Build the book with changed facts in a folder of its own, print what moves, and return its first page."""
    factors = parsed(change)
    pages = notebook_files()
    changed = reading(factors, pages)
    shown = ", ".join(f"{name} × {factor:g}" for name, factor in factors.items())
    print(f"Running {len(changed)} of {len(pages)} pages, those that read {', '.join(factors)}", flush=True)
    found: dict[str, Affected] = {}
    with WHATIF_BOOK.locked():
        WHATIF_BOOK.forget_stale_outputs(f"what if {shown} {fingerprint()}")
        take_committed_outputs(WHATIF_BOOK)
        cache = get_cache(str(WHATIF_BOOK.cache))
        with changed_facts(factors), forked_kernels(len(changed)), ThreadPoolExecutor(workers()) as pool:
            started = {pool.submit(_timed_run, path): path for path in changed}
            for done, future in enumerate(as_completed(started), start=1):
                path = started[future]
                name = path.relative_to(ROOT).with_suffix("").as_posix()
                try:
                    notebook, seconds = future.result()
                except Exception as error:
                    found[name] = Affected(error=_COLOURS.sub("", str(error)).strip().splitlines()[-1])
                else:
                    _keep(cache, notebook, path, seconds)
                    found[name] = compared(path, notebook, WHATIF_BOOK.build / "notebooks")
                print(f"[{done}/{len(changed)}] {name}: {found[name].sentence()}", flush=True)
        jupyter_book(WHATIF_BOOK, ROOT, "--path-output", str(WHATIF_BOOK.build.parent), "--builder", "html")
        bring_static_files(WHATIF_BOOK.html)
        for name, affected in found.items():
            page = WHATIF_BOOK.html / f"{name}.html"
            write_text(page, mark(page.read_text(encoding="utf-8"), affected, shown))
        print(report(dict(sorted(found.items())), shown, len(pages)))
    return WHATIF_BOOK.html / "index.html"


def refuse_dead_labs(html: Path) -> None:
    """Raise a BookError if a built lab needs a kernel, because its outputs were not run with ``MLSYS_BOOK=html``."""
    dead = []
    for path in sorted((ROOT / "labs").glob("[0-9]*.md")):
        page = (html / "labs" / f"{path.stem}.html").read_text(encoding="utf-8")
        if INVITATION in page or TO_ANSWER in page or "data-mlsys-lab=" not in page:
            dead.append(path.stem)
    if dead:
        raise BookError(f"These labs do not work without a kernel in {html}: {', '.join(dead)}")


def bring_static_files(html: Path) -> None:
    """Copy style sheets and scripts, which Sphinx neither updates if no page changed nor copies for a single page."""
    for folder in (ROOT / "vendor" / "static", ROOT / "book" / "static"):
        shutil.copytree(folder, html / "_static", dirs_exist_ok=True)


def build_page(name: str) -> Path:
    """Build a single page and return it; references to other pages stay unresolved."""
    candidates = [ROOT / folder / f"{name}.md" for folder in FOLDERS] + [ROOT / name, ROOT / f"{name}.md"]
    page = next((path for path in candidates if path.is_file()), None)
    if page is None:
        known = ", ".join(path.stem for path in notebook_files())
        raise BookError(f"There is no page {name!r}. Pages: {known}")
    place = page_place(page)
    with place.locked():
        keep_outputs(place)
        if is_notebook(page):
            run_new_pages(place, [page])  # an error in a cell fails here: Jupyter Book alone would warn
        jupyter_book(place, page, "--config", str(ROOT / "_config.yml"))
        bring_static_files(place.html)
    return place.html / f"{page.stem}.html"


def build_pdf(solutions: bool = True, committed: bool = False) -> Path:
    """Build the whole book as a PDF, with or without the solutions of its exercises, and return it."""
    ensure_tex()
    with BOOK.locked():
        # latexmk would resume from the files of a failed build and fail again.
        shutil.rmtree(BOOK.build / "latex", ignore_errors=True)
        run_for_print(committed)
        write_claims(BOOK)
        print("Typesetting the pages in TeX", flush=True)
        settings = edition(ROOT, BOOK.build, solutions=solutions)
        contents = printed_contents(ROOT, BOOK.build)
        jupyter_book(BOOK, ROOT, "--builder", "pdflatex", "--config", str(settings), "--toc", str(contents), *STRICT)
        made = BOOK.build / "latex" / "book.pdf"
        refuse_missing_characters(made.with_suffix(".log"))
        refuse_coarse_figures(made.parent, draft=committed)
        name = "book" if solutions else "book-without-solutions"
        return Path(shutil.copy(made, BOOK.build / f"{name}{'-draft' if committed else ''}.pdf"))


def build_epub(solutions: bool = True, committed: bool = False) -> Path:
    """Build the whole book for e-readers, with or without the solutions of its exercises, and return it."""
    with BOOK.locked():
        run_for_print(committed)
        with EPUB_BOOK.locked():
            for folder in (EPUB_BOOK.cache, EPUB_BOOK.epub):
                shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(BOOK.cache, EPUB_BOOK.cache)
            EPUB_BOOK.forget_pages()
            print("Building the pages for e-readers", flush=True)
            settings = epub_edition(ROOT, EPUB_BOOK.build, solutions=solutions)
            where = ("--path-output", str(EPUB_BOOK.build.parent), "--config", str(settings))
            contents = ("--toc", str(printed_contents(ROOT, EPUB_BOOK.build)))
            jupyter_book(EPUB_BOOK, ROOT, *where, *contents, "--builder", "custom", "--custom-builder", "epub")
        mend_package(EPUB_BOOK.epub / "book.epub")
        name = "book" if solutions else "book-without-solutions"
        return Path(shutil.copy(EPUB_BOOK.epub / "book.epub", BOOK.build / f"{name}.epub"))


def run_for_print(committed: bool) -> None:
    """Run all pages with figures for print, or take the outputs of their notebooks."""
    if committed:
        BOOK.forget_stale_outputs(f"committed {fingerprint()}")
        take_committed_outputs(BOOK)
    else:
        keep_outputs(BOOK, printed=True)
        run_new_pages(BOOK)


def refuse_coarse_figures(folder: Path, *, draft: bool) -> None:
    """Fail on figures of too few pixels for print; a draft, whose figures are those of the notebooks, says so."""
    coarse = coarse_figures(folder)
    if coarse and draft:
        print(
            f"A draft: {len(coarse)} figures are the pixels of the notebooks, {min(coarse.values())} an inch at least. "
            "`make pdf` runs the pages and prints vectors"
        )
    elif coarse:
        listed = [f"{name}: {pixels} pixels per inch" for name, pixels in sorted(coarse.items())]
        raise BookError("\n".join([f"Figures in print are vectors, or have {FINE} pixels per inch:", *listed]))


def refuse_missing_characters(log: Path) -> None:
    """Raise a BookError if the fonts lack characters: TeX drops them without an error."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    missing = sorted({line for line in lines if line.startswith("Missing character")})
    if missing:
        raise BookError("\n".join(["The PDF lacks characters that its fonts do not have:", *missing]))


def ensure_tex() -> None:
    """Check for TeX and the fonts of the book, and install Debian's packages if possible."""
    absent = missing()
    if not absent:
        return
    if not (shutil.which("apt-get") and os.geteuid() == 0):
        raise BookError(
            f"The PDF needs {', '.join(absent)}, not found.\n"
            f"On Debian or Ubuntu: sudo apt-get install --no-install-recommends {TEX_PACKAGES}"
        )
    print("Installing TeX, once (about 130 MB)", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *TEX_PACKAGES.split()]
    for command in (["apt-get", "update", "-qq"], install):
        if subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode:
            raise BookError(f"apt-get could not install TeX: {' '.join(command)}")
    if absent := missing():
        raise BookError(f"Still missing after the installation: {', '.join(absent)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build what the command line requests; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["html", "test", "pdf", "epub", "page", "whatif"])
    parser.add_argument("name", nargs="?", help="the page, for `page`; the changed facts, for `whatif`")
    parser.add_argument(
        "--committed", action="store_true", help="for `pdf` and `epub`: a draft, from the outputs of the notebooks"
    )
    parser.add_argument("--solutions", choices=["yes", "no"], default="yes", help="for `html`, `pdf` and `epub`")
    options = parser.parse_args(arguments)
    if options.what == "page" and not options.name:
        parser.error("`page` needs the name of a page. Type e.g.: make page P=roofline")
    if options.what == "whatif" and not options.name:
        parser.error('`whatif` needs changed facts. Type e.g.: make book WHATIF="H100/memory/HBM/bandwidth=1.4"')
    start = time.perf_counter()
    prepare_environment()
    os.environ["MLSYS_BOOK"] = "html"  # in the book labs work without a kernel; the PDF uses their text
    os.environ["MLSYS_FIGURES"] = "vector" if options.what in PRINTED else "svg"
    builders: dict[str, Callable[[], Path]] = {
        "html": build_html if options.solutions == "yes" else build_unsolved_html,
        "test": build_test_book,
        "pdf": lambda: build_pdf(options.solutions == "yes", options.committed),
        "epub": lambda: build_epub(options.solutions == "yes", options.committed),
        "page": lambda: build_page(options.name),
        "whatif": lambda: build_whatif(options.name),
    }
    try:
        made = builders[options.what]()
    except BookError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    print(f"\nThe book took {time.perf_counter() - start:.0f} s. Open {made.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
