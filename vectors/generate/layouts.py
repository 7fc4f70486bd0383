"""Messages written down as lists of fields, their encodings, and the faults they can have."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from generate.document import ACCEPT, Test, note, shown
from generate.wire import crc, le

Value = int | bytes
Refusal = Callable[[str, str, int], dict[str, Any]]
"""Makes an outcome of a reason, a field and its offset."""

NOTES = {
    "Short": note(
        "EDGE_CASE",
        "The bytes end inside a field.",
        "A reader that fills in zeros makes up what was never written.",
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
        "A reader that skips the check takes other files for its own.",
        "AMB-14",
    ),
    "Checksum": note(
        "MISSING_STEP",
        "One byte that a checksum covers, or the checksum, is damaged.",
        "A reader that skips the check believes a torn or rotten entry.",
        "AMB-14",
    ),
    "Length": note(
        "MODIFIED_PARAMETER",
        "A stated length is not the length of what it speaks of.",
        "A reader that does not notice takes part of one field for another.",
        "AMB-26",
    ),
    "Bounds": note(
        "LIMIT",
        "A number is smaller or larger than its field allows.",
        "A reader that does not notice works with a value nobody can mean.",
        "AMB-26",
    ),
}


@dataclass(frozen=True, slots=True)
class Slot:
    """One field: a number, a constant, or bytes.

    Attributes:
        name: its name.
        size: bytes of a number, or 0.
        const: the only bytes allowed, or None.
        measures: the bytes whose length this number states.
        measured: whether a number states the length of these bytes; otherwise they take the rest.
    """

    name: str
    size: int = 0
    const: bytes | None = None
    measures: str = ""
    measured: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """A message.

    Attributes:
        name: what it is called.
        clause: the row that decides about it.
        slots: its fields.
        guarded: bytes that the checksum in its last four bytes covers; 0 where it has none.
    """

    name: str
    clause: str
    slots: tuple[Slot, ...]
    guarded: int = 0

    def encode(self, values: Mapping[str, Value]) -> bytes:
        """Return the bytes of values; constants, lengths and the checksum are filled in."""
        data = b"".join(raw for _, _, raw in self.parts(values))
        if self.guarded:
            data = data[:-4] + le(crc("crc32c", data[: self.guarded]), 4)
        return data

    def parts(self, values: Mapping[str, Value]) -> list[tuple[Slot, int, bytes]]:
        """Return each field with its offset and bytes, without the checksum's value."""
        found, place = [], 0
        for slot in self.slots:
            raw = self._raw(slot, values)
            found.append((slot, place, raw))
            place += len(raw)
        return found

    def _raw(self, slot: Slot, values: Mapping[str, Value]) -> bytes:
        if slot.const is not None:
            return slot.const
        if slot.measures:
            measured = values[slot.measures]
            assert isinstance(measured, bytes)
            return le(len(measured), slot.size)
        value = values.get(slot.name, 0)
        return value if isinstance(value, bytes) else le(value, slot.size)

    def fields(self, values: Mapping[str, Value], data: bytes) -> dict[str, Any]:
        """Return what a reader finds, as JSON."""
        given = {each.name: values.get(each.name, 0) for each in self.slots if _is_given(each)}
        if self.guarded:
            given[self.slots[-1].name] = int.from_bytes(data[-4:], "little")
        wide = [each.name for each in self.slots if each.size == 8]
        return shown(dict(given), wide)


def _is_given(slot: Slot) -> bool:
    return slot.const is None and not slot.measures


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes the tests of one message.

    Attributes:
        layout: the message.
        prefix: what the ids of its tests begin with.
        refuse: makes the outcome of a faulty one.
    """

    layout: Layout
    prefix: str
    refuse: Refusal

    def valid(self, name: str, comment: str, values: Mapping[str, Value]) -> Test:
        """Return a valid test."""
        data = self.layout.encode(values)
        return self._test(name, comment, data) | {
            "fields": self.layout.fields(values, data),
            "result": "valid",
            "outcome": ACCEPT,
        }

    def faults(self, pair: str, values: Mapping[str, Value]) -> Iterator[Test]:
        """Return the faults that every message can have, of one valid test."""
        data = self.layout.encode(values)
        parts = self.layout.parts(values)
        yield from self._cuts(pair, data, parts)
        if self.layout.slots[-1].size or self.layout.slots[-1].const is not None:
            fault = {"kind": "append", "bytes": "00"}
            outcome = self.refuse("trailing", "", len(data))
            comment = "One byte after the message."
            yield self._fault(f"{pair}-and-a-byte", comment, data + b"\0", fault, pair) | {
                "outcome": outcome,
                "flags": ["Trailing"],
            }
        for slot, place, raw in parts:
            if slot.const is not None:
                yield from self._constants(pair, data, slot, place, len(raw))
        if self.layout.guarded:
            yield from self._rot(pair, data, parts)

    def _cuts(self, pair: str, data: bytes, parts: list[tuple[Slot, int, bytes]]) -> Iterator[Test]:
        for slot, start, raw in parts:
            if not slot.size and slot.const is None and not slot.measured:
                continue  # the rest of a message is never too short
            for length in sorted({start, start + len(raw) - 1}):
                comment = f"The first {length} of {len(data)} bytes."
                fault = {"kind": "truncate", "length": length}
                yield self._fault(f"cut-at-{length}", comment, data[:length], fault, pair) | {
                    "outcome": self.refuse("short", slot.name, start),
                    "flags": ["Short"],
                }

    def _constants(
        self, pair: str, data: bytes, slot: Slot, place: int, size: int
    ) -> Iterator[Test]:
        for at in sorted({place, place + size - 1}):
            insert = bytes([data[at] ^ 0xFF])
            name = f"{slot.name.replace('_', '-')}-at-{at}"
            outcome = self.refuse("value", slot.name, place)
            comment = f"Byte {at}, in {slot.name}, is inverted."
            yield self.splice(
                pair,
                name,
                comment,
                data=data,
                at=at,
                insert=insert,
                outcome=outcome,
                flag="Constant",
            )

    def _rot(self, pair: str, data: bytes, parts: list[tuple[Slot, int, bytes]]) -> Iterator[Test]:
        crc_name, crc_place = parts[-1][0].name, parts[-1][1]
        outcome = self.refuse("checksum", crc_name, crc_place)
        for slot, place, raw in parts:
            if slot.const is not None:
                continue
            for at in sorted({place, place + len(raw) - 1}):
                name = f"rot-at-{at}"
                comment = f"One bit of byte {at}, in {slot.name}, has changed."
                insert = bytes([data[at] ^ 1])
                yield self.splice(
                    pair,
                    name,
                    comment,
                    data=data,
                    at=at,
                    insert=insert,
                    outcome=outcome,
                    flag="Checksum",
                )

    def splice(
        self,
        pair: str,
        name: str,
        comment: str,
        *,
        data: bytes,
        at: int,
        insert: bytes,
        outcome: dict[str, Any],
        flag: str,
    ) -> Test:
        """Return a test with some bytes in the place of as many others."""
        fault = {"kind": "splice", "offset": at, "remove": len(insert), "insert": insert.hex()}
        damaged = data[:at] + insert + data[at + len(insert) :]
        test = self._fault(name, comment, damaged, fault, pair)
        return test | {"outcome": outcome, "flags": [flag]}

    def _fault(
        self, name: str, comment: str, data: bytes, fault: dict[str, Any], pair: str
    ) -> Test:
        return self._test(name, comment, data) | {
            "pairOf": f"{self.prefix}-{pair}",
            "fault": fault,
            "result": "invalid",
        }

    def _test(self, name: str, comment: str, data: bytes) -> Test:
        return {
            "id": f"{self.prefix}-{name}",
            "comment": comment,
            "clause": f"{self.layout.clause}/{self.layout.name}",
            "level": "MUST",
            "basis": "decision",
            "bytes": data.hex(),
            "flags": [],
        }


def reject(reason: str, field: str, offset: int) -> dict[str, Any]:
    """Return the outcome of bytes that a reader does not believe."""
    return {"action": "reject", "reason": reason, "field": field, "offset": offset}


def distinct(place: int, size: int) -> int:
    """Return a number whose bytes differ from each other and from those of other fields."""
    return int.from_bytes(bytes((0x10 * (place + 1) + byte) & 0xFF for byte in range(size)), "big")


def examples(layout: Layout) -> Iterator[tuple[str, str, dict[str, Value]]]:
    """Return values of a message that has only numbers: zeros, the largest, and others."""
    numbers = [each for each in layout.slots if each.size and not each.measures]
    yield "zeros", "Zero in every field.", {each.name: 0 for each in numbers}
    ones = {each.name: 256**each.size - 1 for each in numbers}
    yield "ones", "The largest number in every field.", dict(ones)
    others = {each.name: distinct(place, each.size) for place, each in enumerate(numbers)}
    yield "numbers", "Other bytes everywhere.", dict(others)
