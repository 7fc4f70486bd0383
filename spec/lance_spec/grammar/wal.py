"""The write-ahead log that a server may keep (Design section 7.3, AMB-47)."""

from construct import Bytes, Const, Int32ul, Rebuild, this
from construct import len_ as length_of

from lance_spec.grammar._vocab import field, message
from lance_spec.limits import MAX_PAYLOAD

_SECTION = "Design section 7.3"

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

MESSAGES = (WAL_ENTRY, WAL_END)
"""What a write-ahead log is made of."""
