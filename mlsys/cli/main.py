"""The ``mlsys`` command, one subcommand a question."""

from __future__ import annotations

import click

from mlsys.cli.claims import claims
from mlsys.cli.devices import check, device, devices

__all__ = ["main"]


@click.group()
@click.version_option(package_name="mlsys")
def main() -> None:
    """Hardware acceleration for machine learning, in numbers with a pedigree."""


for command in (device, devices, check, claims):
    main.add_command(command)
