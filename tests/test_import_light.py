"""What a reader imports first must not drag in what a reader may never need."""

import subprocess
import sys
from pathlib import Path

HEAVY = (
    "matplotlib",
    "ipywidgets",
    "IPython",
    "torch",
    "numba",
    "scipy.optimize",
    "jsonschema",
    "pytest",
    "hypothesis",
)
FIRST_LINES = [
    "import mlsys",
    "from mlsys import Hardware, Q_",
    "from mlsys import Hardware; Hardware.Cloud.A100.ridge_point('fp16'); list(Hardware)",
    "from mlsys import Q_; from mlsys.formulas import ridge_point; ridge_point(Q_(1, 'FLOP/s'), Q_(1, 'byte/s'))",
    "from mlsys import Hardware; from mlsys.models import roofline; from mlsys.workloads import gemm;"
    " roofline(Hardware.Cloud.A100, gemm(8, 8, 8)).explain()",
    "from mlsys.claims import claim, claims_table; claim(it=1); claims_table()._repr_mimebundle_()",
    "from mlsys.constants import *",
]


def loaded(line: str, packages: tuple[str, ...]) -> list[str]:
    """Return which of the packages a fresh interpreter holds after running ``line``."""
    code = f"{line}\nimport sys\nprint('loaded:', *[name for name in {packages!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.rpartition("loaded:")[2].split()


def test_first_lines_load_nothing_heavy() -> None:
    """They run one after another in one interpreter: what the first loads wrongly, all show."""
    assert loaded("\n".join(FIRST_LINES), HEAVY) == []


def test_labs_read_no_measurement_before_it_is_shown() -> None:
    assert loaded("import mlsys.widgets", ("jsonschema", "torch")) == []


def test_the_bare_import_does_not_even_load_pint_or_numpy() -> None:
    assert loaded("import mlsys", ("pint", "numpy", "yaml")) == []


def test_this_test_can_see_what_is_loaded() -> None:
    assert loaded("import numpy, yaml", ("numpy", "yaml", "torch")) == ["numpy", "yaml"]


def test_a_grammar_of_addresses_is_loaded_when_one_is_checked_and_not_before(tmp_path: Path) -> None:
    """``jsonschema`` would load rfc3987-syntax at once, which takes a second; here one of ours stands for it."""
    grammar = "def is_valid_syntax(rule, text):\n    return text == 'http://ä.de/'\n"
    (tmp_path / "rfc3987_syntax.py").write_text(grammar, encoding="utf-8")
    ours = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from mlsys.faults import json_schema"
    ours += "; draft = json_schema().Draft202012Validator"
    check = "it = draft({'format': 'iri'}, format_checker=draft.FORMAT_CHECKER)"
    check += "; assert it.is_valid('http://ä.de/') and not it.is_valid('no address')"
    both = ("jsonschema", "rfc3987_syntax")
    assert loaded(ours, both) == ["jsonschema"]
    assert loaded(f"{ours}; {check}", both) == [*both]
