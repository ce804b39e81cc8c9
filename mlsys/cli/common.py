"""What the subcommands share: plain errors, amounts with units, rows in and out."""

from __future__ import annotations

import csv
import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from mlsys.errors import DeviceFileError

__all__ = [
    "PICTURES",
    "QuantityType",
    "checked_picture",
    "complete_device",
    "complete_devices",
    "complete_model",
    "progress",
    "read_rows",
    "speak_plainly",
    "write_csv",
]

PICTURES = (".png", ".svg", ".pdf")


def speak_plainly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn the errors of the library into one line on standard error and exit code 1."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (ValueError, LookupError, OSError, DeviceFileError) as error:
            raise click.ClickException(str(error)) from error

    return wrapped


class QuantityType(click.ParamType):
    """An amount with its unit, such as ``"100 TFLOP/s"``.

    Parameters
    ----------
    unit
        What it must convert to.
    """

    name = "quantity"

    def __init__(self, unit: str) -> None:
        self.unit = unit

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the quantity that ``value`` writes, or fail in one line."""
        from mlsys.amounts import amount

        try:
            return amount(str(value), self.unit)
        except ValueError as error:
            self.fail(f"not an amount with a unit, such as '100 {self.unit}': {error}", param, ctx)


def checked_picture(path: Path) -> None:
    """Refuse the name of a picture that no picture can be written under.

    Raises
    ------
    ValueError
        If it does not end in one of ``PICTURES``.
    """
    if path.suffix.lower() not in PICTURES:
        raise ValueError(f"--figure must end in {', '.join(PICTURES)}, got {path.name!r}")


def complete_device(ctx: Any, param: Any, incomplete: str) -> list[str]:
    """Return the names of devices that begin so, for the shell to complete."""
    from mlsys.hardware import Hardware

    names = {name for group in (*Hardware.groups, Hardware.Generic) for name in dir(group)}
    return sorted(name for name in names if name.lower().startswith(incomplete.lower()))


def complete_devices(ctx: Any, param: Any, incomplete: str) -> list[str]:
    """Return the same for the last of several names with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_device(ctx, param, last)]


def complete_model(ctx: Any, param: Any, incomplete: str) -> list[Any]:
    """Return the names of networks that begin so, and leave paths to the shell."""
    from click.shell_completion import CompletionItem

    from mlsys.workloads import zoo

    names = sorted(zoo.networks())
    found = [CompletionItem(name) for name in names if name.startswith(incomplete.lower())]
    return found or [CompletionItem(incomplete, type="file")]


def progress(items: Iterable[Any], label: str) -> Any:
    """Return a progress bar on standard error; silent where that is no terminal."""
    return click.progressbar(items, label=label, file=sys.stderr)


def write_csv(rows: Iterable[Mapping[str, object]], heads: Iterable[str] | None = None) -> None:
    """Write rows to standard output, under the heads of the first row unless others are given."""
    rows = list(rows)
    writer = csv.DictWriter(sys.stdout, list(heads or (rows[0] if rows else [])), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def read_rows(path: Path, columns: Iterable[str]) -> list[dict[str, str]]:
    """Return the rows of a CSV file that must have the named columns.

    Raises
    ------
    ValueError
        If a column is missing, a row is longer or shorter than the head, or there is no row.
    """
    with path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.DictReader(stream)
        heads = reader.fieldnames or []
        missing = [name for name in columns if name not in heads]
        if missing:
            raise ValueError(
                f"{path}: columns missing: {', '.join(missing)}; found: {', '.join(heads) or 'none'}. "
                f"The first line must name {', '.join(columns)}"
            )
        rows = list(reader)
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise ValueError(f"{path}, line {number}: wanted {len(heads)} cells, one for each column of the first line")
    if not rows:
        raise ValueError(f"{path}: no rows under the first line")
    return rows
