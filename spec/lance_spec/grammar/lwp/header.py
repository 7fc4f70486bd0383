"""The LWP header and the kinds of frames it opens (LWP sections 3 and 4)."""

from construct import Const, Int8ul, Int16ul, Int32ul, Int64ul

from lance_spec.enums import Flag
from lance_spec.grammar._vocab import Crc, FrameForm, field, lwp, message
from lance_spec.limits import MAGIC, VERSION

HEADER = message(
    "Header",
    field("magic", Const(MAGIC), doc="The letters LANC", section=lwp("3.2")),
    field("version", Const(VERSION, Int8ul), doc="Protocol version", section=lwp("3.2")),
    field(
        "flags",
        Int8ul,
        doc="Kind of the frame and properties of its payload",
        section=lwp("3.3"),
        flags=Flag,
        ambiguities=("AMB-04", "AMB-33"),
    ),
    field(
        "reserved",
        Const(0, Int16ul),
        doc="Two bytes kept for later",
        section=lwp("3.2"),
        reserved=True,
        ambiguities=("AMB-33",),
    ),
    field(
        "header_crc",
        Int32ul,
        doc="Checksum of bytes 0 to 7",
        section=lwp("9.3"),
        checksum=Crc(over=(0, 8), algorithm="dialect"),
        ambiguities=("AMB-01", "AMB-03"),
    ),
    field(
        "batch_id",
        Int64ul,
        doc="Identifier the producer chose for the batch; a Control frame's command code",
        section=lwp("3.2"),
        ambiguities=("AMB-25",),
    ),
    field(
        "timestamp_ns",
        Int64ul,
        doc="Time of the batch by the producer's clock, since the Unix epoch",
        unit="nanoseconds",
        section=lwp("3.2"),
        ambiguities=("AMB-16",),
    ),
    field(
        "record_count",
        Int32ul,
        doc="Number of records in the payload",
        unit="records",
        section=lwp("3.2"),
        ambiguities=("AMB-27",),
    ),
    field(
        "payload_length",
        Int32ul,
        doc="Bytes that follow the header",
        unit="bytes",
        section=lwp("3.2"),
        ambiguities=("AMB-32",),
    ),
    field(
        "payload_crc",
        Int32ul,
        doc="Checksum of the payload as it stands on the wire; 0 when there is none",
        section=lwp("9.4"),
        checksum=Crc(over="payload", algorithm="dialect"),
        ambiguities=("AMB-01", "AMB-20", "AMB-33"),
    ),
    field(
        "topic_id",
        Int32ul,
        doc="Topic the records go to; 0 is the default topic",
        section=lwp("3.2"),
        ambiguities=("AMB-34",),
    ),
    doc="Opens every frame",
    section=lwp("3.1"),
    sender="both",
)

_PAYLOAD_FIELDS = ("record_count", "payload_length", "payload_crc")

FRAMES = (
    FrameForm(
        kind="INGEST",
        flag=Flag.BATCH_MODE,
        sender="client",
        zero_fields=(),
        payload="records",
        doc="Carries a batch of records to a topic",
        section=lwp("4.1"),
        ambiguities=("AMB-25", "AMB-27"),
    ),
    FrameForm(
        kind="ACK",
        flag=Flag.ACK,
        sender="server",
        zero_fields=("timestamp_ns", *_PAYLOAD_FIELDS, "topic_id"),
        payload="none",
        doc="Confirms that the batch with this batch id is durable",
        section=lwp("4.2"),
        ambiguities=("AMB-22",),
    ),
    FrameForm(
        kind="BACKPRESSURE",
        flag=Flag.BACKPRESSURE,
        sender="server",
        zero_fields=("batch_id", "timestamp_ns", *_PAYLOAD_FIELDS, "topic_id"),
        payload="none",
        doc="Asks the client to send more slowly",
        section=lwp("4.4"),
        ambiguities=("AMB-28", "AMB-35"),
    ),
    FrameForm(
        kind="KEEPALIVE",
        flag=Flag.KEEPALIVE,
        sender="both",
        zero_fields=("batch_id", "timestamp_ns", *_PAYLOAD_FIELDS, "topic_id"),
        payload="none",
        doc="Shows that the connection lives; the server answers with the same",
        section=lwp("4.3"),
        ambiguities=("AMB-23",),
    ),
    FrameForm(
        kind="CONTROL",
        flag=Flag.CONTROL,
        sender="both",
        zero_fields=("timestamp_ns", "record_count", "topic_id"),
        payload="command",
        doc="Carries a command, whose code stands in the batch id, or its answer",
        section=lwp("5.1"),
        ambiguities=("AMB-11", "AMB-21"),
    ),
)
