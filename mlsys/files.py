"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["atomically"]


def atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, and put it in its place at once.

    Parameters
    ----------
    path
        What the file is to be called; its folder must be there.
    write
        Called with the name of the temporary file. Whatever it raises, nothing half-written stays.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atomically(Path(folder) / "a.txt", lambda place: place.write_text("whole"))
    ...     (Path(folder) / "a.txt").read_text(), len(list(Path(folder).iterdir()))
    ('whole', 1)
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    place = Path(name)
    try:
        write(place)
        with place.open("rb") as file:
            os.fsync(file.fileno())
        place.chmod(0o644)
        place.replace(path)
    finally:
        place.unlink(missing_ok=True)
