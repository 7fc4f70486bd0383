"""The write-ahead log that a server may keep (Design section 7.3, AMB-47)."""

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

from lance_spec.grammar._vocab import field, message
from lance_spec.limits import MAX_PAYLOAD

_SECTION = "Design section 7.3"
_MOST = 64 * 1024 * 1024
"""No body is longer than the file."""

WAL_ENTRY = message(
    "WalEntry",
    field(
        "length",
        Rebuild(Int32ul, length_of(this.batch)),
        doc="Length of the batch",
        unit="bytes",
        section=_SECTION,
        minimum=1,
        maximum=MAX_PAYLOAD,
        ambiguities=("AMB-47",),
    ),
    field(
        "batch",
        Bytes(this.length),
        doc="Records as the segment will hold them",
        section=_SECTION,
        borrowed=True,
    ),
    doc="One batch in a write-ahead log, the entries following each other without a header",
    section=_SECTION,
    ambiguities=("AMB-47",),
)

WAL_END = message(
    "WalEnd",
    field(
        "length",
        Const(0, Int32ul),
        doc="Length of no batch",
        section="AMB-47",
    ),
    doc="Ends the entries of a write-ahead log; at byte 0 it invalidates the whole of it",
    section=_SECTION,
    ambiguities=("AMB-47",),
)

_REDO = "AMB-50"

REDO_ENTRY = message(
    "RedoEntry",
    field(
        "length",
        Rebuild(Int32ul, length_of(this.body)),
        doc="Length of the body",
        unit="bytes",
        section=_REDO,
        minimum=18,
        maximum=_MOST,
    ),
    field("crc", Int32ul, doc="CRC32C of the body", section=_REDO),
    field("body", Bytes(this.length), doc="A RedoWrite", section=_REDO, borrowed=True),
    doc="One entry of the first release's write-ahead log; a WalEnd follows the last",
    section=_REDO,
    ambiguities=("AMB-47", "AMB-50"),
)

REDO_WRITE = message(
    "RedoWrite",
    field(
        "sequence",
        Int64ul,
        doc="Rises with each entry over all files; one that does not is left from an earlier use",
        section=_REDO,
    ),
    field("offset", Int64ul, doc="Where in the file to write", unit="bytes", section=_REDO),
    field(
        "name_length",
        Rebuild(Int16ul, length_of(this.name)),
        doc="Length of the name",
        unit="bytes",
        section=_REDO,
    ),
    field(
        "name",
        Bytes(this.name_length),
        doc="The file, relative to the data directory, in UTF-8, with '/' between its parts",
        section=_REDO,
    ),
    field("data", GreedyBytes, doc="What to write", section=_REDO),
    doc="A write to a file of the data directory that is repeated after a crash",
    section=_REDO,
    ambiguities=("AMB-50",),
)

_MAGIC = Const(b"LWAL")


def _use(name: str, doc: str) -> Construct:
    return field(name, Bytes(8) if name == "file_id" else Int64ul, doc=doc, section=_REDO)


WAL_GENERATION = message(
    "WalGeneration",
    field("magic", _MAGIC, doc="The letters LWAL", section=_REDO),
    field("crc", Int32ul, doc="CRC32C of bytes 8 to 23", section=_REDO),
    _use("file_id", "Random bytes, drawn when the file was made"),
    _use("generation", "Rises each time that the file is used again"),
    doc="Opens the second 512 bytes of a file of this server's write-ahead log",
    section=_REDO,
    ambiguities=("AMB-50",),
)

WAL_FRAME = message(
    "WalFrame",
    field("magic", _MAGIC, doc="The letters LWAL", section=_REDO),
    field(
        "length",
        Rebuild(Int32ul, length_of(this.body)),
        doc="Length of the body",
        unit="bytes",
        section=_REDO,
        minimum=32,
        maximum=_MOST,
    ),
    field("crc", Int32ul, doc="CRC32C of the body", section=_REDO),
    field("body", Bytes(this.length), doc="A WalCommit", section=_REDO, borrowed=True),
    doc="One commit of this server's write-ahead log, from byte 1024 on; a WalEnd follows the last",
    section=_REDO,
    ambiguities=("AMB-47", "AMB-50"),
)

WAL_COMMIT = message(
    "WalCommit",
    _use("file_id", "That of the file; another one is left from other data"),
    _use("generation", "That of the file; a lower one is left from an earlier use"),
    field("index", Int64ul, doc="Rises within a generation", section=_REDO),
    field("number", Int64ul, doc="Rises over all files; commits are repeated by it", section=_REDO),
    field("writes", GreedyBytes, doc="WalWrites, back to back", section=_REDO),
    doc="What one commit made durable together",
    section=_REDO,
    ambiguities=("AMB-50",),
)

WAL_WRITE = message(
    "WalWrite",
    field(
        "kind",
        Int8ul,
        doc="0 writes; 1 says that the file, or the folder, was removed, and has no data",
        section=_REDO,
        minimum=0,
        maximum=1,
    ),
    field(
        "name_length",
        Rebuild(Int16ul, length_of(this.name)),
        doc="Length of the name",
        unit="bytes",
        section=_REDO,
    ),
    field(
        "length",
        Rebuild(Int32ul, length_of(this.data)),
        doc="Length of the data",
        unit="bytes",
        section=_REDO,
    ),
    field("offset", Int64ul, doc="Where in the file to write", unit="bytes", section=_REDO),
    field(
        "name",
        Bytes(this.name_length),
        doc="The file, relative to the data directory, in UTF-8; a segment's as it is while open",
        section=_REDO,
    ),
    field("data", Bytes(this.length), doc="What to write", section=_REDO),
    doc="A write to a file of the data directory, or its removal, repeated after a crash",
    section=_REDO,
    ambiguities=("AMB-50",),
)

MESSAGES = (
    WAL_ENTRY,
    WAL_END,
    REDO_ENTRY,
    REDO_WRITE,
    WAL_GENERATION,
    WAL_FRAME,
    WAL_COMMIT,
    WAL_WRITE,
)
"""What a write-ahead log is made of."""
