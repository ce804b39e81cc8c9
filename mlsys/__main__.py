"""``python -m mlsys`` is the ``mlsys`` command."""

from mlsys.cli import run

if __name__ == "__main__":
    run()
