"""The words that the grammar is written in.

A field is a `construct` parser wrapped in `Meta`, which carries what a parser cannot say: the
sentence that explains the field, its section, unit, names and limits. `lance_spec.ir.lower`
knows this vocabulary and refuses every other word.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any, Literal

from construct import Construct, Int32ul, RangeError, Renamed, Struct, Subconstruct, Terminated


@dataclass(frozen=True, slots=True)
class Crc:
    """What a checksum field covers and how it is computed.

    Attributes:
        over: first and last-plus-one byte of the message it covers, or ``"payload"`` for the
            bytes that follow the header.
        algorithm: ``"crc32c"``, or ``"dialect"`` where the dialect decides (AMB-01).
    """

    over: tuple[int, int] | Literal["payload"]
    algorithm: Literal["crc32c", "dialect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about a field beside its bytes.

    Attributes:
        doc: what the field means, one sentence without its full stop.
        section: where its source defines it, for example ``LWP section 5.8``.
        unit: unit of the number, for example ``bytes``.
        enum: the names of its values.
        flags: the names of its bits.
        reserved: the field has no meaning yet; its constant is zero.
        minimum: smallest value allowed.
        maximum: largest value allowed.
        boolean: the number is a truth value, 0 or 1.
        checksum: what it is the checksum of.
        borrowed: decoding slices the given buffer instead of copying.
        hint: what to do when the bytes do not fit, appended to the error.
        ambiguities: ids in the ambiguity register that decided this field.
    """

    doc: str
    section: str
    unit: str = ""
    enum: type[IntEnum] | None = None
    flags: type[IntFlag] | None = None
    reserved: bool = False
    minimum: int | None = None
    maximum: int | None = None
    boolean: bool = False
    checksum: Crc | None = None
    borrowed: bool = False
    hint: str = ""
    ambiguities: tuple[str, ...] = ()

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Smallest and largest value allowed, where the facts narrow the field's own width."""
        if self.boolean:
            return (0, 1)
        if self.minimum is None or self.maximum is None:
            return None
        return (self.minimum, self.maximum)


class Meta(Subconstruct):  # type: ignore[misc]  # construct ships no types
    """A parser with facts; it enforces the facts that narrow a number."""

    def __init__(self, subcon: Construct, facts: Facts) -> None:
        super().__init__(subcon)
        self.facts = facts

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        value = super()._parse(stream, context, path)
        self._check(value, path)
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        built = super()._build(obj, stream, context, path)
        self._check(built, path)
        return built

    def _check(self, value: Any, path: str) -> None:
        bounds = self.facts.bounds
        if bounds and not bounds[0] <= value <= bounds[1]:
            raise RangeError(f"expected {bounds[0]} to {bounds[1]}, got {value!r}", path=path)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Declaration:
    """One declared message.

    Attributes:
        name: class name of the generated codec.
        doc: what the message is for, one sentence.
        section: where its source defines it.
        fields: the named parsers, in wire order.
        command: the control command that carries it as payload.
        record_type: the TLV record type that carries it as value.
        sender: who sends it, ``client``, ``server``, ``both``, or ``""`` for bytes on disk.
        ambiguities: ids in the ambiguity register that decided this message.
    """

    name: str
    doc: str
    section: str
    fields: tuple[Construct, ...]
    command: IntEnum | None = None
    record_type: IntEnum | None = None
    sender: Literal["client", "server", "both", ""] = ""
    ambiguities: tuple[str, ...] = ()

    def construct(self) -> Struct:
        """Return the interpreted parser; it insists that nothing follows the message."""
        return Struct(*self.fields, Terminated)


def lwp(section: str) -> str:
    """Return the citation of a section of the LWP specification."""
    return f"LWP section {section}"


def field(name: str, parser: Construct, *, doc: str, section: str, **facts: Any) -> Construct:
    """Return ``parser`` under ``name`` with its facts; see `Facts` for the keywords."""
    return Renamed(Meta(parser, Facts(doc=doc, section=section, **facts)), newname=name)


def topic_id(section: str) -> Construct:
    """Return the topic id that opens most control payloads."""
    return field("topic_id", Int32ul, doc="Topic the command is about", section=lwp(section))


def message(name: str, *fields: Construct, doc: str, section: str, **facts: Any) -> Declaration:
    """Return the declaration of a message; see `Declaration` for the keywords."""
    return Declaration(name=name, fields=fields, doc=doc, section=section, **facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameForm:
    """One kind of frame: how a header with a given flag is to be read.

    Attributes:
        kind: name of the kind, as in `lance_spec.frames.FrameKind`.
        flag: the flag bit that makes it this kind.
        sender: who sends it.
        zero_fields: header fields that carry nothing and are 0.
        payload: what follows the header.
        doc: what the frame is for, one sentence.
        section: where its source defines it.
        ambiguities: ids in the ambiguity register that decided this kind.
    """

    kind: str
    flag: IntFlag
    sender: Literal["client", "server", "both"]
    zero_fields: tuple[str, ...]
    payload: Literal["records", "command", "none"]
    doc: str
    section: str
    ambiguities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """A family of messages that is generated into one module.

    Attributes:
        name: module name in `lance_spec.messages`.
        doc: first line of the generated module's docstring.
        sources: the grammar files, for the notice in generated files.
        messages: the declarations, in reading order.
        frames: kinds of frames, where the family has a header.
    """

    name: str
    doc: str
    sources: tuple[str, ...]
    messages: tuple[Declaration, ...]
    frames: tuple[FrameForm, ...] = ()

    def __post_init__(self) -> None:
        _require_unique(self.name, (each.name for each in self.messages))


def _require_unique(grammar: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"grammar {grammar!r} declares {name} twice; rename one of them")
        seen.add(name)
