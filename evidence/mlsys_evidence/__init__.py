"""How wrong are our models? Published measurements beside what the models predict."""

import warnings

from mlsys.calibration.rows import Row, read_rows
from mlsys_evidence.evaluate.answers import (
    answer_table,
    blind_predictions,
    class_errors,
    class_scores,
    group_scores,
    group_table,
)
from mlsys_evidence.evaluate.blind_evaluation import blind_evaluation_rows, completed_blind_evaluations
from mlsys_evidence.evaluate.error_decomposition import error_decompositions
from mlsys_evidence.evaluate.predictors import comparisons, predictor_table
from mlsys_evidence.evaluate.report import Prediction, Score, Validation, score, validate
from mlsys_evidence.evaluate.ten_sample_study import ten_back
from mlsys_evidence.fit.cards import card_table
from mlsys_evidence.fit.refit import held_out_predictions, held_out_scores
from mlsys_evidence.rows import cited_rows, shipped_rows, sources

__all__ = [
    "Prediction",
    "Row",
    "Score",
    "Validation",
    "answer_table",
    "blind_evaluation_rows",
    "blind_predictions",
    "card_table",
    "cited_rows",
    "class_errors",
    "class_scores",
    "comparisons",
    "completed_blind_evaluations",
    "error_decompositions",
    "group_scores",
    "group_table",
    "held_out_predictions",
    "held_out_scores",
    "predictor_table",
    "read_rows",
    "score",
    "shipped_rows",
    "sources",
    "ten_back",
    "validate",
]

_RENAMED = {
    "examination_rows": "blind_evaluation_rows",
    "held_examinations": "completed_blind_evaluations",
    "parted": "error_decompositions",
}


def __getattr__(name: str) -> object:
    """Return a renamed function by its deprecated name."""
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"mlsys_evidence.{name} is deprecated: write {_RENAMED[name]}", DeprecationWarning, stacklevel=2)
    return globals()[_RENAMED[name]]
