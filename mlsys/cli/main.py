"""The ``mlsys`` command, one subcommand a question."""

from __future__ import annotations

import click

from mlsys.cli.analyze import analyze, compare
from mlsys.cli.claims import claims
from mlsys.cli.devices import check, device, devices
from mlsys.cli.flops import flops
from mlsys.cli.mapper import mapper
from mlsys.cli.systolic import systolic
from mlsys.cli.validate import validate

__all__ = ["main"]


@click.group()
@click.version_option(package_name="mlsys")
def main() -> None:
    """Hardware acceleration for machine learning, in numbers with a pedigree."""


for command in (device, devices, check, claims, validate, flops, analyze, compare, mapper, systolic):
    main.add_command(command)
