"""The wrap-up of a lab: its findings and its conclusions."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One result of a lab.

    Attributes
    ----------
    text
        The finding, with its numbers.
    code
        Lines that compute it; the last one is an expression.
    """

    text: str
    code: str = ""


@dataclass(frozen=True)
class WrapUp:
    """The wrap-up of a lab: findings and lessons."""

    findings: tuple[Finding, ...]
    lessons: tuple[str, ...]
