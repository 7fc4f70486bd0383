"""The rules that every frame of a client must keep, whatever the case is about."""

import itertools
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import cleandoc

from lance_conformance.client.scripted.model import CODES
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.dialect import Dialect
from lance_conformance.wire.frame import Flag, Frame
from lance_conformance.wire.tlv import RECORD_HEADER, boundaries

FrameCheck = Callable[[ReceivedFrame, Dialect], str]
"""Returns what is wrong, empty when nothing is."""
BATCH_MODE, KEEPALIVE, CONTROL = int(Flag.BATCH_MODE), int(Flag.KEEPALIVE), int(Flag.CONTROL)
KINDS = (BATCH_MODE, KEEPALIVE, CONTROL)  # plain numbers, for enum arithmetic is slow
NOT_FOR_CLIENTS = int(Flag.ACK | Flag.BACKPRESSURE)
CLEAR = int(Flag.RESERVED | Flag.ENCRYPTED)
SIZES = {
    "delete": 4, "list": 0, "get": 4, "retention": 20, "status": 0, "fetch": 16,
    "subscribe": 24, "unsubscribe": 12, "commit": 20,
}  # fmt: skip
GROUPS = range(0x60, 0x72)
"""Extensions that a client may try."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        name: ``wire/NAME`` is its case.
        clause: Key into the clauses.
        title: The rule as a sentence.
        judge: Applies it.
    """

    name: str
    clause: str
    title: str
    judge: FrameCheck


_RULES: dict[str, Rule] = {}


def _rule(clause: str) -> Callable[[FrameCheck], FrameCheck]:
    def register(judge: FrameCheck) -> FrameCheck:
        name = judge.__name__.replace("_", "-")
        _RULES[name] = Rule(name, clause, cleandoc(judge.__doc__ or ""), judge)
        return judge

    return register


def rules() -> Mapping[str, Rule]:
    """Every rule by its name."""
    return _RULES


def broken_rules(seen: ReceivedFrame, dialect: Dialect) -> dict[str, str]:
    """The rules that a frame breaks, each with what is wrong."""
    judged = {name: rule.judge(seen, dialect) for name, rule in _RULES.items()}
    return {name: wrong for name, wrong in judged.items() if wrong}


def _is(frame: Frame, flag: int) -> bool:
    return bool(frame.flags & flag)


@_rule("17.3/version")
def version(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """Every frame is of version 1."""
    wrong = seen.frame.version != 1
    return f"version at byte 4 is {seen.frame.version}, must be 1" if wrong else ""


@_rule("17.3/one-kind")
def one_kind(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """Every frame has exactly one of the kind flags BatchMode, Keepalive and Control."""
    kinds = [kind for kind in KINDS if _is(seen.frame, kind)]
    one = len(kinds) == 1
    return "" if one else f"flags at byte 5 are {seen.frame.flags:#04x}: {len(kinds)} kind flags"


@_rule("17.3/no-server-frames")
def no_server_frames(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """A client sends neither Ack nor Backpressure."""
    wrong = seen.frame.flags & NOT_FOR_CLIENTS
    return f"flags at byte 5 are {seen.frame.flags:#04x}: Ack or Backpressure" if wrong else ""


@_rule("17.3/flags-clear")
def flags_clear(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """Bit 7 and Encrypted are never set."""
    wrong = seen.frame.flags & CLEAR
    return (
        f"flags at byte 5 are {seen.frame.flags:#04x}: bit 7 or Encrypted is set" if wrong else ""
    )


@_rule("17.3/reserved")
def reserved(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """The reserved bytes are 0."""
    wrong = seen.frame.reserved
    return f"reserved at byte 6 is {seen.frame.reserved:#x}, must be 0" if wrong else ""


@_rule("9.3/header-crc")
def header_crc(seen: ReceivedFrame, dialect: Dialect) -> str:
    """The header checksum is that of bytes 0 to 7."""
    right = dialect.compute(seen.data[:8])
    wrong = seen.frame.header_crc
    return "" if wrong == right else f"header CRC at byte 8 is {wrong:#010x}, must be {right:#010x}"


@_rule("9.4/payload-crc")
def payload_crc(seen: ReceivedFrame, dialect: Dialect) -> str:
    """The payload checksum is that of the payload; without a payload it is not looked at."""
    right = seen.frame.right_payload_crc(dialect.compute)
    wrong = seen.frame.payload_crc
    if not seen.frame.payload or wrong == right:
        return ""
    return f"payload CRC at byte 36 is {wrong:#010x}, must be {right:#010x}"


@_rule("4.3/zero")
def keepalive_zero(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """All fields of a Keepalive after the header checksum are 0."""
    wrong = _is(seen.frame, KEEPALIVE) and any(seen.data[12:])
    return "a Keepalive has a field that is not 0" if wrong else ""


@_rule("5.1/zero")
def control_zero(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """Timestamp, record count and topic of a control frame are 0."""
    frame = seen.frame
    wrong = frame.timestamp_ns or frame.record_count or frame.topic_id
    if not (_is(frame, CONTROL) and wrong):
        return ""
    return f"timestamp {frame.timestamp_ns}, records {frame.record_count}, topic {frame.topic_id}"


@_rule("5.2/client-command")
def client_command(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """A control frame of a client carries a command that clients send."""
    known = seen.frame.batch_id in CODES.values() or seen.frame.batch_id in {0x30, *GROUPS}
    wrong = _is(seen.frame, CONTROL) and not known
    return f"command {seen.frame.batch_id:#x} is none of a client's" if wrong else ""


@_rule("5.2/payload-size")
def control_size(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """The payload of a command has the size that the command gives it."""
    if not _is(seen.frame, CONTROL):
        return ""
    size = len(seen.frame.payload)
    wanted = {CODES[name]: size for name, size in SIZES.items()}.get(seen.frame.batch_id, size)
    if seen.frame.batch_id == CODES["create"] and not 1 <= size <= 255:
        return f"a topic name of {size} bytes; there are 1 to 255"
    if seen.frame.batch_id == CODES["create-limited"]:
        wanted = 18 + (struct.unpack_from("<H", seen.frame.payload)[0] if size > 1 else 0)
    return "" if size == wanted else f"a payload of {size} bytes, must be {wanted}"


@_rule("4.1/batch-id")
def batch_id_zero(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """The batch id of an Ingest is not 0."""
    wrong = _is(seen.frame, BATCH_MODE) and not seen.frame.batch_id
    return "batch id at byte 12 is 0" if wrong else ""


@_rule("10.4/unique")
def batch_id_unique(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """No two batches of a connection have the same id."""
    frame = seen.frame
    if not _is(frame, BATCH_MODE):
        return ""
    twins = [
        each
        for each in seen.before
        if each.frame.batch_id == frame.batch_id and _is(each.frame, BATCH_MODE)
    ]
    other = any(each.frame.payload != frame.payload for each in twins)
    return f"two batches have the id {frame.batch_id:#x}" if other else ""


@_rule("5.13/request")
def unsubscribe(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """An Unsubscribe has topic and consumer of a subscription of its connection."""
    frame = seen.frame
    if not _is(frame, CONTROL) or frame.batch_id != CODES["unsubscribe"]:
        return ""
    begun = [
        (each.frame.payload[:4], each.frame.payload[16:24])
        for each in seen.before
        if _is(each.frame, CONTROL) and each.frame.batch_id == CODES["subscribe"]
    ]
    ours = frame.payload[:4], frame.payload[4:12]
    told = f"topic and consumer {frame.payload.hex()} are those of no subscription"
    return "" if ours in begun else told


@_rule("4.1/flags")
def compressed(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """An Ingest with the flag Compressed has an LZ4 frame for a payload."""
    wrong = seen.closed
    return f"the payload of a compressed Ingest is not one LZ4 frame: {wrong}" if wrong else ""


@_rule("4.1/timestamp")
def timestamp(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """An Ingest says when it was made."""
    wrong = _is(seen.frame, BATCH_MODE) and not seen.frame.timestamp_ns
    return "timestamp at byte 20 is 0" if wrong else ""


def _has_records(seen: ReceivedFrame) -> bool:
    """Whether it is an Ingest whose records can be looked at."""
    return _is(seen.frame, BATCH_MODE) and not seen.closed


@_rule("4.1/payload")
def payload_there(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """An Ingest has a payload, and at least one record in it."""
    empty = _is(seen.frame, BATCH_MODE) and not (seen.frame.payload and seen.frame.record_count)
    return "an Ingest without records" if empty else ""


@_rule("8.4/chain")
def record_chain(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """The payload of an Ingest is whole TLV records, one after the other."""
    if not _has_records(seen):
        return ""
    end, size = boundaries(seen.opened.payload)[-1], len(seen.opened.payload)
    return "" if end == size else f"the records end at byte {end} of a payload of {size}"


@_rule("8.4/count")
def record_count(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """The record count of an Ingest is the number of its records."""
    if not _has_records(seen):
        return ""
    count = len(boundaries(seen.opened.payload)) - 1
    wrong = seen.frame.record_count != count
    return f"record count {seen.frame.record_count}, the payload has {count}" if wrong else ""


def _records(payload: bytes) -> list[tuple[int, int]]:
    """Type and length of each whole record."""
    starts = boundaries(payload)
    return [
        (payload[start], end - start - RECORD_HEADER) for start, end in itertools.pairwise(starts)
    ]


@_rule("8.2/reserved-type")
def reserved_type(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """No record is of the reserved type 0x00."""
    types = [kind for kind, _ in _records(seen.opened.payload)]
    return "a record of type 0x00" if _has_records(seen) and 0 in types else ""


@_rule("8.2/null-length")
def null_length(seen: ReceivedFrame, _dialect: Dialect) -> str:
    """A Null record has no value."""
    found = _records(seen.opened.payload)
    wrong = _has_records(seen) and any(kind == 0xFF and size for kind, size in found)
    return "a record of type 0xFF with a value" if wrong else ""
