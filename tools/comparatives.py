"""Report which comparisons of the prose are held by a check.

python tools/comparatives.py                    share held by page, and the sentences that nothing holds
python tools/comparatives.py book/roofline.md   only this page
python tools/comparatives.py -v                 every sentence that compares, with what holds it

A sentence compares if it has a word such as faster, fewer, most, half, doubles or outweighs (``_WORD``; not the idioms
of ``_IDIOM``). Headings, tables, the glossary, exercises (not their solutions) and questions state nothing and are left
out. A comparison is held by the first of these:

citation  the sentence cites a source;
number    a glued number stands beside each of its words and says how much: "at most §", "§ fewer";
value     a check() of the section reads a value that a number of the sentence was claimed from;
words     the message of a check() of the section has the comparing word and another word of the sentence;
check, equation, test   ``tests/comparatives.yaml`` ties its words to the message of a check(), to a displayed equation
          from which it follows, or to a test. There ``defines`` marks sentences that say what a word or a method is,
          advise, or describe a figure; they are counted apart.

What it proves: the quantities compared are computed, and something fails if what was tied changes. What it does not
prove: that the check says the same as the sentence; for that somebody has to read both. A comparing word of a tie by
words that is turned round loses its tie, one held by a number or a value does not. "Above" and "below" are not looked
for, since they are mostly places.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from pagelint import bare_count, number_word, typed_number
from pageparse import Page, parse
from pages import ROOT, page_files

TIES = ROOT / "tests" / "comparatives.yaml"
LEAST = 0.95
_STEMS = (
    "fast|slow|cheap|larg|small|high|low|long|short|great|wid|narrow|deep|shallow|strong|weak|dear|cool|near|clos|"
    "light|dens|tight|coars|fin|few|soon|quick"
)
_WORD = re.compile(
    r"\b(?:more|less|most|least|better|best|worse|worst|bigger|biggest|hotter|hottest|steeper|steepest|heavier|"
    rf"heaviest|(?:{_STEMS})(?:er|est)|\w+er(?= than)|half|twice|outweighs?|exceed(?:s|ed)?|dominates?|"
    r"(?:doubl|halv|tripl)(?:e|es|ed|ing)|grows?|grew|shrinks?|shrank|rises?|rose|falls?|fell|drops|dropped|"
    r"increases?|decreases?|(?:a|one|two) (?:third|quarter|fifth|tenth|hundredth)s?)\b",
    re.IGNORECASE,
)
_IDIOM = re.compile(
    r"half(?:[- ]precision|-time|way)|in half\b|no longer|no less|no more than|once more|more on |more or less|"
    r"at (?:least|most|best) one\b|rather than|other than|(?:either|nearest) even|further|lower (?:bound|triang)\w*|"
    r"nearest (?:neighbour|representable|value|even)|higher[- ]order|shorter form|best[- ]effort|long short|"
    r"the (?:rise|fall) of|best practice|falls? (?:in|into|under|short|back|out|apart|on)\b|least[- ]squares|"
    r"(?:double|triple)[- ](?:precision|buffer\w*)|lowering|drops out|fewer values to choose|more than one good answer",
    re.IGNORECASE,
)
_GLUE = re.compile(r"\{glue:\w*\}`(?:(?P<page>[^`:]+)::)?(?P<key>[^`:]+)(?::[^`]*)?`")
_ASIDE = re.compile(
    r"\{(?:doc|numref|ref|eq|index|py:\w+)\}`[^`]*`|(?<!`)`[^`{}]+`(?!`)|\$[^$]+\$|[“\"][^”\"]*[”\"]|\]\([^)]*\)"
)
_ROLE = re.compile(r"\{[\w:]+\}`([^`<]*?)(?:\s*<[^`]*>)?`")
_ASKS = re.compile(r"[-*] (?:for )?(?:what|which|where|how|whether)\b|You will predict|.*\?\W*$", re.IGNORECASE)
_AMOUNT_AFTER = re.compile(
    r"(?: than)?(?: (?:only|about|some|nearly|almost|just|by|a|an|factor|of|another))* ?\W{0,2}§"
)
_AMOUNT_BEFORE = re.compile(r"§\W{0,2}(?: (?!and|or|to|in|on|for|with|is|are)[\w-]+){0,2} (?:the )?$")
_EXTREME = re.compile(r"\w+est|best|worst|half|twice|(?:doubl|halv|tripl)\w+|(?:a|one|two) \w+", re.IGNORECASE)


@dataclass(frozen=True)
class Check:
    """A check() of a page: its line, the values that it reads, and its message."""

    line: int
    reads: frozenset[str]
    message: str


@dataclass(frozen=True)
class Comparison:
    """A sentence that compares, and the words that do; ``held`` says by what, or is empty."""

    line: int
    words: tuple[str, ...]
    sentence: str
    held: str


def values(node: ast.AST) -> frozenset[str]:
    """Return the values that an expression reads, each with its attributes and items, such as ``a100.memory_bw``."""
    if isinstance(node, ast.Call):
        inside = [*node.args, *(word.value for word in node.keywords)]
        own = {ast.unparse(node)} | (values(node.func) if isinstance(node.func, ast.Attribute) else set())
        return frozenset(own.union(*map(values, inside)))
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return frozenset({ast.unparse(node)})
    return frozenset().union(*map(values, ast.iter_child_nodes(node)))


Stated = tuple[dict[str, frozenset[str]], list[Check]]


def stated(page: Page) -> Stated:
    """Return the values behind each claim of a page, and its checks."""
    claims: dict[str, frozenset[str]] = {}
    checks = []
    for cell in page.cells:
        for node in ast.walk(ast.parse(re.sub(r"(?m)^(\s*)[%!].*", r"\1pass", cell.source))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in ("claim", "given"):
                claims.update({word.arg: values(word.value) | {word.arg} for word in node.keywords if word.arg})
            elif node.func.id == "check":
                parts = (part.value for part in ast.walk(node.args[1]) if isinstance(part, ast.Constant))
                checks.append(Check(cell.number, values(node.args[0]), "".join(map(str, parts))))
    return claims, checks


@cache
def _page(path: Path) -> Page:
    return parse(path)


@cache
def _stated_on(path: Path) -> Stated:
    return stated(_page(path))


@cache
def ties() -> dict[str, dict[str, str]]:
    """Return what ``tests/comparatives.yaml`` ties: by page, the holder of each piece of a sentence."""
    found: dict[str, dict[str, str]] = yaml.safe_load(TIES.read_text(encoding="utf-8"))
    return found


@cache
def _tests() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py")))


def holder_exists(page: Path, holder: str) -> bool:
    """Return whether the check, equation or test that a tie names exists."""
    kind, _, name = holder.partition(": ")
    if kind == "check":
        other, _, message = name.rpartition(".md: ")
        where = ROOT / "book" / f"{other}.md" if other else page
        return any(message in check.message for check in _stated_on(where)[1])
    if kind == "equation":
        return f"({name})" in page.read_text(encoding="utf-8")
    return holder == "defines" or (kind == "test" and f"def {name}(" in _tests())


def _section(lines: Sequence[str], number: int) -> tuple[int, int]:
    """Return the range of lines whose checks count: the section or exercise; the whole page for opening and summary."""
    starts = [at for at, text in enumerate(lines, 1) if re.match(r"#{2,3} |`{3,}\{exercise\}", text)]
    after = bisect_right(starts, number)
    if not after or lines[starts[after - 1] - 1].startswith("## Summary"):
        return 0, len(lines) + 1
    return starts[after - 1], starts[after] if after < len(starts) else len(lines) + 1


def _holds(
    page: Page, here: Stated, sentence: str, said: str, words: list[re.Match[str]], near: tuple[int, int]
) -> str:
    """Return what holds a sentence of a page, or nothing."""
    for piece, holder in ties().get(page.path.name, {}).items():
        if piece in sentence and holder_exists(page.path, holder):
            return holder
    if "{cite" in sentence:
        return "citation"
    if all(_amount(said, word) for word in words):
        return "number"
    claims, checks = here
    scope = [check for check in checks if near[0] <= check.line < near[1]]
    read: set[str] = set()
    for glue in _GLUE.finditer(sentence):
        there = _stated_on(page.path.parent / glue["page"]) if glue["page"] else (claims, [])
        read |= there[0].get(glue["key"], frozenset())
        scope += there[1]
    by_value = next((check for check in scope if read & check.reads), None)
    if by_value:
        return f"value: {by_value.message}"
    for word in words:
        others = _stems(said) - _stems(word[0])
        for check in scope:
            if re.search(rf"\b{word[0][:4]}", check.message, re.IGNORECASE) and others & _stems(check.message):
                return f"words: {check.message}"
    return ""


def _amount(said: str, word: re.Match[str]) -> bool:
    """Return whether a glued number beside the word says how much."""
    beside = _AMOUNT_AFTER.match(said, word.end()) or _AMOUNT_BEFORE.search(said, 0, word.start())
    return bool(beside) and (not _EXTREME.fullmatch(word[0]) or said[: word.start()].lower().endswith("at "))


def _stems(text: str) -> set[str]:
    """Return the first five letters of each word of four letters or more."""
    return {word[:5] for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 3}


def comparisons(page: Page) -> Iterator[Comparison]:
    """Yield each sentence of the prose and the captions that compares."""
    lines, here = page.text.splitlines(), stated(page)
    asking = (each for each in page.directives if each.name in ("exercise", "list-table") or "Predict" in each.argument)
    skipped = {line.number for directive in asking for line in directive.body}
    for line in [*page.prose, *page.captions]:
        if line.number in skipped or line.text.lstrip().startswith(("#", "|", "★")) or page.path.name == "glossary.md":
            continue
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z{*])", line.text):
            said = _ROLE.sub(r"\1", _ASIDE.sub("", _GLUE.sub("§", sentence)))
            found = list(_WORD.finditer(_IDIOM.sub(lambda idiom: "~" * len(idiom[0]), said)))
            if found and not _ASKS.match(sentence.lstrip()):
                held = _holds(page, here, sentence, said, found, _section(lines, line.number))
                yield Comparison(line.number, tuple(word[0] for word in found), sentence, held)


def numbers(page: Page) -> tuple[int, int]:
    """Return how many numbers of the prose and captions are glued, and how many are typed."""
    glued = sum(len(_GLUE.findall(line.text)) for line in [*page.prose, *page.captions])
    return glued, sum(1 for rule in (typed_number, bare_count, number_word) for _ in rule(page))


def share(found: Sequence[Comparison]) -> tuple[int, int]:
    """Return how many sentences are held, and how many compare."""
    counted = [each for each in found if each.held != "defines"]
    return sum(bool(each.held) for each in counted), len(counted)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the share held by page; return 1 if it is below ``LEAST``, or a tie is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-v", "--verbose", action="store_true", help="print the sentences that are held as well")
    parser.add_argument("pages", nargs="*", type=Path, help="pages (all, when none is named)")
    options = parser.parse_args(arguments)
    paths = [each.resolve() for each in options.pages] or page_files()
    found = {path: list(comparisons(_page(path))) for path in paths}
    for path, sentences in found.items():
        if sentences:
            print(f"{path.name}: {share(sentences)[0]} of {share(sentences)[1]}")
        for each in sentences if options.verbose else (each for each in sentences if not each.held):
            print(f"  {each.line}: {', '.join(each.words)} [{each.held}] {each.sentence}")
    stale = [text for path, sentences in found.items() for text in broken_ties(path, sentences)]
    print("".join(f"{text}\n" for text in stale), end="")
    everything = [each for sentences in found.values() for each in sentences]
    glued, typed = map(sum, zip(*(numbers(_page(path)) for path in paths), strict=True))
    print(f"Numbers: {glued} of {glued + typed} are glued from claims, {glued / max(glued + typed, 1):.1%}")
    held, total = share(everything)
    kinds = Counter(each.held.partition(":")[0] for each in everything)
    print(f"Comparisons: {held} of {total} held, {held / max(total, 1):.1%}; {dict(kinds.most_common())}")
    return int(held < LEAST * total or bool(stale))


def broken_ties(path: Path, found: Sequence[Comparison]) -> list[str]:
    """Return the ties of a page whose sentence or holder is gone."""
    return [
        f"{path.name}: {piece!r} is in no sentence that compares, or nothing is {holder!r}"
        for piece, holder in ties().get(path.name, {}).items()
        if not holder_exists(path, holder) or not any(piece in each.sentence for each in found)
    ]


if __name__ == "__main__":
    sys.exit(main())
