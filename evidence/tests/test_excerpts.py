"""What the library ships of the measurements is what they are."""

from mlsys.measure.recommend.platforms import PUBLISHED_RUNS
from mlsys_evidence.excerpts import excerpt_text


def test_the_excerpt_is_that_of_the_shipped_rows() -> None:
    assert PUBLISHED_RUNS.read_text("utf-8") == excerpt_text(), "type: mlsys validate --refit"
