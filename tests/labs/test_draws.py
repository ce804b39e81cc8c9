"""Questions of the labs: of each student's own, never the chapter's, and the same wherever they are recomputed."""

import hashlib
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mlsys import labs
from mlsys.labs.draw import Draw, same_student, seed_of

BOOK = Path(__file__).parents[2] / "book"
CHAPTERS = {
    **{"01-amdahl": "amdahl", "02-roofline": "roofline", "03-memory-wall": "memory_wall", "04-systolic": "systolic"},
    **{"05-tiling": "tiling", "06-dataflow": "dataflow", "07-compiler": "compiler", "08-placement": "placement"},
    **{"09-shrink": "edge", "10-explain": "explain", "11-real-network": "network explain compiler"},
    "12-size-a-service": "serving feasibility economics carbon",
    "13-find-the-error": "numbers_everyone_repeats",
}
NUMBER = re.compile(r"(?<![\w.])\d[\d,_]*(?:\.\d+)?(?:e-?\d+)?")
CLASS = [f"s{number:04}" for number in range(1001, 1013)]


@pytest.fixture(params=labs.LABS)
def lab(request):
    return request.param


def drawn(lab, student=""):
    """Return the draw of a student, after everything of the lab was drawn."""
    draw, content = Draw(lab, student), labs.lab_content(lab)
    content.prediction(draw), content.scenario(draw), content.questions(draw), content.designs(draw)
    return draw


def numbers_in(value):
    """Return the numbers in a drawn value that stand out: single digits and powers of one half do not."""
    if isinstance(value, (tuple, list)):
        return {number for each in value for number in numbers_in(each)}
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return {float(value)} if value >= 10 or value != int(value) else set()
    return set()


def test_the_seed_is_a_digest_that_anyone_can_compute():
    text = "mlsys-lab\n01-amdahl\nada lovelace"
    assert seed_of("01-amdahl", " Ada  Lovelace") == hashlib.sha256(text.encode()).hexdigest()[:16]
    draw = Draw("01-amdahl", "ada lovelace")
    digest = hashlib.sha256(f"{draw.seed}\nkey".encode()).digest()
    assert draw.pick("key", range(1000)) == int.from_bytes(digest[:8], "big") % 1000
    assert same_student("Ａda") == "ada"  # full width, as some keyboards type it


def test_the_chapter_uses_none_of_the_drawn_values(lab):
    page = " ".join((BOOK / f"{chapter}.md").read_text("utf-8") for chapter in CHAPTERS[lab].split())
    used = {float(number.replace(",", "").replace("_", "")) for number in NUMBER.findall(page)}
    for key, values in drawn(lab).offered.items():
        for number in numbers_in(values):
            shown = {number, round(100 * number, 6)} if number < 1 else {number}
            assert not shown & used, (key, shown & used)


def test_every_student_can_be_marked(lab):
    for student in CLASS:
        for question in labs.questions(lab, student):
            assert question.mark(question.expected) == labs.Mark(1.0, True, question.solution)
            wrong = getattr(question, "slips", ()) or [
                (choice.text, choice.hint) for choice in getattr(question, "choices", ()) if not choice.right
            ]
            for answer, hint in wrong:
                mark = question.mark(answer)
                assert not mark.correct and mark.score == 0 and hint in mark.feedback and len(hint) > 20, question.text
            assert question.mark({"no": "answer"}).score == 0


def test_neighbours_differ(lab):
    texts = [tuple(question.text + str(question.expected) for question in labs.questions(lab, s)) for s in CLASS]
    assert all(one != other for one, other in itertools.pairwise(texts)) and len(set(texts)) > len(CLASS) // 2
    assert labs.questions(lab, CLASS[0].upper()) == labs.questions(lab, CLASS[0])


def test_questions_of_a_student_need_no_widgets_and_repeat_elsewhere():
    code = (
        "import sys; from mlsys import labs; "
        "print([labs.questions(lab, 's1001')[0].text for lab in labs.LABS[:4]], 'ipywidgets' in sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    ).stdout
    assert out.strip() == f"{[labs.questions(lab, 's1001')[0].text for lab in labs.LABS[:4]]} False"


def test_an_unknown_lab_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no lab '99-x'. Known: 01-amdahl"):
        labs.questions("99-x")


@pytest.mark.parametrize(
    ("lab", "question", "law"),
    [
        ("01-amdahl", "profile", lambda s, t: 100 * (1 - 1 / t) / (1 - 1 / s)),
        ("05-tiling", "double", lambda words: int((words / 6) ** 0.5)),
        ("06-dataflow", "reuse", lambda m, k, n: m),
    ],
)
def test_expected_answers_follow_from_the_numbers_of_the_text(lab, question, law):
    for student in CLASS:
        drawn = next(each for each in labs.questions(lab, student) if each.id == question)
        given = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", drawn.text)]
        assert drawn.expected == pytest.approx(law(*given))
