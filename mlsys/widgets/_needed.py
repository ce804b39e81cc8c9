"""Check that the packages the labs need are installed, before anything else is imported."""

from importlib.util import find_spec

for _part in ("ipywidgets", "matplotlib"):
    if find_spec(_part) is None:
        raise ModuleNotFoundError(f"the labs need {_part}. Type: pip install 'mlsys[labs]'", name=_part)
