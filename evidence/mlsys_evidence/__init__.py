"""How wrong are our models? Published measurements beside what the models predict."""

from mlsys.calibration.rows import Row, read_rows
from mlsys_evidence.evaluate.answers import answer_table, class_scores
from mlsys_evidence.evaluate.blind_evaluation import (
    Examined,
    examination_rows,
    examination_table,
    examinations_table,
    examined,
    held_examinations,
)
from mlsys_evidence.evaluate.error_decomposition import parted, scale_table
from mlsys_evidence.evaluate.predictors import (
    comparisons,
    operators_in_networks_table,
    predictor_table,
    single_operators,
    single_table,
)
from mlsys_evidence.evaluate.report import Prediction, Score, Validation, score, validate
from mlsys_evidence.evaluate.tables import bound_table, error_table, reason_table, worst_table
from mlsys_evidence.evaluate.ten_sample_study import ten_back, ten_table
from mlsys_evidence.fit.cards import card_table
from mlsys_evidence.fit.refit import held_out_predictions, held_out_scores
from mlsys_evidence.rows import cited_rows, shipped_rows, sources

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
