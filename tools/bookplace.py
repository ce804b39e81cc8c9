"""Where a book is built, with a cache, doctrees and a lock of its own: builds in two places share nothing."""

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
"""Seconds to wait for another build of the same book: more than the slowest machine needs for one."""


class BookError(Exception):
    """The book cannot be built, and the message says why."""


@dataclass(frozen=True)
class BookPlace:
    """A folder of Jupyter Book, ``_build``, and what lies in it.

    Attributes
    ----------
    build
        The folder. Its name is ``_build``, since Jupyter Book appends that to the path it is given, or that of a page.
    """

    build: Path

    @property
    def html(self) -> Path:
        """The pages for the web."""
        return self.build / "html"

    @property
    def cache(self) -> Path:
        """Outputs of the pages that were run, where myst-nb looks for them."""
        return self.build / ".jupyter_cache"

    @property
    def doctrees(self) -> Path:
        """Pages as Sphinx has read them."""
        return self.build / ".doctrees"

    @property
    def fingerprint(self) -> Path:
        """Digest of the package that the outputs in the cache came from."""
        return self.build / "cache-fingerprint"

    @property
    def finished(self) -> Path:
        """Digest of the sources of the whole book in ``html``; there is none while it is being built."""
        return self.build / "finished"

    def forget_stale_outputs(self, current: str) -> None:
        """Empty the cache when the package has changed, or outputs came from elsewhere.

        jupyter-cache compares the cells alone.

        Parameters
        ----------
        current
            Where the outputs come from, and a digest of all else that they depend on.
        """
        if self.fingerprint.exists() and self.fingerprint.read_text(encoding="utf-8") == current:
            return
        if self.cache.exists():
            print("The package has changed: every page is run afresh", flush=True)
            shutil.rmtree(self.cache)
        self.forget_pages()
        write_text(self.fingerprint, current, folders=True)

    def forget_pages(self) -> None:
        """Let Sphinx read every page again: it warns about a page only when it reads it."""
        shutil.rmtree(self.doctrees, ignore_errors=True)

    @contextmanager
    def locked(self, longest: float = LONGEST) -> Iterator[None]:
        """Keep other builds out of this place; the system frees the lock of a process that has died.

        Parameters
        ----------
        longest
            Seconds to wait for another build.

        Raises
        ------
        BookError
            If the other build does not end in time, or the lock is no plain file.
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
    begun, told = time.monotonic(), False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 20, 0).decode(errors="replace") or "unknown"
            if time.monotonic() - begun >= longest:
                raise BookError(
                    f"process {holder} has been building in {path.parent} for more than {longest:.0f} s. "
                    "Wait for it, or stop it"
                ) from None
            if not told:
                print(f"Process {holder} builds in {path.parent}: waiting for its end", flush=True)
                told = True
            time.sleep(min(0.2, longest))
        else:
            return


BOOK = BookPlace(ROOT / "_build")
"""What ``make book`` and ``make pdf`` build."""
TEST_BOOK = BookPlace(ROOT / "_build" / "test" / "book" / "_build")
"""What ``make test`` builds and opens in a browser."""


def page_place(page: Path) -> BookPlace:
    """Return where ``make page`` builds one page: where Jupyter Book puts a single file.

    Parameters
    ----------
    page
        Its text, below the root of the project.
    """
    return BookPlace(BOOK.build / "_page" / "-".join(page.relative_to(ROOT).with_suffix("").parts))
