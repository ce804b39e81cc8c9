"""How wrong are our models? Published measurements beside what the models predict."""

from mlsys.validation.report import Prediction, Score, Validation, score, validate
from mlsys.validation.rows import Row, read_rows, shipped_rows, sources

__all__ = [
    "Prediction",
    "Row",
    "Score",
    "Validation",
    "read_rows",
    "score",
    "shipped_rows",
    "sources",
    "validate",
]
