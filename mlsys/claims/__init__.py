"""Claims: named values that a page states, with their derivation and sources."""

from mlsys.claims.filed import Claim, Page
from mlsys.claims.ledgers import Move, diff, ledger, ledger_at
from mlsys.claims.page import claim, claims_table, current_page, end_chapter, given, start_chapter

__all__ = [
    "Claim",
    "Move",
    "Page",
    "claim",
    "claims_table",
    "current_page",
    "diff",
    "end_chapter",
    "given",
    "ledger",
    "ledger_at",
    "start_chapter",
]
