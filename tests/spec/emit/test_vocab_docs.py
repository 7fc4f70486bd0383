"""Messages of other systems have tables and diagrams like those of LANCE."""

import pytest

from lance_spec.emit.docs.diagram import ascii_diagram, svg_diagram
from lance_spec.emit.docs.rst import table
from lance_spec.ir.families import composed_messages, message
from lance_spec.ir.nodes import Message


@pytest.mark.parametrize(
    "subject", composed_messages().values(), ids=lambda each: f"{each.section}-{each.name}"
)
def test_nested_messages_have_tables_and_diagrams(subject: Message) -> None:
    """Each field stands in the table and in both pictures."""
    for field_ in subject.fields:
        assert f"``{field_.name}``" in table(subject)
        assert field_.name in ascii_diagram(subject)
        assert f">{field_.name}" in svg_diagram(subject)


@pytest.mark.parametrize("subject", composed_messages().values(), ids=lambda each: each.name)
def test_lines_of_diagrams_fit_the_ruler(subject: Message) -> None:
    """65 columns, like the figures of RFCs."""
    assert all(len(line) <= 65 for line in ascii_diagram(subject).splitlines())


def test_tables_say_which_versions_have_a_field() -> None:
    """A reader of the table sees the gate."""
    assert "from version 8 on" in table(message("fluvio.ProduceRequest"))
    assert "in version 23 alone" in table(message("fluvio.FetchOffsetsRequest"))
