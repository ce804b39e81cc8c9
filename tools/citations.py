"""A Sphinx extension that labels the list of references as the text cites them.

The text says [Amdahl, 1967]; the styles that come with pybtex would label the same entry [Amd67].
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from pybtex.database import Entry, Person
from pybtex.plugin import register_plugin
from pybtex.style.formatting.unsrt import Style as PlainStyle
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.sorting.author_year_title import SortingStyle

__all__ = ["AuthorYearLabels", "AuthorYearStyle", "label_of", "setup"]


def label_of(entry: Entry) -> str:
    """Return authors and year, as the text cites them.

    Examples
    --------
    >>> people = {"author": [Person("Williams, Samuel"), Person("Waterman, Andrew"), Person("Patterson, David")]}
    >>> label_of(Entry("article", {"year": "2009"}, people))
    'Williams et al., 2009'
    """
    people = [_family_name(person) for person in entry.persons.get("author", [])]
    if len(people) > 2:
        people = [f"{people[0]} et al."]
    who = " and ".join(people) or entry.fields["title"].replace("{", "").replace("}", "")
    return f"{who}, {entry.fields['year']}"


class AuthorYearLabels(BaseLabelStyle):
    """Labels such as *Amdahl, 1967*, with a, b, … appended to identical ones."""

    def format_labels(self, sorted_entries: Iterable[Entry]) -> Iterator[str]:
        """Yield a label for each entry."""
        labels = [label_of(entry) for entry in sorted_entries]
        count, seen = Counter(labels), Counter[str]()
        for label in labels:
            yield label if count[label] == 1 else label + chr(ord("a") + seen[label])
            seen[label] += 1


class AuthorYearSorting(SortingStyle):
    """Sorting by author and year; institutions, in braces in the file, are sorted among people by name."""

    def person_key(self, person: Person) -> str:
        """Return the sorting key of an author."""
        key: str = super().person_key(person)
        return key.replace("{", "").replace("}", "")


class AuthorYearStyle(PlainStyle):
    """The plain style, sorted by author and labelled as the text cites."""

    default_label_style = AuthorYearLabels
    default_sorting_style = AuthorYearSorting


def _family_name(person: Person) -> str:
    return " ".join([*person.prelast_names, *person.last_names]).replace("{", "").replace("}", "")


def setup(app: Any) -> dict[str, bool]:
    """Register the style with sphinxcontrib-bibtex under the name ``author-year``."""
    register_plugin("pybtex.style.formatting", "author-year", AuthorYearStyle)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
