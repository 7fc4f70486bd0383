"""The `decode` method of a generated class."""

from collections.abc import Iterator

from lance_spec.emit._layout import assignment, call
from lance_spec.emit._names import layouts, literal, local, quoted
from lance_spec.ir.nodes import Difference, Field, Fixed, LengthField, Message, Rest, Var


def method(message: Message) -> list[str]:
    """Return the lines of ``decode``."""
    doc = f"Return the {message.name} that ``data`` is; other bytes raise `DecodeError`."
    return [
        "    @classmethod",
        "    def decode(cls, data: Buffer) -> Self:",
        f'        """{doc}"""',
        *_body(message),
    ]


def _body(message: Message) -> Iterator[str]:
    if not message.segments:
        yield "        if data:"
        yield f'            raise trailing("{message.name}", data, 0)'
        yield "        return cls()"
    elif message.size is not None:
        ((layout, run),) = layouts(message)
        yield from _unpack(layout, run, "unpack(data)", "short(data)")
        yield from _judge(message, run, "0")
        yield from call(8, "return cls(", [_value(each) for each in message.given])
    else:
        yield from _Parts(message).lines()


def _unpack(layout: str, run: Fixed, read: str, error: str) -> Iterator[str]:
    yield "        try:"
    yield from assignment(12, [local(each) for each in run.fields], f"{layout}.{read}")
    yield "        except struct.error:"
    yield f"            raise {layout}.{error} from None"


def _judge(message: Message, run: Fixed, start: str) -> Iterator[str]:
    """Check what the facts say about each field, in wire order."""
    size = 0
    for each in run.fields:
        name = local(each)
        where = [f'"{message.name}"', f'"{each.name}"', _plus(start, size)]
        size += each.size or 0
        if each.const is not None:
            value = literal(each)
            yield f"        if {name} != {value}:"
            yield from call(12, "raise unexpected(", [*where, quoted(value), name])
        elif bounds := each.facts.bounds:
            yield f"        if not {bounds[0]} <= {name} <= {bounds[1]}:"
            words = f'"{bounds[0]} to {bounds[1]}"'
            yield from call(12, "raise unexpected(", [*where, words, name])


def _plus(start: str, size: int) -> str:
    if start.isdecimal():
        return str(int(start) + size)
    return f"{start} + {size}" if size else start


def _value(field: Field) -> str:
    return f"bool({local(field)})" if field.facts.boolean else local(field)


class _Parts:
    """Writes the body of a message whose length varies, part by part.

    Attributes:
        place: the expression for where the next part starts: a number as long as only fixed
            fields went before, ``end`` after a variable one.
        values: the expression for each given field that is not simply its local variable.
    """

    def __init__(self, message: Message) -> None:
        self.message = message
        self.place = "0"
        self.values: dict[str, str] = {}
        self._layouts = iter(layouts(message))

    def lines(self) -> Iterator[str]:
        last = self.message.segments[-1]
        for segment in self.message.segments:
            if isinstance(segment, Fixed):
                yield from self._fixed()
            elif isinstance(segment, Var):
                yield from self._var(segment, last=segment is last)
        if not (isinstance(last, Var) and isinstance(last.length, Rest)):
            yield "        if end != len(data):"
            yield from call(12, "raise trailing(", self._arguments("end", last))
        given = [self.values.get(each.name, _value(each)) for each in self.message.given]
        yield from call(8, "return cls(", given)

    def _fixed(self) -> Iterator[str]:
        layout, run = next(self._layouts)
        start = "" if self.place == "0" else f", {self.place}"
        yield from _unpack(layout, run, f"unpack_from(data{start})", f"short(data{start})")
        yield from _judge(self.message, run, self.place)
        if self.place == "end":
            yield f"        end += {run.size}"
        else:
            self.place = str(int(self.place) + run.size)

    def _var(self, segment: Var, *, last: bool) -> Iterator[str]:
        field, start = segment.field, self.place
        if isinstance(segment.length, Rest):
            self.values[field.name] = self._sliced(
                field, "data" if start == "0" else f"data[{start}:]"
            )
            return
        yield from self._measure(segment)
        if last and start != "end":
            self.values[field.name] = self._sliced(field, f"data[{_open(start)}:]")
            return
        taken = f"end - {self._length(segment)} : end" if start == "end" else f"{_open(start)}:end"
        yield f"        {local(field)} = {self._sliced(field, f'data[{taken}]')}"
        self.place = "end"

    def _measure(self, segment: Var) -> Iterator[str]:
        length, start = self._length(segment), self.place
        grow = f"end += {length}" if start == "end" else f"end = {start} + {length}"
        yield f"        {grow if start != '0' else f'end = {length}'}"
        backwards = ""
        if isinstance(segment.length, Difference):
            backwards = f"{segment.length.end} < {segment.length.start} or "
        yield f"        if {backwards}end > len(data):"
        arguments = self._arguments(f'"{segment.field.name}"', segment)
        arguments[3:3] = ["end", length.strip("()")]
        yield from call(12, "raise short_bytes(", arguments)

    def _length(self, segment: Var) -> str:
        if isinstance(segment.length, LengthField):
            return local(self.message.field(segment.length.name))
        assert isinstance(segment.length, Difference)
        return f"({segment.length.end} - {segment.length.start})"

    def _arguments(self, what: str, segment: object) -> list[str]:
        hint = segment.field.facts.hint if isinstance(segment, Var) else ""
        named = [what, "data"] if what != "end" else ["data", what]
        return [f'"{self.message.name}"', *named, *([f'hint="{hint}"'] if hint else [])]

    def _sliced(self, field: Field, slice_: str) -> str:
        return slice_ if field.facts.borrowed else f"bytes({slice_})"


def _open(place: str) -> str:
    return "" if place == "0" else place
