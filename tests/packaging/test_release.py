"""What a release is made with: links on the index, lowest versions, the release check."""

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HERE = {"site": "https://docs.example", "repository": "https://forge.example/lance"}
NOWHERE = {"site": "", "repository": ""}


def loaded(path: Path) -> ModuleType:
    """Return a script as a module."""
    spec = importlib.util.spec_from_file_location(f"release_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def lowest() -> ModuleType:
    """The script that finds the lowest versions."""
    return loaded(ROOT / "release" / "lowest.py")


@pytest.fixture(scope="module")
def check() -> ModuleType:
    """The script that refuses a release."""
    return loaded(ROOT / "release" / "check.py")


@pytest.fixture(scope="module")
def build_hook() -> ModuleType:
    """The hooks of the build; hatchling is there in environments that build."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: tox run -e package")
    return loaded(ROOT / "hatch_build.py")


def released(folder: Path, *, version: str = "1.2.3", site: str = "https://docs.example") -> Path:
    """Make a tree that may be released."""
    (folder / "pyproject.toml").write_text(
        f'[project]\nversion = "{version}"\n'
        f'[tool.lance.addresses]\nsite = "{site}"\nrepository = "https://forge.example"\n'
    )
    (folder / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-01\n\n- A line.\n"
    )
    (folder / "README.md").write_text("# It\n")
    return folder


def test_every_dependency_has_a_lowest_version(lowest: ModuleType) -> None:
    """Each extra can be tested with the lowest versions that it allows."""
    project = PROJECT["project"]
    pinned = lowest.lowest(project, list(project["optional-dependencies"]))
    assert "anyio==4.11" in pinned
    assert all("==" in each for each in pinned)


def test_the_lowest_versions_of_every_extra_are_tested(lowest: ModuleType) -> None:
    """By an environment that installs them; those of `docs` build pages and nothing else."""
    project = PROJECT["project"]
    every = {name for name in project["optional-dependencies"] if name not in ("all", "docs")}
    named = re.findall(r"lowest\.txt (.+)$", (ROOT / "tox.ini").read_text(), re.MULTILINE)
    tested = {each for extras in named for each in lowest.lowest(project, extras.split())}
    assert set(lowest.lowest(project, sorted(every))) - tested == set()


def test_a_dependency_without_a_lowest_version_is_named(lowest: ModuleType) -> None:
    """Nothing is tested with a version that nobody chose."""
    project = {"dependencies": ["anyio"], "optional-dependencies": {}}
    with pytest.raises(ValueError, match="'anyio' has no lower bound"):
        lowest.lowest(project, [])


def test_a_tree_with_everything_may_be_released(check: ModuleType, tmp_path: Path) -> None:
    """Addresses, version and changelog agree."""
    assert check.missing(released(tmp_path), None) == []


def test_a_release_needs_an_address(check: ModuleType, tmp_path: Path) -> None:
    """Links on the index would lead nowhere."""
    [sentence] = check.missing(released(tmp_path, site=""), None)
    assert "site in pyproject.toml is empty" in sentence


def test_a_release_needs_its_heading(check: ModuleType, tmp_path: Path) -> None:
    """The changelog says what is in it."""
    [sentence] = check.missing(released(tmp_path, version="1.2.4"), None)
    assert "'## [1.2.4] - YYYY-MM-DD'" in sentence


def test_a_release_needs_links_that_a_forge_shows(check: ModuleType, tmp_path: Path) -> None:
    """A forge renders the README, but not the directives of the pages' sources."""
    root = released(tmp_path)
    (root / "README.md").write_text("[Why](docs/why.rst)\n")
    assert check.missing(root, None) == [
        "README.md links to sources of pages: run python release/readme.py"
    ]


def test_the_readme_of_the_checkout_is_written_anew() -> None:
    """Pages and pictures, with and without a part; nothing while there is no site."""
    script = loaded(ROOT / "release" / "readme.py")
    text = (ROOT / "README.md").read_text()
    given = "[a](docs/guide/x.rst#y) ![b](docs/_static/b.svg) [c](CHANGELOG.md)"
    assert script.rewritten(given, "https://docs.example/") == (
        "[a](https://docs.example/guide/x.html#y) ![b](https://docs.example/_static/b.svg) "
        "[c](CHANGELOG.md)"
    )
    assert "](docs/" not in script.rewritten(text, "https://docs.example")
    assert script.rewritten(text, "") == text


def test_links_of_the_readme_lead_to_the_site(build_hook: ModuleType) -> None:
    """Pages are read where they are built, other files where the sources are."""
    text = "[a](docs/why.rst#x) ![b](docs/_static/b.svg) [c](CHANGELOG.md) [d](https://e) [f](#g)"
    assert build_hook.absolute_links(text, HERE, "1.0.0") == (
        "[a](https://docs.example/why.html#x) ![b](https://docs.example/_static/b.svg) "
        "[c](https://forge.example/lance/blob/v1.0.0/CHANGELOG.md) [d](https://e) [f](#g)"
    )


def test_without_addresses_links_stay(build_hook: ModuleType) -> None:
    """They lead to the files of a checkout."""
    text = (ROOT / "README.md").read_text()
    assert build_hook.absolute_links(text, NOWHERE, "1.0.0") == text


def test_an_index_shows_where_the_project_lives(build_hook: ModuleType) -> None:
    """Documentation, changelog, source and issues."""
    assert set(build_hook.urls(HERE)) == {"Documentation", "Changelog", "Source", "Issues"}
    assert build_hook.urls(NOWHERE) == {}
