"""The one door for files that mlsys writes: each is there whole or not at all.

What is written goes into a draft beside its place, is brought to the disk, and is then renamed. A
full disk, a kill or an error on the way leave the old file as it was. Several files of one answer are
renamed after the last of them is complete.
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
"""Names of drafts: what a killed program leaves behind."""


class _Command:
    """Files that the running command reads and writes."""

    def __init__(self) -> None:
        self.inputs: dict[tuple[int, int], str] = {}
        self.outputs: set[str] = set()

    def check(self, path: Path) -> None:
        """Refuse to write over an input: a file named by the user, or read meanwhile if the user named the output."""
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
            raise UnwrittenError(f"{path}{same} is an input of this command and stays as it is. Write to another file")


def _module_in(key: tuple[int, int]) -> str | None:
    """Return the file of the loaded module that a file is: what a factory imports is an input as well."""
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
    """Keep the inputs of a command: within, no file that it reads is written over.

    Links count as the file they lead to. A file the command finds by itself, such as a configuration that
    another one names, is kept from the moment it is read.

    Parameters
    ----------
    inputs, outputs
        Files the user named. The ones that do not exist yet are no inputs.

    Raises
    ------
    UnwrittenError
        If an output is an input, or two outputs are one file; within, when such a file is about to be written.

    Examples
    --------
    >>> import tempfile
    >>> data = Path(tempfile.mkdtemp()) / "data.csv"
    >>> _ = data.write_text("1,2")
    >>> with inputs_kept([data], [data]):
    ...     pass
    Traceback (most recent call last):
        ...
    mlsys.errors.UnwrittenError: ...data.csv is an input of this command and stays as it is. Write to another file
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
            raise UnwrittenError(f"{output} is given for two outputs. Give each a file of its own")
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
        self._waiting: list[tuple[Path, Path]] = []

    def fill(self, path: str | Path, fill: Callable[[Path], Any], *, folders: bool = False) -> None:
        """Let ``fill`` write a file, under the name of its draft.

        Parameters
        ----------
        path
            Where the file will lie; a link is followed.
        fill
            Called with the path of the draft, which exists and is empty.
        folders
            Whether folders that are missing are made.

        Raises
        ------
        UnwrittenError
            If it cannot be written.
        """
        wanted = Path(path)
        with _told(wanted):
            target = Path(os.path.realpath(wanted)) if wanted.is_symlink() else wanted
            special = _is_special(wanted)
            for command in _COMMANDS:
                command.check(target)
            if special:  # a terminal, a pipe, /dev/null: it cannot be renamed to
                target, folder = wanted, Path(tempfile.gettempdir())
            else:
                folder = _folder_of(target, folders)
            handle, name = tempfile.mkstemp(prefix=DRAFTS.partition("*")[0], suffix=".part", dir=folder)
            os.close(handle)
            draft = Path(name)
            self._waiting.append((draft, target))
            fill(draft)
            with draft.open("rb") as stream:
                os.fsync(stream.fileno())
            if not special:
                draft.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask())

    def text(self, path: str | Path, text: str, *, folders: bool = False) -> None:
        """Write a text as UTF-8, its line ends as they are."""
        self.bytes(path, text.encode("utf-8"), folders=folders)

    def bytes(self, path: str | Path, content: bytes, *, folders: bool = False) -> None:
        """Write bytes."""
        self.fill(path, lambda draft: draft.write_bytes(content), folders=folders)

    def put(self) -> None:
        """Put every draft in its place."""
        folders = set()
        while self._waiting:
            draft, target = self._waiting[0]
            with _told(target):
                if _is_special(target):
                    _poured(draft, target)
                else:
                    draft.replace(target)
                    folders.add(target.parent)
            self._waiting.pop(0)
        for folder in folders:
            with contextlib.suppress(OSError):  # not every file system can
                handle = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)

    def forget(self) -> None:
        """Remove the drafts that were not put in their place."""
        for draft, _ in self._waiting:
            with contextlib.suppress(OSError):
                draft.unlink()
        self._waiting.clear()


@contextlib.contextmanager
def together() -> Iterator[Drafts]:
    """Write several files, all of them or none.

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
    mlsys.errors.UnwrittenError: ...two.txt cannot be written: there is no folder ... Make it, or choose another place
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
    """Let ``fill`` write one file, under the name of its draft; return its place.

    Raises
    ------
    UnwrittenError
        If it cannot be written; what was there is as it was.
    """
    with together() as files:
        files.fill(path, fill, folders=folders)
    return Path(path)


def write_text(path: str | Path, text: str, *, folders: bool = False) -> Path:
    """Write a text as UTF-8; see :func:`atomically`."""
    return write_bytes(path, text.encode("utf-8"), folders=folders)


def write_bytes(path: str | Path, content: bytes, *, folders: bool = False) -> Path:
    """Write bytes; see :func:`atomically`."""
    return atomically(path, lambda draft: draft.write_bytes(content), folders=folders)


def check_place(path: str | Path, *, folders: bool = False) -> None:
    """Refuse a place that no file can be written to, before anything is computed for it.

    Parameters
    ----------
    path, folders
        As :meth:`Drafts.fill` takes them.

    Raises
    ------
    UnwrittenError
        If there is no folder, it is one itself, or it is protected.

    Examples
    --------
    >>> check_place("no folder/page.html")
    Traceback (most recent call last):
        ...
    mlsys.errors.UnwrittenError: no folder/page.html cannot be written: there is no folder 'no folder'. Make it, ...
    """
    wanted = Path(path)
    if "\0" in str(wanted):
        raise UnwrittenError(f"{str(wanted)!r} cannot be the name of a file")
    with _told(wanted):
        target = Path(os.path.realpath(wanted)) if wanted.is_symlink() else wanted
        target.exists()  # a name may be too long
        if folders:
            check_folder(target.parent)
        if not _is_special(wanted) and not (folders and not target.parent.exists()):
            _folder_of(target, False)


def check_folder(path: str | Path) -> None:
    """Refuse a folder that neither is there nor can be made.

    Raises
    ------
    UnwrittenError
        If something else lies in its way, or it is protected.
    """
    wanted = Path(path)
    if "\0" in str(wanted):
        raise UnwrittenError(f"{str(wanted)!r} cannot be the name of a folder")
    with _told(wanted):
        there = next(folder for folder in (wanted, *wanted.parents) if os.path.lexists(folder))
        if not there.is_dir():
            raise UnwrittenError(f"{wanted} cannot be a folder: {there} is none. Choose another place")
        if not os.access(there, os.W_OK | os.X_OK):
            raise UnwrittenError(f"{wanted} cannot be written to: {there} is protected. Choose another place")


def csv_text(rows: Iterable[Mapping[str, object]], heads: Iterable[str] | None = None) -> str:
    r"""Return rows as CSV, under the heads of the first row unless others are given.

    Examples
    --------
    >>> csv_text([{"name": "=1+1", "value": -3.5}])
    "name,value\n'=1+1,-3.5\n"
    """
    rows = list(rows)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(heads or (rows[0] if rows else [])), lineterminator="\n")
    writer.writerow({name: harmless(name) for name in writer.fieldnames})
    writer.writerows({name: harmless(value) for name, value in row.items()} for row in rows)
    return stream.getvalue()


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say in one line which file could not be written and why."""
    try:
        yield
    except UnwrittenError:
        raise
    except OSError as error:
        raise UnwrittenError(f"{path} cannot be written: {error.strerror or error}") from error
    except ValueError as error:
        if "null" not in str(error):
            raise
        raise UnwrittenError(f"{str(path)!r} cannot be the name of a file") from error


def _folder_of(path: Path, make: bool) -> Path:
    folder = path.parent
    if make:
        folder.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        raise UnwrittenError(
            f"{path} cannot be written: there is no folder {str(folder)!r}. Make it, or choose another place"
        )
    if path.is_dir():
        raise UnwrittenError(f"{path} cannot be written: it is a folder. Give the name of a file")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UnwrittenError(f"{path} cannot be written: it is protected. Choose another name")
    return folder


def _is_special(path: Path) -> bool:
    """Tell whether something is there that is neither a file nor a folder."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _poured(draft: Path, path: Path) -> None:
    """Write a draft into something that cannot be replaced; a pipe that nobody reads is refused, not waited for."""
    handle = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(handle, True)
    with draft.open("rb") as source, os.fdopen(handle, "wb") as target:
        shutil.copyfileobj(source, target)
    draft.unlink()


def _umask() -> int:
    """Return which permissions new files lack."""
    try:  # asking the kernel changes nothing, unlike os.umask, which another thread would feel
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.partition("Umask:")[2].split(maxsplit=1)[0], 8)
    except (OSError, ValueError, IndexError):
        return 0o022
