"""Frames with exactly one fault each, made from valid ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from generate.codec.wire import HEADER, OTHER, Frame, crc, le
from generate.document import ACCEPT, Test, close, error, shown

KINDS = ((0x40, "CONTROL"), (0x20, "KEEPALIVE"), (0x08, "ACK"), (0x10, "BACKPRESSURE"))
"""The order in which the published server decides what odd flags mean; the rest is Ingest."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Why a test exists: the clause, the mistake it stands for, and what a receiver does."""

    clause: str
    flag: str
    outcome: dict[str, Any]


MAGIC = Rule("11.1/close", "Magic", close("bad_magic", "magic", 0))
VERSION = Rule("11.2/close", "Version", close("bad_version", "version", 4))
HEADER_CRC = Rule("11.3/header-crc", "HeaderCrc", close("bad_header_crc", "header_crc", 8))
PAYLOAD_CRC = Rule("11.3/payload-crc", "PayloadCrc", close("bad_payload_crc", "payload_crc", 36))
CORRUPT = Rule("11.3/payload-crc", "CorruptPayload", PAYLOAD_CRC.outcome)


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes faulty frames out of the valid ones of one dialect.

    Attributes:
        dialect: its name.
        algorithm: its checksum.
        strict: whether it judges odd headers.
        limit: its largest payload in bytes.
        frames: the valid frames by name.
    """

    dialect: str
    algorithm: str
    strict: bool
    limit: int
    frames: dict[str, Frame]

    def everything(self) -> Iterator[Test]:
        """Make every faulty frame."""
        yield from self.magic()
        yield from self.version()
        yield from self.header_crc()
        yield from self.reserved()
        yield from self.payload_crc()
        yield from self.sizes()
        yield from self.truncated()
        yield from self.odd_flags()
        yield from self.odd_batches()
        yield self.stray_crc()

    def magic(self) -> Iterator[Test]:
        """Spoil the magic bytes."""
        for place in range(4):
            spoiled = bytearray(b"LANC")
            spoiled[place] ^= 0x20
            comment = f"Byte {place} of the magic in lower case."
            yield self.set("keepalive", f"magic-case-{place}", comment, MAGIC, magic=bytes(spoiled))
        for name, magic, comment in (
            ("lower", b"lanc", "The magic in lower case."),
            ("reversed", b"CNAL", "The magic as a big-endian number."),
            ("zero", bytes(4), "Zeros for magic."),
        ):
            yield self.set("keepalive", f"magic-{name}", comment, MAGIC, magic=magic)

    def version(self) -> Iterator[Test]:
        """Give other versions, with the CRC they should have."""
        for version in (0, 2, 0x80, 0xFF):
            comment = f"Version {version}."
            yield self.set("keepalive", f"version-{version}", comment, VERSION, version=version)

    def header_crc(self) -> Iterator[Test]:
        """Spoil the header CRC: every bit of it, and values that are easily mistaken for it."""
        whole = self.frames["keepalive"].encode()
        right = int.from_bytes(whole[8:12], "little")
        for bit in range(32):
            yield self.flipped("keepalive", "header_crc", right, bit, HEADER_CRC)
        for name, value, comment in (
            ("zero", 0, "Zero for a CRC."),
            ("inverted", right ^ 0xFFFFFFFF, "The CRC inverted."),
            ("big-endian", _swapped(right), "The CRC as a big-endian number."),
            ("wide", self.sum(whole[:8] + whole[12:40]), "The CRC of bytes 0 to 39 (AMB-03)."),
            ("whole", self.sum(whole[:8] + bytes(4) + whole[12:]), "The CRC of the whole header."),
            ("other", crc(OTHER[self.algorithm], whole[:8]), "The CRC of the other polynomial."),
            ("printed", 0x5CB4A5E3, "The CRC that LWP Appendix A.1 prints (AMB-02)."),
        ):
            yield self.set("keepalive", f"header-crc-{name}", comment, HEADER_CRC, header_crc=value)

    def reserved(self) -> Iterator[Test]:
        """Set bits that must be 0."""
        for name, field, value, offset in (
            ("reserved-low", "reserved", 1, 6),
            ("reserved-high", "reserved", 0x8000, 6),
            ("flag-bit-7", "flags", 0xA0, 5),
        ):
            outcome = close("reserved_bits", field, offset) if self.strict else ACCEPT
            rule = Rule("AMB-33/reserved", "ReservedBits", outcome)
            comment = f"The field {field} is {value:#x}."
            yield self.set("keepalive", name, comment, rule, **{field: value})

    def payload_crc(self) -> Iterator[Test]:
        """Spoil the payload CRC, and the payload under it."""
        whole = self.frames["ingest"].encode()
        right = int.from_bytes(whole[36:40], "little")
        for bit in range(0, 32, 5):
            yield self.flipped("ingest", "payload_crc", right, bit, PAYLOAD_CRC)
        for name, value, comment in (
            ("zero", 0, "Zero for a CRC, which does not switch the check off."),
            ("inverted", right ^ 0xFFFFFFFF, "The CRC inverted."),
            ("big-endian", _swapped(right), "The CRC as a big-endian number."),
            ("other", crc(OTHER[self.algorithm], whole[44:]), "The CRC of the other polynomial."),
            ("whole", self.sum(whole), "The CRC of header and payload."),
        ):
            yield self.set("ingest", f"payload-crc-{name}", comment, PAYLOAD_CRC, payload_crc=value)
        for place in range(len(whole) - 44):
            yield self.corrupt(whole, place)

    def corrupt(self, whole: bytes, place: int) -> Test:
        """Invert a bit of the payload and leave its CRC as it was."""
        damaged = bytearray(whole)
        damaged[44 + place] ^= 1 << place % 8
        fault = {"field": "payload", "kind": "corrupt-bit", "bit": 8 * place + place % 8}
        comment = f"One bit of payload byte {place} inverted."
        return self.test(
            "ingest", f"payload-byte-{place}", comment, CORRUPT, fault=fault, data=bytes(damaged)
        )

    def sizes(self) -> Iterator[Test]:
        """Claim payloads at and over the limit, and send none of them."""
        waiting = {"action": "wait", "missing": self.limit}
        yield self.claim("at-limit", self.limit, Rule("8.7/limit", "AtTheLimit", waiting))
        more = {"code": 3} if self.strict else {}
        outcome = close("oversize", "payload_length", 32, **more)
        rule = Rule("AMB-17/oversize", "Oversize", outcome)
        yield self.claim("over-limit", self.limit + 1, rule)
        for name, length in (("32-mib", 2**25), ("2-gib", 2**31), ("4-gib", 2**32 - 1)):
            yield self.claim(name, length, rule)

    def claim(self, name: str, length: int, rule: Rule) -> Test:
        """Announce a payload that does not come."""
        comment = f"A header that announces {length} bytes of payload."
        return self.set("list-topics", f"claims-{name}", comment, rule, payload_length=length)

    def truncated(self) -> Iterator[Test]:
        """Cut a frame short: the receiver waits for the rest."""
        whole = self.frames["ingest"].encode()
        for length in (0, 1, 3, 4, 5, 6, 8, 11, 12, 20, 28, 32, 36, 40, 43, 44, 45, len(whole) - 1):
            missing = (44 if length < 44 else len(whole)) - length
            outcome = {"action": "wait", "missing": missing}
            rule = Rule("3.4/whole-frames", "Truncated", outcome)
            comment = f"The first {length} bytes of a frame."
            fault = {"kind": "truncate", "length": length}
            yield self.test(
                "ingest", f"cut-at-{length}", comment, rule, fault=fault, data=whole[:length]
            )

    def odd_flags(self) -> Iterator[Test]:
        """Headers that are intact and name no kind of frame, or several."""
        outcome = error(4, "flags", 5) if self.strict else ACCEPT
        rule = Rule("AMB-33/flags", "OddFlags", outcome)
        for name, value, comment in (
            ("control-ack", 0x48, "Control and Ack at once."),
            ("keepalive-control", 0x60, "Keepalive and Control at once."),
            ("batch-ack", 0x0C, "BatchMode and Ack at once."),
            ("all-kinds", 0x7C, "Every kind at once."),
            ("encrypted", 0x06, "An encrypted batch; encryption is not defined."),
            ("none", 0x00, "No kind, with a payload."),
            ("compressed-only", 0x01, "Compressed, without a kind."),
        ):
            yield self.set("ingest", f"flags-{name}", comment, rule, flags=value)

    def odd_batches(self) -> Iterator[Test]:
        """Batches that cannot be acknowledged, or do not hold what they say."""
        unnamed = error(4, "batch_id", 12) if self.strict else ACCEPT
        rule = Rule("AMB-33/batch-id", "EmptyIngest", unnamed)
        yield self.set("ingest", "ingest-batch-id-0", "Batch id 0.", rule, batch_id=0)
        miscounted = error(4, "record_count", 28) if self.strict else ACCEPT
        for count in (0, 2, 2**32 - 1):
            rule = Rule("AMB-27/record-count", "EmptyIngest", miscounted)
            comment = f"Record count {count}, with one record."
            yield self.set("ingest", f"ingest-counts-{count}", comment, rule, record_count=count)

    def stray_crc(self) -> Test:
        """A payload CRC without a payload, which no document forbids."""
        rule = Rule("AMB-33/payload-crc", "StrayPayloadCrc", ACCEPT)
        comment = "A payload CRC without a payload."
        test = self.set("keepalive", "stray-payload-crc", comment, rule, payload_crc=1)
        outcomes = [test.pop("outcome"), close("bad_payload_crc", "payload_crc", 36)]
        return test | {"result": "either", "ambiguity": "AMB-33", "outcomes": outcomes}

    def sum(self, data: bytes) -> int:
        """Return the dialect's checksum."""
        return crc(self.algorithm, data)

    def flipped(self, pair: str, field: str, right: int, bit: int, rule: Rule) -> Test:
        """Invert one bit of a checksum."""
        name = f"{field.replace('_', '-')}-bit-{bit}"
        comment = f"Bit {bit} of the CRC inverted."
        test = self.set(pair, name, comment, rule, **{field: right ^ 1 << bit})
        return test | {"fault": {"field": field, "kind": "flip-bit", "bit": bit}}

    def set(self, pair: str, name: str, comment: str, rule: Rule, **field: int | bytes) -> Test:
        """Give one field of a valid frame another value; what depends on it is computed."""
        ((changed, value),) = shown(field).items()
        fault = {"field": changed, "kind": "set", "value": value}
        spoiled = self.frames[pair].but(**field)
        return self.test(pair, name, comment, rule, fault=fault, data=spoiled.encode())

    def test(
        self, pair: str, name: str, comment: str, rule: Rule, *, fault: dict[str, Any], data: bytes
    ) -> Test:
        """Return the test for a faulty frame."""
        accepted = rule.outcome == ACCEPT
        return {
            "id": f"{self.dialect}-{name}",
            "comment": comment,
            "clause": rule.clause,
            "level": "MAY" if accepted else "MUST",
            "basis": "decision" if rule.clause.startswith("AMB") else "keyword",
            "pairOf": f"{self.dialect}-{pair}",
            "fault": fault,
            "bytes": data.hex(),
            **({"fields": _fields(data)} if accepted else {}),
            "result": "valid" if accepted or rule.outcome["action"] == "wait" else "invalid",
            "outcome": rule.outcome,
            "flags": [rule.flag],
        }


def _swapped(value: int) -> int:
    return int.from_bytes(le(value, 4), "big")


def _fields(data: bytes) -> dict[str, Any]:
    """Read an accepted header as the published server does."""
    values: dict[str, int | bytes] = {}
    place = 0
    for name, size in HEADER:
        raw = data[place : place + size]
        values[name] = raw if name == "magic" else int.from_bytes(raw, "little")
        place += size
    flags = data[5]
    kind = next((kind for bit, kind in KINDS if flags & bit), "INGEST")
    return {"kind": kind, **shown(values)}
