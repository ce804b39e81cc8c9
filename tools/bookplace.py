"""Build folders of the book, each with a cache, doctrees and a lock of its own."""

import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mlsys.files import write_text
from pages import ROOT

LONGEST = 3600.0
"""Seconds to wait for another build of the same book: more than a build takes on the slowest machine."""


class BookError(Exception):
    """The book cannot be built; the message says why."""


@dataclass(frozen=True)
class BookPlace:
    """A build folder of Jupyter Book, ``_build``, and its contents.

    Attributes
    ----------
    build
        The folder. Its name is ``_build``, which Jupyter Book appends to the given path, or that of a single page.
    """

    build: Path

    @property
    def html(self) -> Path:
        """Built HTML pages."""
        return self.build / "html"

    @property
    def epub(self) -> Path:
        """Pages for e-readers, and the book that they are packed into."""
        return self.build / "epub"

    @property
    def cache(self) -> Path:
        """Outputs of executed pages, where MyST-NB looks for them."""
        return self.build / ".jupyter_cache"

    @property
    def doctrees(self) -> Path:
        """Pages parsed by Sphinx."""
        return self.build / ".doctrees"

    @property
    def fingerprint(self) -> Path:
        """Digest of the package version that produced the cached outputs."""
        return self.build / "cache-fingerprint"

    @property
    def finished(self) -> Path:
        """Digest of the sources of the finished book in ``html``; absent during a build."""
        return self.build / "finished"

    def forget_stale_outputs(self, current: str) -> None:
        """Empty the cache if the package has changed or the outputs have another origin.

        jupyter-cache compares only the cells.

        Parameters
        ----------
        current
            Origin of the outputs, and a digest of everything else that they depend on.
        """
        if self.fingerprint.exists() and self.fingerprint.read_text(encoding="utf-8") == current:
            return
        if self.cache.exists():
            print("The package has changed: every page is run again", flush=True)
            shutil.rmtree(self.cache)
        self.forget_pages()
        write_text(self.fingerprint, current, folders=True)

    def forget_pages(self) -> None:
        """Make Sphinx read every page again, since it warns about a page only when it reads it."""
        shutil.rmtree(self.doctrees, ignore_errors=True)

    @contextmanager
    def locked(self, longest: float = LONGEST) -> Iterator[None]:
        """Hold an exclusive lock on this folder; the system releases the lock of a process that dies.

        Parameters
        ----------
        longest
            Seconds to wait for another build.

        Raises
        ------
        BookError
            If the other build does not end in time, or the lock is not a plain file.
        """
        path = self.build / ".lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o644)
        except OSError as error:
            raise BookError(f"{path} cannot be opened as a lock: {error.strerror}. Delete it") from error
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise BookError(f"{path} must be a plain file, which locks this build. Delete it")
            _wait_for(handle, path, longest)
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(handle)


def _wait_for(handle: int, path: Path, longest: float) -> None:
    started, reported = time.monotonic(), False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 20, 0).decode(errors="replace") or "unknown"
            if time.monotonic() - started >= longest:
                raise BookError(
                    f"process {holder} has been building in {path.parent} for more than {longest:.0f} s. "
                    "Wait for it, or stop it"
                ) from None
            if not reported:
                print(f"Process {holder} is building in {path.parent}: waiting for it", flush=True)
                reported = True
            time.sleep(min(0.2, longest))
        else:
            return


BOOK = BookPlace(ROOT / "_build")
"""Build folder of ``make book`` and ``make pdf``."""
TEST_BOOK = BookPlace(ROOT / "_build" / "test" / "book" / "_build")
"""Build folder of the book that ``make test`` opens in a browser."""
UNSOLVED_BOOK = BookPlace(ROOT / "_build" / "without-solutions" / "_build")
"""Build folder of ``make book SOLUTIONS=no``."""
EPUB_BOOK = BookPlace(ROOT / "_build" / "e-reader" / "_build")
"""Build folder of ``make epub``."""
WHATIF_BOOK = BookPlace(ROOT / "_build" / "whatif" / "_build")
"""Build folder of the book with changed facts."""


def page_place(page: Path) -> BookPlace:
    """Return the build folder of a single page: where Jupyter Book puts a single file.

    Parameters
    ----------
    page
        Its source file, below the root of the project.
    """
    return BookPlace(BOOK.build / "_page" / "-".join(page.relative_to(ROOT).with_suffix("").parts))
