"""A machine that is set up next year gets what the tests passed with."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PINNED = re.compile(r"^([\w.-]+)==([\w.+!-]+)$", re.MULTILINE)


def pinned(file: str) -> set[str]:
    """Return the packages that a file gives one version of."""
    return {canonicalize_name(name) for name, _ in PINNED.findall((ROOT / file).read_text("utf-8"))}


def requirements_of(name: str, extras: frozenset[str] = frozenset()) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the packages that an installed one asks for here."""
    try:
        lines = requires(name) or []
    except PackageNotFoundError:
        return
    for line in lines:
        wanted = Requirement(line)
        marker = wanted.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(wanted.name), frozenset(wanted.extras)


def test_every_package_that_is_installed_is_pinned() -> None:
    direct = pinned("requirements.txt")
    left, seen = [(name, frozenset[str]()) for name in direct], set()
    while left:
        package = left.pop()
        if package not in seen:
            seen.add(package)
            left += requirements_of(*package)
    names = {name for name, _ in seen}
    assert len(names) > len(direct) + 100
    assert sorted(names - direct - pinned("constraints.txt")) == []
    assert not direct & pinned("constraints.txt")
