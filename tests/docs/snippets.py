"""The code on the pages of the documentation."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_RST_BLOCK = re.compile(
    r"^( *)\.\. code-block:: (\w+)\n(?:\1   :.*\n)*\n((?:(?:\1   .*)?\n)+)", re.MULTILINE
)
_MARKDOWN_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """Code on a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def snippets(page: Path, *languages: str) -> list[Snippet]:
    """Return the page's code in these languages, in reading order."""
    return [each for each in _all(page) if each.language in languages]


def _all(page: Path) -> Iterator[Snippet]:
    text = page.read_text()
    if page.suffix == ".md":
        for found in _MARKDOWN_BLOCK.finditer(text):
            yield Snippet(page, _line(text, found.start(2)), found[1], found[2])
        return
    for found in _RST_BLOCK.finditer(text):
        margin = len(found[1]) + 3
        code = "\n".join(line[margin:] for line in found[3].splitlines())
        yield Snippet(page, _line(text, found.start(3)), found[2], code.rstrip() + "\n")


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def migrating(client: str) -> str:
    """Return the program in another client on the page about moving from it.

    Args:
        client: the module that it imports.
    """
    programs = snippets(DOCS / "migrating.rst", "py")
    return next(
        each.text for each in programs if re.search(rf"(?:import|from) {client}\b", each.text)
    )


def printed(program: str, folder: Path) -> str:
    """Return what a Python program prints that is run in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        cwd=folder,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
