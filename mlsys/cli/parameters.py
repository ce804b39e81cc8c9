"""What options and arguments take: numbers, amounts with units, places to write to, devices and networks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlsys.errors import UnwrittenError
from mlsys.escaping import printable

if TYPE_CHECKING:
    from mlsys.hardware import Device
    from mlsys.units import Quantity

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
"""The type of an argument that names a file to read."""


class Input(click.Path):
    """A file to read, or ``stored:NAME`` where the package ships some: one that is not there is wrong usage.

    Parameters
    ----------
    stored
        Whether ``stored:NAME`` is taken.
    example
        The line that writes such a file, for whom it is missing.
    """

    def __init__(self, *, stored: bool = False, example: str = "") -> None:
        super().__init__(path_type=Path)
        self._stored, self._example = stored, example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail in one line."""
        if not (self._stored and str(value).startswith("stored:")):
            try:
                there = Path(value).exists()
            except (OSError, ValueError):  # no name of a file at all
                there = False
            if not there:
                hint = f" Write one to begin with: {self._example}" if self._example else ""
                self.fail(f"there is no file {printable(str(value)[:200])!r}.{hint}", param, ctx)
        return super().convert(value, param, ctx)


_DIGITS = re.compile(r"[+-]?[0-9]+")


class Finite(click.FloatRange):
    """A finite number within limits, as the package reads numbers: ``nan``, ``1_0`` and other digits are none."""

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail in one line."""
        if isinstance(value, str):
            from mlsys.amounts import parsed_number

            try:
                value = parsed_number(value)
            except ValueError as error:
                self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)


class Whole(click.IntRange):
    """A whole number within limits, written in plain digits: ``int`` would also take ``1_0`` and other digits."""

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or fail in one line."""
        if isinstance(value, str) and not _DIGITS.fullmatch(value.strip()):
            self.fail(f"{value[:60]!r} is not a valid integer", param, ctx)
        return super().convert(value, param, ctx)


class Output(click.Path):
    """Where a file is to be written: a place where none can be is refused before anything is computed.

    Parameters
    ----------
    folders
        Whether folders that are missing will be made.
    """

    def __init__(self, *, folders: bool = False) -> None:
        super().__init__(path_type=Path)
        self._folders = folders

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail in one line."""
        from mlsys.files import check_place

        try:
            check_place(value, folders=self._folders)
        except UnwrittenError as error:
            self.fail(printable(str(error)), param, ctx)
        return super().convert(value, param, ctx)


class OutputFolder(click.Path):
    """A folder for files to be written; it is made where there is none."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail in one line."""
        from mlsys.files import check_folder

        try:
            check_folder(value)
        except UnwrittenError as error:
            self.fail(printable(str(error)), param, ctx)
        return super().convert(value, param, ctx)


def named_files(context: click.Context) -> tuple[list[Path], list[Path]]:
    """Return the files that a command line names: those that it may read, and its outputs."""
    inputs: list[Path] = []
    outputs: list[Path] = []
    for param in context.command.params:
        given = context.params.get(str(param.name))
        for value in given if isinstance(given, (tuple, list)) else (given,):
            if not isinstance(value, (str, Path)) or not str(value):
                continue
            if isinstance(param.type, (Output, OutputFolder)):
                outputs += [Path(value)] if isinstance(param.type, Output) else []
                continue
            inputs.append(Path(value))
            module, colon, _ = str(value).rpartition(":")  # module:factory
            if colon:
                inputs += [Path(module), Path(f"{module.replace('.', '/')}.py")]
    return inputs, outputs


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

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Quantity:
        """Return the quantity that ``value`` writes, or fail in one line."""
        from mlsys.amounts import amount

        try:
            return amount(str(value), self.unit)
        except ValueError as error:
            self.fail(f"not an amount with a unit, such as '100 {self.unit}': {error}", param, ctx)


def asked_device(name: str) -> Device:
    """Return the device of the catalogue that was asked for, or say which names are near."""
    from mlsys.api.arguments import device_of

    return device_of(name)


def complete_device(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of devices that begin so, for the shell to complete."""
    from mlsys.hardware import Hardware

    names = {name for group in (*Hardware.groups, Hardware.Generic) for name in dir(group)}
    return sorted(name for name in names if name.lower().startswith(incomplete.lower()))


def complete_devices(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the same for the last of several names with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_device(ctx, param, last)]


def complete_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Return the names of networks that begin so, and leave paths to the shell."""
    from click.shell_completion import CompletionItem

    from mlsys.workloads import zoo

    names = sorted(zoo.networks())
    items = [CompletionItem(name) for name in names if name.startswith(incomplete.lower())]
    return items or [CompletionItem(incomplete, type="file")]
