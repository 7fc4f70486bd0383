"""The words that the grammar is written in.

A field is a `construct` parser wrapped in `Meta`, which carries what a parser cannot say: the
sentence that explains the field, its section, unit, names and limits. `lance_spec.ir.nodes.lower`
knows this vocabulary and refuses every other word.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any, Literal

from construct import Construct, Int32ul, RangeError, Renamed, Struct, Subconstruct, Terminated


class GrammarError(ValueError):
    """A declaration outside the vocabulary, or one that contradicts itself.

    Attributes:
        path: message and field, for example ``Header.magic``.
        problem: what is wrong and what to write instead.
    """

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(path, problem)

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Crc:
    """What a checksum field covers and how it is computed.

    Attributes:
        over: first and last-plus-one byte of the message it covers; ``"payload"`` for the bytes
            that follow the header; ``"after"`` for all of the message after the field,
            ``"before"`` for all before it.
        algorithm: ``"crc32c"``, or ``"dialect"`` where the dialect decides (AMB-01).
    """

    over: tuple[int, int] | Literal["payload", "after", "before"]
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
        closed: only the names of ``enum`` are allowed, because what follows depends on them.
        since: first version of the protocol in which the field is written; None for all.
        until: last version in which it is written; None for all later ones.
        absent: its value in versions that do not write it.
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
    closed: bool = False
    since: int | None = None
    until: int | None = None
    absent: Any = dataclasses.field(default=None, hash=False)  # an empty list has no hash
    ambiguities: tuple[str, ...] = ()

    @property
    def gated(self) -> bool:
        """Whether some versions of the protocol do not write the field."""
        return self.since is not None or self.until is not None

    def carried(self, version: int) -> bool:
        """Whether a version of the protocol writes the field."""
        late = self.since is None or version >= self.since
        return late and (self.until is None or version <= self.until)

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Smallest and largest value allowed, where the facts narrow the field's own width."""
        if self.boolean:
            return (0, 1)
        if self.minimum is None or self.maximum is None:
            return None
        return (self.minimum, self.maximum)


class Meta(Subconstruct):  # type: ignore[misc]  # construct ships no types
    """A parser with facts; it enforces the facts that narrow a number or gate a field.

    A grammar with versions is parsed and built with ``version=`` in the context.
    """

    def __init__(self, subcon: Construct, facts: Facts) -> None:
        super().__init__(subcon)
        self.facts = facts

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        if self._absent(context):
            return self.facts.absent
        value = super()._parse(stream, context, path)
        self._check(value, path)
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if self._absent(context):
            if obj != self.facts.absent:
                raise RangeError(f"expected {self.facts.absent!r}, got {obj!r}", path=path)
            return obj
        built = super()._build(obj, stream, context, path)
        self._check(built, path)
        return built

    def _absent(self, context: Any) -> bool:
        return self.facts.gated and not self.facts.carried(context._params.version)  # noqa: SLF001  # how construct passes parameters down

    def _check(self, value: Any, path: str) -> None:
        names = self.facts.enum
        if self.facts.closed and names and value not in {int(each) for each in names}:
            raise RangeError(f"expected a value of {names.__name__}, got {value!r}", path=path)
        bounds = self.facts.bounds
        if bounds and not bounds[0] <= value <= bounds[1]:
            raise RangeError(f"expected {bounds[0]} to {bounds[1]}, got {value!r}", path=path)


class _Since(Construct):  # type: ignore[misc]
    """No bytes; refuses versions before the first that has the layout."""

    def __init__(self, since: int) -> None:
        super().__init__()
        self.since = since
        self.flagbuildnone = True

    def _parse(self, _stream: Any, context: Any, path: str) -> None:
        if context._params.version < self.since:  # noqa: SLF001  # how construct passes parameters down
            raise RangeError(f"expected version {self.since} or later", path=path)

    def _build(self, _obj: Any, stream: Any, context: Any, path: str) -> None:
        self._parse(stream, context, path)


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
        since: first version of the protocol whose layout this is; older ones are refused.
        ambiguities: ids in the ambiguity register that decided this message.
    """

    name: str
    doc: str
    section: str
    fields: tuple[Construct, ...]
    since: int | None = None
    command: IntEnum | None = None
    record_type: IntEnum | None = None
    sender: Literal["client", "server", "both", ""] = ""
    ambiguities: tuple[str, ...] = ()

    def construct(self) -> Struct:
        """Return the interpreted parser; it insists that nothing follows the message."""
        return Struct(*self.parsers(), Terminated)

    def parsers(self) -> tuple[Construct, ...]:
        """Return the fields, behind a guard against versions of another layout."""
        return self.fields if self.since is None else (_Since(self.since), *self.fields)


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
        messages: the declarations, in reading order; nested ones before those that hold them.
        frames: kinds of frames, where the family has a header.
        composed: messages nest; they are written with the words of `lance_spec.grammar._composed`.
        versions: first and last version of the protocol, where its messages depend on one.
    """

    name: str
    doc: str
    sources: tuple[str, ...]
    messages: tuple[Declaration, ...]
    frames: tuple[FrameForm, ...] = ()
    composed: bool = False
    versions: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        _require_unique(self.name, (each.name for each in self.messages))


def _require_unique(grammar: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"grammar {grammar!r} declares {name} twice; rename one of them")
        seen.add(name)
