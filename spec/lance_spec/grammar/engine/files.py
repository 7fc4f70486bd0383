"""Engine files: the sidecar of a segment (AMB-14), and the family they all belong to."""

from enum import IntFlag

from construct import Const, Int16ul, Int32ul, Int64ul

from lance_spec.grammar._vocab import Crc, Grammar, field, message
from lance_spec.grammar.engine import indexes, replicated_write, wal

SIDECAR_MAGIC = b"LNCBATCH"
SIDECAR_VERSION = 1


class EntryFlag(IntFlag):
    """What is special about a stored batch (AMB-27)."""

    OPAQUE = 0x1
    """The batch does not parse as records; it is stored as it came."""
    COUNT_UNVERIFIED = 0x2
    """The record count is the producer's word; nobody counted."""


SIDECAR_HEADER = message(
    "SidecarHeader",
    field("magic", Const(SIDECAR_MAGIC), doc="The letters LNCBATCH", section="AMB-14"),
    field(
        "version",
        Const(SIDECAR_VERSION, Int16ul),
        doc="Version of the sidecar's layout",
        section="AMB-14",
    ),
    field(
        "flags",
        Const(0, Int16ul),
        doc="Flags kept for later",
        section="AMB-14",
        reserved=True,
    ),
    field("topic_id", Int32ul, doc="Topic that the segment belongs to", section="AMB-14"),
    field(
        "base_offset",
        Int64ul,
        doc="Byte offset in the topic of the segment's first byte",
        unit="bytes",
        section="AMB-14",
        ambiguities=("AMB-29",),
    ),
    field(
        "base_record",
        Int64ul,
        doc="Number of records in the topic before the segment",
        unit="records",
        section="AMB-14",
    ),
    field(
        "created_ns",
        Int64ul,
        doc="When the segment was created, by the server's clock, since the Unix epoch",
        unit="nanoseconds",
        section="AMB-14",
        ambiguities=("AMB-16",),
    ),
    field(
        "reserved",
        Const(bytes(20)),
        doc="Bytes kept for later",
        section="AMB-14",
        reserved=True,
    ),
    field(
        "header_crc",
        Int32ul,
        doc="CRC32C of bytes 0 to 59",
        section="AMB-14",
        checksum=Crc(over=(0, 60), algorithm="crc32c"),
    ),
    doc="Opens the sidecar of one segment",
    section="AMB-14",
    ambiguities=("AMB-14",),
)

SIDECAR_ENTRY = message(
    "SidecarEntry",
    field(
        "relative_offset",
        Int64ul,
        doc="Byte offset of the batch within its segment",
        unit="bytes",
        section="AMB-14",
    ),
    field(
        "stored_length",
        Int32ul,
        doc="Length of the batch in the segment",
        unit="bytes",
        section="AMB-14",
    ),
    field(
        "record_count",
        Int32ul,
        doc="Number of records in the batch, counted unless the flags say otherwise",
        unit="records",
        section="AMB-14",
        ambiguities=("AMB-27",),
    ),
    field(
        "batch_id",
        Int64ul,
        doc="Identifier the producer gave the batch",
        section="AMB-14",
        ambiguities=("AMB-25",),
    ),
    field(
        "client_timestamp_ns",
        Int64ul,
        doc="Time the producer gave the batch, kept and never trusted",
        unit="nanoseconds",
        section="AMB-14",
        ambiguities=("AMB-16",),
    ),
    field(
        "server_time_ns",
        Int64ul,
        doc="When the batch arrived, by the server's clock, since the Unix epoch",
        unit="nanoseconds",
        section="AMB-14",
        ambiguities=("AMB-16",),
    ),
    field(
        "durable_end",
        Int64ul,
        doc="Byte offset in the topic known to be durable when this entry was written",
        unit="bytes",
        section="AMB-14",
        ambiguities=("AMB-39",),
    ),
    field(
        "stored_crc",
        Int32ul,
        doc="CRC32C of the batch as it is stored",
        section="AMB-14",
        ambiguities=("AMB-25",),
    ),
    field(
        "flags",
        Int32ul,
        doc="What is special about the batch",
        section="AMB-14",
        flags=EntryFlag,
        ambiguities=("AMB-27",),
    ),
    field(
        "reserved",
        Const(0, Int32ul),
        doc="Bytes kept for later",
        section="AMB-14",
        reserved=True,
    ),
    field(
        "entry_crc",
        Int32ul,
        doc="CRC32C of bytes 0 to 59",
        section="AMB-14",
        checksum=Crc(over=(0, 60), algorithm="crc32c"),
    ),
    doc="Describes one appended batch; an entry whose data does not match it is void",
    section="AMB-14",
    ambiguities=("AMB-14", "AMB-25", "AMB-39"),
)

GRAMMAR = Grammar(
    name="engine",
    doc="Engine messages: sidecars, index entries, the write-ahead log and replication.",
    sources=tuple(
        f"lance_spec/grammar/engine/{part}.py"
        for part in ("files", "indexes", "wal", "replicated_write")
    ),
    messages=(
        SIDECAR_HEADER,
        SIDECAR_ENTRY,
        *indexes.MESSAGES,
        *wal.MESSAGES,
        *replicated_write.MESSAGES,
    ),
)
"""Everything that the engine writes beside plain records, and sends to other engines."""
