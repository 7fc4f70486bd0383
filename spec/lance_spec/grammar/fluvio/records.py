"""Fluvio's records: record sets, batches and the records inside."""

from construct import (
    Bytes,
    Const,
    Construct,
    Int8sb,
    Int16sb,
    Int32sb,
    Int32ub,
    Int64sb,
    Rebuild,
    len_,
    this,
)

from lance_spec.grammar._composed import ZIGZAG, Filled, Many, Maybe, Nested, Sized
from lance_spec.grammar._vocab import Crc, field, message
from lance_spec.grammar.fluvio._primitives import CORRECTED, RECORD_BYTES, fluvio

_RECORD = fluvio("Record Structure")
_BATCH = fluvio("RecordBatch Structure")

RECORD = message(
    "Record",
    field("attributes", Int8sb, doc="Properties of the record; none is defined", section=_RECORD),
    field(
        "timestamp_delta",
        ZIGZAG,
        doc="Time since the first record of the batch; published programs write 32 bits right",
        unit="milliseconds",
        section=_RECORD,
        ambiguities=CORRECTED,
    ),
    field(
        "offset_delta",
        ZIGZAG,
        doc="Place of the record in its batch, from 0",
        unit="records",
        section=_RECORD,
    ),
    field("key", Maybe(RECORD_BYTES), doc="Key of the record", section=_RECORD),
    field("value", RECORD_BYTES, doc="Value of the record", section=_RECORD),
    field(
        "headers",
        Const(0, ZIGZAG),
        doc="A count that is always 0 and that nothing follows",
        section=_RECORD,
        ambiguities=CORRECTED,
    ),
    doc="One record of a batch, without the length that stands before it",
    section=_RECORD,
)

RECORDS = message(
    "Records",
    field(
        "records",
        Many(Int32sb, Sized(ZIGZAG, Nested(RECORD))),
        doc="The records after their count, each after its length",
        section="FLV-01",
        ambiguities=CORRECTED,
    ),
    doc="The records of a batch; a compressed batch holds this as one compressed run of bytes",
    section="FLV-01",
    ambiguities=CORRECTED,
)


def _header(name: str, parser: Construct, doc: str, **facts: object) -> Construct:
    return field(name, parser, doc=doc, section=_BATCH, **facts)


BATCH = message(
    "Batch",
    _header(
        "base_offset", Int64sb, "Offset of the first record; set by the server", unit="records"
    ),
    _header(
        "batch_len",
        Rebuild(Int32sb, len_(this.records) + 45),
        "Length of all that follows this field",
        unit="bytes",
        ambiguities=CORRECTED,
    ),
    _header("partition_leader_epoch", Int32sb, "-1 from producers", ambiguities=CORRECTED),
    _header("magic", Const(2, Int8sb), "Version of the batch's layout"),
    _header(
        "crc",
        Int32ub,
        "CRC32C of all that follows this field",
        checksum=Crc(over="after", algorithm="crc32c"),
    ),
    _header(
        "attributes",
        Int16sb,
        "Bits 0 to 2: compression (1 gzip, 2 snappy, 3 LZ4, 4 zstd); bit 4, a schema, is refused",
        minimum=0,
        maximum=15,
        ambiguities=CORRECTED,
    ),
    _header("last_offset_delta", Int32sb, "Number of records less 1", unit="records"),
    _header("first_timestamp", Int64sb, "Time of the first record", unit="milliseconds"),
    _header("max_time_stamp", Int64sb, "Highest time of a record", unit="milliseconds"),
    _header("producer_id", Int64sb, "-1: there is no idempotence", ambiguities=CORRECTED),
    _header("producer_epoch", Int16sb, "-1: there is no idempotence", ambiguities=CORRECTED),
    _header("first_sequence", Int32sb, "-1: there is no idempotence", ambiguities=CORRECTED),
    _header(
        "records",
        Bytes(this.batch_len - 45),
        "The records with their count, compressed as the attributes say",
        ambiguities=CORRECTED,
    ),
    doc="Some records that were sent as one",
    section=_BATCH,
    ambiguities=CORRECTED,
)

RECORD_SET = message(
    "RecordSet",
    field(
        "batches",
        Filled(Nested(BATCH)),
        doc="Batches up to the end",
        section="FLV-01",
        ambiguities=CORRECTED,
    ),
    doc="The batches of a partition, without the length that stands before them",
    section="FLV-01",
    ambiguities=CORRECTED,
)

MESSAGES = (RECORD, RECORDS, BATCH, RECORD_SET)
"""Records from the inside to the outside."""
