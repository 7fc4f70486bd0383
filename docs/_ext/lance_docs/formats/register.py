"""The ambiguity register: its page, and a link wherever a page names one of its ids."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from lance_docs._base import Generated, heading, prose
from lance_spec import ambiguities
from lance_spec.ambiguities import Ambiguity

_ID = re.compile(r"\b(?:AMB|SF|FLV|RL|SPK)-\d\d\b")
_PLAIN = (nodes.literal, nodes.literal_block, nodes.reference, nodes.title, addnodes.pending_xref)


class Register(Generated):
    """Every row of the register, each with a place that links lead to."""

    sources = (ambiguities,)

    def text(self) -> str:
        """Return one section for each row."""
        return "\n".join(map(_row, ambiguities.load()))


def _row(row: Ambiguity) -> str:
    readings = "\n".join(f"   - {prose(each)}" for each in row.readings)
    return (
        f"\n.. _{row.id.lower()}:\n{heading(f'{row.id}: {prose(row.question)}', '-')}\n"
        f":Readings:\n{readings}\n"
        f":Known programs: {prose(row.known)}\n"
        f":Here: {prose(row.choice)}\n"
        f":Asked by: {'; '.join(row.sections)}\n"
    )


class LinkIds(SphinxTransform):
    """Make every id in running text a link; an id that the register lacks is reported."""

    default_priority = 500

    def apply(self, **_kwargs: Any) -> None:
        """Replace the texts that name an id."""
        for text in list(self.document.findall(nodes.Text)):
            if not isinstance(text.parent, _PLAIN) and _ID.search(text):
                text.parent.replace(text, self._linked(text))

    def _linked(self, text: nodes.Text) -> list[nodes.Node]:
        pieces: list[nodes.Node] = []
        end = 0
        for found in _ID.finditer(text):
            pieces.append(nodes.Text(text[end : found.start()]))
            pieces.append(self._link(found.group()))
            end = found.end()
        return [*pieces, nodes.Text(text[end:])]

    def _link(self, name: str) -> nodes.Node:
        return addnodes.pending_xref(
            "",
            nodes.inline("", name),
            refdomain="std",
            reftype="ref",
            reftarget=name.lower(),
            refexplicit=True,
            refwarn=True,
            refdoc=self.env.docname,
        )


def setup(app: Sphinx) -> None:
    """Register the directive and the transform."""
    app.add_directive("lance-register", Register)
    app.add_transform(LinkIds)
