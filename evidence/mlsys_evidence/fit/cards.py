"""Power of accelerator cards at work: metered, fitted with static and dynamic parts, judged on cards left out.

Two kinds of rows. Cards that read their own power while they served language models (ML.ENERGY); and whole
servers at the wall in MLPerf's power runs, whose cards were held below their design power ("MaxQ") by limits that
the submitter's configurations state for most. The first are fitted. Of the second, a card is predicted with its limit
in the place of the design power; what the server draws over that is estimated once, as one factor, and judged with each
machine left out. Servers whose limit was not seen say nothing of either.

The last digits of a fit depend on the CPU that it runs on, so ``mlsys validate --refit`` stores the law of all cards
(``powers.yaml`` in :mod:`mlsys.models.energy`) and those without each card, and errors follow from what is stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.rows import Row
from mlsys.files import Drafts
from mlsys.frozen import FrozenDict
from mlsys.hardware import Hardware
from mlsys.hardware.view import view
from mlsys.inputs import read_text, yaml_of
from mlsys.models.energy.boards import fitted_powers
from mlsys.models.energy.cards import CARD, demands, watts_drawn
from mlsys.models.estimate.work import COLLECTIVE
from mlsys.precision import precision_name
from mlsys.provenance import remembered
from mlsys.tables import Table, tabled
from mlsys_evidence.questions import ask
from mlsys_evidence.rows import cited, typed

Array = NDArray[np.float64]
_LEFT_OUT = Path(__file__).parents[1] / "data" / "cards_left_out.yaml"
_PARTS = ("static", "byte", "operation")
_INNER = (0.1, 0.9)
# Static part, multiples of the price of a byte and of an operation: where fits start, for they have several valleys.
_STARTS = ((0.1, 3.0, 10.0), (0.2, 8.0, 50.0), (0.05, 10.0, 60.0))
_LIMITS = ((0.02, 0.1, 0.1), (0.6, 100.0, 200.0))


@dataclass(frozen=True)
class CardRun:
    """One run whose power was metered.

    Attributes
    ----------
    row, twin
        The measurement, and the card's twin.
    wall
        Whether the whole server was metered, at the wall.
    watts
        For each card, W.
    design, operations, bytes
        Design power, or the limit below it; and what the work costs by the price list, each second: W, all of one card.
    """

    row: Row
    twin: str
    wall: bool
    watts: float
    design: float
    operations: float
    bytes: float


@lru_cache(maxsize=1)
def card_rows() -> tuple[Row, ...]:
    """Return the shipped rows of the power of cards.

    Examples
    --------
    >>> {row.metric for row in card_rows()} == {'power of a card', 'system wall power'}
    True
    """
    return tuple(cited("card_power.csv.gz"))


def _limit(row: Row) -> float:
    """Return the power that a card of a metered server was limited to, W."""
    limit = typed(row).get("power_limit")
    if not limit:
        raise Inexpressible("the limit of the cards' power was not seen")
    return limit


def _timed(row: Row) -> Case:
    """Return the same run by the rate that its source states."""
    known = typed(row)
    if "run_rate" not in known.numbers:
        raise Inexpressible(known.refused or "no rate of the same run")
    unit = "tokens/s" if known.has("tokens counted") else "samples/s"
    timed = replace(row, metric="throughput", unit=unit, value=known.get("run_rate"))
    return ask(replace(known, row=timed, refused=""))


def _run(row: Row, wall: bool) -> CardRun:
    case = _timed(row)
    work = case.work
    traffic = float((work["moved"] * work["count"])[work["kind"] != COLLECTIVE].sum())
    machine = view(Hardware[case.twin], precision_name(row.precision))
    # Cards that share a model are one engine with the bandwidth of all.
    together = case.engine.bandwidth / float(machine.main.quantity("bandwidth").m_as("byte/s"))
    parts = demands(machine, work.flops, traffic)
    operations, bytes_ = (float(part.m_as("J")) / case.seconds / together for part in parts)
    watts = row.value / (row.n_devices if wall else 1)
    design = _limit(row) if wall else float(machine.quantity("tdp").m_as("W"))
    return CardRun(row, case.twin, wall, watts, design, operations, bytes_)


@remembered
def card_runs() -> tuple[CardRun, ...]:
    """Return every metered run whose work is known: of cards, and of servers with cards at the wall.

    Examples
    --------
    >>> sorted({run.twin for run in card_runs() if not run.wall})
    ['B200', 'H100_SXM']
    """
    runs = []
    for row in card_rows():
        try:
            runs.append(_run(row, typed(row).has("wall power")))
        except Inexpressible:
            continue
    return tuple(runs)


def _predicted(law: Sequence[float], runs: Sequence[CardRun]) -> Array:
    named = dict(zip(_PARTS, law, strict=True))
    return np.array([watts_drawn(run.design, run.operations, run.bytes, named)[0] for run in runs])


def _law(runs: Sequence[CardRun]) -> list[float]:
    from scipy.optimize import least_squares

    measured = np.log([run.watts for run in runs])
    tried = [
        least_squares(
            lambda law: np.log(_predicted(law.tolist(), runs)) - measured,
            start,
            bounds=_LIMITS,
            loss="soft_l1",
            f_scale=0.1,
            x_scale=start,
        )
        for start in _STARTS
    ]
    return [float(value) for value in min(tried, key=lambda solution: solution.cost).x]


Laws = Mapping[str, Sequence[float]]
"""Static part, multiples of the price of a byte and of an operation: of all cards (under ``""``), and without each."""


def fit_laws() -> dict[str, list[float]]:
    """Fit the law of all cards, and those without each card in turn."""
    cards = [run for run in card_runs() if not run.wall]
    without = {twin: _law([run for run in cards if run.twin != twin]) for twin in sorted({run.twin for run in cards})}
    return {"": _law(cards)} | without


def save_laws_left_out(laws: Laws, files: Drafts, path: Path = _LEFT_OUT) -> None:
    """Draft the file of the laws without each card."""
    lines = [
        "# Power of cards by fits without each card in turn: static part of the design power, multiples of the prices",
        "# of a byte and of an operation; fitted by `mlsys validate --refit`, not edited by hand.",
        *(f"{twin}: [{', '.join(f'{value:.4g}' for value in law)}]" for twin, law in sorted(laws.items()) if twin),
    ]
    files.text(path, "\n".join(lines) + "\n")


@lru_cache(maxsize=1)
def stored_laws() -> FrozenDict[str, tuple[float, ...]]:
    """Return the laws of the last fit: of all cards, under the empty name, and without each card."""
    without = {twin: tuple(map(float, law)) for twin, law in yaml_of(read_text(_LEFT_OUT)).items()}
    return FrozenDict({"": tuple(float(fitted_powers()[CARD][part]) for part in _PARTS)} | without)


@remembered
def left_out() -> dict[str, tuple[CardRun, float]]:
    """Return, by id of its row, every run and its power as predicted without its machine, W for each card.

    Servers have the factor of the others.

    Examples
    --------
    >>> all(predicted > 0 for _, predicted in left_out().values())
    True
    """
    return _left_out(stored_laws())


def _left_out(laws: Laws) -> dict[str, tuple[CardRun, float]]:
    runs = card_runs()
    cards, walls = ([run for run in runs if run.wall is wall] for wall in (False, True))
    predicted: dict[str, tuple[CardRun, float]] = {}
    for twin in sorted({run.twin for run in cards}):
        own = [run for run in cards if run.twin == twin]
        values = _predicted(laws[twin], own).tolist()
        predicted |= {run.row.id: (run, value) for run, value in zip(own, values, strict=True)}
    ratios = [(run, run.watts / value) for run, value in zip(walls, _predicted(laws[""], walls).tolist(), strict=True)]
    for run, ratio in ratios:
        factor = _middle([(other, each) for other, each in ratios if other.twin != run.twin])
        predicted[run.row.id] = (run, run.watts / ratio * factor)
    return predicted


def _middle(ratios: Sequence[tuple[CardRun, float]]) -> float:
    """Return the median over machines of the median of each."""
    by: dict[str, list[float]] = {}
    for run, ratio in ratios:
        by.setdefault(run.twin, []).append(ratio)
    return median(median(values) for values in by.values())


def wall_factor() -> float:
    """Return what a server draws at the wall over what its cards are predicted to, in the median of machines."""
    walls = [run for run in card_runs() if run.wall]
    whole = _predicted(stored_laws()[""], walls)
    return _middle([(run, run.watts / value) for run, value in zip(walls, whole.tolist(), strict=True)])


def fit_cards(laws: Laws) -> dict[str, Any]:
    """Return the law of cards, as :func:`mlsys.models.energy.boards.fitted_powers` keeps it.

    Its range holds four in five of the runs left out with their machine, servers among them.

    Parameters
    ----------
    laws
        As :func:`fit_laws` returns them.
    """
    cards = [run for run in card_runs() if not run.wall]
    ratios = [run.watts / predicted for run, predicted in _left_out(laws).values()]
    low, high = (float(np.quantile(ratios, part)) for part in _INNER)
    return {
        **dict(zip(_PARTS, laws[""], strict=True)),
        "low": min(1.0, low),
        "high": max(1.0, high),
        "rows": len(cards),
        "machines": len({run.twin for run in cards}),
    }


@tabled
def card_table() -> Table:
    """Return the error of the power, and so of the energy at a known time, of each card left out."""
    by: dict[tuple[bool, str], list[tuple[CardRun, float]]] = {}
    for run, predicted in left_out().values():
        by.setdefault((run.wall, run.twin), []).append((run, predicted))
    heads = ("card", "metered", "runs", "W a card", "median error", "largest")
    rows = []
    for (wall, twin), pairs in sorted(by.items()):
        errors = [abs(predicted / run.watts - 1) for run, predicted in pairs]
        watts = [run.watts for run, _ in pairs]
        rows.append(
            (
                Hardware[twin].name,
                "server, at the wall" if wall else "card",
                str(len(pairs)),
                f"{min(watts):.0f} to {max(watts):.0f}",
                f"{median(errors):.0%}",
                f"{max(errors):.0%}",
            )
        )
    return Table("Power of cards at work, each card left out of the fit", heads, rows)
