"""Parameter types of the command line: numbers, quantities with units, output files, devices and networks."""

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
"""Type of an argument that names an input file."""


class Input(click.Path):
    """A file to read, or ``stored:NAME`` for data shipped with the package; a missing file is wrong usage.

    Parameters
    ----------
    stored
        Whether ``stored:NAME`` is accepted.
    example
        Command that writes such a file, shown if the file is missing.
    """

    def __init__(self, *, stored: bool = False, example: str = "") -> None:
        super().__init__(path_type=Path)
        self._stored, self._example = stored, example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail with a one-line message."""
        if not (self._stored and str(value).startswith("stored:")):
            try:
                there = Path(value).exists()
            except (OSError, ValueError):  # not a valid file name
                there = False
            if not there:
                hint = f" Write one to start from: {self._example}" if self._example else ""
                self.fail(f"there is no file {printable(str(value)[:200])!r}.{hint}", param, ctx)
        return super().convert(value, param, ctx)


_DIGITS = re.compile(r"[+-]?[0-9]+")


class Finite(click.FloatRange):
    """A finite number within limits, in the package's number syntax: without ``nan``, ``1_0`` or non-ASCII digits."""

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail with a one-line message."""
        if isinstance(value, str):
            from mlsys.amounts import parsed_number

            try:
                value = parsed_number(value)
            except ValueError as error:
                self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)


class Whole(click.IntRange):
    """A whole number within limits, in plain digits: ``int`` would also accept ``1_0`` and non-ASCII digits."""

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or fail with a one-line message."""
        if isinstance(value, str) and not _DIGITS.fullmatch(value.strip()):
            self.fail(f"{value[:60]!r} is not a valid integer", param, ctx)
        return super().convert(value, param, ctx)


class Output(click.Path):
    """An output file; a path that cannot be written is refused before anything is computed.

    Parameters
    ----------
    folders
        Whether missing folders will be created.
    """

    def __init__(self, *, folders: bool = False) -> None:
        super().__init__(path_type=Path)
        self._folders = folders

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail with a one-line message."""
        from mlsys.files import check_place

        try:
            check_place(value, folders=self._folders)
        except UnwrittenError as error:
            self.fail(printable(str(error)), param, ctx)
        return super().convert(value, param, ctx)


class OutputFolder(click.Path):
    """An output folder; it is created if it does not exist."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail with a one-line message."""
        from mlsys.files import check_folder

        try:
            check_folder(value)
        except UnwrittenError as error:
            self.fail(printable(str(error)), param, ctx)
        return super().convert(value, param, ctx)


def named_files(context: click.Context) -> tuple[list[Path], list[Path]]:
    """Return the files that a command line names: possible inputs, and outputs."""
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
    """A quantity with its unit, such as ``"100 TFLOP/s"``.

    Parameters
    ----------
    unit
        Unit that it must convert to.
    """

    name = "quantity"

    def __init__(self, unit: str) -> None:
        self.unit = unit

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Quantity:
        """Return the quantity that ``value`` describes, or fail with a one-line message."""
        from mlsys.amounts import amount

        try:
            return amount(str(value), self.unit)
        except ValueError as error:
            self.fail(f"not a quantity with a unit, such as '100 {self.unit}': {error}", param, ctx)


def requested_device(name: str) -> Device:
    """Return a device of the catalogue by name; an unknown name is an error with suggestions."""
    from mlsys.api.arguments import device_of

    return device_of(name)


def complete_device(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of devices with this prefix, for shell completion."""
    from mlsys.hardware import Hardware

    names = {name for group in (*Hardware.groups, Hardware.Generic) for name in dir(group)}
    return sorted(name for name in names if name.lower().startswith(incomplete.lower()))


def complete_system(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of systems and devices with this prefix, for shell completion."""
    from mlsys.hardware import systems

    names = [name for name in systems.ids if name.lower().startswith(incomplete.lower())]
    return [*names, *complete_device(ctx, param, incomplete)]


def complete_devices(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return completions for the last of several names separated by commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_device(ctx, param, last)]


def complete_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Return the names of networks with this prefix; the shell completes paths."""
    from click.shell_completion import CompletionItem

    from mlsys.workloads import zoo

    names = sorted(zoo.networks())
    items = [CompletionItem(name) for name in names if name.startswith(incomplete.lower())]
    return items or [CompletionItem(incomplete, type="file")]
