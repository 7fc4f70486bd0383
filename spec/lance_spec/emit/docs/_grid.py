"""Places of fields on a grid of 32-bit rows, for every kind of diagram."""

from dataclasses import dataclass
from itertools import groupby

from lance_spec.ir.nodes import Difference, Field, Fixed, LengthField, Message
from lance_spec.ir.shapes import Filled, Measured, Remainder, Shape

ROW_BYTES = 4


@dataclass(frozen=True, slots=True)
class Cell:
    """The part of a field that lies in one row.

    Attributes:
        field: the field.
        row: the row, from 0.
        start: first byte of the row that it takes, 0 to 3.
        width: bytes of the row that it takes, 1 to 4.
    """

    field: Field
    row: int
    start: int
    width: int


@dataclass(frozen=True, slots=True)
class Box:
    """A field, or a part of it, that can be drawn as one rectangle.

    Attributes:
        cells: the cells it covers; more than one only for whole rows.
        labelled: whether the field's name is written here.
    """

    cells: tuple[Cell, ...]
    labelled: bool

    @property
    def field(self) -> Field:
        """The field that is drawn."""
        return self.cells[0].field


def cells(message: Message) -> list[Cell]:
    """Return the cells of a message; a variable field takes three rows of its own."""
    found: list[Cell] = []
    row, start = 0, 0
    for segment in message.segments:
        if not isinstance(segment, Fixed):
            row += start > 0
            found += [Cell(segment.field, row + each, 0, ROW_BYTES) for each in range(3)]
            row, start = row + 3, 0
            continue
        for field in segment.fields:
            left = field.size or 0
            while left:
                width = min(left, ROW_BYTES - start)
                found.append(Cell(field, row, start, width))
                left -= width
                row, start = (row + 1, 0) if start + width == ROW_BYTES else (row, start + width)
    return found


def boxes(message: Message) -> list[Box]:
    """Return what to draw as rectangles, in wire order; whole rows of one field are joined."""
    found: list[Box] = []
    for _, of_field in groupby(cells(message), key=lambda cell: cell.field.name):
        shapes = [tuple(same) for _, same in groupby(of_field, key=lambda c: (c.start, c.width))]
        parts = [each for shape in shapes for each in _joined(shape)]
        widest = max(parts, key=lambda part: sum(cell.width for cell in part))
        found += [Box(part, part is widest) for part in parts]
    return found


def _joined(shape: tuple[Cell, ...]) -> list[tuple[Cell, ...]]:
    return [shape] if shape[0].width == ROW_BYTES else [(each,) for each in shape]


def offset_words(message: Message) -> dict[str, str]:
    """Return where each field starts: a number, and the lengths of variable fields before it."""
    words: dict[str, str] = {}
    fixed, variable = 0, ""
    for segment in message.segments:
        for field in segment.fields if isinstance(segment, Fixed) else (segment.field,):
            words[field.name] = f"{fixed}{variable}"
            fixed += field.size or 0
            variable += f" + {length_words(field)}" if field.size is None else ""
    return words


def length_words(field: Field) -> str:
    """Return how many bytes a field has, in numbers or in terms of other fields."""
    if isinstance(field.length, LengthField):
        return field.length.name
    if isinstance(field.length, Difference):
        return f"{field.length.end} - {field.length.start}"
    if field.shape is not None and field.size is None:
        return _shape_words(field.shape)
    return str(field.size) if field.size is not None else "the rest"


def _shape_words(shape: Shape) -> str:
    if isinstance(shape, Measured):
        return f"{shape.field} - {shape.minus}" if shape.minus else shape.field
    return "the rest" if isinstance(shape, Remainder | Filled) else "varies"
