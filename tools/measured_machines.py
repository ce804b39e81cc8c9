"""The measured rows of each machine, and a signature of what is predicted for them."""

import math
from collections import Counter
from typing import Any


def machines() -> dict[str, tuple[Any, ...]]:
    """Return the rows of each machine, those of the blind evaluations included, by the name in their sources."""
    from mlsys_evidence import blind_evaluation_rows
    from mlsys_evidence.evaluate.blind_evaluation import completed_blind_evaluations
    from mlsys_evidence.evaluate.report import by_machine
    from mlsys_evidence.rows import shipped_rows

    unseen = [row for number in completed_blind_evaluations() for row in blind_evaluation_rows(number)]
    rows = (*shipped_rows(), *unseen)
    return {machine: tuple(rows[index] for index in places) for machine, places in by_machine(rows).items()}


def signature(machine: str, rows: tuple[Any, ...]) -> str:
    """Return a line that changes with any prediction: sums of logarithms, and the rows that beat their bound."""
    from mlsys_evidence.evaluate.report import predictions_on

    done = [each for each in predictions_on(machine, rows) if each.answered]
    numbers = {
        "value": [each.value for each in done],
        "bound": [each.bound for each in done if each.bound > 0],
        "low": [each.low for each in done],
        "high": [each.high for each in done],
    }
    sums = [f"{name} {math.fsum(map(math.log, values)):.7f}" for name, values in numbers.items()]
    excuses = Counter(each.excuse.partition(":")[0] for each in done if each.excuse)
    beaten = [f"{many} beaten by {excuse}" for excuse, many in sorted(excuses.items())]
    return f"{machine} = {', '.join([f'{len(done)} of {len(rows)} rows', *sums, *beaten])}"
