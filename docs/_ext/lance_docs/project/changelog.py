"""``lance-changelog``: the changelog file, which is Markdown, as a page."""

import re
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

from lance_docs._base import Generated, heading

_CHANGELOG = Path(__file__).parents[4] / "CHANGELOG.md"
_UNDERLINES = {"##": "-", "###": "~", "####": "^"}
_INLINE = (
    (re.compile(r"`([^`]+)`"), r"``\1``"),
    (re.compile(r"\[([^]]+)\]\(([^)]+)\)"), r"`\1 <\2>`__"),
)


class Changelog(Generated):
    """The changelog below its title."""

    def text(self) -> str:
        """Return the file's sections."""
        self.env.note_dependency(str(_CHANGELOG))
        return "\n".join(to_rst(_CHANGELOG.read_text()))


def to_rst(markdown: str) -> Iterator[str]:
    """Yield reStructuredText for headings, paragraphs, lists, code and links."""
    for line in markdown.splitlines():
        mark, _, title = line.partition(" ")
        if mark == "#":
            continue
        if mark in _UNDERLINES:
            yield heading(title.strip("[]"), _UNDERLINES[mark])
            continue
        for pattern, replacement in _INLINE:
            line = pattern.sub(replacement, line)  # noqa: PLW2901 - each pattern sees the last one's work
        yield line


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("lance-changelog", Changelog)
