"""The pages of the site hang together, without building it."""

import re
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

import lance_sdk

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {str(page.relative_to(DOCS).with_suffix("")): page for page in DOCS.rglob("*.rst")}
PAPERS = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")]
STRAY = re.compile(r"(?<![\w.])/(?:home|root|tmp|Users)/|\bTODO\b|\bFIXME\b|\bTBD\b")


def links(page: Path) -> list[str]:
    """Return the pages that a page links to."""
    told = re.findall(r":doc:`(?:[^<`]*<)?([^>`]+)>?`", page.read_text())
    base = page.parent.relative_to(DOCS)
    return [target.lstrip("/") if target[0] == "/" else str(base / target) for target in told]


def tables(page: Path) -> list[list[str]]:
    """Return the entries of each table of contents of a page."""
    found = re.findall(
        r"^\.\. toctree::\n(?:   :.+\n)*\n((?:   \S+\n)+)", page.read_text(), re.MULTILINE
    )
    return [[entry.strip().lstrip("/") for entry in table.splitlines()] for table in found]


def contents() -> list[str]:
    """Return the pages in the tables of contents."""
    return [entry for page in PAGES.values() for table in tables(page) for entry in table]


@pytest.mark.parametrize("name", sorted(PAGES))
def test_links_between_pages_lead_somewhere(name: str) -> None:
    """Every page that is linked to exists."""
    assert [target for target in links(PAGES[name]) if target not in PAGES] == []


def places() -> list[str]:
    """Return the modules that the design page names as answers to "Where do I find …"."""
    answers = (DOCS / "design.rst").read_text().partition("Where do I find …")[2]
    return re.findall(r"     - .*?``(lance_[\w.]+)``", answers.partition("\nA record's way")[0])


def test_where_to_find_things_has_an_answer_for_each_question() -> None:
    """The twelve things that a newcomer looks for first."""
    assert len(places()) == 12


@pytest.mark.parametrize("place", places())
def test_what_is_to_be_found_is_there(place: str) -> None:
    """The module or package of an answer exists; it need not be importable here."""
    package, *path = place.split(".")
    folder = Path(str(find_spec(package).submodule_search_locations[0]))  # type: ignore[union-attr,index]
    found = folder.joinpath(*path)
    assert found.is_dir() or found.with_suffix(".py").is_file()


def test_the_sidebar_can_be_taken_in_at_a_glance() -> None:
    """Four sections of at most eight entries; the rest is one level below."""
    sections = tables(PAGES["index"])
    assert len(sections) == 4
    assert max(len(entries) for entries in sections) <= 8


def test_every_page_is_in_the_contents() -> None:
    """Each page is there once, and the contents name no page that is missing."""
    assert sorted(contents()) == sorted(set(PAGES) - {"index"})


@pytest.mark.parametrize(
    "path", [*PAGES.values(), *PAPERS], ids=lambda path: str(path.relative_to(ROOT))
)
def test_a_page_is_finished(path: Path) -> None:
    """No path of somebody's machine and no unfinished business."""
    assert STRAY.findall(path.read_text()) == []


def test_the_site_bears_the_version_of_the_package() -> None:
    """`docs/conf.py` takes the version from the installed distribution, which is the SDK's."""
    assert 'version_of("lance-sdk")' in (DOCS / "conf.py").read_text()
    assert metadata.version("lance-sdk") == lance_sdk.__version__


def test_the_changelog_states_its_policy_before_its_entries() -> None:
    """The compatibility policy stands on top, then what is unreleased."""
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Compatibility policy", "[Unreleased]"]
