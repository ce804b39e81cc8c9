"""Print how much of what the book was written against it covers: ``python tools/coverage.py [--json]``.

What is printed, and what it fails on, is in :mod:`accounted`. This file bears the name of a package that nbval and
numba import, and pytest has ``tools`` first on its path: whoever imports this file gets that package.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

if __name__ == "__main__":
    from accounted import main

    sys.exit(main())

_HERE = Path(__file__).resolve().parent
_SPEC = PathFinder.find_spec("coverage", [place for place in sys.path if Path(place or ".").resolve() != _HERE])
if _SPEC is None or _SPEC.loader is None:
    raise ModuleNotFoundError("No module named 'coverage' beside tools/coverage.py", name="coverage")
sys.modules[__name__] = module_from_spec(_SPEC)
_SPEC.loader.exec_module(sys.modules[__name__])
