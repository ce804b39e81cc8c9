"""A question bank from the labs: each question in variants with other numbers, for Moodle, Canvas and paper."""

import html
import io
import textwrap
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from xml.etree import ElementTree as ET

from mlsys.errors import ArgumentError, did_you_mean
from mlsys.labs import LABS, ChoiceQuestion, NumberQuestion, Question, questions
from mlsys.unit_checks import checked_count

__all__ = ["Variant", "bank", "moodle_xml", "plain_text", "qti_zip"]

_QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
_IMS = "http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1"
_MOST = 200
_EPOCH = (2026, 1, 1, 0, 0, 0)  # of the files in an archive, so that the same bank is the same bytes


@dataclass(frozen=True)
class Variant:
    """One question with one set of numbers.

    Attributes
    ----------
    lab
        Name of the lab.
    number
        Counted from 1 within its question.
    question
        With prompt, answer, tolerance, choices, hints and solution, all computed.
    """

    lab: str
    number: int
    question: Question

    @property
    def name(self) -> str:
        """Name of the variant, such as ``01-amdahl/profile/03``."""
        return f"{self.lab}/{self.question.id}/{self.number:02d}"

    @property
    def ident(self) -> str:
        """Identifier made of letters and digits, the same in every run."""
        return f"m{sha256(self.name.encode()).hexdigest()[:24]}"


def bank(labs: Iterable[str] = LABS, variants: int = 10) -> tuple[Variant, ...]:
    """Return the questions and claims of labs in variants.

    A variant is the question as one student would get it, so its answer is computed like theirs. A question whose
    numbers are not drawn has one variant, and one that draws from few numbers has fewer than requested.

    Parameters
    ----------
    labs
        Names of labs; by default all.
    variants
        Variants of each question at most.

    Raises
    ------
    ArgumentError
        If there is no such lab, or ``variants`` is not a whole number from 1 to 200.

    Examples
    --------
    >>> [each.name for each in bank(["01-amdahl"], 1)][:2]
    ['01-amdahl/profile/01', '01-amdahl/upgrade/01']
    """
    variants = checked_count("bank", "variants", variants)
    if variants > _MOST:
        raise ArgumentError(f"bank(): `variants` must be at most {_MOST}, got {variants}. Write e.g. variants=20")
    made: list[Variant] = []
    for lab in labs:
        if lab not in LABS:
            raise ArgumentError(f"no lab {lab!r}.{did_you_mean(lab, LABS)} Known: {', '.join(LABS)}")
        drawn = [_parts(lab, f"variant {number}") for number in range(1, variants + 1)]
        for same in zip(*drawn, strict=True):
            distinct = {(each.text, each.expected): each for each in same}
            made += [Variant(lab, number, each) for number, each in enumerate(distinct.values(), start=1)]
    return tuple(made)


def _parts(lab: str, student: str) -> list[Question]:
    """Return the questions of a lab with single answers."""
    return [part for question in questions(lab, student) for part in question.parts()]


def moodle_xml(variants: Sequence[Variant]) -> str:
    """Return a question bank in Moodle's XML format: a category for each question, to draw one variant from.

    Import it under *Question bank ▸ Import ▸ Moodle XML*, and add a *random question* of each category to a quiz.
    """
    quiz = ET.Element("quiz")
    for (lab, name), group in _grouped(variants):
        category = ET.SubElement(ET.SubElement(quiz, "question", type="category"), "category")
        ET.SubElement(category, "text").text = f"$course$/top/mlsys labs/{lab}/{name}"
        for each in group:
            _moodle_question(quiz, each)
    return _written(quiz)


def _moodle_question(quiz: ET.Element, variant: Variant) -> None:
    question = variant.question
    kind = "multichoice" if isinstance(question, ChoiceQuestion) else "numerical"
    node = ET.SubElement(quiz, "question", type=kind)
    ET.SubElement(ET.SubElement(node, "name"), "text").text = variant.name
    _moodle_text(node, "questiontext", _prompt(question))
    _moodle_text(node, "generalfeedback", _paragraph(question.solution))
    ET.SubElement(node, "defaultgrade").text = "1"
    ET.SubElement(node, "penalty").text = "0.3333333"
    ET.SubElement(node, "hidden").text = "0"
    ET.SubElement(node, "idnumber").text = variant.name
    if isinstance(question, ChoiceQuestion):
        ET.SubElement(node, "single").text = "true"
        ET.SubElement(node, "shuffleanswers").text = "true"
        ET.SubElement(node, "answernumbering").text = "abc"
        for choice in question.choices:
            answer = ET.SubElement(node, "answer", fraction="100" if choice.right else "0", format="html")
            ET.SubElement(answer, "text").text = _paragraph(choice.text)
            _moodle_text(answer, "feedback", _paragraph(choice.hint))
    elif isinstance(question, NumberQuestion):
        for value, fraction, hint in _values(question):
            answer = ET.SubElement(node, "answer", fraction=fraction, format="moodle_auto_format")
            ET.SubElement(answer, "text").text = _number(value)
            ET.SubElement(answer, "tolerance").text = _number(_margin(question, value, fraction))
            _moodle_text(answer, "feedback", _paragraph(hint))
        ET.SubElement(node, "unitgradingtype").text = "0"
        ET.SubElement(node, "showunits").text = "3"


def _moodle_text(parent: ET.Element, tag: str, content: str) -> None:
    ET.SubElement(ET.SubElement(parent, tag, format="html"), "text").text = content


def _values(question: NumberQuestion) -> Iterator[tuple[float, str, str]]:
    """Yield the right answer, then the known slips with their hints, as far as they are not right as well."""
    yield question.answer, "100", ""
    for value, hint in question.slips:
        if not question.judge(value)[0]:
            yield value, "0", hint


def _margin(question: NumberQuestion, value: float, fraction: str) -> float:
    return abs(value) * (question.tolerance if fraction == "100" else 0.02)


def qti_zip(variants: Sequence[Variant], title: str = "mlsys labs") -> bytes:
    """Return a question bank as a QTI 1.2 package that Canvas imports: a group for each question, one variant drawn.

    Import it under *Settings ▸ Import course content ▸ QTI .zip file*: each lab becomes a quiz and a question bank.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        labs = [(lab, list(group)) for lab, group in groupby(variants, key=lambda each: each.lab)]
        for lab, group in labs:
            folder = _folder(lab)
            _add(archive, f"{folder}/{folder}.xml", _assessment(lab, group, title))
            _add(archive, f"{folder}/assessment_meta.xml", _meta(lab, group, title))
        _add(archive, "imsmanifest.xml", _manifest([lab for lab, _ in labs], title))
    return packed.getvalue()


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, text)


def _folder(lab: str) -> str:
    return f"g{sha256(lab.encode()).hexdigest()[:24]}"


def _assessment(lab: str, variants: Sequence[Variant], title: str) -> str:
    root = ET.Element("questestinterop", xmlns=_QTI)
    assessment = ET.SubElement(root, "assessment", ident=_folder(lab), title=f"{title}: {lab}")
    metadata = ET.SubElement(assessment, "qtimetadata")
    _field(metadata, "cc_maxattempts", "1")
    section = ET.SubElement(assessment, "section", ident="root_section")
    for (_, name), group in _grouped(variants):
        drawn = ET.SubElement(
            section, "section", ident=f"s{sha256(f'{lab}/{name}'.encode()).hexdigest()[:24]}", title=name
        )
        selection = ET.SubElement(ET.SubElement(drawn, "selection_ordering"), "selection")
        ET.SubElement(selection, "selection_number").text = "1"
        ET.SubElement(ET.SubElement(selection, "selection_extension"), "points_per_item").text = "1.0"
        for each in group:
            _qti_item(drawn, each)
    return _written(root)


def _qti_item(section: ET.Element, variant: Variant) -> None:
    question = variant.question
    item = ET.SubElement(section, "item", ident=variant.ident, title=variant.name)
    metadata = ET.SubElement(ET.SubElement(item, "itemmetadata"), "qtimetadata")
    choices = question.choices if isinstance(question, ChoiceQuestion) else ()
    _field(metadata, "question_type", "multiple_choice_question" if choices else "numerical_question")
    _field(metadata, "points_possible", "1.0")
    presentation = ET.SubElement(item, "presentation")
    _material(presentation, _prompt(question))
    processing = ET.Element("resprocessing")
    outcomes = ET.SubElement(processing, "outcomes")
    ET.SubElement(outcomes, "decvar", maxvalue="100", minvalue="0", varname="SCORE", vartype="Decimal")
    feedback = {"general_fb": question.solution}
    _condition(processing, None, "general_fb")
    if choices:
        response = ET.SubElement(presentation, "response_lid", ident="response1", rcardinality="Single")
        offered = ET.SubElement(response, "render_choice")
        for nth, choice in enumerate(choices, start=1):
            label = ET.SubElement(offered, "response_label", ident=str(1000 + nth))
            _material(label, _paragraph(choice.text))
            if choice.hint:
                feedback[f"{1000 + nth}_fb"] = choice.hint
                _condition(processing, str(1000 + nth), f"{1000 + nth}_fb")
        right = next(nth for nth, choice in enumerate(choices, start=1) if choice.right)
        _score(_condition(processing, str(1000 + right), None))
    elif isinstance(question, NumberQuestion):
        response = ET.SubElement(presentation, "response_str", ident="response1", rcardinality="Single")
        blank = ET.SubElement(response, "render_fib", fibtype="Decimal")
        ET.SubElement(blank, "response_label", ident="answer1")
        margin = _margin(question, question.answer, "100")
        condition = ET.SubElement(processing, "respcondition", attrib={"continue": "No"})
        either = ET.SubElement(ET.SubElement(condition, "conditionvar"), "or")
        ET.SubElement(either, "varequal", respident="response1").text = _number(question.answer)
        both = ET.SubElement(either, "and")
        ET.SubElement(both, "vargte", respident="response1").text = _number(question.answer - margin)
        ET.SubElement(both, "varlte", respident="response1").text = _number(question.answer + margin)
        _score(condition)
    item.append(processing)
    for ident, text in feedback.items():
        if text:
            _material(ET.SubElement(ET.SubElement(item, "itemfeedback", ident=ident), "flow_mat"), _paragraph(text))


def _condition(processing: ET.Element, answer: str | None, feedback: str | None) -> ET.Element:
    condition = ET.SubElement(processing, "respcondition", attrib={"continue": "Yes" if feedback else "No"})
    variable = ET.SubElement(condition, "conditionvar")
    if answer is None:
        ET.SubElement(variable, "other")
    else:
        ET.SubElement(variable, "varequal", respident="response1").text = answer
    if feedback:
        ET.SubElement(condition, "displayfeedback", feedbacktype="Response", linkrefid=feedback)
    return condition


def _score(condition: ET.Element) -> None:
    ET.SubElement(condition, "setvar", action="Set", varname="SCORE").text = "100"


def _material(parent: ET.Element, content: str) -> None:
    ET.SubElement(ET.SubElement(parent, "material"), "mattext", texttype="text/html").text = content


def _field(metadata: ET.Element, label: str, entry: str) -> None:
    field = ET.SubElement(metadata, "qtimetadatafield")
    ET.SubElement(field, "fieldlabel").text = label
    ET.SubElement(field, "fieldentry").text = entry


def _meta(lab: str, variants: Sequence[Variant], title: str) -> str:
    quiz = ET.Element("quiz", identifier=_folder(lab), xmlns="http://canvas.instructure.com/xsd/cccv1p0")
    ET.SubElement(quiz, "title").text = f"{title}: {lab}"
    ET.SubElement(quiz, "quiz_type").text = "assignment"
    ET.SubElement(quiz, "points_possible").text = f"{len(list(_grouped(variants))):.1f}"
    return _written(quiz)


def _manifest(labs: Sequence[str], title: str) -> str:
    root = ET.Element("manifest", identifier=_folder(title), xmlns=_IMS)
    metadata = ET.SubElement(root, "metadata")
    ET.SubElement(metadata, "schema").text = "IMS Content"
    ET.SubElement(metadata, "schemaversion").text = "1.1.3"
    ET.SubElement(root, "organizations")
    resources = ET.SubElement(root, "resources")
    for lab in labs:
        folder = _folder(lab)
        resource = ET.SubElement(resources, "resource", identifier=folder, type="imsqti_xmlv1p2")
        ET.SubElement(resource, "file", href=f"{folder}/{folder}.xml")
        ET.SubElement(resource, "dependency", identifierref=f"{folder}_meta")
        kind = "associatedcontent/imscc_xmlv1p1/learning-application-resource"
        meta = ET.SubElement(
            resources, "resource", identifier=f"{folder}_meta", type=kind, href=f"{folder}/assessment_meta.xml"
        )
        ET.SubElement(meta, "file", href=f"{folder}/assessment_meta.xml")
    return _written(root)


def plain_text(variants: Sequence[Variant], *, answers: bool = True) -> str:
    """Return a question bank as plain text: questions first, then, on request, the answers with their explanations.

    Examples
    --------
    >>> print(plain_text(bank(["01-amdahl"], 1)[2:3], answers=False).splitlines()[0])
    1. 01-amdahl/bottleneck/01
    """
    lines: list[str] = []
    for number, each in enumerate(variants, start=1):
        lines += [f"{number}. {each.name}", *_wrapped(each.question.text)]
        lines += [f"   ({chr(97 + nth)}) {choice}" for nth, choice in enumerate(each.question.listed())]
        if isinstance(each.question, NumberQuestion):
            lines.append(f"   Answer: ____ {each.question.unit}".rstrip())
        lines.append("")
    if answers:
        lines += ["Answers", ""]
        for number, each in enumerate(variants, start=1):
            listed = each.question.listed()
            letter = f"({chr(97 + listed.index(each.question.right_answer()))}) " if listed else ""
            lines += [f"{number}. {letter}{each.question.right_answer()}", *_wrapped(each.question.solution), ""]
    return "\n".join(lines).rstrip() + "\n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 96, initial_indent="   ", subsequent_indent="   ")


def _grouped(variants: Iterable[Variant]) -> Iterator[tuple[tuple[str, str], list[Variant]]]:
    for key, group in groupby(variants, key=lambda each: (each.lab, each.question.id)):
        yield key, list(group)


def _prompt(question: Question) -> str:
    markup = _paragraph(question.text)
    if isinstance(question, NumberQuestion) and question.unit:
        markup += f"<p>Answer with a number, in {html.escape(question.unit)}.</p>"
    return markup


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text, quote=False)}</p>" if text else ""


def _number(value: float) -> str:
    return f"{value:.10g}"


def _written(root: ET.Element) -> str:
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
