"""The edition without solutions lists no claim that only a solution states, and no fact of such a claim alone."""

import pytest

from pageparse import parse
from pages import ROOT, notebook_files
from strip_solutions import without_solutions

PAGE = """
```{code-cell} ipython3
---
mystnb:
  image:
    alt: "Steps, {glue:}`answer` in all."
---
claim(shown=1, drawn=2, foreseen=3)
```

It is {glue:}`shown`.

```{exercise} How far?
:label: ex-far

You have {glue:}`given`.
```

```{solution-start} ex-far
:class: dropdown
```

```{code-cell} ipython3
%matplotlib inline
claim(given=fact, answer=4, unit="×")
claim(silent=5)
for name in ("a", "b"):
    claim(**{f"{name}_way": 6})
```

Not {glue:}`shown` but {glue:}`answer`, by {glue:}`a_way`.

```{solution-end}
```

```{exercise} How deep?
:label: ex-deep

Guess.
```

````{solution} ex-deep
As deep as {glue:}`foreseen`.
````
"""
FACTS = {"given": ["of an exercise"], "answer": ["of a solution", "of both"], "shown": ["of both"], "silent": ["drawn"]}
NAMES = ("shown", "drawn", "foreseen", "given", "answer", "silent", "a_way")


def printed(text: str) -> tuple[list[str], list[str]]:
    facts = ("of an exercise", "of a solution", "of both", "drawn", "of the page")
    record = {
        "page": "far",
        "claims": [{"name": name, "facts": FACTS.get(name, [])} for name in NAMES],
        "exhibits": [{"name": "picture far", "facts": ["drawn"]}],
        "facts": [{"name": name} for name in facts],
    }
    left = without_solutions(parse(ROOT / "book" / "imagined.md", text), text, record)
    return [entry["name"] for entry in left["claims"]], [entry["name"] for entry in left["facts"]]


def test_what_only_solutions_state_is_left_out() -> None:
    claims, facts = printed(PAGE)
    assert claims == ["shown", "drawn", "given"], "a number that an exercise names is listed, its answer is not"
    assert facts == ["of an exercise", "of both", "drawn", "of the page"]


def test_a_page_without_solutions_keeps_all() -> None:
    claims, facts = printed("It is {glue:}`shown`.\n")
    assert claims == list(NAMES) and len(facts) == 5


@pytest.mark.parametrize("path", [page for page in notebook_files() if page.stem == "amdahl"], ids=["amdahl"])
def test_a_real_page_hides_its_answers(path) -> None:  # type: ignore[no-untyped-def]
    text = path.read_text("utf-8")
    record = {"claims": [{"name": name, "facts": []} for name in ("moved", "corrected", "more_code")], "facts": []}
    left = without_solutions(parse(path, text), text, record)
    assert [claim["name"] for claim in left["claims"]] == ["moved"]
