"""Atomic writing of files: all output of mlsys goes through here.

Content is written to a temporary file (a draft) in the target folder, flushed to disk, and then renamed.
A full disk, a kill or an error leaves the old file unchanged. Several files of one result are renamed
only after the last of them is complete.
"""

import contextlib
import csv
import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mlsys.errors import UnwrittenError
from mlsys.escaping import harmless
from mlsys.inputs import FILES_READ, identity

DRAFTS = ".mlsys-*.part"
"""Glob pattern of drafts, which a killed program leaves behind."""


class _Command:
    """Input and output files of the running command."""

    def __init__(self) -> None:
        self.inputs: dict[tuple[int, int], str] = {}
        self.outputs: set[str] = set()

    def check(self, path: Path) -> None:
        """Raise if ``path`` is an input: a file the user named, or one read since then if the user named the output."""
        try:
            status = path.stat()
        except (OSError, ValueError):
            return
        if not stat.S_ISREG(status.st_mode):
            return
        name = self.inputs.get(key := identity(status))
        if name is None and os.path.realpath(path) in self.outputs:
            name = FILES_READ.get(key) or _module_in(key)
        if name is not None:
            same = "" if str(path) == name else f" (the same file as {name})"
            raise UnwrittenError(
                f"{path}{same} is an input of this command and is not overwritten. Write to another file"
            )


def _module_in(key: tuple[int, int]) -> str | None:
    """Return the file name of the loaded module with this identity: an imported module is an input as well."""
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if isinstance(name, str):
            with contextlib.suppress(OSError, ValueError):
                if identity(os.stat(name)) == key:
                    return name
    return None


_COMMANDS: list[_Command] = []


@contextlib.contextmanager
def inputs_kept(inputs: Iterable[str | Path], outputs: Iterable[str | Path]) -> Iterator[None]:
    """Protect the inputs of a command: inside the block, no file that it reads is overwritten.

    Links are resolved. A file that the command finds by itself, such as a configuration that another one
    names, is protected from the moment it is read.

    Parameters
    ----------
    inputs, outputs
        Files the user named. Files that do not exist yet are not treated as inputs.

    Raises
    ------
    UnwrittenError
        If an output is also an input, or two outputs are the same file; inside the block, when an input is about
        to be overwritten.

    Examples
    --------
    >>> import tempfile
    >>> data = Path(tempfile.mkdtemp()) / "data.csv"
    >>> _ = data.write_text("1,2")
    >>> with inputs_kept([data], [data]):
    ...     pass
    Traceback (most recent call last):
        ...
    mlsys.errors.UnwrittenError: ...data.csv is an input of this command and is not overwritten. Write to another file
    """
    command = _Command()
    for path in inputs:
        with contextlib.suppress(OSError, ValueError):
            status = os.stat(path)
            if stat.S_ISREG(status.st_mode):
                command.inputs.setdefault(identity(status), str(path))
    for output in outputs:
        place = os.path.realpath(output)
        if place in command.outputs and not _is_special(Path(output)):
            raise UnwrittenError(f"{output} is given for two outputs. Name a different file for each")
        command.outputs.add(place)
        command.check(Path(output))
    _COMMANDS.append(command)
    try:
        yield
    finally:
        _COMMANDS.remove(command)


class Drafts:
    """Files that are being written; see :func:`together`."""

    def __init__(self) -> None:
        self._pending: list[tuple[Path, Path]] = []

    def fill(self, path: str | Path, fill: Callable[[Path], Any], *, folders: bool = False) -> None:
        """Call ``fill`` to write the draft of a file.

        Parameters
        ----------
        path
            Path of the file to write; a link is followed.
        fill
            Called with the path of the draft, which exists and is empty.
        folders
            Whether to create missing folders.

        Raises
        ------
        UnwrittenError
            If it cannot be written.
        """
        requested = Path(path)
        with _write_errors(requested):
            target = Path(os.path.realpath(requested)) if requested.is_symlink() else requested
            special = _is_special(requested)
            for command in _COMMANDS:
                command.check(target)
            if special:  # a terminal, a pipe, /dev/null: it cannot be renamed to
                target, folder = requested, Path(tempfile.gettempdir())
            else:
                folder = _folder_of(target, folders)
            handle, name = tempfile.mkstemp(prefix=DRAFTS.partition("*")[0], suffix=".part", dir=folder)
            os.close(handle)
            draft = Path(name)
            self._pending.append((draft, target))
            fill(draft)
            with draft.open("rb") as stream:
                os.fsync(stream.fileno())
            if not special:
                draft.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask())

    def text(self, path: str | Path, text: str, *, folders: bool = False) -> None:
        """Write text as UTF-8; line endings are kept."""
        self.bytes(path, text.encode("utf-8"), folders=folders)

    def bytes(self, path: str | Path, content: bytes, *, folders: bool = False) -> None:
        """Write bytes."""
        self.fill(path, lambda draft: draft.write_bytes(content), folders=folders)

    def put(self) -> None:
        """Rename every draft to its target."""
        folders = set()
        while self._pending:
            draft, target = self._pending[0]
            with _write_errors(target):
                if _is_special(target):
                    _copy_into(draft, target)
                else:
                    draft.replace(target)
                    folders.add(target.parent)
            self._pending.pop(0)
        for folder in folders:
            with contextlib.suppress(OSError):  # some file systems cannot sync a folder
                handle = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)

    def forget(self) -> None:
        """Delete the drafts that were not renamed."""
        for draft, _ in self._pending:
            with contextlib.suppress(OSError):
                draft.unlink()
        self._pending.clear()


@contextlib.contextmanager
def together() -> Iterator[Drafts]:
    """Write several files, all or none.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with together() as files:
    ...     files.text(folder / "one.txt", "1")
    ...     files.text(folder / "two.txt", "2")
    >>> sorted(path.name for path in folder.iterdir())
    ['one.txt', 'two.txt']
    >>> with together() as files:
    ...     files.text(folder / "one.txt", "another")
    ...     files.text(folder / "no folder" / "two.txt", "2")
    Traceback (most recent call last):
        ...
    mlsys.errors.UnwrittenError: ...two.txt cannot be written: there is no folder ... Create it, or choose another path
    >>> (folder / "one.txt").read_text()
    '1'
    """
    files = Drafts()
    try:
        yield files
        files.put()
    finally:
        files.forget()


def atomically(path: str | Path, fill: Callable[[Path], Any], *, folders: bool = False) -> Path:
    """Write one file atomically by calling ``fill`` on its draft; return its path.

    Raises
    ------
    UnwrittenError
        If it cannot be written; an existing file is left unchanged.
    """
    with together() as files:
        files.fill(path, fill, folders=folders)
    return Path(path)


def write_text(path: str | Path, text: str, *, folders: bool = False) -> Path:
    """Write text as UTF-8 and return the path; see :func:`atomically`."""
    return write_bytes(path, text.encode("utf-8"), folders=folders)


def write_bytes(path: str | Path, content: bytes, *, folders: bool = False) -> Path:
    """Write bytes and return the path; see :func:`atomically`."""
    return atomically(path, lambda draft: draft.write_bytes(content), folders=folders)


def check_place(path: str | Path, *, folders: bool = False) -> None:
    """Raise if no file can be written to ``path``; to be called before a long computation.

    Parameters
    ----------
    path, folders
        As :meth:`Drafts.fill` takes them.

    Raises
    ------
    UnwrittenError
        If the folder is missing, or the path is a folder or not writable.

    Examples
    --------
    >>> check_place("no folder/page.html")
    Traceback (most recent call last):
        ...
    mlsys.errors.UnwrittenError: no folder/page.html cannot be written: there is no folder 'no folder'. Create it, ...
    """
    requested = Path(path)
    if "\0" in str(requested):
        raise UnwrittenError(f"{str(requested)!r} is not a valid file name")
    with _write_errors(requested):
        target = Path(os.path.realpath(requested)) if requested.is_symlink() else requested
        target.exists()  # raises if the name is too long
        if folders:
            check_folder(target.parent)
        if not _is_special(requested) and not (folders and not target.parent.exists()):
            _folder_of(target, False)


def check_folder(path: str | Path) -> None:
    """Raise if a folder neither exists nor can be created.

    Raises
    ------
    UnwrittenError
        If a parent is not a folder, or is not writable.
    """
    requested = Path(path)
    if "\0" in str(requested):
        raise UnwrittenError(f"{str(requested)!r} is not a valid folder name")
    with _write_errors(requested):
        existing = next(folder for folder in (requested, *requested.parents) if os.path.lexists(folder))
        if not existing.is_dir():
            raise UnwrittenError(f"{requested} cannot be a folder: {existing} is not a folder. Choose another path")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise UnwrittenError(f"{requested} cannot be written to: {existing} is not writable. Choose another path")


def csv_text(rows: Iterable[Mapping[str, object]], columns: Iterable[str] | None = None) -> str:
    r"""Return rows as CSV text; the column names are those of the first row unless ``columns`` gives others.

    Examples
    --------
    >>> csv_text([{"name": "=1+1", "value": -3.5}])
    "name,value\n'=1+1,-3.5\n"
    """
    rows = list(rows)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(columns or (rows[0] if rows else [])), lineterminator="\n")
    writer.writerow({name: harmless(name) for name in writer.fieldnames})
    writer.writerows({name: harmless(value) for name, value in row.items()} for row in rows)
    return stream.getvalue()


@contextlib.contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into one line: which file could not be written, and why."""
    try:
        yield
    except UnwrittenError:
        raise
    except OSError as error:
        raise UnwrittenError(f"{path} cannot be written: {error.strerror or error}") from error
    except ValueError as error:
        if "null" not in str(error):
            raise
        raise UnwrittenError(f"{str(path)!r} is not a valid file name") from error


def _folder_of(path: Path, create: bool) -> Path:
    folder = path.parent
    if create:
        folder.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        raise UnwrittenError(
            f"{path} cannot be written: there is no folder {str(folder)!r}. Create it, or choose another path"
        )
    if path.is_dir():
        raise UnwrittenError(f"{path} cannot be written: it is a folder. Give a file name")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UnwrittenError(f"{path} cannot be written: it is not writable. Choose another path")
    return folder


def _is_special(path: Path) -> bool:
    """Return whether ``path`` is a special file: a terminal, a pipe or a device."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _copy_into(draft: Path, path: Path) -> None:
    """Copy a draft into a special file; a pipe without a reader raises instead of blocking."""
    handle = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(handle, True)
    with draft.open("rb") as source, os.fdopen(handle, "wb") as target:
        shutil.copyfileobj(source, target)
    draft.unlink()


def _umask() -> int:
    """Return the process's umask."""
    try:  # reading it from the kernel has no side effect; os.umask would affect other threads
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.partition("Umask:")[2].split(maxsplit=1)[0], 8)
    except (OSError, ValueError, IndexError):
        return 0o022
