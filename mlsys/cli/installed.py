"""Commands from other distributions: the installed ones, and what to install for the others."""

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

import click

from mlsys.cli.common import Commands

COMMANDS = "mlsys.commands"
"""Entry-point group of commands of ``mlsys``."""

# Commands of our other distributions, with their purpose.
_ELSEWHERE = {"validate": ("mlsys-evidence", "Report the errors of the models against published measurements.")}


@lru_cache(maxsize=1)
def _found() -> dict[str, EntryPoint]:
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
    """Commands of this package, and those that installed distributions add."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *_found(), *_ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name; commands of other distributions are loaded on first use."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        if cmd_name in _found():
            command = _found()[cmd_name].load()
            assert isinstance(command, click.Command)
            return command
        return _missing(cmd_name) if cmd_name in _ELSEWHERE else None
