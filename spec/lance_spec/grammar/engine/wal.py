"""The write-ahead log that a server may keep (Design section 7.3, AMB-47)."""

from construct import Bytes, Const, GreedyBytes, Int16ul, Int32ul, Int64ul, Rebuild, this
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
    doc="One entry of this server's write-ahead log; a WalEnd follows the last",
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

MESSAGES = (WAL_ENTRY, WAL_END, REDO_ENTRY, REDO_WRITE)
"""What a write-ahead log is made of."""
