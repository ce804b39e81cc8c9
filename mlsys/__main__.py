"""``python -m mlsys`` is the ``mlsys`` command."""

from mlsys.cli import run_and_end

if __name__ == "__main__":
    run_and_end()
