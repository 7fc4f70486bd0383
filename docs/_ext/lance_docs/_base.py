"""What the generated parts of a page have in common."""

import re
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import ClassVar, Final

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx.util.parsing import nested_parse_to_nodes

_CODE: Final = re.compile(r"(``.*?``|`[^`]*`)", re.DOTALL)


class Generated(SphinxDirective):
    """A directive whose content is reStructuredText made from the code.

    What is made wrongly must not be published: a name that the code does not have stops the
    build, whether or not warnings are errors.
    """

    sources: ClassVar[tuple[ModuleType, ...]] = ()
    """Modules whose change makes the page stale."""

    def run(self) -> list[nodes.Node]:
        """Put the generated text in the directive's place."""
        for module in self.sources:
            if module.__file__:
                self.env.note_dependency(module.__file__)
        lines = StringList(self.text().splitlines(), source=f"{self.get_location()} ({self.name})")
        return nested_parse_to_nodes(self.state, lines, allow_section_headings=True)

    def text(self) -> str:
        """Return the reStructuredText to put in the directive's place."""
        raise NotImplementedError

    def refuse(self, problem: str) -> ExtensionError:
        """Return the error that stops the build, with the directive's place in it."""
        path, line = self.get_source_info()
        return ExtensionError(f"{path}:{line}: {problem}")


def list_table(header: Sequence[str], rows: Iterable[Sequence[str]], widths: str = "auto") -> str:
    """Return a table; a cell may hold any inline markup and several paragraphs."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in (header, *rows):
        for place, cell in enumerate(row):
            first, *rest = cell.splitlines() or [""]
            lines.append(f"   {'* -' if place == 0 else '  -'} {first}".rstrip())
            lines.extend(f"       {line}".rstrip() for line in rest)
    return "\n".join([*lines, ""])


def heading(title: str, underline: str) -> str:
    """Return a section title."""
    return f"\n{title}\n{underline * len(title)}\n"


def literal(text: str) -> str:
    """Return ``text`` as inline code."""
    return f"``{text}``" if text else ""


def escape(text: str) -> str:
    """Return plain text with nothing in it that reStructuredText would take for markup."""
    return "".join(f"\\{character}" if character in r"\`*_|" else character for character in text)


def prose(text: str) -> str:
    """Return text that marks code with one or two backticks, and nothing else, as markup."""
    parts = _CODE.split(text)
    return "".join(part if place % 2 else escape(part) for place, part in enumerate(parts))


def block(kind: str, text: str, language: str = "") -> str:
    """Return ``text`` as a directive's indented content."""
    body = "\n".join(f"   {line}".rstrip() for line in text.splitlines())
    return f"\n.. {kind}:: {language}\n\n{body}\n"
