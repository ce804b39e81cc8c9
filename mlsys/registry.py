"""Mark the chapter whose claims follow."""

from mlsys.claims.page import end_chapter, start_chapter

__all__ = ["end_chapter", "start_chapter"]
