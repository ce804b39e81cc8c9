"""The question bank is read by readers of its formats, written here from their documents, which mark as the labs do."""

import io
import re
import zipfile
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from mlsys.cli import main
from mlsys.grading import bank, moodle_xml, plain_text, qti_zip
from mlsys.grading.bank import Variant
from mlsys.labs import questions

VARIANTS = bank(["01-amdahl", "04-systolic"], 3)
Marks = dict[str, Callable[[object], float]]


def moodle_reader(text: str) -> Marks:
    """Return how Moodle marks each question: by fraction, of a number within an absolute tolerance."""
    found: Marks = {}
    for node in ET.fromstring(text.encode()):
        if node.get("type") == "category":
            assert node.findtext("category/text", "").startswith("$course$/top/")
            continue
        answers = [(float(answer.get("fraction", "")), answer) for answer in node.findall("answer")]
        assert max(fraction for fraction, _ in answers) == 100
        if node.get("type") == "numerical":
            ranges = [(f, float(a.findtext("text", "")), float(a.findtext("tolerance", ""))) for f, a in answers]

            def numerical(given: object, ranges: list[tuple[float, float, float]] = ranges) -> float:
                return next((f / 100 for f, value, margin in ranges if abs(float(str(given)) - value) <= margin), 0.0)

            found[node.findtext("name/text", "")] = numerical
        else:
            assert node.get("type") == "multichoice" and node.findtext("single") == "true"
            texts = {unmarked(answer.findtext("text", "")): fraction / 100 for fraction, answer in answers}
            found[node.findtext("name/text", "")] = lambda given, texts=texts: texts[str(given)]  # type: ignore[misc]
        assert node.findtext("questiontext/text") and node.find("questiontext").get("format") == "html"  # type: ignore[union-attr]
    return found


def qti_reader(content: bytes) -> Marks:
    """Return how a QTI 1.2 player marks each item: conditions in order, until one that does not continue holds."""
    found: Marks = {}
    name = "{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None and not any(".." in entry for entry in archive.namelist())
        manifest = ET.fromstring(archive.read("imsmanifest.xml"))
        resources = [node for node in manifest.iter() if node.tag.endswith("}resource")]
        files = {node.get("href") for node in manifest.iter() if node.tag.endswith("}file")}
        assert files == set(archive.namelist()) - {"imsmanifest.xml"}
        listed = {node.get("identifier") for node in resources}
        assert {node.get("identifierref") for node in manifest.iter() if node.tag.endswith("}dependency")} <= listed
        for path in (node[0].get("href", "") for node in resources if node.get("type") == "imsqti_xmlv1p2"):
            root = ET.fromstring(archive.read(path))
            for item in root.iter(f"{name}item"):
                labels = {
                    unmarked(label.findtext(f"{name}material/{name}mattext", "")): label.get("ident", "")
                    for label in item.iter(f"{name}response_label")
                }
                shown = {node.get("linkrefid") for node in item.iter(f"{name}displayfeedback")}
                assert shown == {node.get("ident") for node in item.iter(f"{name}itemfeedback")}
                found[item.get("title", "")] = player(item, name, labels)
    return found


def player(item: ET.Element, name: str, labels: dict[str, str]) -> Callable[[object], float]:
    numeric = item.find(f"{name}presentation/{name}response_str") is not None

    def holds(node: ET.Element, given: str) -> bool:
        kind = node.tag.removeprefix(name)
        if kind in ("conditionvar", "and"):
            return all(holds(child, given) for child in node)
        if kind == "or":
            return any(holds(child, given) for child in node)
        if kind == "other":
            return True
        if kind == "varequal":
            return float(given) == float(node.text or "") if numeric else given == node.text
        return float(given) >= float(node.text or "") if kind == "vargte" else float(given) <= float(node.text or "")

    def mark(given: object) -> float:
        message, score = str(given) if numeric else labels[str(given)], 0.0
        for condition in item.iter(f"{name}respcondition"):
            if holds(condition[0], message):
                score = max([score, *(float(each.text or "") for each in condition.iter(f"{name}setvar"))])
                if condition.get("continue") == "No":
                    break
        return score / 100

    return mark


def unmarked(text: str) -> str:
    """Return the text of a paragraph of HTML."""
    return "".join(ET.fromstring(text).itertext()) if text else ""


def tried(variant: Variant) -> list[object]:
    question = variant.question
    if question.kind == "choice":
        return list(question.listed())
    right = float(question.expected)
    edge = getattr(question, "tolerance")  # noqa: B009 (of numbers alone)
    slips = [value for value, _ in getattr(question, "slips")]  # noqa: B009
    return [right, right * (1 + 0.99 * edge), right * (1 - 0.99 * edge), right * (1 + 1.5 * edge), right + 1e3, *slips]


@pytest.mark.parametrize("reader", ["moodle", "qti"])
def test_a_reader_of_the_format_marks_every_answer_as_the_lab_does(reader: str) -> None:
    marks = moodle_reader(moodle_xml(VARIANTS)) if reader == "moodle" else qti_reader(qti_zip(VARIANTS))
    assert list(marks) == [each.name for each in VARIANTS]
    for each in VARIANTS:
        for answer in tried(each):
            assert marks[each.name](answer) == each.question.judge(answer)[0], (each.name, answer)


def test_every_variant_is_the_question_that_a_student_would_get_and_none_comes_twice() -> None:
    for lab in ("01-amdahl", "04-systolic"):
        drawn = {question.text for number in (1, 2, 3) for question in questions(lab, f"variant {number}")}
        texts = [(each.question.text, each.question.expected) for each in VARIANTS if each.lab == lab]
        assert {text for text, _ in texts} == drawn and len(set(texts)) == len(texts)


def test_plain_text_keeps_answers_apart_from_questions() -> None:
    whole, without_answers = plain_text(VARIANTS), plain_text(VARIANTS, answers=False)
    assert (
        whole.startswith(without_answers.rstrip("\n"))
        and "\nAnswers\n" in whole
        and "\nAnswers\n" not in without_answers
    )
    assert len(re.findall(r"^\d+\. \d\d-", without_answers, re.MULTILINE)) == len(VARIANTS)


def test_the_command_writes_each_format_and_refuses_what_does_not_fit(tmp_path) -> None:  # type: ignore[no-untyped-def]
    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["questions", "01-amdahl", "--variants", "2", *words])
        return done.exit_code, done.output

    for form, suffix in (("moodle", "xml"), ("qti", "zip"), ("text", "txt")):
        path = tmp_path / f"bank.{suffix}"
        assert run("--format", form, "--out", str(path))[0] == 0 and path.stat().st_size > 500
    assert qti_zip(VARIANTS) == qti_zip(VARIANTS), "the same bank is the same bytes"
    for words in (["--format", "qti"], ["--format", "moodle", "--out", str(tmp_path / "bank.zip")],
                  ["--format", "moodle", "--hide-answers"], ["02-rooflin"]):  # fmt: skip
        code, message = run(*words)
        assert code in (1, 2) and len(message.strip().splitlines()) == 1, message
