"""Tables and diagrams show every field where it is.

The golden files are looked at by people when they change; ``REGENERATE_GOLDEN=1`` in the
environment rewrites them.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lance_spec.emit.docs.diagram import ascii_diagram, svg_diagram
from lance_spec.emit.docs.rst import table
from lance_spec.ir.families import message, messages
from lance_spec.ir.nodes import Message

GOLDEN = Path(__file__).parent / "golden"
SVG = "{http://www.w3.org/2000/svg}"
with_fields = pytest.mark.parametrize(
    "subject", [each for each in messages().values() if each.fields], ids=lambda each: each.name
)
without_fields = pytest.mark.parametrize("name", ["ListTopics", "GetClusterStatus", "Null"])


@pytest.mark.parametrize("name", ["Header", "Record", "CreateTopicWithRetention", "SidecarHeader"])
@pytest.mark.parametrize(
    ("draw", "suffix"), [(ascii_diagram, "txt"), (table, "rst"), (svg_diagram, "svg")]
)
def test_the_picture_is_the_one_that_was_looked_at(
    name: str, draw: Callable[[Message], str], suffix: str
) -> None:
    """A change in a picture is a change in a file that people review."""
    drawn, file = draw(message(name)), GOLDEN / f"{name}.{suffix}"
    if os.environ.get("REGENERATE_GOLDEN"):
        file.write_text(drawn)
    assert drawn == file.read_text()


def test_the_header_is_drawn_as_in_section_3_1() -> None:
    """LWP section 3.1 draws eleven rows of 32 bits between a ruler and a closing border."""
    lines = ascii_diagram(message("Header")).splitlines()
    assert lines[1] == " " + " ".join(str(bit % 10) for bit in range(32))
    assert lines[2] == "+-" * 32 + "+"
    assert len([line for line in lines if line.startswith("|")]) == 11
    assert "|    version    |     flags     |            reserved           |" in lines


@with_fields
def test_every_line_of_a_diagram_fits_the_ruler(subject: Message) -> None:
    """65 columns, like the figures of RFCs."""
    assert all(len(line) <= 65 for line in ascii_diagram(subject).splitlines())


@with_fields
def test_every_field_is_named_once_in_a_diagram(subject: Message) -> None:
    """A field that spans rows has one label."""
    cells = re.split(r"[|/]", ascii_diagram(subject))
    labels = [cell.split()[0] for cell in cells if cell.strip() and "+" not in cell]
    assert sorted(labels) == sorted(each.name for each in subject.fields)


@with_fields
def test_every_field_is_a_group_of_the_svg(subject: Message) -> None:
    """A page can point at each field, and a screen reader can read each."""
    root = ET.fromstring(svg_diagram(subject))
    groups = {str(group.get("id")).split("-")[1]: group for group in root.iter(f"{SVG}g")}
    assert list(groups) == [each.name for each in subject.fields]
    for field in subject.fields:
        title = groups[field.name].find(f"{SVG}title")
        assert title is not None
        assert title.text == f"{field.name}: {field.facts.doc}"


@with_fields
def test_boxes_of_fixed_fields_cover_their_bytes(subject: Message) -> None:
    """The area of a field's boxes is its size."""
    root = ET.fromstring(svg_diagram(subject))
    for group, field in zip(root.iter(f"{SVG}g"), subject.fields, strict=True):
        boxes = group.findall(f"{SVG}rect")
        area = sum(int(box.get("width", 0)) * int(box.get("height", 0)) for box in boxes)
        if field.size is not None:
            assert area == field.size * 120 * 34
        else:
            assert all(box.get("stroke-dasharray") for box in boxes)


@with_fields
def test_texts_stay_inside_their_boxes(subject: Message) -> None:
    """A monospaced letter of 13 pixels is at most 8 wide."""
    root = ET.fromstring(svg_diagram(subject))
    for group in root.iter(f"{SVG}g"):
        widest = max(int(box.get("width", 0)) for box in group.findall(f"{SVG}rect"))
        for text in group.findall(f"{SVG}text"):
            assert 8 * len(text.text or "") <= widest


@with_fields
def test_a_table_has_a_row_of_six_cells_for_each_field(subject: Message) -> None:
    """Offset, size, type, name, meaning and source, in wire order."""
    cells = [line[5:].removeprefix("- ") for line in table(subject).splitlines()[4:]]
    assert len(cells) == 6 * (1 + len(subject.fields))
    assert all(cells)
    assert cells[9::6] == [f"``{each.name}``" for each in subject.fields]


def test_offsets_behind_a_variable_field_are_sums() -> None:
    """LWP section 5.11 writes 2+N; the table names N."""
    assert "10 + name_length" in table(message("CreateTopicWithRetention"))


@without_fields
def test_a_message_without_fields_has_no_picture(name: str) -> None:
    """There is nothing to draw."""
    subject = message(name)
    assert (ascii_diagram(subject), svg_diagram(subject), table(subject)) == ("", "", "")
