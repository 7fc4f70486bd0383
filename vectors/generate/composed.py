"""Tests of messages that nest: each valid one is written and read, each fault is made and read.

What a reader must do with a fault is not written down by hand: the second codec of `shapes` and
`nested` reads the bytes, and its refusal is the outcome.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from generate.codec.cursor import Mutation, Record, RefusedError, Writer
from generate.codec.nested import Filled, Location, Seal, Struct
from generate.codec.shapes import Rest
from generate.document import ACCEPT, Note, Test, group, note

NOTES: dict[str, Note] = {
    "Short": note(
        "EDGE_CASE",
        "The bytes end inside a field.",
        "A reader that fills in zeros makes up what was never sent.",
        "AMB-26",
    ),
    "Trailing": note(
        "EDGE_CASE",
        "Bytes follow the message.",
        "A reader that ignores them takes a longer message for this one.",
        "AMB-26",
    ),
    "Constant": note(
        "MISSING_STEP",
        "A field that has only one allowed value has another.",
        "A reader that skips the check takes other messages for this one.",
        "AMB-26",
    ),
    "Checksum": note(
        "MISSING_STEP",
        "One bit that a checksum covers has changed, or one of the checksum.",
        "A reader that skips the check believes what nobody wrote.",
        "AMB-14",
    ),
    "Length": note(
        "MODIFIED_PARAMETER",
        "A stated length is not the length of what it speaks of.",
        "A reader that does not notice takes part of one field for another, or waits for ever.",
        "AMB-26",
    ),
    "Count": note(
        "MODIFIED_PARAMETER",
        "A count is not the number of values that follow.",
        "A reader that trusts it allocates what somebody else chose, or reads the next field.",
        "AMB-26",
    ),
    "Bounds": note(
        "LIMIT",
        "A number is smaller or larger than its field allows.",
        "A reader that does not notice works with a value nobody can mean.",
        "AMB-26",
    ),
    "Unnamed": note(
        "EDGE_CASE",
        "A number stands for nothing that is defined, and decides what follows or what is done.",
        "A reader that goes on guesses at the rest of the message.",
        "AMB-26",
    ),
    "NoTruth": note(
        "EDGE_CASE",
        "A byte that should be 0 or 1 is neither.",
        "Readers that test for 1 and readers that test for 0 disagree on what was said.",
        "AMB-26",
    ),
    "NoText": note(
        "EDGE_CASE",
        "A text is not UTF-8.",
        "A reader that replaces bytes changes a name, and finds another topic or none.",
        "AMB-24",
    ),
    "WideVarint": note(
        "LIMIT",
        "A number in groups of seven bits is longer than 64 bits.",
        "A reader without a bound reads on for ever, or keeps the lowest bits of something else.",
        "FLV-01",
    ),
    "Offsets": note(
        "MODIFIED_PARAMETER",
        "Offsets of texts do not begin at 0, fall, or lead past the end.",
        "A reader that does not notice returns bytes of other values, or of no value.",
        "AMB-26",
    ),
    "OtherVersion": note(
        "MODIFIED_PARAMETER",
        "The bytes are written in another version of the protocol.",
        "A reader that knows one version takes the fields of another for its own.",
        "FLV-01",
    ),
}


@dataclass(frozen=True, slots=True)
class Example:
    """A message with values.

    Attributes:
        name: what its id ends with.
        comment: what is special about it.
        value: the values.
        version: of the protocol.
        others: versions in which the same bytes are not such a message.
    """

    name: str
    comment: str
    value: Record
    version: int = 0
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """What the tests of one family share.

    Attributes:
        prefix: what their ids begin with.
        kind: the type of their groups.
        section: what their clauses begin with.
        basis: where the rules come from.
        versioned: whether messages have versions.
        lenient: the row that leaves it open to ignore bytes after a message, or ``""``.
    """

    prefix: str
    kind: str
    section: str
    basis: str = "decision"
    versioned: bool = False
    lenient: str = ""

    def group(self, struct: Struct, examples: Sequence[Example]) -> dict[str, Any]:
        """Return the tests of one message: every example, and the faults of the first."""
        return group(self.kind, self.tests(struct, examples), message=struct.name)

    def tests(
        self, struct: Struct, examples: Sequence[Example], sound: frozenset[str] = frozenset()
    ) -> Iterator[Test]:
        """Return every example as a test, and the faults of the first, but for ``sound`` fields."""
        for each in examples:
            yield from self._example(struct, each)
        yield from _Faults(self, struct, examples[0], sound)

    def seen(
        self, struct: Struct, rows: Iterable[tuple[str, str, bytes]], version: int = 0
    ) -> Iterator[Test]:
        """Return bytes that a program was seen to send, by name and comment."""
        for name, comment, data in rows:
            read = struct.decode(data, version)
            assert struct.encode(read, version) == data, name
            example = Example(name, comment, read, version)
            yield self.test(struct, example, name, comment, data) | {
                "fields": struct.show(read, version),
                "result": "valid",
                "outcome": ACCEPT,
            }

    def _example(self, struct: Struct, example: Example) -> Iterator[Test]:
        data = struct.encode(example.value, example.version)
        read = struct.decode(data, example.version)
        assert struct.encode(read, example.version) == data, example.name
        yield self.test(struct, example, example.name, example.comment, data) | {
            "fields": struct.show(read, example.version),
            "result": "valid",
            "outcome": ACCEPT,
        }
        for version in example.others:
            yield self._reversion(struct, example, data, version)

    def _reversion(self, struct: Struct, example: Example, data: bytes, version: int) -> Test:
        comment = f"The bytes of version {example.version}, read in version {version}."
        name = f"{example.name}-in-version-{version}"
        outcome = refusal(struct, data, version)
        test = self.test(struct, example, name, comment, data) | {"version": version}
        fault = {"kind": "version", "version": version}
        return test | self.invalid(struct, example, fault, outcome, "OtherVersion")

    def test(self, struct: Struct, example: Example, name: str, comment: str, data: bytes) -> Test:
        """Return a test without its result."""
        return {
            "id": f"{self.prefix}-{struct.name}-{name}",
            "comment": comment,
            "clause": f"{self.section}/{struct.name}",
            "level": "MUST",
            "basis": self.basis,
            **({"version": example.version} if self.versioned else {}),
            "bytes": data.hex(),
            "flags": [],
        }

    def invalid(
        self, struct: Struct, example: Example, fault: Record, outcome: Record, flag: str
    ) -> Test:
        """Return the result of a faulty test."""
        return {
            "pairOf": f"{self.prefix}-{struct.name}-{example.name}",
            "fault": fault,
            "result": "invalid",
            "outcome": outcome,
            "flags": [flag],
        }


@dataclass
class _Faults:
    """Every fault of one example, field by field."""

    family: Family
    struct: Struct
    example: Example
    sound: frozenset[str] = frozenset()
    seen: set[bytes] = field(default_factory=set)

    def __iter__(self) -> Iterator[Test]:
        locations = self.struct.locations(self.example.value, Writer(self.example.version))
        data = b"".join(location.raw for location in locations)
        self.seen.add(data)
        for location in locations:
            if location.name in self.sound:
                continue
            yield from self._cuts(data, location)
            for mutation in location.shape.mutations(location.raw):
                if not self._is_another(data, location, mutation):
                    yield from self._mutated(data, location, mutation)
        if not locations or not _takes_a_byte(locations[-1].shape):
            for test in self._trailing(data):
                yield self._open(test, data) if self.family.lenient else test
        if self.struct.seal:
            yield from self._rot(data, locations, self.struct.seal)

    def _is_another(self, data: bytes, location: Location, mutation: Mutation) -> bool:
        """Whether a wrong length only makes another message, which ends where this one does."""
        if mutation.flag != "Length" or not isinstance(self.struct.fields[-1].shape, Rest):
            return False
        at = location.place + mutation.at
        spoilt = data[:at] + mutation.insert + data[at + mutation.remove :]
        try:
            self.struct.decode(spoilt, self.example.version)
        except RefusedError:
            return False
        return True

    def _trailing(self, data: bytes) -> Iterator[Test]:
        fault = {"kind": "append", "bytes": "00"}
        return self._fault("and-a-byte", "One byte follows.", data + b"\0", fault, "Trailing")

    def _open(self, test: Test, data: bytes) -> Test:
        """Leave it open whether bytes after the message are ignored."""
        version = self.example.version
        fields = self.struct.show(self.struct.decode(data, version), version)
        outcomes = [test["outcome"], ACCEPT]
        kept = {name: value for name, value in test.items() if name != "outcome"}
        either = {"result": "either", "ambiguity": self.family.lenient, "outcomes": outcomes}
        return kept | {"fields": fields} | either

    def _cuts(self, data: bytes, location: Location) -> Iterator[Test]:
        """Cut before a field and inside it; bytes up to the end are never too few."""
        if isinstance(location.shape, Rest) or not location.raw:
            return
        last = location.place + len(location.raw) - 1
        for length in (
            [last] if isinstance(location.shape, Filled) else dict.fromkeys((location.place, last))
        ):
            comment = f"The first {length} of {len(data)} bytes; it ends in {location.name}."
            fault = {"kind": "truncate", "length": length}
            yield from self._fault(f"cut-at-{length}", comment, data[:length], fault, "Short")

    def _mutated(self, data: bytes, location: Location, mutation: Mutation) -> Iterator[Test]:
        at = location.place + mutation.at
        spoilt = data[:at] + mutation.insert + data[at + mutation.remove :]
        fault: Record = {
            "kind": "splice",
            "offset": at,
            "remove": mutation.remove,
            "insert": mutation.insert.hex(),
        }
        seal = self.struct.seal
        if seal and _covers(seal, at):
            spoilt, fault = self._resealed(spoilt, fault, seal)
        title = f"{location.name.replace('_', '-')}-{mutation.name}"
        comment = f"Field {location.name}: {mutation.comment}"
        yield from self._fault(title, comment, spoilt, fault, mutation.flag, reason=mutation.reason)

    def _resealed(self, data: bytes, fault: Record, seal: Seal) -> tuple[bytes, Record]:
        """Make the checksum right again, so that the fault is the only one."""
        at = self.struct.place(seal.name, self.example.value, self.example.version)
        at += len(fault["insert"]) // 2 - fault["remove"]
        sealed = data[:at] + seal.of(data) + data[at + 4 :]
        end = {} if seal.end is None else {"end": at if seal.end < 0 else seal.end}
        places = {"at": at, "start": seal.start, **end, "order": seal.order}
        return sealed, fault | {"reseal": {"algorithm": "crc32c", **places}}

    def _rot(self, data: bytes, locations: list[Location], seal: Seal) -> Iterator[Test]:
        """Change a bit at both ends of what the checksum covers, field by field, and in itself."""
        for location in locations:
            covered = location.name == seal.name or _covers(seal, location.place)
            if not (covered and location.shape.given and location.raw):
                continue
            for at in dict.fromkeys((location.place, location.place + len(location.raw) - 1)):
                insert = bytes([data[at] ^ 1])
                spoilt = data[:at] + insert + data[at + 1 :]
                fault = {"kind": "splice", "offset": at, "remove": 1, "insert": insert.hex()}
                comment = f"One bit of byte {at}, in {location.name}, has changed."
                yield from self._fault(f"rot-at-{at}", comment, spoilt, fault, "Checksum")

    def _fault(
        self, name: str, comment: str, data: bytes, fault: Record, flag: str, *, reason: str = ""
    ) -> Iterator[Test]:
        if data in self.seen:
            return
        self.seen.add(data)
        outcome = refusal(self.struct, data, self.example.version)
        assert not reason or outcome["reason"] == reason, (self.struct.name, name, outcome)
        test = self.family.test(self.struct, self.example, name, comment, data)
        yield test | self.family.invalid(self.struct, self.example, fault, outcome, flag)


def refusal(struct: Struct, data: bytes, version: int) -> Record:
    """Return why bytes are not a message.

    Raises:
        AssertionError: they are.
    """
    try:
        read = struct.decode(data, version)
    except RefusedError as error:
        found = {"reason": error.reason, "field": error.field, "offset": error.offset}
        return {"action": "reject"} | found
    raise AssertionError(f"{struct.name} {data.hex()} is read as {read}")


def used(notes: dict[str, Note], groups: Iterable[dict[str, Any]]) -> dict[str, Note]:
    """Return the notes that some test has a flag for."""
    flags = {flag for each in groups for test in each["tests"] for flag in test["flags"]}
    return {flag: text for flag, text in notes.items() if flag in flags}


def _takes_a_byte(shape: Any) -> bool:
    """Whether one more byte, of 0, is one more value."""
    return isinstance(shape, Rest) or (isinstance(shape, Filled) and shape.item.least == 1)


def _covers(seal: Seal, at: int) -> bool:
    return seal.start <= at and (seal.end is None or seal.end < 0 or at < seal.end)
