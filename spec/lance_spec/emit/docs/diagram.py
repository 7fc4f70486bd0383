"""Back end: byte diagrams, in plain text as RFCs draw them and as SVG.

Bit 0 of a row is the first bit of its first byte on the wire; numbers are little-endian.
"""

from collections.abc import Iterator
from html import escape
from typing import Final, TypeAlias

from lance_spec.emit._words import snake
from lance_spec.emit.docs._grid import (
    ROW_BYTES,
    Box,
    Cell,
    boxes,
    cells,
    length_words,
    offset_words,
)
from lance_spec.ir.nodes import Field, Message

Row: TypeAlias = list[Cell]

_BITS: Final = 8 * ROW_BYTES
_RULER: Final = (
    " " + "".join(f"{bit // 10 if bit % 10 == 0 else ' '} " for bit in range(_BITS)),
    " " + " ".join(str(bit % 10) for bit in range(_BITS)),
)


def ascii_diagram(message: Message) -> str:
    """Return a diagram in plain text, 32 bits a row, 65 columns wide.

    A variable field stands between slashes. A message without fields has no diagram: the
    result is empty.
    """
    if not message.fields:
        return ""
    rows = _rows(cells(message))
    labels = dict(_labels(message))
    lines = [*_RULER, _border([], rows[0])]
    for above, below in zip(rows, [*rows[1:], []], strict=True):
        lines.append(_body(above, labels))
        if not _open_between(above, below):
            lines.append(_border(above, below))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _rows(all_cells: list[Cell]) -> list[Row]:
    rows: list[Row] = [[] for _ in range(all_cells[-1].row + 1)]
    for cell in all_cells:
        rows[cell.row].append(cell)
    return rows


def _labels(message: Message) -> Iterator[tuple[Cell, str]]:
    for box in boxes(message):
        if box.labelled:
            yield box.cells[(len(box.cells) - 1) // 2], _label(box.field)


def _label(field: Field) -> str:
    return f"{field.name} ({length_words(field)})" if field.size is None else field.name


def _open_between(above: Row, below: Row) -> bool:
    """Whether a variable field goes on from one row to the next."""
    same = bool(below) and above[0].field is below[0].field
    return same and above[0].field.size is None


def _border(above: Row, below: Row) -> str:
    """Draw the line between two rows; it is open where a field goes on."""
    upper, lower = _owners(above), _owners(below)
    taken = [bool(each) for each in map(max, upper, lower)]
    drawn = [upper[bit] != lower[bit] for bit in range(_BITS)]
    line = []
    for bit in range(_BITS + 1):
        around = [near for near in (bit - 1, bit) if 0 <= near < _BITS]
        at_edge = bit in {0, _BITS} and taken[around[0]]
        line.append("+" if at_edge or any(drawn[near] for near in around) else " ")
        line.append("-" if bit < _BITS and drawn[bit] else " ")
    return "".join(line)


def _owners(row: Row) -> list[str]:
    owners = [""] * _BITS
    for cell in row:
        owners[8 * cell.start : 8 * (cell.start + cell.width)] = [cell.field.name] * 8 * cell.width
    return owners


def _body(row: Row, labels: dict[Cell, str]) -> str:
    sides = ["/" if cell.field.size is None else "|" for cell in row]
    inner = [labels.get(cell, "").center(16 * cell.width - 1) for cell in row]
    return "".join(map(str.__add__, sides, inner)) + sides[-1]


_GUTTER: Final = 150
_BYTE: Final = 120
_HEIGHT: Final = 34
_TOP: Final = 24


def svg_diagram(message: Message) -> str:
    """Return a diagram as a standalone ``<svg>`` element.

    Each field is a group with the id ``<message>-<field>``, so that a page can point at it,
    and a title with the field's meaning. Colours follow the text around the diagram. A message
    without fields has no diagram: the result is empty.
    """
    if not message.fields:
        return ""
    width = _GUTTER + ROW_BYTES * _BYTE + 1
    height = _TOP + (cells(message)[-1].row + 1) * _HEIGHT + 1
    style = 'font-family="monospace" font-size="13" fill="currentColor" stroke="none"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {style}',
        f'width="{width}" height="{height}" role="img" aria-label="Bytes of {message.name}">',
        *(_svg_byte_number(each) for each in range(ROW_BYTES)),
        *_svg_offsets(message),
        *_svg_fields(message),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _svg_byte_number(number: int) -> str:
    return _svg_text(_GUTTER + number * _BYTE + _BYTE // 2, _TOP - 8, f"+{number}")


def _svg_offsets(message: Message) -> Iterator[str]:
    """Write the offset of the first field that starts in each row."""
    words = offset_words(message)
    seen: set[int] = set()
    named: set[str] = set()
    for cell in cells(message):
        if cell.row not in seen and cell.field.name not in named:
            middle = _TOP + cell.row * _HEIGHT + _HEIGHT // 2 + 5
            yield _svg_text(_GUTTER - 10, middle, words[cell.field.name], "end")
        seen.add(cell.row)
        named.add(cell.field.name)


def _svg_fields(message: Message) -> Iterator[str]:
    open_group = ""
    for box in boxes(message):
        if box.field.name != open_group:
            yield from ["</g>"] if open_group else []
            open_group = box.field.name
            yield f'<g id="{snake(message.name)}-{open_group}">'
            yield f"<title>{escape(f'{open_group}: {box.field.facts.doc}')}</title>"
        yield from _svg_box(box)
    yield "</g>"


def _svg_box(box: Box) -> Iterator[str]:
    first = box.cells[0]
    x, y = _GUTTER + first.start * _BYTE, _TOP + first.row * _HEIGHT
    width, height = first.width * _BYTE, len(box.cells) * _HEIGHT
    dashed = ' stroke-dasharray="6 4"' if box.field.size is None else ""
    yield (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none"'
        f' stroke="currentColor"{dashed}/>'
    )
    if box.labelled:
        yield _svg_text(x + width // 2, y + height // 2 + 5, _label(box.field))


def _svg_text(x: int, y: int, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
