"""The ``mlsys`` command."""

from mlsys.cli.main import main

__all__ = ["main"]
