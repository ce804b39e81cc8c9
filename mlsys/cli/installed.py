"""Commands that other distributions add: those that are installed, and what to install for the others."""

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

import click

from mlsys.cli.common import Commands

COMMANDS = "mlsys.commands"
"""Entry points of this group are commands of ``mlsys``."""

# Commands that a distribution of ours has, and what each is for.
_ELSEWHERE = {"validate": ("mlsys-evidence", "Say how wrong the models are, against published measurements.")}


@lru_cache(maxsize=1)
def _found() -> dict[str, EntryPoint]:
    return {each.name: each for each in entry_points(group=COMMANDS)}


def _missing(name: str) -> click.Command:
    distribution, purpose = _ELSEWHERE[name]

    def tell(**_: object) -> None:
        raise click.ClickException(
            f"{name}: the measurements are a distribution of their own, which is not installed. "
            f"Type: pip install {distribution}"
        )

    return click.Command(
        name,
        callback=tell,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        help=f"{purpose} Needs {distribution}.",
        context_settings={"ignore_unknown_options": True},
    )


class InstalledCommands(Commands):
    """The commands of this package, and those that installed distributions add to them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *_found(), *_ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name; one of another distribution is loaded when it is asked for."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        if cmd_name in _found():
            command = _found()[cmd_name].load()
            assert isinstance(command, click.Command)
            return command
        return _missing(cmd_name) if cmd_name in _ELSEWHERE else None
