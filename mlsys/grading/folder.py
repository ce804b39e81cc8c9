"""Reading of a folder of untrusted hand-in files: files outside the folder are never opened."""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlsys.errors import UnreadableError
from mlsys.escaping import printable

__all__ = ["MISSHAPEN", "MOST_FILES", "MOST_HANDIN", "MOST_NOTEBOOK", "SubmittedFile", "UngradableFile", "files_in"]

MOST_FILES = 20_000
"""Files that one run reads; each further one is listed as not read."""
MOST_HANDIN = 2_000_000
"""Largest hand-in file that is read, bytes; an honest one has about ten thousand."""
MOST_NOTEBOOK = 20_000_000
"""Largest notebook that is read, bytes."""
_DEEPEST = 8
_MOST_EXPLAINED = 100_000

_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst")
_MAGIC = {b"PK\x03\x04": "a zip archive", b"\x1f\x8b": "gzip", b"7z\xbc\xaf": "a 7z archive", b"Rar!": "a rar archive",
          b"BZh": "bzip2", b"\xfd7zXZ": "xz"}  # fmt: skip


MISSHAPEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of code that meets data of another shape than it expects."""


class UngradableFile(ValueError):
    """A file that cannot be graded; the message says why, and what to hand in instead."""


@dataclass(frozen=True)
class SubmittedFile:
    """A file below the folder.

    Attributes
    ----------
    name
        Its path relative to the folder, with control characters escaped.
    content
        Its bytes; None if it was not read.
    why
        Why it was not read; empty if it was.
    """

    name: str
    content: bytes | None
    why: str = ""


def files_in(folder: str | Path) -> Iterator[SubmittedFile]:
    """Yield every file below a folder, sorted by name: read, or with the reason why it was not.

    Links, devices and pipes are not followed or opened, archives are not unpacked, and files and folders whose name
    begins with a dot or an underscore pair (``__MACOSX``) are left out. Every file is opened relative to the folder
    that was listed, so that a folder that is replaced by a link meanwhile leads nowhere.

    Parameters
    ----------
    folder
        The folder of the hand-in files.

    Raises
    ------
    UnreadableError
        If the folder cannot be listed.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "ada.json").write_text("{}")
    >>> (folder / "passwords.json").symlink_to("/etc/passwd")
    >>> for found in files_in(folder):
    ...     print(found.name, found.content, found.why)
    ada.json b'{}'
    passwords.json None it is a link, which is not followed. Hand in the file itself
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise UnreadableError(errno.EINVAL, error.strerror or str(error), str(folder)) from None
    except ValueError:
        raise UnreadableError(errno.EINVAL, "it is not a valid name", repr(str(folder))) from None
    try:
        read = 0
        for count, found in enumerate(_below(handle, "", 0)):
            if count >= _MOST_EXPLAINED:
                yield SubmittedFile("…", None, f"more than {_MOST_EXPLAINED:,} files; the others are not listed")
                return
            if isinstance(found, SubmittedFile):
                yield found
            elif read >= MOST_FILES:
                yield SubmittedFile(
                    found.shown, None, f"not read: one run reads {MOST_FILES:,} files. Split the folder"
                )
            else:
                read += 1
                yield found.read()
    finally:
        os.close(handle)


@dataclass(frozen=True)
class _Entry:
    folder: int
    name: str
    shown: str

    def read(self) -> SubmittedFile:
        """Return the file with its content, or with the reason why it was not read."""
        lower = self.name.lower()
        if lower.endswith(_ARCHIVES):
            return SubmittedFile(
                self.shown, None, "it is an archive, which is not unpacked. Unpack it into the folder first"
            )
        if not lower.endswith((".json", ".ipynb")):
            return SubmittedFile(self.shown, None, "it is neither a hand-in (.json) nor a notebook (.ipynb)")
        most = MOST_NOTEBOOK if lower.endswith(".ipynb") else MOST_HANDIN
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            handle = os.open(self.name, flags, dir_fd=self.folder)
        except (OSError, ValueError) as error:
            return SubmittedFile(self.shown, None, f"it cannot be opened ({getattr(error, 'strerror', None) or error})")
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                return SubmittedFile(self.shown, None, "it is not a regular file")
            if status.st_size > most:
                return SubmittedFile(self.shown, None, f"it has {status.st_size:,} bytes; at most {most:,} are read")
            with os.fdopen(os.dup(handle), "rb") as stream:
                content = stream.read(most + 1)
        except OSError as error:
            return SubmittedFile(self.shown, None, f"it cannot be read ({error.strerror or error})")
        finally:
            os.close(handle)
        if len(content) > most:
            return SubmittedFile(self.shown, None, f"it grew while it was read; at most {most:,} bytes are read")
        kind = next((kind for magic, kind in _MAGIC.items() if content.startswith(magic)), "")
        if kind:
            return SubmittedFile(self.shown, None, f"despite its name it is {kind}. Unpack it into the folder first")
        return SubmittedFile(self.shown, content)


def _below(folder: int, prefix: str, depth: int) -> Iterator[SubmittedFile | _Entry]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        yield SubmittedFile(printable(prefix), None, f"the folder cannot be listed ({error.strerror or error})")
        return
    for entry in entries:
        if entry.name.startswith((".", "__")):
            continue
        shown = printable(f"{prefix}{entry.name}")
        try:
            is_link, is_folder = entry.is_symlink(), entry.is_dir(follow_symlinks=False)
            is_file = entry.is_file(follow_symlinks=False)
        except OSError as error:
            yield SubmittedFile(shown, None, f"it cannot be looked at ({error.strerror or error})")
            continue
        if is_link:
            yield SubmittedFile(shown, None, "it is a link, which is not followed. Hand in the file itself")
        elif is_folder and depth >= _DEEPEST:
            yield SubmittedFile(f"{shown}/", None, f"folders are read to a depth of {_DEEPEST}")
        elif is_folder:
            try:
                handle = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            except OSError as error:
                yield SubmittedFile(f"{shown}/", None, f"the folder cannot be opened ({error.strerror or error})")
                continue
            try:
                yield from _below(handle, f"{prefix}{entry.name}/", depth + 1)
            finally:
                os.close(handle)
        elif is_file:
            yield _Entry(folder, entry.name, shown)
        else:
            yield SubmittedFile(shown, None, "it is neither a file nor a folder")
