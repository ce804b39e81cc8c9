"""Commands of this package, imported when invoked, and commands from other distributions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from mlsys.cli.common import Commands

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "mlsys.commands"
"""Entry-point group of commands of ``mlsys``."""

# Commands of our other distributions, with their purpose.
_ELSEWHERE = {"validate": ("mlsys-evidence", "Report the errors of the models against published measurements.")}


@lru_cache(maxsize=1)
def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # reads e-mail headers: slow to import, and needed by few commands

    return {each.name: each for each in entry_points(group=COMMANDS)}


def _missing(name: str) -> click.Command:
    distribution, purpose = _ELSEWHERE[name]

    def tell(**_: object) -> None:
        raise click.ClickException(
            f"{name}: needs a separate distribution, which is not installed. Type: pip install {distribution}"
        )

    return click.Command(
        name,
        callback=tell,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        help=f"{purpose} Needs {distribution}.",
        context_settings={"ignore_unknown_options": True},
    )


class InstalledCommands(Commands):
    """Commands of this package, and those that installed distributions add.

    Parameters
    ----------
    modules
        Module of each command of this package, within ``mlsys.cli``; the function has the command's name.
    """

    def __init__(self, *args: Any, modules: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*self._modules, *_entry_points(), *_ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name, imported on first use."""
        if cmd_name in self._modules:
            command = getattr(import_module(f"mlsys.cli.{self._modules[cmd_name]}"), cmd_name.replace("-", "_"))
            assert isinstance(command, click.Command)
            return command
        if cmd_name in _entry_points():
            command = _entry_points()[cmd_name].load()
            assert isinstance(command, click.Command)
            return command
        return _missing(cmd_name) if cmd_name in _ELSEWHERE else None
