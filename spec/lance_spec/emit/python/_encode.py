"""The `encode` method of a generated class, and what goes with it."""

from collections.abc import Iterator

from lance_spec.emit._layout import call
from lance_spec.emit._names import last_var, layouts, literal, parts, sealing
from lance_spec.ir.nodes import Difference, Field, Fixed, LengthField, Message, Var


def methods(message: Message) -> list[str]:
    """Return the lines of ``encode``, and of ``encode_prefix`` or the checksum's methods."""
    lines = list(_encode_borrowed(message) if _borrows(message) else _encode(message))
    checksum = sealing(message)
    if checksum is not None:
        lines += _sealing(checksum)
    return lines


def _borrows(message: Message) -> bool:
    last = last_var(message)
    return last is not None and last.field.facts.borrowed


def _encode(message: Message) -> Iterator[str]:
    yield "    def encode(self) -> bytes:"
    if not message.segments:
        yield f'        """Return the {message.name} as bytes: there are none."""'
        yield '        return b""'
        return
    yield f'        """Return the {message.name} as bytes; unfit values raise `EncodeError`."""'
    if message.size is not None:
        ((layout, run),) = layouts(message)
        yield from call(8, f"return {layout}.pack(", _packed(message, run))
        return
    names = _part_names(message)
    yield from _parts(message)
    operands = [names[id(each)] for each in message.segments]
    yield f"        return {' + '.join(operands) if len(operands) > 1 else f'bytes({operands[0]})'}"


def _encode_borrowed(message: Message) -> Iterator[str]:
    last = last_var(message)
    assert last is not None
    name = last.field.name
    yield "    def encode(self) -> bytes:"
    yield f'        """Return the {message.name} as bytes; unfit values raise `EncodeError`."""'
    yield f"        return self.encode_prefix() + self.{name}"
    yield ""
    yield "    def encode_prefix(self) -> bytes:"
    yield f'        """Return the bytes before ``{name}``, for writers that send that uncopied."""'
    ((layout, run),) = layouts(message)
    yield from _checks(message, last)
    yield from call(8, f"return {layout}.pack(", _packed(message, run))


def _part_names(message: Message) -> dict[int, str]:
    runs = [each for each in message.segments if isinstance(each, Fixed)]
    names = {id(run): part for run, part in zip(runs, parts(len(runs)), strict=True)}
    return names | {id(each): each.field.name for each in message.segments if isinstance(each, Var)}


def _parts(message: Message) -> Iterator[str]:
    for each in message.segments:
        if isinstance(each, Var):
            yield from _checks(message, each)
    for (layout, run), part in zip(layouts(message), parts(len(layouts(message))), strict=True):
        yield from call(8, f"{part} = {layout}.pack(", _packed(message, run))


def _checks(message: Message, var: Var) -> Iterator[str]:
    """Take a variable field out of ``self``, and hold a stated length against it."""
    name = var.field.name
    yield from call(8, f"{name} = octets(", [f'"{message.name}"', f'"{name}"', f"self.{name}"])
    stated, blamed = "", ""
    if isinstance(var.length, LengthField) and message.field(var.length.name).is_given:
        blamed, stated = var.length.name, f"self.{var.length.name}"
    elif isinstance(var.length, Difference):
        blamed, stated = var.length.end, f"self.{var.length.end} - self.{var.length.start}"
    if blamed:
        yield from call(8, "agree(", [f'"{message.name}"', f'"{blamed}"', stated, f"len({name})"])


def _packed(message: Message, run: Fixed) -> list[str]:
    return [_packed_value(message, each) for each in run.fields]


def _packed_value(message: Message, field: Field) -> str:
    if field.const is not None:
        return literal(field)
    value = f"len({field.length_of})" if field.length_of else f"self.{field.name}"
    if bounds := field.facts.bounds:
        return f'within("{message.name}", "{field.name}", {value}, {bounds[0]}, {bounds[1]})'
    if not field.is_integer:
        return f'exactly("{message.name}", "{field.name}", {value}, {field.size})'
    return value


def _sealing(checksum: Field) -> Iterator[str]:
    crc = checksum.facts.checksum
    assert crc is not None
    assert not isinstance(crc.over, str)
    name = checksum.name
    start, end = crc.over
    yield ""
    yield "    def with_crc(self) -> Self:"
    yield f'        """Return a copy whose ``{name}`` is right for its other fields."""'
    yield f"        return replace(self, {name}=self._crc())"
    yield ""
    yield "    def crc_ok(self) -> bool:"
    yield f'        """Whether ``{name}`` is the checksum of the other fields."""'
    yield f"        return self.{name} == self._crc()"
    yield ""
    yield "    def _crc(self) -> int:"
    yield f"        return CRC32C(self.encode()[{start}:{end}])"
