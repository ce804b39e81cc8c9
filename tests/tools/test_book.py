"""Builds of the book: in places of their own, one at a time in each, and an error on a page fails all of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
import yaml

import book
import bookplace
import notebooks
import pages
from bookplace import BOOK, EPUB_BOOK, TEST_BOOK, BookError, BookPlace, page_place

HOLD = """
import sys, time
from pathlib import Path
from bookplace import BookPlace
with BookPlace(Path(sys.argv[1])).locked():
    print("held", flush=True)
    time.sleep(600)
"""
WRONG = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
---

# Wrong: what then?

```{code-cell} ipython3
1 / 0
```
"""


# --- places -----------------------------------------------------------------------------


def test_places_share_nothing() -> None:
    places = [
        BOOK,
        TEST_BOOK,
        EPUB_BOOK,
        page_place(pages.ROOT / "book" / "roofline.md"),
        page_place(pages.ROOT / "labs" / "x.md"),
    ]
    parts = [[each.html, each.cache, each.doctrees, each.fingerprint] for each in places]
    for index, ours in enumerate(parts):
        for theirs in parts[index + 1 :]:
            assert not set(ours) & set(theirs)
            assert not any(one.is_relative_to(other) or other.is_relative_to(one) for one in ours for other in theirs)
    assert TEST_BOOK.build.name == "_build", "Jupyter Book appends it to --path-output"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give back the settings that ``book.main`` makes for its process, which here is that of all tests."""
    for name in ("MLSYS_BOOK", "MLSYS_FIGURES"):
        monkeypatch.setenv(name, "other")


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[tuple[object, ...]]]:
    """The steps of a build, noted instead of taken, in places below a folder of the test."""
    steps: list[tuple[object, ...]] = []
    for name in ("BOOK", "TEST_BOOK"):
        place = BookPlace(tmp_path / name.lower() / "_build")
        place.build.mkdir(parents=True)
        monkeypatch.setattr(book, name, place)
    for name in ("run_new_pages", "take_committed_outputs", "jupyter_book", "bring_static_files", "refuse_dead_labs"):
        monkeypatch.setattr(book, name, lambda *given, name=name: steps.append((name, *given)))
    monkeypatch.setattr(book, "refuse_disagreement", lambda path: None)
    yield steps


def test_the_tests_book_runs_labs_for_the_web_and_touches_no_other(recorded, monkeypatch, tmp_path, capsys) -> None:
    inside: list[str | None] = []
    monkeypatch.setattr(book, "fingerprint", lambda: inside.append(os.environ.get("MLSYS_BOOK")) or "x")
    monkeypatch.setattr(book, "ROOT", tmp_path)
    monkeypatch.setattr(book, "prepare_environment", lambda: None)
    assert book.main(["test"]) == 0
    steps = {name: given for name, *given in recorded}
    assert inside == ["html"]
    assert {path.parent.name for path in steps["run_new_pages"][1]} == {"labs"}
    assert {path.parent.name for path in steps["take_committed_outputs"][1]} == {"book"}
    both = [*steps["run_new_pages"][1], *steps["take_committed_outputs"][1]]
    assert sorted(both) == sorted(pages.notebook_files())
    assert all(given[0] in (book.TEST_BOOK, book.TEST_BOOK.html) for given in steps.values())
    options = steps["jupyter_book"]
    assert Path(options[options.index("--path-output") + 1]) / "_build" == book.TEST_BOOK.build
    assert list(book.BOOK.build.iterdir()) == []


def test_make_book_touches_only_its_own_place(recorded, monkeypatch) -> None:
    monkeypatch.setattr(book, "fingerprint", lambda: "x")
    book.build_html()
    assert all(given[0] in (book.BOOK, book.BOOK.html) for _, *given in recorded)
    assert list(book.TEST_BOOK.build.iterdir()) == []


def test_a_finished_book_is_copied_for_the_tests_and_an_older_one_is_not(recorded, monkeypatch) -> None:
    digests = iter(["one", "one", "two"])
    monkeypatch.setattr(book, "fingerprint", lambda: "x")
    monkeypatch.setattr(book, "digest_of_book", lambda: next(digests))
    monkeypatch.setattr(book, "set_html", lambda place: recorded.append(("set", place)) or place.html / "index.html")
    book.BOOK.html.mkdir()
    (book.BOOK.html / "index.html").write_text("whole", encoding="utf-8")
    book.build_html()
    recorded.clear()
    assert book.build_test_book().read_text(encoding="utf-8") == "whole"
    assert recorded == []
    book.build_test_book()
    assert ("set", book.TEST_BOOK) in recorded, "the sources have changed since"


def test_a_book_that_failed_is_not_copied(recorded, monkeypatch) -> None:
    monkeypatch.setattr(book, "fingerprint", lambda: "x")
    monkeypatch.setattr(book, "digest_of_book", lambda: "one")
    book.build_html()
    assert book.BOOK.finished.exists()

    def fail(*given: object) -> None:
        raise book.BookError("a warning")

    monkeypatch.setattr(book, "jupyter_book", fail)
    with pytest.raises(book.BookError):
        book.build_html()
    assert not book.copy_finished_book()


def test_the_digest_of_the_book_sees_pages_styles_and_package(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(book, "ROOT", tmp_path)
    monkeypatch.setattr(book, "fingerprint", lambda: "x")
    seen = {book.digest_of_book()}
    for name in ("book/a.md", "book/static/a.css", "labs/b.md", "_toc.yml", "tools/t.py", "vendor/static/x.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1", encoding="utf-8")
        seen.add(book.digest_of_book())
    (tmp_path / "book" / "a.ipynb").write_text("outputs are derived", encoding="utf-8")
    seen.add(book.digest_of_book())
    monkeypatch.setattr(book, "fingerprint", lambda: "y")
    seen.add(book.digest_of_book())
    assert len(seen) == 8


def test_make_test_builds_the_tests_book() -> None:
    import run_test_stages

    commands = {part.name: list(part.command) for line in run_test_stages.lines() for part in line}
    assert commands["book"][-2:] == ["tools/book.py", "test"]


def test_outputs_of_another_package_are_forgotten(tmp_path: Path) -> None:
    place = BookPlace(tmp_path / "_build")
    place.forget_stale_outputs("one")
    for folder in (place.cache, place.doctrees):
        folder.mkdir()
    place.forget_stale_outputs("one")
    assert place.cache.exists() and place.doctrees.exists()
    place.forget_stale_outputs("two")
    assert not place.cache.exists() and not place.doctrees.exists()


# --- locks ------------------------------------------------------------------------------


def test_a_second_build_waits_for_the_first_and_a_dead_one_holds_nothing(tmp_path: Path, capsys) -> None:
    folder = tmp_path / "_build"
    path = os.pathsep.join([str(pages.ROOT / "tools"), str(pages.ROOT)])
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    try:
        assert first.stdout is not None and first.stdout.readline() == "held\n"
        busy = pytest.raises(BookError, match=rf"process {first.pid} has been building in .*for more than")
        with busy, BookPlace(folder).locked(longest=0.3):
            pytest.fail("two builds in one place")
        assert f"Process {first.pid} is building in" in capsys.readouterr().out
        with BookPlace(tmp_path / "other").locked(longest=0.0):
            pass
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    with BookPlace(folder).locked(longest=60.0):
        assert (folder / ".lock").read_text() == str(os.getpid())


def test_a_lock_that_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    started = time.monotonic()
    with pytest.raises(BookError, match="must be a plain file"), BookPlace(tmp_path).locked():
        pytest.fail("a FIFO locks nothing")
    assert time.monotonic() - started < 60


# --- errors and dead labs ---------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose one page divides by zero."""
    (tmp_path / "book").mkdir()
    (tmp_path / "labs").mkdir()
    (tmp_path / "book" / "wrong.md").write_text(WRONG)
    for module in (book, bookplace, pages, notebooks):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(book, "BOOK", BookPlace(tmp_path / "_build"))
    monkeypatch.setattr(bookplace, "BOOK", book.BOOK)
    monkeypatch.setattr(book, "notebook_files", lambda: [tmp_path / "book" / "wrong.md"])
    monkeypatch.setattr(book, "fingerprint", lambda: "x")
    monkeypatch.setattr(book, "jupyter_book", lambda *given: pytest.fail("a page with an error was set"))
    monkeypatch.setattr(book, "ensure_tex", lambda: None)
    return tmp_path


@pytest.mark.parametrize("words", [["page", "wrong"], ["html"], ["pdf"]])
def test_an_error_on_a_page_fails_every_build(project: Path, words: list[str], capsys) -> None:
    assert book.main(words) == 1
    result = capsys.readouterr().err
    assert "book/wrong.md failed" in result and "ZeroDivisionError: division by zero" in result
    assert "Traceback (most recent call last)\n  File" not in result


def test_an_error_kept_in_a_notebook_fails_the_tests_book_and_nbval(project: Path) -> None:
    source = project / "book" / "wrong.md"
    page = pages.read_page(source)
    page.metadata["kernelspec"] = dict(notebooks.KERNEL)
    (cell,) = (cell for cell in page.cells if cell.cell_type == "code")
    cell.execution_count = 1
    cell.outputs = [
        nbformat.v4.new_output("error", ename="ZeroDivisionError", evalue="division by zero", traceback=["as kept"])
    ]
    kept = source.with_suffix(".ipynb")
    nbformat.write(page, kept)
    with pytest.raises(BookError, match="it holds an error"):
        book.take_committed_outputs(BookPlace(project / "_build"))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir",
        str(project),
    ]
    done = subprocess.run([*command, "--nbval", str(kept)], capture_output=True, text=True, check=False, cwd=project)
    assert done.returncode == 1 and "Notebook cell execution failed" in done.stdout, done.stdout


def test_jupyter_book_alone_stops_at_an_error() -> None:
    settings = yaml.safe_load((pages.ROOT / "_config.yml").read_text())
    assert settings["execute"]["allow_errors"] is False
    assert settings["sphinx"]["config"]["nb_execution_raise_on_error"] is True


def test_labs_that_wait_for_a_kernel_are_refused(project: Path) -> None:
    html = project / "html" / "labs"
    html.mkdir(parents=True)
    (project / "labs" / "01-one.md").write_text("a lab")
    alive = "<div data-mlsys-lab='one'>works</div>".replace("'", '"')
    for text, dead in (
        (alive, False),
        ("<p>no lab</p>", True),
        (alive + book.TO_ANSWER, True),
        (book.INVITATION, True),
    ):
        (html / "01-one.html").write_text(text)
        if dead:
            with pytest.raises(BookError, match="do not work without a kernel in .*: 01-one"):
                book.refuse_dead_labs(html.parent)
        else:
            book.refuse_dead_labs(html.parent)
