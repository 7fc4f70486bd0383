"""The site, built: what is generated is right, and what is wrong stops the build."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import lance_sdk
from lance_conformance.engine.run.verdict import Verdict
from lance_sdk import errors

pytest.importorskip("sphinx", reason="the site needs the extra 'docs'")

from sphinx.util.inventory import InventoryFile

pytestmark = pytest.mark.timeout(300)  # the whole site is built once

DOCS = Path(__file__).parents[2] / "docs"
_TIMEOUT = 280.0
CONF = f"""
import sys
sys.path.insert(0, {str(DOCS / "_ext")!r})
extensions = ["sphinx.ext.autodoc", "lance_docs"]
default_role = "code-or-link"
"""


def build(source: Path, output: Path, builder: str = "html") -> subprocess.CompletedProcess[str]:
    """Build a site with warnings as errors."""
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going"]
    return subprocess.run(
        [*command, "-j", "2", "-b", builder, str(source), str(output)],
        check=False,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
    )


class Page:
    """A site of one page, and the register that it may link to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "conf.py").write_text(CONF)
        (folder / "register.rst").write_text(
            ":orphan:\n\nRegister\n========\n\n.. lance-register::\n"
        )

    def build(self, content: str) -> subprocess.CompletedProcess[str]:
        """Build the page from reStructuredText."""
        (self.folder / "index.rst").write_text(f"Page\n====\n\n{content}\n")
        return build(self.folder, self.folder / "out", "text")

    @property
    def text(self) -> str:
        """What a reader sees."""
        return (self.folder / "out" / "index.txt").read_text()


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """An empty page."""
    return Page(tmp_path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site; ``LANCE_SITE`` names one that was just built."""
    if built := os.environ.get("LANCE_SITE"):
        return Path(built)
    output = tmp_path_factory.mktemp("site")
    done = build(DOCS, output)
    assert done.returncode == 0, done.stderr
    return output


def test_a_message_is_shown_with_every_field(page: Page) -> None:
    """The directive shows what the grammar declares."""
    done = page.build(".. lance-message:: Fetch")
    assert done.returncode == 0, done.stderr
    assert all(name in page.text for name in ("topic_id", "start_offset", "max_bytes"))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (".. lance-message:: Fecth", "no message 'Fecth'"),
        (".. lance-enum:: lance_spec.enums.Flags", "no enumeration lance_spec.enums.Flags"),
        (".. lance-command:: lwp lance_sdk.cli:nothing", "no click command"),
        ("Decided by AMB-99.", "amb-99"),
        (":class:`collections.abc.Iterabel`", "collections.abc.Iterabel"),
    ],
)
def test_a_name_that_does_not_exist_stops_the_build(
    page: Page, content: str, complaint: str
) -> None:
    """A page cannot speak of what the code does not have; the error says what and where."""
    done = page.build(content)
    assert done.returncode != 0
    assert complaint in done.stderr
    assert "index.rst" in done.stderr


def test_a_standard_library_name_links_to_its_documentation(page: Page) -> None:
    """No foreign inventory is read, so the build needs no network."""
    (page.folder / "index.rst").write_text("Page\n====\n\n:class:`collections.abc.Iterable`\n")
    done = build(page.folder, page.folder / "html")
    assert done.returncode == 0, done.stderr
    target = "https://docs.python.org/3/library/collections.abc.html#collections.abc.Iterable"
    assert target in (page.folder / "html" / "index.html").read_text()


def test_the_site_builds_without_a_warning(site: Path) -> None:
    """Nitpicky, with warnings as errors."""
    assert (site / "index.html").exists()


def test_the_site_shows_the_version_of_the_package(site: Path) -> None:
    """The title bears the installed distribution's version."""
    title = re.search(r"<title>(.*?)</title>", (site / "index.html").read_text())
    assert title is not None
    assert metadata.version("lance-sdk") in title[1]


def test_every_public_name_of_the_sdk_is_documented(site: Path) -> None:
    """What `lance_sdk` and `lance_sdk.errors` export is in the reference, under a public name."""
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    known = {name for kind, names in inventory.data.items() if kind[:3] == "py:" for name in names}
    missing = []
    for module in (lance_sdk, errors):
        for name in module.__all__:
            home = getattr(getattr(module, name), "__module__", "")
            places = {f"{module.__name__}.{name}", f"lance_sdk.errors.{name}", f"{home}.{name}"}
            if not name.startswith("__") and not places & known:
                missing.append(name)
    assert missing == []


def test_every_verdict_of_the_kit_is_explained(site: Path) -> None:
    """The conformance page says what each verdict means."""
    page = (site / "conformance.html").read_text()
    assert [verdict for verdict in Verdict if f"{verdict} (" not in page] == ["PASS"]


def test_the_register_links_back(site: Path) -> None:
    """An id on another page leads to its row."""
    assert "ambiguities.html#amb-03" in (site / "wire.html").read_text()
