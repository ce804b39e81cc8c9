"""``python -m mlsys`` is the ``mlsys`` command."""

from mlsys.cli import main

main()
