"""Every rule of the page linter finds what it should, and nothing else; `make lint` asks the pages themselves."""

from pathlib import Path

import pytest

from pagelint import RULES, lint, main
from pageparse import parse
from pages import ROOT

PAGE = ROOT / "book" / "imagined.md"

CELL = "```{code-cell} ipython3\n%s\n```\n"
FIGURE = CELL % "---\nmystnb:\n  figure:\n    name: fig-a\n    caption: %s\n  image:\n    alt: %s\n---\nplt.show()"
CLAIMS = CELL % "claim(ridge=a / b, roof=c, unit='FLOP/byte')\nclaims_table()"


def found(text: str) -> list[str]:
    """Rules that object to a page, with the lines they name."""
    return [f"{line.split(':')[1]} {line.split(': ', 1)[1].split()[0]}" for line in lint(parse(PAGE, text))]


BAD = [
    ("P012", "An array of one hundred and twenty-eight rows.\n"),
    ("P012", "It takes forty-five steps.\n"),
    ("P012", "Thirteen of them are idle.\n"),
    ("P012", "```{code-cell} ipython3\nTable('The sixteen layers', heads, rows)\n```\n"),
    ("P013", "It is a dozen times as fast.\n"),
    ("P013", "It takes two thirds of the time.\n"),
    ("P013", "Less than a hundredth is left.\n"),
    ("P001", "The chip does 312 TFLOP/s.\n"),
    ("P001", "It reads 2,039 GB/s.\n"),
    ("P001", "That is 10× as fast.\n"),
    ("P001", "That is 10x as fast.\n"),
    ("P001", "A 3-fold gain.\n"),
    ("P001", "It is 95% parallel.\n"),
    ("P001", "It draws 400 W.\n"),
    ("P001", "It draws 400 watts and costs USD 5.\n"),
    ("P001", "Reading a byte costs 20 pJ.\n"),
    ("P001", "It takes 1.5 ms.\n"),
    ("P001", "It takes 3 years.\n"),
    ("P001", "A model of 7B parameters.\n"),
    ("P001", "A bit costs 4 pJ/bit, a lane carries 32 GT/s, a die gives off 50 W/cm² and wastes 8 per cent.\n"),
    ("P001", "It moves $12.5$ of them.\n"),
    ("P001", "It takes $3\\,\\text{ms}$.\n"),
    ("P001", FIGURE % ("A caption.", "A line that ends at 5 ms.")),
    ("P001", "```{figure} a.svg\n:alt: A line at 5 ms.\n:width: 80%\n:name: fig-a\nA caption.\n```\n"),
    ("P001", CELL % "Table('Prices at 7 nm', heads, rows)"),
    ("P009", FIGURE % ("A caption.", "It has {glue:}`kernels` kernels.")),
    ("P014", "It has 54 layers.\n"),
    ("P014", "A matrix of 4,096 rows.\n"),
    ("P014", FIGURE % ("Of 54 layers.", "A line.")),
    ("P014", FIGURE % ("A caption.", "A 3 by 3 window.")),
    ("P014", FIGURE % ("A caption.", "A batch-32 layer.")),
    ("P014", CELL % "print('of 54 layers')"),
    ("P001", "It costs $5 an hour.\n"),
    ("P001", "# The 80 GB card\n"),
    ("P001", "- first 5 s\n"),
    ("P001", "| peak | 19.5 TFLOP/s |\n"),
    ("P001", "```{note}\nIt takes 3 ms.\n```\n"),
    ("P001", "````{note}\n```{tip}\nIt takes 3 ms.\n```\n````\n"),
    ("P001", "```{admonition} After 3 ms\nWords.\n```\n"),
    ("P001", FIGURE % ("Above 100 GB/s it flattens.", "A line.")),
    ("P002", FIGURE % ("A caption.", '""')),
    ("P002", CELL % "---\nmystnb:\n  figure:\n    name: fig-a\n    caption: A caption.\n---\nplt.show()"),
    ("P002", "```{figure} a.svg\n:name: fig-a\nA caption.\n```\n"),
    ("P002", "```{image} a.svg\n```\n"),
    ("P002", "![](a.svg)\n"),
    ("P003", CELL % "\n".join(f"a{i} = {i}" for i in range(15))),
    ("P005", CELL % "---\nmystnb:\n  image:\n    alt: A line.\n---\nplt.show()"),
    ("P005", "```{figure} a.svg\n:alt: A line.\n:name: fig-a\n```\n"),
    ("P005", "```{figure} a.svg\n:alt: A line.\n\nA caption.\n```\n"),
    ("P006", CELL % "claim(ridge=a / b)"),
    ("P007", "One sentence. Another one.\n"),
    ("P007", "Is it so? {numref}`fig-a` says yes.\n"),
    ("P007", 'He said "no." Then he left.\n'),
    ("P008", CELL % "ax.plot([1, 2])"),
    ("P008", CELL % "axes[0].bar([1], [2])"),
    ("P008", CELL % "%matplotlib inline\nplt.title('a')"),
    ("P009", "The ridge is {glue:text}`ridge`.\n"),
    ("P009", CLAIMS + "\nThe ridge is {glue:}`rigde`.\n"),
    ("P009", CLAIMS + "\nThe unit is {glue:}`unit`.\n"),
    ("P009", CLAIMS + "\nAs on {glue:text}`nowhere.md::ridge`.\n"),
    ("P011", CELL % f"a = '{'x' * 87}'"),
    ("P010", "$$\na = b\n$$ (eq-roofline)\n"),
    ("P010", "(amdahl)=\n# Title\n"),
    ("P010", "(here)=\n# Title\n\n(here)=\n## Section\n"),
    ("P010", "(fig-a)=\n# Title\n" + FIGURE % ("A caption.", "A line.")),
    ("P010", "```{exercise}\n:label: ex-energy-watts\nWhy?\n```\n"),
    ("P022", CELL % "claim(ridge=a / b)\nfor x in xs:\n    check(x > 0, 'so')"),
    ("P022", CELL % "fig, ax, COLORS, plt = viz.setup_plot()\nplt.show()"),
    ("P021", "The tile stays.\n"),
    ("P021", "Two tiles, and {term}`tiles <tile>` again.\n"),
    ("P021", "A weight-stationary array.\n"),
    ("P021", "An array of PEs.\n"),
    ("P021", "```{note}\nEach lane loads.\n```\n"),
]

GOOD = [
    ("P022", CELL % ":tags: [hide-cell]\n\nclaim(ridge=a / b)"),
    ("P022", CELL % "---\ntags: [hide-input]\n---\nplt.show()"),
    ("P022", CELL % "ridge = chip.ridge_point('fp16')\nclaim(ridge=ridge)"),
    ("P022", "## Your turn\n\n" + CELL % "claim(ridge=a / b)"),
    (
        "P021",
        "# The tile\n\nA {term}`tile`, two tiles, {term}`weight stationary`, `warp`, $lane$.\n",
    ),
    ("P021", "A [systolic array](systolic.md) is linked; a systolic array again.\n"),
    ("P021", "The results stream past, in fact; one operand-free word and tilesets are no terms.\n"),
    ("P021", FIGURE % ("A tile.", "A warp.")),
    ("P021", "| tile | warp |\n"),
    ("P012", "Twelve rows, `sixteen` of code, and 128 in digits.\n"),
    ("P012", CELL % "edge = given(edge=128)"),
    ("P013", "Less than a hundredth is left.\n\n" + CELL % "check(x < 0.01, 'less than a hundredth')"),
    ("P001", "The A100 came in 2020 with FP16 and PCIe 4; see chapter 3, step 2.\n"),
    ("P001", "Twice as fast, half the time.\n"),
    ("P001", "The ridge is {glue:text}`ridge:.1f` and $x = t$ and `5 GB/s`.\n"),
    ("P001", "$$\nT = 5 s\n$$\n"),
    ("P001", "\\begin{align}\nT = 5 s\n\\end{align}\n"),
    ("P001", CELL % "bandwidth = Q_(5, 'GB/s')  # 5 GB/s"),
    ("P001", "```python\nT = 5  # 5 s\n```\n"),
    ("P001", "```{figure} a.svg\n:alt: A line.\n:width: 80%\n:name: fig-a\nA caption.\n```\n"),
    ("P001", "A batch of $B = 2N/10$ rows and $x^{12}$.\n"),
    ("P001", FIGURE % ("A caption.", "A line that ends at {glue:}`end`, in FP16.")),
    ("P014", "# Lab 12\n\n10. the tenth\n\nA 2:4 sparse A100 of PCIe 4 and ResNet-50; see {numref}`fig-12`.\n"),
    ("P014", FIGURE % ("A caption.", "ResNet-50 and GPT-2 on an A100, {glue:}`kernels` kernels.")),
    ("P014", CELL % "Table(f'Of {layers} layers', heads, rows)\ncheck(x > 40, 'more than 40')"),
    ("P001", "See [the data sheet](https://example.org/80-GB/5%20s) and <https://example.org/5s>.\n"),
    ("P001", "---\ntitle: 5 s\n---\nWords.\n"),
    ("P001", "% 5 s\n"),
    ("P002", FIGURE % ("A caption.", "A line that rises.")),
    ("P002", "![A line that rises](a.svg)\n"),
    ("P003", CELL % "\n".join(f"a{i} = {i}" for i in range(14))),
    ("P003", CELL % "\n".join(f"import a{i}" for i in range(20))),
    ("P005", FIGURE % ("A caption.", "A line that rises.")),
    ("P005", "```{figure} a.svg\n:alt: A line.\n:name: fig-a\nA caption.\n```\n"),
    ("P006", CLAIMS),
    ("P007", "One sentence, e.g. This one, by A. Turing et al. Nobody else.\n"),
    ("P007", "One sentence.\nAnother one.\n"),
    ("P007", FIGURE % ("A line. It rises.", "A line. It rises.")),
    ("P007", "```{code} python\na. B\n```\n"),
    ("P008", CELL % "fig, ax, COLORS, plt = viz.setup_plot()\nviz.roofs(ax, [a100])\nplt.show()"),
    ("P009", CLAIMS + "\nFrom {glue:}`ridge` to {glue:text}`roof:.2f`; a literal: ``{glue:}`name` ``.\n"),
    ("P009", CELL % "claim(**{'a_b': 1})\nclaims_table()" + "\n{glue:}`a_b`\n"),
    ("P009", CELL % "glue('old', 3)" + "\n{glue:}`old`\n"),
    ("P011", CELL % f"a = '{'x' * 86}'"),
    ("P011", f"```python\na = '{'x' * 99}'\n```\n"),
    ("P010", "(imagined)=\n# Title\n$$\na = b\n$$ (eq-imagined)\n" + FIGURE % ("A caption.", "A line.")),
]


@pytest.mark.parametrize(("rule", "text"), BAD)
def test_finds(rule: str, text: str) -> None:
    assert any(finding.endswith(rule) for finding in found(text)), f"{rule} overlooks {text!r}"


@pytest.mark.parametrize(("rule", "text"), GOOD)
def test_leaves_alone(rule: str, text: str) -> None:
    assert not any(finding.endswith(rule) for finding in found(text)), lint(parse(PAGE, text))


def test_every_rule_has_examples_of_both_kinds() -> None:
    on_files = {"P004"}
    assert {rule for rule, _ in BAD} == {rule for rule, _ in GOOD} == set(RULES) - on_files


def test_names_the_line() -> None:
    assert found("# Title\n\nWords.\nIt takes 3 ms.\n") == ["4 P001"]
    assert found(CELL % "---\ntags: [a]\n---\nimport os\nax.plot([1])") == ["6 P008"]


def test_glue_on_another_page(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text(CLAIMS)
    text = "{glue:text}`there.md::ridge`\n{glue:text}`there.md::rigde`\n"
    (finding,) = lint(parse(tmp_path / "here.md", text))
    assert "'rigde' on there.md" in finding


def test_notebook_out_of_step(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("---\njupytext:\n  text_representation: {extension: .md, format_name: myst}\n---\n# Title\n")
    (finding,) = lint(parse(page))
    assert "P004" in finding
    assert "page.ipynb is missing" in finding
    page.write_text("# No notebook\n")
    assert not lint(parse(page))


@pytest.mark.parametrize("code", sorted(RULES))
def test_explains_itself(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--explain", code]) == 0
    assert capsys.readouterr().out.startswith(f"{code}: ")
