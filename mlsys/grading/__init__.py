"""Grading of labs: hand-in files and notebooks in, scores, feedback and grade files out; and the question bank.

The files are not trusted. Notebooks are read and not run, unless a sandbox is given to run them in; links are not
followed, archives are not unpacked, and scores are recomputed from the answers.
"""

from mlsys.grading.bank import Variant, bank, moodle_xml, plain_text, qti_zip
from mlsys.grading.execute import Execution, execute
from mlsys.grading.exports import canvas_csv, files_csv, items_csv, moodle_csv
from mlsys.grading.gradebook import Gradebook, QuestionStatistics, Row, SharedContent
from mlsys.grading.report import pages
from mlsys.grading.roster import Roster, read_roster
from mlsys.grading.rubric import Item, read_key
from mlsys.grading.run import grade
from mlsys.grading.sandbox import Limits, Sandbox
from mlsys.grading.score import DEFAULT_POLICY, ItemScore, LabScore, Policy

__all__ = [
    "DEFAULT_POLICY",
    "Execution",
    "Gradebook",
    "Item",
    "ItemScore",
    "LabScore",
    "Limits",
    "Policy",
    "QuestionStatistics",
    "Roster",
    "Row",
    "Sandbox",
    "SharedContent",
    "Variant",
    "bank",
    "canvas_csv",
    "execute",
    "files_csv",
    "grade",
    "items_csv",
    "moodle_csv",
    "moodle_xml",
    "pages",
    "plain_text",
    "qti_zip",
    "read_key",
    "read_roster",
]
