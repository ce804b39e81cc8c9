"""The ``mlsys`` command."""

from mlsys.cli.main import main, run

__all__ = ["main", "run"]
