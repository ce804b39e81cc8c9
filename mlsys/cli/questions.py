"""``mlsys questions``: the question bank of the labs."""

from pathlib import Path

import click

from mlsys.cli.common import WrongUsage, say, say_json, speak_plainly
from mlsys.cli.parameters import Output, Whole

_SUFFIXES = {"moodle": ".xml", "qti": ".zip", "text": ".txt"}


@click.command()
@click.argument("labs", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_SUFFIXES)),
    default="text",
    show_default=True,
    help="Moodle XML, QTI 1.2 for Canvas, or plain text.",
)
@click.option(
    "--variants", type=Whole(min=1, max=200), default=10, show_default=True, help="Maximum variants of each question."
)
@click.option("--hide-answers", is_flag=True, help="Plain text without the answers.")
@click.option("--out", type=Output(), help="File to write; plain text is printed without it.")
@click.option("--json", "as_json", is_flag=True, help="Names of the variants and their answers, as JSON.")
@speak_plainly
def questions(
    labs: tuple[str, ...], form: str, variants: int, hide_answers: bool, out: Path | None, as_json: bool
) -> None:
    """Write the questions of LABS, such as 01-amdahl, as a question bank; without LABS, those of all labs.

    Each question comes in variants with other numbers, and its answers, tolerances, hints and solutions are computed.
    For Moodle each question is a category to draw a random question from; for Canvas, a group that draws one variant.
    """
    if as_json and out is not None:
        raise WrongUsage("--json prints to standard output: omit --out")
    if hide_answers and form != "text":
        raise WrongUsage(f"--hide-answers is for --format text; {form} needs the answers to mark them")
    if form == "qti" and out is None and not as_json:
        raise WrongUsage("--format qti is an archive: give --out FILE.zip")
    if out is not None and out.suffix.lower() != _SUFFIXES[form]:
        raise WrongUsage(f"--out must end in {_SUFFIXES[form]} for --format {form}, got {out.name!r}")
    from mlsys.files import write_bytes
    from mlsys.grading.bank import bank, moodle_xml, plain_text, qti_zip
    from mlsys.labs import LABS

    made = bank(labs or LABS, variants)
    if as_json:
        say_json([{"name": each.name, "prompt": each.question.text, "answer": each.question.expected} for each in made])
        return
    if form == "qti":
        content = qti_zip(made)
    else:
        content = (moodle_xml(made) if form == "moodle" else plain_text(made, answers=not hide_answers)).encode()
    if out is None:
        say(content.decode(), nl=False)
        return
    write_bytes(out, content)
    count = len({(each.lab, each.question.id) for each in made})
    say(f"{len(made)} variants of {count} questions in {out}")
