"""Traces of requests: CSV and JSON lines, with the column names of published traces."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.faults import short
from mlsys.inputs import csv_records, read_text
from mlsys.models.serving.requests import Prefixes, Requests


class Columns(NamedTuple):
    """Names of the columns of a trace, and how many of its units of time make a second.

    Of a trace that states which blocks its prompts have, also that column and the tokens of a block.
    """

    arrival: str
    prompt: str
    output: str
    per_second: float = 1.0
    blocks: str = ""
    block: int = 0


KNOWN = {
    "Azure LLM inference trace": Columns("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "Mooncake": Columns("timestamp", "input_length", "output_length", 1000.0, "hash_ids", 512),
    "vidur": Columns("arrived_at", "num_prefill_tokens", "num_decode_tokens"),
    "BurstGPT": Columns("Timestamp", "Request tokens", "Response tokens"),
    "mlsys": Columns("arrival_seconds", "prompt_tokens", "output_tokens"),
}
"""Columns of published traces: Azure/AzurePublicDataset (2023, CC BY 4.0), kvcache-ai/Mooncake (times in ms),
microsoft/vidur, HPMLL/BurstGPT (CC BY 4.0); and the per-request table of :func:`mlsys.serve_sim`."""


def read_trace(path: str | Path, columns: Mapping[str, str] | None = None) -> Requests:
    r"""Return the requests of a trace file, with arrival times from zero.

    Rows without output tokens, such as failed requests, are left out and counted in ``left_out``. Where every row of a
    Mooncake trace has ``hash_ids``, one for each 512 tokens of its prompt, these are the ``prefixes`` of the requests.

    Parameters
    ----------
    path
        A CSV file whose first line names its columns, or a file of JSON objects, one a line (``.jsonl``).
    columns
        Names of the columns ``"arrival"`` (seconds, or dates and times), ``"prompt"`` and ``"output"``; by default
        those of a known trace.

    Raises
    ------
    ArgumentError
        If no columns are known, or a row is wrong; the message says which.
    UnreadableError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "trace.csv"
    >>> _ = file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5,374,44\n"
    ...                     "2023-11-16 18:15:50.75,396,109\n")
    >>> read_trace(file).arrival.tolist()
    [0.0, 4.25]
    """
    rows = _json_rows(path) if Path(path).suffix in (".jsonl", ".ndjson") else _csv_rows(path)
    if not rows:
        raise ArgumentError(f"{path}: the trace has no requests")
    names = _columns(path, rows[0][1], columns)
    arrivals: list[float] = []
    prompts: list[int] = []
    outputs: list[int] = []
    blocks: list[tuple[int, ...]] = []
    hashed = bool(names.blocks) and all(names.blocks in row for _, row in rows)
    left_out, first, before = 0, None, -math.inf
    for line, row in rows:
        time = _time(path, line, names, row) / names.per_second
        if time < before:
            raise ArgumentError(
                f"{path}, line {line}: time goes back, {row[names.arrival]} after a later one. Sort the trace by "
                f"{names.arrival}"
            )
        before = time
        first = time if first is None else first
        prompt, output = (_tokens(path, line, name, row) for name in (names.prompt, names.output))
        if not output:
            left_out += 1
            continue
        if not prompt:
            raise ArgumentError(f"{path}, line {line}: {names.prompt} must be at least 1, got 0")
        arrivals.append(time - first)
        prompts.append(prompt)
        outputs.append(output)
        if hashed:
            blocks.append(_blocks(path, line, names, row, prompt))
    if not arrivals:
        raise ArgumentError(f"{path}: no request of the trace generates a token")
    return Requests(
        np.asarray(arrivals), np.asarray(prompts), np.asarray(outputs), f"trace {Path(path).name}", left_out,
        Prefixes(tuple(blocks), names.block) if hashed else None,
    )  # fmt: skip


def _blocks(path: str | Path, line: int, names: Columns, row: Mapping[str, Any], prompt: int) -> tuple[int, ...]:
    """Return the numbers of the blocks of a prompt, one for each so many tokens."""
    stated = row[names.blocks]
    if not isinstance(stated, list) or not all(isinstance(each, int) and not isinstance(each, bool) for each in stated):
        raise ArgumentError(f"{path}, line {line}: {names.blocks} must be a list of whole numbers, got {short(stated)}")
    most = -(-prompt // names.block)
    if len(stated) > most:
        raise ArgumentError(
            f"{path}, line {line}: {names.blocks} has {len(stated)} blocks of {names.block} tokens, and {names.prompt} "
            f"{prompt} has room for {most}"
        )
    return tuple(stated)


def _csv_rows(path: str | Path) -> list[tuple[int, dict[str, Any]]]:
    records = csv_records(path)
    if not records:
        raise ArgumentError(f"{path}: the trace is empty")
    heads = [head.strip() for head in records[0][1]]
    rows = []
    for line, cells in records[1:]:
        if len(cells) != len(heads):
            raise ArgumentError(f"{path}, line {line}: wanted {len(heads)} cells, got {len(cells)}")
        rows.append((line, dict(zip(heads, cells, strict=True))))
    return rows


def _json_rows(path: str | Path) -> list[tuple[int, dict[str, Any]]]:
    rows = []
    for line, text in enumerate(read_text(path).splitlines(), 1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise ArgumentError(f"{path}, line {line}: must be a JSON object, got {short(text)}")
        rows.append((line, row))
    return rows


def _columns(path: str | Path, row: Mapping[str, Any], given: Mapping[str, str] | None) -> Columns:
    if given is not None:
        wrong = set(given) ^ {"arrival", "prompt", "output"}
        if wrong:
            raise ArgumentError(
                f"`columns` must name arrival, prompt and output, got {', '.join(sorted(given)) or 'none'}"
            )
        names = Columns(given["arrival"], given["prompt"], given["output"])
        missing = [name for name in names[:3] if name not in row]
        if missing:
            raise ArgumentError(f"{path}: no column {', '.join(map(repr, missing))}; found: {short(list(row))}")
        return names
    for names in KNOWN.values():
        if all(name in row for name in names[:3]):
            return names
    wanted = "; ".join(", ".join(names[:3]) for names in KNOWN.values())
    raise ArgumentError(
        f"{path}: columns of no known trace, found: {short(list(row))}. Known: {wanted}. Name yours with "
        "columns={'arrival': …, 'prompt': …, 'output': …}"
    )


def _time(path: str | Path, line: int, names: Columns, row: Mapping[str, Any]) -> float:
    value = row.get(names.arrival)
    number = _number(value)
    if number is None:
        try:
            return datetime.fromisoformat(_six_digits(str(value))).timestamp()
        except (ValueError, OverflowError):
            raise ArgumentError(
                f"{path}, line {line}: {names.arrival} must be a number or a date and time, got {short(value)}"
            ) from None
    if not 0 <= number < math.inf:
        raise ArgumentError(f"{path}, line {line}: {names.arrival} must be finite and not negative, got {short(value)}")
    return number


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _six_digits(text: str) -> str:
    """Return a date and time whose fraction of a second is cut to microseconds."""
    head, point, fraction = text.strip().partition(".")
    return head + (point + fraction[:6].ljust(6, "0") if fraction.isdigit() else point + fraction)


def _tokens(path: str | Path, line: int, name: str, row: Mapping[str, Any]) -> int:
    value = row.get(name)
    number = _number(value)
    if number is None or not (0 <= number < 1e9 and number == int(number)):
        raise ArgumentError(f"{path}, line {line}: {name} must be a whole number of tokens, got {short(value)}")
    return int(number)
