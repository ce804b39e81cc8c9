"""The locked values of the package, ``tests/goldens/*.txt``, and their changes between versions."""

from collections.abc import Iterable
from pathlib import Path

from mlsys.claims.ledger import Move, files_at
from mlsys.inputs import read_text

FOLDER = "tests/goldens"
"""Folder of the locked values in a checkout."""

Locks = dict[tuple[str, str], str]


def _read(files: Iterable[tuple[str, str]]) -> Locks:
    locks: Locks = {}
    for name, text in files:
        for line in text.splitlines():
            value_name, _, value = line.partition(" = ")
            locks[f"{FOLDER}/{Path(name).stem}", value_name] = value
    return locks


def locks(folder: str | Path = FOLDER) -> Locks:
    """Return every locked value of a folder by (file, name); empty if there is no such folder.

    Examples
    --------
    >>> locks("no/such/folder")
    {}
    """
    return _read((path.name, read_text(path)) for path in sorted(Path(folder).glob("*.txt")))


def locks_at(revision: str) -> Locks:
    """Return every locked value as committed at a git ``revision``; empty if it had none.

    Raises
    ------
    ValueError
        If there is no such revision, or git is not available.
    """
    return _read(files_at(revision, (FOLDER,), ".txt"))


def compare_locks(before: Locks, after: Locks) -> list[Move]:
    """Return the locked values that were added, removed or changed, sorted by file and name.

    Examples
    --------
    >>> old = {("tests/goldens/devices", "A100_80GB/power/tdp"): "400 W"}
    >>> new = {("tests/goldens/devices", "A100_80GB/power/tdp"): "500 W"}
    >>> compare_locks(old, new)[0].change
    '+25%'
    """
    return [
        Move(*key, before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]
