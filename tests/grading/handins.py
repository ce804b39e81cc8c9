"""Hand-ins to grade: honest ones, and ones that went through everything that happens to files."""

import base64
import contextlib
import copy
import html
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from nbformat import v4

from mlsys.labs import LABS, checksum, designs, questions, seed_of

START = datetime.fromisoformat("2026-11-02T09:00:00+00:00")
DUE = START + timedelta(hours=6)
QUICK = tuple(lab for lab in LABS if lab in ("01-amdahl", "02-roofline", "04-systolic", "06-dataflow"))


def honest(lab: str, student: str, rng: random.Random, *, right: float = 0.7, hours: float = 1) -> dict[str, Any]:
    """Return what a student hands in who answers a share of the questions right at once, others at the second try."""
    parts: dict[str, dict[str, Any]] = {"questions": {}, "claims": {}}
    at = START
    for question in questions(lab, student):
        wrong = question.listed()[:2] if question.kind == "choice" else (-1.0, 1e6)
        tries = [] if rng.random() < right else [next(each for each in wrong if each != question.expected)]
        attempts = []
        for answer in [*tries, question.expected]:
            at += timedelta(minutes=4)
            attempts.append({"at": at.isoformat(), "answer": answer, "correct": answer == question.expected})
        part = parts["questions" if question.in_app else "claims"]
        part[question.id] = {"attempts": attempts, "solution_shown": False}
    reason = f"{student} compared {rng.randint(2, 9)} settings, and the last was best."
    return signed({
        "format": "mlsys-lab", "version": 1, "lab": lab, "student": student, "seed": seed_of(lab, student),
        "started": START.isoformat(), "handed_in": (START + timedelta(hours=hours)).isoformat(), **parts,
        "design": {task.id: designed(task, rng, right, reason) for task in designs(lab, student)},
        "measurements": {"gain": 1.23},
    })  # fmt: skip


def designed(task: Any, rng: random.Random, right: float, reason: str) -> dict[str, Any]:
    """Return the answer to a design task: the best for one who is always right, else any."""
    choices = list(task.choices())
    choice = max(choices, key=lambda each: task.score(each).score) if right == 1 else rng.choice(choices)
    return {"choice": choice, "score": task.score(choice).score, "reason": reason}


def signed(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the checksum that fits it."""
    return {**record, "checksum": checksum(record)}


def notebook(record: dict[str, Any]) -> Any:
    """Return a lab's notebook after a hand-in: it is in the output of a cell."""
    output = v4.new_output("display_data", {"application/vnd.mlsys.lab+json": record, "text/plain": json.dumps(record)})
    return v4.new_notebook(
        cells=[
            v4.new_markdown_cell("# A lab"),
            v4.new_code_cell("lab.show()"),
            v4.new_code_cell("lab.hand_in()", outputs=[output]),
            v4.new_markdown_cell("## Wrap-up"),
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )


Mutation = Callable[[Path, str, dict[str, Any], random.Random], str]
"""Writes a mutated hand-in, and returns the outcome that it must have: scored, refused, or either."""


def _text(path: Path, name: str, content: object) -> None:
    (path / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def _cells_mutated(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    book = notebook(record)
    kind = rng.choice(["duplicated", "deleted", "reordered", "retyped"])
    if kind == "duplicated":
        book.cells += [copy.deepcopy(rng.choice(book.cells)) for _ in range(3)]
    elif kind == "deleted":
        del book.cells[rng.choice([0, 1, 3])]
    elif kind == "reordered":
        rng.shuffle(book.cells)
    else:
        book.cells[2] = v4.new_raw_cell(json.dumps(record, indent=1))
        book.cells[1] = v4.new_markdown_cell(book.cells[1].source)
    _text(path, f"{name}.ipynb", book)
    return "scored"


def _handin_cell_deleted(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    book = notebook(record)
    del book.cells[2]
    _text(path, f"{name}.ipynb", book)
    return "refused"


def _stripped(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    book = notebook(record)
    book.metadata.clear()
    for cell in book.cells:
        cell.pop("id", None)
        cell.metadata = {}
    book.cells[2].outputs[0].data.pop("application/vnd.mlsys.lab+json")
    _text(path, f"{name}.ipynb", book)
    return "scored"


def _colab(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    """Colab keeps text and HTML of an output, splits lines, writes metadata of its own and minor version 0."""
    book = json.loads(json.dumps(notebook(record)))
    book["nbformat_minor"] = 0
    book["metadata"] |= {"colab": {"provenance": [], "name": name}}
    for cell in book["cells"]:
        cell.pop("id", None)
        cell["metadata"]["id"] = f"{rng.getrandbits(48):012x}"
        cell["source"] = cell["source"].splitlines(keepends=True)
    text = json.dumps(record, indent=1)
    link = f"data:application/json;base64,{base64.b64encode(text.encode()).decode()}"
    data: dict[str, Any] = rng.choice([
        {"text/html": [f"<pre>{html.escape(text)}</pre>"]}, {"text/plain": text.splitlines(True)},
        {"text/html": [f"<p><a download='x.json' href='{link}'>", "Download</a></p>"]},
    ])  # fmt: skip
    book["cells"][2]["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": data}]
    _text(path, f"{name}.ipynb", book)
    return "scored"


def _truncated(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    text = json.dumps(record if rng.random() < 0.5 else notebook(record))
    _text(path, f"{name}.json", text[: rng.randrange(0, len(text) - 1)])
    return "refused"


def _another_lab(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    others = [lab for lab in QUICK if lab != record["lab"]]
    _text(path, f"{name}.json", signed({**record, "lab": rng.choice([*others, "99-none", "../../etc"])}))
    return "either"


def _another_seed(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    _text(path, f"{name}.json", signed({**record, "seed": seed_of(record["lab"], "somebody else")}))
    return "scored"


def _forged(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    for part in ("questions", "claims"):
        for entry in record[part].values():
            entry["attempts"] = [{**entry["attempts"][0], "answer": "of course", "correct": True}]
    for entry in record["design"].values():
        entry |= {"choice": {"of": "course"}, "score": 1.0}
    record["score"] = record["points"] = 100
    _text(path, f"{name}.json", signed(record) if rng.random() < 0.5 else record)
    return "scored"


def _huge(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    kind = rng.choice(["padded", "attempts", "deep", "digits"])
    if kind == "padded":
        _text(path, f"{name}.json", json.dumps({**record, "padding": "x" * 2_100_000}))
        return "refused"
    if kind == "attempts":
        first = next(iter(record["questions"].values()))
        first["attempts"] = first["attempts"][:1] * 5000
        _text(path, f"{name}.json", signed(record))
        return "scored"
    if kind == "deep":
        _text(path, f"{name}.json", '{"format":' + "[" * 100_000 + "]" * 100_000 + "}")
    else:
        _text(path, f"{name}.json", f'{{"format": "mlsys-lab", "version": {"9" * 6000}}}')
    return "refused"


def _hostile(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    """Values of the wrong kind anywhere, markup and control characters in names and texts."""
    values: list[Any] = [None, True, -1, 1e308, 10**400, "", "x" * 9000, [], {}, [[]], {"a": {"b": []}}, "\ud800",
                         "<script>alert(1)</script>", "=cmd|'/c calc'!A1", "\x1b[31m", "{{ 7 }}"]  # fmt: skip
    for _ in range(rng.randint(1, 4)):
        place: Any = record
        keys = list(record)
        while True:
            key = rng.choice(keys)
            if isinstance(place[key], (dict, list)) and place[key] and rng.random() < 0.8:
                place = place[key]
                keys = list(place) if isinstance(place, dict) else list(range(len(place)))
                continue
            place[key] = copy.deepcopy(rng.choice(values))  # a value placed inside itself would be circular
            break
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        record = signed(record)
    _text(path, f"{name}.json", record)
    return "either"


def _twice_one_key(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    _text(path, f"{name}.json", json.dumps(record)[:-1] + ', "student": "Eve"}')
    return "refused"


def _archive(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../outside.json", json.dumps(record))
    (path / f"{name}{rng.choice(['.zip', '.json', '.tar.gz', '.ipynb'])}").write_bytes(packed.getvalue())
    return "refused"


def _climbing(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    kind = rng.choice(["link", "student", "reference", "bytes"])
    if kind == "link":
        (path / f"{name}.json").symlink_to(path.parent / "outside" / "secret.json")
        return "refused"
    if kind == "student":
        _text(path, f"{name}.json", signed({**record, "student": f"../../../{name}"}))
        return "scored"
    if kind == "reference":
        book = notebook(record)
        del book.cells[2]
        book.metadata["mlsys-lab"] = {"path": "../outside/secret.json"}
        book.cells[1].source = f"open({str(path.parent / 'outside' / 'run')!r}, 'w').write('run')"
        _text(path, f"{name}.ipynb", book)
        return "refused"
    (path / f"{name}.json").write_bytes(bytes(rng.randrange(256) for _ in range(500)))
    return "refused"


def _two_files(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    """The earlier file of a student, under another name; the later one is written as well and counts."""
    later = signed(
        {**record, "handed_in": (START + timedelta(hours=2)).isoformat(), "student": record["student"].upper()}
    )
    _text(path, f"{name}.json", record)
    _text(path, f"{name} (2).json", later)
    return "replaced"


def _state_file(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    state = {
        "lab": "lab-01-amdahl",
        "version": 2,
        "prediction": {"given": 50, "locked": True},
        "controls": {},
        "answers": {},
    }
    _text(path, f"{name}.json", state)
    return "refused"


def _renamed(path: Path, name: str, record: dict[str, Any], rng: random.Random) -> str:
    """Files under names that say nothing, or the wrong thing, and a byte order mark."""
    book = rng.random() < 0.5
    text = json.dumps(notebook(record) if book else record)
    (path / f"{name}{'.json' if book else ' copy.JSON'}").write_text("\ufeff" + text, encoding="utf-8")
    return "scored"


MUTATIONS: tuple[Mutation, ...] = (
    _cells_mutated, _handin_cell_deleted, _stripped, _colab, _truncated, _another_lab, _another_seed, _forged, _huge,
    _hostile, _hostile, _twice_one_key, _archive, _climbing, _two_files, _state_file, _renamed,
)  # fmt: skip


def mutated(folder: Path, count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Write ``count`` files; yield for each submission its name, the mutation and the outcome it must have.

    A submission of two files counts as one; the second has `` (2)`` in its name.
    """
    rng = random.Random(seed)
    for number in range(count):
        student, lab = f"Student {number}", rng.choice(QUICK)
        mutation = MUTATIONS[number % len(MUTATIONS)]
        name = f"s{number:03d}"
        wanted = mutation(folder, name, honest(lab, student, rng), rng)
        yield name, mutation.__name__.strip("_"), wanted
