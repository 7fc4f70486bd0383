"""TLV records and the values whose inside the specification defines (LWP section 8)."""

from construct import (
    Bytes,
    Const,
    Construct,
    GreedyBytes,
    Int8ul,
    Int16ul,
    Int32ul,
    Int64ul,
    Rebuild,
    this,
)
from construct import len_ as length_of

from lance_spec.enums import RecordType
from lance_spec.grammar._vocab import field, lwp, message
from lance_spec.limits import MAX_RECORD_VALUE

_EXTENDED_MARKER = 0xFF


def _key_length(section: str) -> Construct:
    return field(
        "key_length",
        Rebuild(Int16ul, length_of(this.key)),
        doc="Length of the key",
        unit="bytes",
        section=section,
    )


def _key(section: str) -> Construct:
    return field("key", Bytes(this.key_length), doc="Key as UTF-8", section=section)


def _timestamp(section: str) -> Construct:
    return field(
        "timestamp_ns",
        Int64ul,
        doc="Time of the event, since the Unix epoch",
        unit="nanoseconds",
        section=section,
    )


RECORD = message(
    "Record",
    field(
        "type",
        Int8ul,
        doc="What the value is",
        section=lwp("8.2"),
        enum=RecordType,
        ambiguities=("AMB-13",),
    ),
    field(
        "length",
        Rebuild(Int32ul, length_of(this.value)),
        doc="Length of the value",
        unit="bytes",
        section=lwp("8.7"),
        minimum=0,
        maximum=MAX_RECORD_VALUE,
        ambiguities=("AMB-32",),
    ),
    field("value", Bytes(this.length), doc="The record's data", section=lwp("8.1")),
    doc="One type-length-value record, the unit of every log",
    section=lwp("8.1"),
    sender="both",
    ambiguities=("AMB-12", "AMB-13"),
)

EXTENDED_RECORD = message(
    "ExtendedRecord",
    field(
        "marker",
        Const(_EXTENDED_MARKER, Int8ul),
        doc="Type 0xFF, which this form reads as the start of a longer header",
        section="AMB-12",
    ),
    field("extended_type", Int16ul, doc="What the value is", section="AMB-12"),
    field(
        "length",
        Rebuild(Int32ul, length_of(this.value)),
        doc="Length of the value",
        unit="bytes",
        section="AMB-12",
    ),
    field("value", Bytes(this.length), doc="The record's data", section="AMB-12"),
    doc="The seven-byte record header of another registry; LWP reads 0xFF as Null instead",
    section="AMB-12",
    sender="both",
    ambiguities=("AMB-12", "AMB-13"),
)

KEY_VALUE = message(
    "KeyValue",
    _key_length(lwp("8.3")),
    _key(lwp("8.3")),
    field("value", GreedyBytes, doc="The bytes after the key", section=lwp("8.3")),
    doc="Value of a KeyValue record",
    section=lwp("8.3"),
    record_type=RecordType.KEY_VALUE,
    sender="both",
)

TIMESTAMPED = message(
    "Timestamped",
    _timestamp(lwp("8.3")),
    field("data", GreedyBytes, doc="The bytes after the timestamp", section=lwp("8.3")),
    doc="Value of a Timestamped record",
    section=lwp("8.3"),
    record_type=RecordType.TIMESTAMPED,
    sender="both",
)

KEY_TIMESTAMPED = message(
    "KeyTimestamped",
    _timestamp(lwp("8.3")),
    _key_length(lwp("8.3")),
    _key(lwp("8.3")),
    field("value", GreedyBytes, doc="The bytes after the key", section=lwp("8.3")),
    doc="Value of a KeyTimestamped record",
    section=lwp("8.3"),
    record_type=RecordType.KEY_TIMESTAMPED,
    sender="both",
)

NULL = message(
    "Null",
    doc="Value of a Null record, a tombstone: always empty",
    section=lwp("8.2"),
    record_type=RecordType.NULL,
    sender="both",
    ambiguities=("AMB-12",),
)

MESSAGES = (RECORD, EXTENDED_RECORD, KEY_VALUE, TIMESTAMPED, KEY_TIMESTAMPED, NULL)
"""The record and the values that have an inside, in reading order."""
