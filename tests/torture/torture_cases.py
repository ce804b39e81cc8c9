"""The corpus of bad inputs: from the grammars beside this file to cases, each with what must become of it."""

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
MANY = {"5000 letters": "x" * 5000, "5000 sizes": ",".join(["1"] * 5000)}


@dataclass(frozen=True)
class Case:
    """One bad input. ``words`` of a command, or ``call`` of the library; ``files`` that lie where it runs.

    ``codes`` are the exit codes that are right; None: any ending without a traceback, as for bytes drawn by chance.
    """

    id: str
    words: tuple[str, ...] = ()
    call: str = ""
    names: str = ""
    codes: tuple[int, ...] | None = (1, 2)
    says: str = ""
    files: dict[str, str] = field(default_factory=dict)
    out: bool = False
    leaves: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        if self.call:
            return "python"
        return " ".join(self.words[:2]) if self.words[0] in ("claims", "edge", "explain") else self.words[0]


def read(name: str) -> Any:
    return yaml.safe_load((HERE / name).read_text(encoding="utf-8"))


def corpus() -> list[Case]:
    """Return every case, each id once."""
    cases = [*_options(), *_walked(), *_arguments(), *_kept(), *_readers(), *_calls(), *_forged(), *_formulas()]
    assert len({case.id for case in cases}) == len(cases), "a case is there twice"
    return cases


@cache
def _grammar() -> dict[str, Any]:
    data: dict[str, Any] = read("commands.yaml")
    data["pools"] |= data["more_pools"] | data["layer_pools"]
    return data


def _pool(name: str) -> list[str]:
    kind, _, unit = name.partition(" ")
    pools = _grammar()["pools"]
    values = pools[kind] + (pools["milli"] if kind == "amount" and unit in ("byte", "byte/s") else [])
    plain = {"byte": "B", "byte/s": "B/s"}.get(unit, unit)
    return [value.replace("m{unit}+1", "m").replace("{unit}", plain) for value in dict.fromkeys(values)]


def _options() -> Iterator[Case]:
    for base in _grammar()["bases"]:
        for option, pool in base["options"].items():
            for value in _pool(pool):
                words = (*base["words"], option, value)
                yield Case(id=_id(words), words=words, names=option)


def _walked() -> Iterator[Case]:
    from torture_walk import walked

    for drawn in walked(_grammar(), _pool):
        yield Case(id=_id(("walked", *drawn["words"])), out=True, **drawn)


def _arguments() -> Iterator[Case]:
    for entry in _grammar()["arguments"]:
        for value in _pool(entry["pool"]):
            words = (*entry["words"], value)
            yield Case(id=_id(("argument", *words)), words=words)


def _kept() -> Iterator[Case]:
    for number, entry in enumerate(read("kept.yaml")):
        words = tuple(MANY[entry["many"]] if word == "{many}" else word for word in entry["words"])
        yield Case(
            id=f"kept {number} {_id(words)}", words=words, says=entry.get("says", ""), files=entry.get("files", {}),
            codes=tuple(entry.get("codes", (1, 2))), out=entry.get("out", False),
            leaves=tuple(entry.get("leaves", ())),
        )  # fmt: skip


def _readers() -> Iterator[Case]:
    grammar = read("files.yaml")
    for reader in grammar["readers"]:
        right, words, also = reader["right"], tuple(reader["words"]), tuple(reader.get("also", ()))
        here = {name: f"right:{name}" for name in also}

        def case(
            what: str, content: str, codes: tuple[int, ...] | None = (1, 2),
            words: tuple[str, ...] = words, right: str = right, here: dict[str, str] = here,
        ) -> Case:  # fmt: skip
            given = tuple(word.replace("{file}", right) for word in words)
            return Case(id=_id((*given, what)), words=given, files={**here, right: content}, codes=codes, out=True)

        for whole in grammar["wholes"]:
            yield case(whole, f"whole:{whole}", _codes_of_whole(whole, right))
        # A configuration of `edge run` that is still right would train for minutes.
        draws = {"net.onnx": 40, "edge.yaml": 0}.get(right, 8)
        for number in range(draws):
            yield case(f"flipped {number}", f"flip:{right}:{number}", None)
            yield case(f"cut {number}", f"cut:{right}:{number}", None)
        if reader.get("numbers"):
            for keys in number_places(right):
                for value in grammar["numbers"]:
                    if value is None and right in ("scenario.json", "edge.yaml"):
                        continue  # some numbers may be left open so
                    yield case(
                        f"{keys} = {value!r}", "set:" + json.dumps([right, keys, value]), _wrong(right, keys, value)
                    )
        for column in reader.get("cells", ()):
            for value in grammar["cells"]:
                yield case(
                    f"{column} = {value!r}", "cell:" + json.dumps([right, column, value]), _cell(right, column, value)
                )
        if reader.get("amounts"):
            for keys, pool in special_places(right):
                for value in grammar[pool]:
                    yield case(f"{keys} = {value!r}", "set:" + json.dumps([right, keys, value]))


def _codes_of_whole(whole: str, right: str) -> tuple[int, ...] | None:
    """Return the codes of a content; a folder may hold notebooks, and then it is no mistake."""
    return None if whole == "folder" and right == "page.ipynb" else (1, 2)


def _wrong(right: str, keys: list[Any], value: Any) -> tuple[int, ...] | None:
    """Return the codes of a number that was replaced; None where the new one may be right too."""
    if right == "config.json":  # null asks for what is usual; some numbers of a configuration play no part
        return (
            None
            if value is None or keys[-1] not in ("n_layer", "n_embd", "n_head", "vocab_size", "n_positions")
            else (1, 2)
        )
    may_be_open = right == "log.jsonl"
    return None if may_be_open and value is None else (1, 2)


def _cell(right: str, column: str, value: str) -> tuple[int, ...] | None:
    """Return the codes of a cell that was replaced; None where the new one may be right too."""
    if right == "platforms.csv" and value == "":
        return None  # not known
    loose = {
        ("time_s", "-1"),
        ("time_s", "0"),
        ("power_w", "0"),
        ("batch", ""),
        ("n_devices", ""),
        ("batch", "x"),
        ("batch", "½"),
        ("batch", "=1+1"),
        ("lower", "0"),
    }
    return None if (column, value) in loose or (right == "profiles.csv" and value == "0") else (1, 2)


def number_places(name: str) -> list[list[Any]]:
    data = data_of(name)
    if name.endswith(".jsonl"):  # of each kind of line the first
        first = {record["kind"]: number for number, record in reversed(list(enumerate(data)))}
        entries = [([number, *keys], value) for number in first.values() for keys, value in leaves(data[number])
                 if keys[0] not in ("environment", "output")]  # fmt: skip
    else:
        entries = list(leaves(data))
    return [keys for keys, value in entries if isinstance(value, (int, float)) and not isinstance(value, bool)]


def special_places(name: str) -> Iterator[tuple[list[Any], str]]:
    """Yield the places of amounts, dates and counts in a device file, each with the pool of its bad values."""
    for keys, value in leaves(data_of(name)):
        if keys[-1] in ("date", "read"):
            yield keys, "dates"
        elif keys[-2:] == ["units", "value"]:
            yield keys, "counts"
        elif (
            isinstance(value, str)
            and value[:1].isdigit()
            and " " in value
            and keys[-1] not in ("meaning", "title", "note")
        ):
            yield keys, "amounts"


def leaves(data: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[list[Any], Any]]:
    """Yield every leaf with its place; of long lists the first and the last."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*keys, key))
    elif isinstance(data, list):
        for index in sorted({0, len(data) - 1} if data else ()):
            yield from leaves(data[index], (*keys, index))
    else:
        yield list(keys), data


@cache
def right(name: str) -> bytes:
    """Return a right file of its kind."""
    made = HERE / "right" / ("notebook.json" if name == "page.ipynb" else name)
    if made.is_file():
        return made.read_bytes()
    if name == "scenario.json":
        return _printed("plan", "--example")
    if name == "scenario.yaml":
        return yaml.safe_dump(json.loads(_printed("plan", "--example"))).encode()
    if name == "device.yaml":
        import mlsys.hardware

        return (Path(mlsys.hardware.__file__).parent / "data/cloud/T4.yaml").read_bytes()
    if name == "edge.yaml":
        return _printed("edge", "run", "--example")
    if name == "net.onnx":
        return _net()
    if name == "log.jsonl":
        return _log()
    if name == "measured.csv":
        import gzip

        import mlsys_evidence

        path = next((Path(mlsys_evidence.__file__).parent / "data").glob("measured.csv*"))
        raw = path.read_bytes()
        lines = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines(keepends=True)
        same = [line for line in lines[1:] if "A100" in line.split(",")[1]]
        return "".join([lines[0], *same[:12]]).encode()
    raise KeyError(name)


def _log() -> bytes:
    """Return a short log: of a stored one the first inferences."""
    from dataclasses import replace

    from mlsys.measure import stored_logs

    log = stored_logs()["ds-cnn int8 litert"]
    few = replace(
        log, samples=tuple(sample for sample in log.samples if sample.iteration < 2),
        layers=tuple(layer for layer in log.layers if layer.iteration < 1),
    )  # fmt: skip
    return "".join(f"{line}\n" for line in few.lines()).encode()


def _printed(*words: str) -> bytes:
    """Return what a command prints."""
    from click.testing import CliRunner

    from mlsys.cli import main

    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return done.stdout.encode()


def data_of(name: str) -> Any:
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in right(name).splitlines()]
    return copy.deepcopy(yaml.safe_load(right(name)))


def _net() -> bytes:
    from onnx import TensorProto, helper

    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 8, 8))
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    kernel = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=(8, 4, 3, 3), raw_data=bytes(4 * 8 * 4 * 9))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["z"], name="conv", strides=[1, 1]),
        helper.make_node("Relu", ["z"], ["y"], name="relu"),
    ]
    graph = helper.make_graph(nodes, "net", [given], [made], [kernel])
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())


def content(recipe: str) -> bytes:
    """Return the bytes of a file of a case; folders and pipes are made by the runner."""
    kind, _, rest = recipe.partition(":")
    if kind == "right":
        return right(rest)
    if kind == "whole":
        return _wholes()[rest]
    if kind in ("flip", "cut"):
        name = rest.rpartition(":")[0]
        raw, source = bytearray(right(name)), random.Random(f"{rest} torture")
        if kind == "cut":
            return bytes(raw[: source.randrange(len(raw))])
        for _ in range(source.choice((1, 1, 3, 20))):
            raw[source.randrange(len(raw))] ^= 1 << source.randrange(8)
        return bytes(raw)
    if kind == "set":
        name, keys, value = json.loads(rest)
        data = data_of(name)
        inner = data
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = "@1e999@" if value == "1e999" else value
        if name.endswith(".jsonl"):
            text = "".join(f"{json.dumps(record)}\n" for record in data)
        else:
            text = json.dumps(data) if name.endswith(".json") else yaml.safe_dump(data)
        return text.replace('"@1e999@"', "1e999").replace("'@1e999@'", ".inf").encode()
    if kind == "cell":
        name, column, value = json.loads(rest)
        import csv
        import io

        rows = list(csv.reader(io.StringIO(right(name).decode())))
        rows[1][rows[0].index(column)] = value
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows(rows)
        return stream.getvalue().encode()
    return recipe.replace("{deep}", "[" * 100_000).encode()


@cache
def _wholes() -> dict[str, bytes]:
    source = random.Random("wholes")
    return {
        "empty": b"", "nul": b"\0" * 100, "spaces": b" \n\n  ", "words": b"dear friend, how are you\n",
        "utf16": "name: x\n".encode("utf-16"), "latin1": b"name: caf\xe9\n", "random": source.randbytes(2000),
        "deep list": b"[" * 100_000, "deep map": b'{"a":' * 50_000, "digits": b"9" * 10_000, "nan": b"NaN",
        "list": b"[1]", "number": b"5", "text": b'"text"', "html": b"<!doctype html><html></html>", "huge": b"x: 1\n" * 300_000,
        "endless line": b"a," * 200_000, "anchors": b"a: &a [1]\nb: [*a, *a]\n", "tag": b"!!python/object/apply:os.system ['true']\n",
        "tabs": b"\ta:\t1\n", "no rows": b"a,b,c\n", "quotes": b'a,"b\n1,2', "long cell": b"a,b\n" + b"x" * 200_000 + b",1\n",
        "twice": b"a: 1\na: 2\n",
    }  # fmt: skip


def _calls() -> Iterator[Case]:
    for entry in read("python.yaml")["calls"]:
        for value in entry["bad"]:
            call = entry["call"].replace("{bad}", _written(value))
            yield Case(id=call[:200], call=call, names=entry["names"])


def _forged() -> Iterator[Case]:
    grammar = read("python.yaml")["forged"]
    for model in grammar["models"]:
        for value in grammar["values"]:
            for part in ("peak", "bandwidth", "capacity", "tdp"):
                if part == "tdp" or (part == "capacity" and value == "0.0"):
                    continue
                call = model.replace("X", f"forged({part!r}, {value})")
                yield Case(id=call, call=call)


def _formulas() -> Iterator[Case]:
    import mlsys.formulas as formulas
    from mlsys.unit_checks import Formula

    values = read("python.yaml")["formulas"]
    for name in sorted(dir(formulas)):
        formula = getattr(formulas, name)
        if not isinstance(formula, Formula):
            continue
        for argument, spec in formula.specs.items():
            low = [] if spec.low == float("-inf") else [f"Q_({spec.low - 1!r}, {spec.unit!r})"]
            own = [f"Q_(float('nan'), {spec.unit!r})", f"Q_(float('inf'), {spec.unit!r})", "Q_(1, 'kelvin')", *low]
            for value in (*map(_written, values), *own):
                call = f"formula({name!r}, {argument!r}, {value})"
                yield Case(id=call, call=call, names=argument)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _id(words: tuple[str, ...]) -> str:
    return " ".join(word if len(word) < 60 else word[:57] + "..." for word in words)
