"""Excerpts of the measurements that :mod:`mlsys` ships by itself."""

from mlsys.files import Drafts, csv_text
from mlsys.measure.recommend.platforms import PUBLISHED_RUNS
from mlsys_evidence.rows import shipped_rows, typed


def tiny_runs() -> list[dict[str, object]]:
    """Return the results of MLPerf Tiny: runs that state time and energy, and times of INT8 networks."""
    runs: list[dict[str, object]] = []
    for row in shipped_rows():
        rate = typed(row).get("run_rate")
        if typed(row).has("energy") and rate and row.unit == "uJ":
            latency, energy = 1e3 / rate, repr(row.value / 1e3)
        elif (row.metric, row.unit, row.precision) == ("latency", "ms", "int8") and row.source.startswith(
            "mlcommons/tiny"
        ):
            latency, energy = row.value, ""
        else:
            continue
        source = f"{row.source}, {row.software or row.source_path.split('/')[1]}; {row.source_path}"
        runs.append(
            {
                "device": row.device, "network": row.model, "latency_ms": repr(latency), "energy_mj": energy,
                "source": source,
            }
        )  # fmt: skip
    return runs


def excerpt_text() -> str:
    """Return the text of the file that :mod:`mlsys.measure` reads."""
    return csv_text(tiny_runs())


def save_excerpts(files: Drafts) -> None:
    """Write the excerpts into :mod:`mlsys`, with the other results of a refit."""
    files.text(PUBLISHED_RUNS, excerpt_text())
