"""The ``mlsys`` command."""

from mlsys.cli.main import main, run_and_end

__all__ = ["main", "run_and_end"]
