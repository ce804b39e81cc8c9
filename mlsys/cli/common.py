"""What the subcommands share: plain errors, amounts with units, rows in and out."""

from __future__ import annotations

import contextlib
import csv
import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from mlsys.errors import DeviceFileError

__all__ = [
    "EXTRAS",
    "PICTURES",
    "Commands",
    "QuantityType",
    "checked_picture",
    "complete_device",
    "complete_devices",
    "complete_model",
    "harmless",
    "needed_extra",
    "printable",
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
        except BrokenPipeError:
            raise  # whoever read our output has enough: no error of the question
        except ModuleNotFoundError as missing:
            raise click.ClickException(needed_extra(missing)) from missing
        except (ValueError, LookupError, OSError, DeviceFileError) as error:
            raise click.ClickException(printable(str(error))) from error

    return wrapped


EXTRAS = {
    "matplotlib": "viz", "mpl_toolkits": "viz", "torch": "torch", "transformers": "hf", "onnx": "onnx",
    "pyarrow": "sweep", "distributed": "cluster", "dask": "cluster", "ipywidgets": "labs", "IPython": "labs",
    "sklearn": "edge", "torch_pruning": "edge",
}  # fmt: skip


def needed_extra(missing: ModuleNotFoundError) -> str:
    """Return in one line which part of the package is not installed, and the command that installs it.

    Examples
    --------
    >>> needed_extra(ModuleNotFoundError("No module named 'onnx'", name="onnx"))
    "this needs onnx, which is not installed. Type: pip install 'mlsys[onnx]'"
    """
    module = (missing.name or "").partition(".")[0]
    if module not in EXTRAS:
        return f"this needs {module or missing}, which is not installed. Type: pip install {module or 'it'}"
    return f"this needs {module}, which is not installed. Type: pip install 'mlsys[{EXTRAS[module]}]'"


def printable(text: str) -> str:
    r"""Return a text with its control characters written out, so that no name can steer a terminal.

    Examples
    --------
    >>> printable("a\x1b[31mb\nc")
    'a\\x1b[31mb\nc'
    """
    return "".join(
        mark if mark == "\n" or mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text
    )


def harmless(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula: text that begins like one gets an apostrophe before it.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-3.5"), harmless("conv1")
    ("'=1+1", '-3.5', 'conv1')
    """
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


class Commands(click.Group):
    """A group of commands that ends quietly when its output is cut off, and prints on any terminal."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command; what the terminal's encoding lacks is written out."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, ValueError):
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        try:
            return super().main(*args, **kwargs)
        finally:
            try:
                sys.stdout.flush()
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
    writer.writerows({name: harmless(value) for name, value in row.items()} for row in rows)


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
