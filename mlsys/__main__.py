"""``python -m mlsys`` is the ``mlsys`` command."""

from mlsys.cli import main

if __name__ == "__main__":
    main()
