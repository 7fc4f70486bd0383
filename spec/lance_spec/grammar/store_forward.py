"""What a store-and-forward slot holds: segments, side files and, in LWP slots, their frames.

The layouts of segments, watermark, lock and sentinel are those of QWP store-and-forward, so that
slots written by clients in other languages can be read; LWP slots differ in their extension and
in what a frame carries (SF-31, SF-32). Signed numbers of the sources never go below -1 and are
declared unsigned here: a negative one lies beyond the limit given.
"""

from typing import Final

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

from lance_spec.grammar._vocab import Crc, Grammar, field, message

MAX_FSN: Final = 2**63 - 1
"""Frame sequence numbers are written as signed 64-bit integers."""
NO_FSN: Final = 2**64 - 1
"""How -1 reads unsigned: nothing was acknowledged yet."""

SEGMENT_HEADER = message(
    "SegmentHeader",
    field("magic", Const(b"SF01"), doc="The letters SF01", section="SF client section 6.1"),
    field(
        "version",
        Const(1, Int8ul),
        doc="Version of the segment's layout",
        section="SF client section 6.1",
    ),
    field(
        "flags",
        Int8ul,
        doc="Bit 0: the slot has a manifest and must not be read without it",
        section="SF-02",
        minimum=0,
        maximum=1,
    ),
    field(
        "reserved",
        Const(0, Int16ul),
        doc="Bytes kept for later",
        section="SF client section 6.1",
        reserved=True,
    ),
    field(
        "base_seq",
        Int64ul,
        doc="Sequence number of the segment's first frame",
        section="SF client section 6.1",
        minimum=0,
        maximum=MAX_FSN,
    ),
    field(
        "created_us",
        Int64ul,
        doc="When the segment was begun, by the writer's wall clock, since the Unix epoch",
        unit="microseconds",
        section="SF client section 6.1",
    ),
    doc="Opens a segment file, .sfa in QWP slots and .sfl in LWP slots",
    section="SF client section 6.1",
    ambiguities=("SF-02", "SF-31"),
)

SEGMENT_FRAME = message(
    "SegmentFrame",
    field(
        "crc",
        Int32ul,
        doc="CRC32C of the payload's length, as it stands here, and of the payload",
        section="SF client section 6.2",
    ),
    field(
        "payload_length",
        Rebuild(Int32ul, length_of(this.payload)),
        doc="Length of the payload",
        unit="bytes",
        section="SF client section 6.2",
    ),
    field(
        "payload",
        Bytes(this.payload_length),
        doc="A complete QWP message, or a stored batch in an LWP slot",
        section="SF client section 6.2",
        ambiguities=("SF-32",),
    ),
    doc="One frame of a segment; frames follow each other without gaps, zeros follow the last",
    section="SF client section 6.2",
)


def _number(name: str, doc: str) -> Construct:
    return field(name, Int64ul, doc=doc, section="SF-03", minimum=0, maximum=MAX_FSN)


_VERSION = field("version", Const(1, Int32ul), doc="Version of the record", section="SF-03")
_GENERATION = field(
    "generation",
    Int64ul,
    doc="Rises with each write; of two valid records the higher one holds",
    section="SF-03",
    minimum=1,
    maximum=MAX_FSN,
)
_RECORD_CRC = field(
    "record_crc",
    Int32ul,
    doc="CRC32C of bytes 0 to 59",
    section="SF-03",
    checksum=Crc(over=(0, 60), algorithm="crc32c"),
)
# Each of these files has 8192 bytes: a record is written to byte 0 or 4096, by the lowest bit
# of its generation. Clients of mid-2026 kept both records in 128 bytes, at 0 and 64.

MANIFEST_RECORD = message(
    "ManifestRecord",
    field("magic", Const(b"SFM1"), doc="The letters SFM1", section="SF-03"),
    _VERSION,
    _GENERATION,
    _number("head_base", "First sequence number of the oldest segment still needed"),
    _number("active_base", "First sequence number of the segment that is being written"),
    field("reserved", Const(bytes(28)), doc="Bytes kept for later", section="SF-03", reserved=True),
    _RECORD_CRC,
    doc="Names the live segments; one of the two records of sf-manifest.bin",
    section="SF-03",
)

WATERMARK_RECORD = message(
    "WatermarkRecord",
    field("magic", Const(b"AKW1"), doc="The letters AKW1", section="SF-03"),
    _VERSION,
    _GENERATION,
    field(
        "fsn",
        Int64ul,
        doc="Every frame up to this number is acknowledged; 2^64-1, read as -1, means none",
        section="SF-03",
    ),
    field("reserved", Const(bytes(36)), doc="Bytes kept for later", section="SF-03", reserved=True),
    _RECORD_CRC,
    doc="The acknowledgement watermark; one of the two records of .ack-watermark",
    section="SF-03",
)

WATERMARK_SIMPLE = message(
    "WatermarkSimple",
    field("magic", Const(b"AKW1"), doc="The letters AKW1", section="SF client section 5.4"),
    field(
        "reserved",
        Const(0, Int32ul),
        doc="Bytes kept for later",
        section="SF client section 5.4",
        reserved=True,
    ),
    field(
        "fsn",
        Int64ul,
        doc="Every frame up to this number is acknowledged; 2^64-1, read as -1, means none",
        section="SF client section 5.4",
    ),
    doc="The whole of .ack-watermark in its first form, without a checksum",
    section="SF client section 5.4",
    ambiguities=("SF-03",),
)

FSN_FLOOR_RECORD = message(
    "FsnFloorRecord",
    field("magic", Const(b"FSN1"), doc="The letters FSN1", section="SF-08"),
    _VERSION,
    _GENERATION,
    _number("floor", "No frame ever had this number or a higher one"),
    field("reserved", Const(bytes(36)), doc="Bytes kept for later", section="SF-08", reserved=True),
    _RECORD_CRC,
    doc="Keeps numbers unique when all segments are gone; one of the two records of .next-fsn",
    section="SF-08",
)

SLOT_STATE_RECORD = message(
    "SlotStateRecord",
    field("magic", Const(b"SLS1"), doc="The letters SLS1", section="SF-36"),
    _VERSION,
    _GENERATION,
    field(
        "head_created_us",
        Int64ul,
        doc="created_us of the oldest segment of this writer; 0 where it left none",
        unit="microseconds",
        section="SF-36",
    ),
    field(
        "active_created_us",
        Int64ul,
        doc="created_us of the segment that this writer wrote last; 0 where it left none",
        unit="microseconds",
        section="SF-36",
    ),
    field(
        "durable_fsn",
        Int64ul,
        doc="Every frame up to this number was synced; 2^64-1, read as -1, means none",
        section="SF-38",
    ),
    field(
        "boot",
        Int64ul,
        doc="Which start of the machine durable_fsn is about; 0 where that is not known",
        section="SF-38",
    ),
    field(
        "symbols",
        Int32ul,
        doc="Symbols of .symbol-dict that stored frames may refer to",
        unit="symbols",
        section="SF-04",
    ),
    field(
        "symbols_crc",
        Int32ul,
        doc="CRC32C of these symbols, each after its length, as they stand in the dictionary",
        section="SF-04",
    ),
    field("reserved", Const(bytes(4)), doc="Bytes kept for later", section="SF-36", reserved=True),
    _RECORD_CRC,
    doc="What the last writer of this project left; one of the two records of .slot-state",
    section="SF-36",
)

LOCK_HOLDER = message(
    "LockHolder",
    field(
        "text",
        GreedyBytes,
        doc="Process id in decimal and a line feed, UTF-8; who locked .lock last",
        section="SF client section 5.1",
    ),
    doc="The whole of .lock.pid; the lock itself is flock(2) on the empty file .lock",
    section="SF client section 5.1",
)

FAILED_SENTINEL = message(
    "FailedSentinel",
    field(
        "reason",
        GreedyBytes,
        doc="Why the drainer gave up, UTF-8, for people; that the file exists is what counts",
        section="SF client section 5.2",
    ),
    doc="The whole of .failed: no drainer adopts this slot until the file is removed",
    section="SF client section 5.2",
)

STORED_BATCH = message(
    "StoredBatch",
    field("magic", Const(b"LWB1"), doc="The letters LWB1", section="SF-32"),
    field(
        "topic_number",
        Int32ul,
        doc="Number of the topic within the slot; the slot's metadata has its name",
        section="SF-32",
    ),
    field(
        "batch_id",
        Int64ul,
        doc="Identifier the batch is sent under, each time: slot nonce and frame number plus one",
        section="SF-32",
        ambiguities=("AMB-25",),
    ),
    field(
        "timestamp_ns",
        Int64ul,
        doc="Time the producer gave the batch, since the Unix epoch",
        unit="nanoseconds",
        section="SF-32",
        ambiguities=("AMB-25",),
    ),
    field(
        "record_count",
        Int32ul,
        doc="Number of records in the batch",
        unit="records",
        section="SF-32",
    ),
    field(
        "records",
        GreedyBytes,
        doc="TLV records, uncompressed",
        section="SF-32",
    ),
    doc="A batch as an LWP slot keeps it; topic id, checksums and compression are applied at send",
    section="SF-32",
)

SLOT_METADATA_HEADER = message(
    "SlotMetadataHeader",
    field("magic", Const(b"LWM1"), doc="The letters LWM1", section="SF-32"),
    field("version", Const(1, Int32ul), doc="Version of the file's layout", section="SF-32"),
    doc="Opens .lwp-slot; SegmentFrames with a SlotIdentity or SlotTopic each follow",
    section="SF-32",
)

SLOT_IDENTITY = message(
    "SlotIdentity",
    field("magic", Const(b"LWI1"), doc="The letters LWI1", section="SF-32"),
    field(
        "nonce",
        Int32ul,
        doc="The upper 24 bits of the slot's batch ids",
        section="SF-32",
        minimum=1,
        maximum=2**24 - 1,
        ambiguities=("AMB-25",),
    ),
    field(
        "drawn_ns",
        Int64ul,
        doc="When the nonce was drawn, by the wall clock, since the Unix epoch",
        unit="nanoseconds",
        section="SF-32",
    ),
    field(
        "machine_id",
        GreedyBytes,
        doc="Identity of the machine that drew it, UTF-8; another machine draws again",
        section="SF-32",
    ),
    doc="Whose batch ids a slot uses; of several in a file the last holds",
    section="SF-32",
)

SLOT_TOPIC = message(
    "SlotTopic",
    field("magic", Const(b"LWT1"), doc="The letters LWT1", section="SF-32"),
    field("topic_number", Int32ul, doc="Number of the topic within the slot", section="SF-32"),
    field(
        "topic_id",
        Int32ul,
        doc="The server's id of the topic; 2^32-1 while it is not known",
        section="SF-32",
    ),
    field(
        "created_at",
        Int64ul,
        doc="The server's creation time of the topic; 0 while it is not known",
        unit="seconds",
        section="SF-32",
        ambiguities=("AMB-30",),
    ),
    field("name", GreedyBytes, doc="Topic name as UTF-8", section="SF-32", ambiguities=("AMB-24",)),
    doc="One topic of a slot; of several with one number the last holds",
    section="SF-32",
)

GRAMMAR = Grammar(
    name="store_forward",
    doc="Store-and-forward messages: segments and side files of a slot, and stored batches.",
    sources=("lance_spec/grammar/store_forward.py",),
    messages=(
        SEGMENT_HEADER,
        SEGMENT_FRAME,
        MANIFEST_RECORD,
        WATERMARK_RECORD,
        WATERMARK_SIMPLE,
        FSN_FLOOR_RECORD,
        SLOT_STATE_RECORD,
        LOCK_HOLDER,
        FAILED_SENTINEL,
        STORED_BATCH,
        SLOT_METADATA_HEADER,
        SLOT_IDENTITY,
        SLOT_TOPIC,
    ),
)
"""Everything that a store-and-forward slot holds."""
