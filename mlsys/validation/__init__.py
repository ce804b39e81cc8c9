"""How wrong are our models? Published measurements beside what the models predict."""

from mlsys.validation.answers import answer_table, class_scores
from mlsys.validation.cards import card_table
from mlsys.validation.examination import (
    Examined,
    examination_rows,
    examination_table,
    examinations_table,
    examined,
    held_examinations,
)
from mlsys.validation.predictors import (
    comparisons,
    operators_in_networks_table,
    predictor_table,
    single_operators,
    single_table,
)
from mlsys.validation.refit import held_out_predictions, held_out_scores
from mlsys.validation.report import Prediction, Score, Validation, score, validate
from mlsys.validation.rows import Row, cited_rows, read_rows, shipped_rows, sources
from mlsys.validation.scales import parted, scale_table
from mlsys.validation.tables import bound_table, error_table, reason_table, worst_table
from mlsys.validation.ten import ten_back, ten_table

__all__ = [
    "Examined",
    "Prediction",
    "Row",
    "Score",
    "Validation",
    "answer_table",
    "bound_table",
    "card_table",
    "cited_rows",
    "class_scores",
    "comparisons",
    "error_table",
    "examination_rows",
    "examination_table",
    "examinations_table",
    "examined",
    "held_examinations",
    "held_out_predictions",
    "held_out_scores",
    "operators_in_networks_table",
    "parted",
    "predictor_table",
    "read_rows",
    "reason_table",
    "scale_table",
    "score",
    "shipped_rows",
    "single_operators",
    "single_table",
    "sources",
    "ten_back",
    "ten_table",
    "validate",
    "worst_table",
]
