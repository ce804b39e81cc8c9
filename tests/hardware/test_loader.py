"""A device file is accepted whole or refused with every fault, by file and line."""

import datetime
import random
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import mlsys.hardware
from mlsys.amounts import _parsed_unit
from mlsys.errors import DeviceFileError
from mlsys.hardware import Device, load_device
from mlsys.hardware.loader import MAX_BYTES
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_, ureg

GOOD = """\
id: Toy
name: A toy accelerator
aliases: [Plaything]
kind: NPU
vendor: Nobody
release_year: 2024
sources:
  sheet:
    title: Toy data sheet
    date: "2024-02"
    confidence: secondary
headline: int8
peaks:
  int8:
    matrix:
      dense: {value: 4 TOP/s, source: sheet}
      "2:4": {value: 8 TOP/s, source: sheet, note: pruned}
  fp16:
    vector:
      dense:
        value: 500 GFLOP/s
        source: sheet
        uncertainty: 25
        confidence: derived
        meaning: lanes times clock
memory:
  LPDDR:
    capacity: {value: 8 GB, source: sheet}
    bandwidth: {value: 51.2 GB/s, source: sheet}
    latency: {value: 90 ns, source: sheet}
  SRAM:
    scope: unit
    capacity: {value: 512 KiB, source: sheet}
links:
  PCIe:
    per_direction: {value: 7.88 GB/s, source: sheet}
power:
  tdp: {value: 5 W, source: sheet}
chip:
  clock: {value: 1 GHz, source: sheet}
  macs_per_cycle: {value: 2000 MAC/cycle, source: sheet}
  units: {value: "4", source: sheet}
  node: {value: 7 nm, source: sheet}
  systolic_array: {rows: 32, columns: 64, count: 1, source: sheet}
price: {value: 99 USD, source: sheet}
"""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail, rather than hang, when the block takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def faults(tmp_path: Path, text: str | bytes) -> list[tuple[int | None, str]]:
    """Return the faults that loading ``text`` reports, as (line, message)."""
    path = tmp_path / "toy.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with at_most(5), pytest.raises(DeviceFileError) as caught:
        load_device(path)
    reported = []
    for line in str(caught.value).splitlines():
        match = re.fullmatch(rf"{re.escape(str(path))}(?::(\d+))?: (.+)", line)
        assert match, f"a fault without its file: {line}"
        reported.append((int(match.group(1)) if match.group(1) else None, match.group(2)))
    return reported


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, f"{old!r} must stand once in the good file"
    return GOOD.replace(old, new)


def line_of(text: str, marker: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if marker in line)


def test_the_good_file_is_read_with_every_field(tmp_path: Path) -> None:
    path = tmp_path / "Toy.yaml"
    path.write_text(GOOD)
    toy = load_device(path)
    assert (toy.id, toy.name, toy.kind, toy.release_year, toy.aliases) == (
        *("Toy", "A toy accelerator", "NPU", 2024),
        ("Plaything",),
    )
    for given, wanted in [
        (toy.peak_flops, Q_(4, "TOP/s")),
        (toy.peak("int8", "2:4"), Q_(8, "TOP/s")),
        (toy.peak("fp16"), Q_(500, "GFLOP/s")),
        (toy.memory_bw, Q_(51.2, "GB/s")),
        (toy.memory_capacity, Q_(8, "GB")),
        (toy.level().latency, Q_(90, "ns")),
        (toy.level("SRAM").capacity, Q_(512, "KiB")),
        (toy.link("PCIe").per_direction, Q_(7.88, "GB/s")),
        (toy.tdp, Q_(5, "W")),
        (toy.chip("clock"), Q_(1, "GHz")),
        (toy.chip("units"), Q_(4, "count")),
        (toy.price, Q_(99, "USD")),
    ]:
        assert_quantity_close(given, wanted, rtol=0)
        assert given.source == "Toy data sheet"
    assert toy.systolic_array == (32, 64, 1)
    assert toy.process_node == "7 nm"
    fact = toy.peak("fp16").origin
    assert (fact.name, fact.meaning, fact.uncertainty) == ("Toy/peaks/fp16/vector/dense", "lanes times clock", 25)
    assert (fact.confidence, toy.tdp.origin.confidence) == ("derived", "secondary"), "the field's, else its source's"
    assert "(pruned)" in toy.peak("int8", "2:4").origin.meaning
    assert toy.peak("int8").origin.meaning == "dense peak, int8, matrix units"
    assert toy.level("SRAM").capacity.origin.meaning == "capacity of SRAM, each unit"
    assert toy == load_device(path, validate=False)


def test_a_level_may_be_called_source(tmp_path: Path) -> None:
    path = tmp_path / "Toy.yaml"
    path.write_text(changed("  SRAM:", "  source:"))
    assert_quantity_close(load_device(path).level("source").capacity, Q_(512, "KiB"))


# --- one fault at a time: (what stands there, what is put there, where it must be reported, what must be said) ---

ONE_FAULT = {
    "missing key": ("vendor: Nobody\n", "", "id: Toy", "'vendor' is a required property"),
    "missing source": ("{value: 5 W, source: sheet}", "{value: 5 W}", "value: 5 W", "'source' is a required property"),
    "missing value": ("{value: 5 W, source: sheet}", "{source: sheet}", "tdp", "'value' is a required property"),
    "missing capacity": (
        *("    capacity: {value: 512 KiB, source: sheet}\n", "", "  SRAM:"),
        "'capacity' is a required property",
    ),
    "unknown source": ("{value: 5 W, source: sheet}", "{value: 5 W, source: shet}", "shet", "'shet' is not among this"),
    "unknown key": (
        *("vendor: Nobody", "vendor: Nobody\nvendro: N", "vendro"),
        "unknown key 'vendro'. Did you mean 'vendor'?",
    ),
    "unknown key of a block": ("power:\n", "powr:\n", "powr", "unknown key 'powr'. Did you mean 'power'?"),
    "unknown key inside": ("  tdp:", "  tpd:", "tpd", "unknown key 'tpd'. Did you mean 'tdp'?"),
    "unknown key of a field": ("note: pruned", "nota: pruned", "nota", "unknown key 'nota'. Did you mean 'note'?"),
    "unknown precision": ("  fp16:", "  fp61:", "fp61", "unknown key 'fp61'. Did you mean 'fp6'?"),
    "unknown sparsity": ('"2:4":', '"4:2":', "4:2", "unknown key '4:2'. Known: dense, 2:4"),
    "unknown kind": ("kind: NPU", "kind: Toaster", "Toaster", "'Toaster' is not one of"),
    "unknown confidence": ("confidence: secondary", "confidence: sure", "sure", "'sure' is not one of"),
    "unknown scope": ("scope: unit", "scope: room", "room", "'room' is not one of"),
    "headline without peak": ("headline: int8", "headline: fp32", "headline", "'fp32' has no peak in this file"),
    "main memory unknown": ("memory:\n", "main_memory: HBM\nmemory:\n", "main_memory", "'HBM' is not a memory level"),
    "main memory slow": ("memory:\n", "main_memory: SRAM\nmemory:\n", "  SRAM:", "the main memory needs a bandwidth"),
    "no memory": (GOOD[GOOD.index("  LPDDR") : GOOD.index("links:")], "  {}\n", "memory", "should be non-empty"),
    "nan": ("value: 5 W", "value: nan W", "nan W", "must be finite and above zero"),
    "infinite": ("value: 5 W", "value: inf W", "inf W", "must be finite and above zero"),
    "beyond floats": ("value: 5 W", "value: 1e400 W", "1e400", "must be finite and above zero"),
    "negative": ("value: 5 W", "value: -5 W", "-5 W", "must be finite and above zero"),
    "zero": ("value: 5 W", "value: 0 W", "0 W", "must be finite and above zero"),
    "no unit": ("value: 5 W", 'value: "5"', '"5"', "must be in W or a multiple of it"),
    "wrong unit": ("value: 5 W", "value: 5 kWh", "kWh", "must be in W or a multiple of it"),
    "rate for an amount": ("value: 8 GB,", "value: 8 GB/s,", "8 GB/s", "must be in byte or a multiple of it"),
    "amount for a rate": ("value: 4 TOP/s", "value: 4 TOP", "4 TOP,", "must be in FLOP/s or a multiple of it"),
    "unit nobody knows": ("value: 4 TOP/s", "value: 4 TOPS", "TOPS", "'TOPS' is not defined"),
    "unit without number": ("value: 5 W", "value: W", "value: W", "must be a number, a space and a unit"),
    "no space": ("value: 5 W", "value: 5W", "5W", "must be a number, a space and a unit"),
    "number only": ("value: 5 W", "value: 5", "value: 5,", "5 is not of type 'string'"),
    "arithmetic": ("value: 5 W", "value: 5 9**9**9**9*W", "9**9", "is not a unit such as 'W'"),
    "huge power": ("value: 5 W", "value: 5 W**999999999", "99999", "is not a unit such as 'W'"),
    "very long value": ("value: 5 W", f"value: {'5' * 50} W", "555", "is too long"),
    "null": ("value: 5 W", "value: null", "null", "None is not of type 'string'"),
    "year as text": ("release_year: 2024", 'release_year: "2024"', "release_year", "is not of type 'integer'"),
    "year of another age": ("release_year: 2024", "release_year: 1066", "1066", "1066 is less than the minimum"),
    "date in words": ('date: "2024-02"', "date: last spring", "last spring", "does not match"),
    "month that does not exist": ('"2024-02"', '"2018-13-45"', "2018-13-45", "'2018-13-45' is not in the calendar"),
    "leap day of another year": ('"2024-02"', '"2023-02-29"', "2023-02-29", "such as '2023-02-01', '2023-02' or"),
    "month without a day": ('"2024-02"', '"2024-00"', "2024-00", "is not in the calendar"),
    "year zero": ('"2024-02"', '"0000"', "0000", "is not in the calendar"),
    "date in the future": ('"2024-02"', '"2999-01-01"', "2999-01-01", "'2999-01-01' is in the future: today is"),
    "year in the future": ('"2024-02"', '"9999"', "9999", "is in the future"),
    "read in the future": ('date: "2024-02"', 'date: "2024-02"\n    read: "2999-01-01"', "2999", "is in the future"),
    "usable above capacity": (
        *(
            "capacity: {value: 512 KiB, source: sheet}",
            "capacity: {value: 512 KiB, source: sheet}\n    usable: {value: 1 MB, source: sheet}",
        ),
        *("usable", "1 MB exceeds `capacity`, 512 KiB"),
    ),
    "a fraction of a unit": (
        'units: {value: "4"',
        'units: {value: "0.3"',
        "0.3",
        "'0.3' counts parts of a chip: write",
    ),
    "units and a half": (
        'units: {value: "4"',
        'units: {value: "4.5 count"',
        "4.5",
        "write a whole number of at least 1",
    ),
    "units that are no number": ('units: {value: "4"', 'units: {value: "four"', "four", "must be a number"),
    "idle above the design power": (
        "  tdp:",
        "  idle: {value: 6 W, source: sheet}\n  tdp:",
        "idle",
        "6 W exceeds `tdp`, 5 W",
    ),
    "boost below the clock": (
        *(
            "  clock: {value: 1 GHz, source: sheet}",
            "  clock: {value: 1 GHz, source: sheet}\n  boost: {value: 900 MHz, source: sheet}",
        ),
        *("clock: {value: 1 GHz", "1 GHz exceeds `boost`, 900 MHz"),
    ),
    "sparse slower than dense": (
        "value: 8 TOP/s",
        "value: 3 TOP/s",
        "dense: {value: 4 TOP/s",
        "4 TOP/s exceeds `2:4`, 3 TOP/s",
    ),
    "blank title": ("title: Toy data sheet", 'title: "         "', "title", "does not match"),
    "blank meaning": ("meaning: lanes times clock", 'meaning: " "', "meaning", "does not match"),
    "uncertainty below zero": ("uncertainty: 25", "uncertainty: -1", "uncertainty", "-1 is less than the minimum of 0"),
    "uncertainty infinite": ("uncertainty: 25", "uncertainty: 1.0e+999", "1.0e+999", "is greater than the maximum"),
    "uncertainty nan": ("uncertainty: 25", "uncertainty: .nan", ".nan", "is not of type 'number'"),
    "list for a mapping": ("{value: 5 W, source: sheet}", "[5 W, sheet]", "5 W, sheet", "is not of type 'object'"),
    "mapping for text": ("vendor: Nobody", "vendor: {a: b}", "vendor", "is not of type 'string'"),
    "alias twice": ("[Plaything]", "[Plaything, Plaything]", "Plaything", "has non-unique elements"),
    "id with a space": ("id: Toy", "id: My Toy", "id:", "does not match"),
    "duplicate key": ("kind: NPU", "kind: NPU\nkind: GPU", "kind: GPU", "kind: duplicate key 'kind'"),
    "duplicate block": ("price:", "power: {}\nprice:", "power: {}", "power: duplicate key 'power'"),
    "duplicate inside": (
        *("    scope: unit", "    scope: unit\n    scope: device", "scope: device"),
        "memory.SRAM.scope: duplicate key 'scope'",
    ),
    "duplicate in flow": (
        *("{value: 5 W, source: sheet}", "{value: 5 W, source: sheet, value: 6 W}", "value: 6 W"),
        "power.tdp.value: duplicate key 'value'",
    ),
    "duplicate source": (
        "headline:",
        '  sheet: {title: Another sheet, date: "2024", confidence: verified}\nheadline:',
        "Another sheet",
        "sources.sheet: duplicate key 'sheet'",
    ),
    "key that is a number": ("vendor: Nobody", "vendor: Nobody\n7: seven", "7: seven", "key 7 must be text"),
    "key that is a list": ("vendor: Nobody", "vendor: Nobody\n? [a]\n: b", "? [a]", "must be text"),
    # what no device file needs
    "tag": ("vendor: Nobody", "vendor: !!python/object/apply:os.getcwd []", "!!python", "is not allowed"),
    "own tag": ("vendor: Nobody", "vendor: !secret x", "!secret", "tag '!secret' is not allowed"),
    "anchor": ("vendor: Nobody", "vendor: &v Nobody", "&v", "anchor or alias 'v' is not allowed"),
    "merge key": ("power:\n", "power:\n  <<: {tdp: 5}\n", "<<", "unknown key '<<'"),
    "two documents": ("price:", "---\nprice:", "---", "but found another document"),
    "tab": ("  tdp:", "\ttdp:", "\ttdp", "not readable as YAML"),
    "unclosed brace": (
        "price: {value: 99 USD, source: sheet}\n",
        "price: {value: 99 USD",
        None,
        "not readable as YAML",
    ),
    "too deep": ("vendor: Nobody", f"vendor: {'[' * 20}{']' * 20}", "[[[", "nested deeper than 12 levels"),
}


def test_dates_up_to_today_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "toy.yaml"
    for date in ("2024", "2024-02-29", datetime.date.today().isoformat()):
        path.write_text(changed('"2024-02"', f'"{date}"'))
        assert load_device(path).sources["sheet"]["date"] == date


@pytest.mark.parametrize("fault", ONE_FAULT)
def test_a_fault_is_told_with_its_line(fault: str, tmp_path: Path) -> None:
    old, new, marker, message = ONE_FAULT[fault]
    text = changed(old, new)
    reported = faults(tmp_path, text)
    assert len(reported) == 1, f"one fault, one line: {reported}"
    assert message in reported[0][1]
    if marker is not None:
        assert reported[0][0] == line_of(text, marker)


def test_all_faults_are_listed_at_once(tmp_path: Path) -> None:
    text = GOOD
    broken = {"value: 5 W": "value: 5 kWh", "vendor: Nobody": "vendro: Nobody", "kind: NPU": "kind: Toaster"}
    broken |= {"value: 8 GB,": "value: -8 GB,", "release_year: 2024": "release_year: soon\nrelease_year: 2"}
    for old, new in broken.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    reported = faults(tmp_path, text)
    markers = ("kWh", "vendro", "Toaster", "-8 GB", "soon", "release_year: 2")
    wanted = {line_of(text, marker) for marker in markers}
    assert {line for line, _ in reported} == wanted | {1}, "line 1: `vendor` is missing from the whole"
    assert len(reported) == 7


def test_faults_of_reference_are_listed_at_once_too(tmp_path: Path) -> None:
    text = GOOD.replace("headline: int8", "headline: fp4").replace("source: sheet", "source: shet")
    reported = faults(tmp_path, text)
    assert len(reported) == 1 + GOOD.count("source: sheet")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("# nothing but a comment\n", "the file is empty"),
        ("just text", "a device file is a mapping of keys to values"),
        ("- a\n- list\n", "a device file is a mapping of keys to values"),
        (b"\xff\xfe\x00", "not readable as YAML"),
        (b"id: \x00", "not readable as YAML"),
        (b"id: \x1b[31m", "not readable as YAML"),
        ("*nowhere", "not readable as YAML"),
        ("x" * (MAX_BYTES + 1), "too large"),
        (
            "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b]",
            "anchor or alias 'a'",
        ),
        ("[" * 190_000, "nested deeper"),
        ("[" * 90_000 + "]" * 90_000, "nested deeper"),
        ("{a: " * 40_000, "nested deeper"),
        ("- " * 90_000, "nested deeper"),
        ("? " * 90_000, "nested deeper"),
    ],
    ids=lambda x: repr(x[:12]),
)
def test_what_is_no_device_file_is_refused_quickly(tmp_path: Path, content: str | bytes, message: str) -> None:
    reported = faults(tmp_path, content)
    assert len(reported) == 1
    assert message in reported[0][1]


def test_what_cannot_be_read_is_a_device_file_error(tmp_path: Path) -> None:
    with pytest.raises(DeviceFileError, match=r"absent\.yaml: cannot be read \(No such file"):
        load_device(tmp_path / "absent.yaml")
    with pytest.raises(DeviceFileError, match="it is a folder"):
        load_device(tmp_path)
    with at_most(5), pytest.raises(DeviceFileError, match="too large"):
        load_device("/dev/zero")


def test_the_fast_way_in_tells_the_same_faults(tmp_path: Path) -> None:
    """The catalogue reads its own files unchecked; a broken one still gives the full report."""
    path = tmp_path / "toy.yaml"
    for old, new in (
        ("value: 5 W", "value: 5 kg"),
        ("headline: int8\n", ""),
        ("    capacity: {value: 512 KiB", "    capacity: {value: x"),
    ):
        path.write_text(changed(old, new))
        with pytest.raises(DeviceFileError) as slow:
            load_device(path)
        if "kg" not in new:  # a wrong dimension is for the check to find, and every shipped file is checked
            with pytest.raises(DeviceFileError) as fast:
                load_device(path, validate=False)
            assert str(fast.value) == str(slow.value)


@pytest.mark.parametrize(
    "unit", ["TFLOP/s", "GB/s", "KiB", "MAC/cycle", "mm**2", "mm * mm", "FLOP/s*s", "USD", "%", "Gbps", "count"]
)
def test_a_unit_is_what_the_registry_makes_of_its_spelling(unit: str) -> None:
    assert _parsed_unit(unit) == ureg.Unit(unit)


# --- fuzz ------------------------------------------------------------------------------

NASTY = [
    *("nan", "inf", "-1", "0", "1e400", "1e-400", "9**9**9", "GB", "null", "~", "true", "{}", "[]", "''", "é", "💥"),
    *(":", "- ", "? ", "&a", "*a", "!!int", "|", ">", "%", "@", "`", "\t", "#", "---", "...", "<<: x", "2024-01-01"),
    *("\u0000", "\ufeff", "0x1F", "1_000", "12:30:45", "9" * 5000, "source", "value", "{source: {source: x}}"),
]


def mutate(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    kind = rng.randrange(10)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif kind == 2:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 3:
        lines[at] = " " * rng.randrange(6) + lines[at].lstrip()
    elif kind == 4:
        lines = lines[:at]
    elif kind == 5:  # another number
        lines[at] = re.sub(r"\d+(\.\d+)?", lambda _: rng.choice(NASTY), lines[at], count=1)
    elif kind == 6:  # another word
        words = re.findall(r"\w+", lines[at]) or ["x"]
        lines[at] = lines[at].replace(rng.choice(words), rng.choice(NASTY + words + ["source", "memory", "peaks"]), 1)
    elif kind == 7:  # another scalar
        key, colon, _ = lines[at].partition(": ")
        lines[at] = f"{key}{colon}{rng.choice(NASTY)}\n"
    else:
        position = rng.randrange(len(lines[at]))
        piece = rng.choice([*NASTY, "", "", rng.choice("{}[]:,'\"-\n ")])
        lines[at] = lines[at][:position] + piece + lines[at][position + (not piece or rng.random() < 0.5) :]
    return "".join(lines)


SHIPPED = sorted((Path(mlsys.hardware.__file__).parent / "data").glob("[!s]*/*.yaml"))  # all but systems


@pytest.mark.parametrize("validate", [True, False], ids=["checked", "unchecked"])
def test_a_mangled_file_gives_a_fault_list_or_a_valid_device(validate: bool, tmp_path: Path) -> None:
    """400 seeded mutations: never another exception, never a hang, and some files must survive."""
    rng = random.Random(20240229)
    path = tmp_path / "mangled.yaml"
    accepted = refused = 0
    for _ in range(400):
        text = rng.choice(SHIPPED).read_text("utf-8") if validate else GOOD
        for _ in range(rng.choice((1, 1, 2, 4))):
            text = mutate(text, rng) or "x"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        with at_most(5):
            try:
                device = load_device(path, validate=validate)
            except DeviceFileError as error:
                refused += 1
                assert str(error).startswith(str(path))
                continue
        accepted += 1
        assert isinstance(device, Device)
        if validate:
            assert not device.precisions or device.peak_flops.magnitude > 0
            if f"{device.main_memory} bandwidth" not in device.unknown():
                assert device.memory_bw.source.strip()
    assert accepted > 20, "else the mutations are too coarse to try the inside"
    assert refused > 150


# --- named mutations: what is broken is told, where it stands, and everything at once -------

FIELD = re.compile(r'\{value: ("[^"]*"|[^,}]+), source: (\w+)')


def _on_a_field(replacement: str, message: str):
    """Make a mutation of one field; ``{number}``, ``{unit}`` and ``{source}`` stand for what was there."""

    def apply(line: str, rng: random.Random) -> tuple[str, str] | None:
        fields = list(FIELD.finditer(line))
        if not fields or line.startswith("  node:"):  # the name of a process is text
            return None
        field = rng.choice(fields)
        number, _, unit = field.group(1).strip('"').partition(" ")
        parts = {"number": number, "unit": f" {unit}" if unit else "", "source": field.group(2)}
        return line[: field.start()] + replacement.format(**parts) + line[field.end() :], message

    return apply


def _another_precision(line: str, rng: random.Random) -> tuple[str, str] | None:
    if line.startswith("headline: "):
        return "headline: int1", "'int1' has no peak in this file"
    match = re.match(r"  (fp64|fp16|bf16|fp8|int8): \{(?:matrix|vector)", line)
    wrong = rng.choice(("fp61", "FP16", "bf61", "int7"))
    return (line.replace(match.group(1), wrong, 1), f"unknown key {wrong!r}") if match else None


TOGETHER = {
    "wrong unit": _on_a_field('{{value: "{number} kg", source: {source}', "or a multiple of it"),
    "unit nobody knows": _on_a_field('{{value: "{number} blorps", source: {source}', "'blorps' is not defined"),
    "swapped precision": _another_precision,
    "negative": _on_a_field('{{value: "-{number}{unit}", source: {source}', "must be finite and above zero"),
    "NaN": _on_a_field('{{value: "nan{unit}", source: {source}', "must be finite and above zero"),
    "duplicate key": _on_a_field('{{value: "{number}{unit}", value: "1", source: {source}', "duplicate key 'value'"),
    "unknown key": _on_a_field('{{value: "{number}{unit}", valeu: "1", source: {source}', "unknown key 'valeu'"),
    "missing source": _on_a_field('{{value: "{number}{unit}"', "'source' is a required property"),
    "source of another file": _on_a_field('{{value: "{number}{unit}", source: nowhere', "is not among this file"),
}
BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
ALONE = {
    "giant file": (lambda text, _: text + "# " + "x" * MAX_BYTES, "too large"),
    "YAML tag": (
        lambda text, marker: text.replace("{value:", f"{{value: !!python/object/apply:os.mkdir ['{marker}'], x:", 1),
        "is not allowed",
    ),
    "anchor bomb": (lambda text, _: BOMB + text, "anchor or alias 'a0' is not allowed"),
}
FUZZED = 540
SMALL = [path for path in SHIPPED if path.stat().st_size < 2600 and path.parent.name != "arrays"]


def test_named_mutations_are_each_told_with_their_line(tmp_path: Path) -> None:
    """Mangled files of every named kind, several faults in most: one error tells all, nothing runs, nothing hangs."""
    rng, marker = random.Random(20261121), tmp_path / "executed"
    kinds = [*TOGETHER, *ALONE]
    applied: Counter[str] = Counter()
    for number in range(FUZZED):
        kind = kinds[number % len(kinds)]
        lines = rng.choice(SMALL).read_text("utf-8").split("\n")
        if kind in ALONE:
            spoil, message = ALONE[kind]
            wanted = {(None, message)}
            text = spoil("\n".join(lines), marker)
            applied[kind] += 1
        else:
            wanted, untouched = set(), list(range(len(lines)))
            for which in (kind, *rng.choices([*TOGETHER], k=rng.randrange(4))):
                rng.shuffle(untouched)
                for at in untouched:
                    result = TOGETHER[which](lines[at], rng)
                    if result:
                        lines[at], message = result
                        wanted.add((at + 1, message))
                        untouched.remove(at)
                        applied[which] += 1
                        break
            text = "\n".join(lines)
        reported = faults(tmp_path, text)
        for line, message in wanted:
            # Two keys may be misspelt alike: the second is then a double before it is unknown.
            either = (message, message.replace("unknown key", "duplicate key"))
            assert any(
                line in (None, where) and any(words in stderr for words in either) for where, stderr in reported
            ), (
                line,
                message,
                reported,
            )
        assert len(reported) <= 2 * len(wanted) + 1, f"more faults than were made: {reported}"
    assert not marker.exists(), "a tag was executed"
    assert sum(applied.values()) > 1.5 * FUZZED
    assert min(applied[kind] for kind in kinds) >= FUZZED // len(kinds) - 5, applied


def test_a_decimal_comma_in_braces_says_what_to_write(tmp_path: Path) -> None:
    text = (
        (Path(mlsys.hardware.__file__).parent / "data" / "cloud" / "T4.yaml")
        .read_text(encoding="utf-8")
        .replace("8.1 TFLOP/s", "19,5 TFLOP/s", 1)
    )
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(DeviceFileError, match="'5 TFLOP/s'. Write a decimal point: in braces a comma ends a value"):
        load_device(tmp_path / "mine.yaml")
