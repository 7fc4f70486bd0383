"""The classes of a composed family: read and written field by field through cursors."""

from collections.abc import Iterator

from lance_spec.emit._layout import call
from lance_spec.emit._names import local
from lance_spec.emit.python._codecs import Constants, alias, annotation, codec
from lance_spec.ir.nodes import Field, Message
from lance_spec.ir.shapes import Choice, Elements, Measured, PerValue, Sections, Timestamps


def blocks(message: Message, head: list[str], constants: Constants) -> list[str]:
    """Return the lines of one message: the codecs it needs, and its class.

    Args:
        message: the message.
        head: the lines of the class up to its methods.
        constants: what was written before.
    """
    codecs = [line for each in message.fields for line in constants.of(message, each)]
    names = [line for each in message.given for line in alias(message, each)]
    before = [*codecs, *names]
    return [
        *before,
        *(["", ""] if before else []),
        *head,
        "",
        *_whole(message),
        "",
        *_read(message),
        "",
        *_write(message),
        *_sealing(message),
    ]


def attribute(message: Message, field: Field) -> str:
    """Return the line that declares a field of a class."""
    return f"    {field.name}: {annotation(message, field)}{_default(field)}"


def _default(field: Field) -> str:
    if field.facts.checksum:
        return " = 0"
    if not field.facts.gated:
        return ""
    absent = field.facts.absent
    return " = field(default_factory=list)" if absent == [] else f" = {absent!r}"


def _whole(message: Message) -> Iterator[str]:
    declared, passed = (", version: int", ", version") if message.versioned else ("", "")
    yield "    @classmethod"
    yield f"    def decode(cls, data: Buffer{declared}) -> Self:"
    yield f'        """Return the {message.name} that ``data`` is; else raise `DecodeError`."""'
    yield f"        return whole(cls, data{passed})"
    yield ""
    yield f"    def encode(self{declared}) -> bytes:"
    yield f'        """Return the {message.name} as bytes; unfit values raise `EncodeError`."""'
    yield f"        return written(self{passed})"


def _read(message: Message) -> Iterator[str]:
    yield "    @classmethod"
    if not message.fields:
        yield "    def read(cls, _source: Source) -> Self:"
        yield '        """Return one; there is nothing to read."""'
        yield "        return cls()"
        return
    yield "    def read(cls, source: Source) -> Self:"
    yield '        """Read one where ``source`` stands."""'
    if message.since is not None:
        yield f'        source.require("{message.name}", {message.since})'
    for field in message.fields:
        yield from _take(message, field)
    given = [f"{each.name}={local(each)}" for each in message.given]
    yield from call(8, "return cls(", given)


def _take(message: Message, field: Field) -> Iterator[str]:
    arguments = [f'"{message.name}"', f'"{field.name}"', _reader(message, field)]
    needed = field.is_given or _is_measure(message, field)
    target = f"{local(field)} = " if needed else ""
    if not field.facts.gated:
        yield from call(8, f"{target}source.take(", arguments)
        return
    yield f"        {local(field)}: {annotation(message, field)} = {field.facts.absent!r}"
    yield f"        if {_gate(field, 'source')}:"
    yield from call(12, f"{target}source.take(", arguments)


def _reader(message: Message, field: Field) -> str:
    if isinstance(field.shape, Measured):
        minus = f" - {field.shape.minus}" if field.shape.minus else ""
        return f"Raw({local(message.field(field.shape.field))}{minus})"
    bound = [local(message.field(each)) for each in needed_by(field)]
    return codec(message, field, {}) + _bound(field, bound)


def needed_by(field: Field) -> tuple[str, ...]:
    """Return the earlier fields that the codec of a field depends on."""
    match field.shape:
        case Choice(tag=name) | Elements(dims=name) | Timestamps(encoding=name):
            return (name,)
        case PerValue(bits=name) if name:
            return (name,)
        case Sections(of=columns, rows=rows):
            return (columns, rows)
    return ()


def _bound(field: Field, values: list[str]) -> str:
    """Return the call that makes a codec depend on earlier fields, or nothing."""
    if isinstance(field.shape, Sections):
        return f".of([each.{field.shape.tag} for each in {values[0]}], {values[1]})"
    return f".of({values[0]})" if values else ""


def _is_measure(message: Message, field: Field) -> bool:
    return any(
        isinstance(each.shape, Measured) and each.shape.field == field.name
        for each in message.fields
    )


def _write(message: Message) -> Iterator[str]:
    if not message.fields:
        yield "    def write(self, _sink: Sink) -> None:"
        yield '        """Write nothing."""'
        return
    yield "    def write(self, sink: Sink) -> None:"
    yield '        """Write it to the end of ``sink``."""'
    if message.since is not None:
        yield f'        sink.require("{message.name}", {message.since})'
    for field in message.fields:
        yield from _put(message, field)


def _put(message: Message, field: Field) -> Iterator[str]:
    names = [f'"{message.name}"', f'"{field.name}"']
    if field.const is not None:
        writer = codec(message, field, {})
        yield from call(8, "sink.put(", [*names, writer, f"{writer}.value"])
        return
    written = f"self.{field.name}"
    if field.length_of:
        written = f"len(self.{field.length_of})" + (f" + {field.plus}" if field.plus else "")
    writer = codec(message, field, {}) + _bound(field, [f"self.{n}" for n in needed_by(field)])
    put = [*names, writer, written]
    if not field.facts.gated:
        yield from call(8, "sink.put(", put)
        return
    yield f"        if {_gate(field, 'sink')}:"
    yield from call(12, "sink.put(", put)
    yield "        else:"
    yield from call(12, "sink.omit(", [*names, written, repr(field.facts.absent)])


def _gate(field: Field, cursor: str) -> str:
    facts = field.facts
    if facts.since is None:
        return f"{cursor}.version <= {facts.until}"
    if facts.until is None:
        return f"{cursor}.version >= {facts.since}"
    if facts.since == facts.until:
        return f"{cursor}.version == {facts.since}"
    return f"{facts.since} <= {cursor}.version <= {facts.until}"


def _sealing(message: Message) -> Iterator[str]:
    for field in message.fields:
        if field.facts.checksum and field.size is not None:
            yield from _sealed(field)


def _sealed(field: Field) -> Iterator[str]:
    name, checksum, start = field.name, field.facts.checksum, field.offset or 0
    assert checksum is not None
    assert field.size is not None
    before = checksum.over == "before"
    covered = f":-{field.size}" if before else f"{start + field.size}:"
    yield ""
    yield "    def with_crc(self) -> Self:"
    yield f'        """Return a copy whose ``{name}`` is right for its other fields."""'
    yield f"        return replace(self, {name}=self._crc())"
    yield ""
    yield "    def crc_ok(self) -> bool:"
    where = "before" if before else "after"
    yield f'        """Whether ``{name}`` is the checksum of the fields {where} it."""'
    yield f"        return self.{name} == self._crc()"
    yield ""
    yield "    def _crc(self) -> int:"
    yield "        sink = Sink()"
    yield "        self.write(sink)"
    yield f"        return CRC32C(memoryview(sink.data)[{covered}])"
