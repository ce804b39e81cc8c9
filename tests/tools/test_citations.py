"""The list of references is labelled as the text cites."""

from types import SimpleNamespace

from pybtex.database import Entry, Person, parse_file
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle

from citations import AuthorYearLabels, AuthorYearStyle, label_of
from pages import ROOT
from sampled import over_all

LITERATURE = parse_file(str(ROOT / "book" / "references.bib")).entries


def entry(year: str, *people: str) -> Entry:
    return Entry("article", {"year": year, "title": "A title"}, {"author": [Person(person) for person in people]})


@over_all(sorted(LITERATURE))
def test_a_label_reads_as_the_citation_in_the_text(key):
    style = SimpleNamespace(person=AuthorYearReferenceStyle().person)
    template = style.person.author_or_editor_or_title(full=False)
    cited = template.format_data({"entry": LITERATURE[key], "style": style})
    assert label_of(LITERATURE[key]) == f"{cited}, {LITERATURE[key].fields['year']}".replace("\N{NO-BREAK SPACE}", " ")


def test_two_that_would_read_the_same_are_told_apart():
    twice = [entry("2017", "Jouppi, Norman"), entry("2014", "Horowitz, Mark"), entry("2017", "Jouppi, Norman")]
    assert list(AuthorYearLabels().format_labels(twice)) == ["Jouppi, 2017a", "Horowitz, 2014", "Jouppi, 2017b"]


def test_institutions_stand_among_people_in_the_order_of_the_labels():
    listed = AuthorYearStyle().sort(LITERATURE.values())
    first = [label_of(entry).partition(",")[0].casefold() for entry in listed]
    assert first == sorted(first, key=lambda label: label.split(" ")[0])
