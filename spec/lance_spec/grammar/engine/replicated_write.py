"""What a leader sends to its followers (Design section 4.1.1, AMB-43)."""

from enum import IntFlag

from construct import Bytes, GreedyBytes, Int8ul, Int16ul, Int32ul, Int64ul, Rebuild, this
from construct import len_ as length_of

from lance_spec.grammar._vocab import field, message

_SECTION = "Design section 4.1.1"


class ReplicationFlag(IntFlag):
    """What a follower does with its segment files (Design section 4.1.3)."""

    ROTATE_AFTER = 0x1
    """Close the segment after this write."""
    NEW_SEGMENT = 0x2
    """Create the segment before this write."""


REPLICATED_WRITE = message(
    "ReplicatedWrite",
    field("topic_id", Int32ul, doc="Topic that was written to", section=_SECTION),
    field(
        "global_offset",
        Int64ul,
        doc="Byte offset in the topic after this write, which the follower's must equal",
        unit="bytes",
        section="Design section 4.1.2",
        ambiguities=("AMB-29", "AMB-48"),
    ),
    field(
        "segment_name_length",
        Rebuild(Int16ul, length_of(this.segment_name)),
        doc="Length of the segment's name",
        unit="bytes",
        section=_SECTION,
        minimum=1,
        maximum=255,
    ),
    field(
        "segment_name",
        Bytes(this.segment_name_length),
        doc="File name of the segment, the same on every node",
        section=_SECTION,
    ),
    field(
        "write_offset",
        Int64ul,
        doc="Byte offset within the segment that the data goes to",
        unit="bytes",
        section=_SECTION,
    ),
    field(
        "flags",
        Int8ul,
        doc="What happens to the segment file",
        section=_SECTION,
        flags=ReplicationFlag,
    ),
    field(
        "data",
        GreedyBytes,
        doc="The bytes that the leader wrote there",
        section=_SECTION,
    ),
    doc="Tells a follower to write the same bytes to the same place as the leader",
    section=_SECTION,
    sender="server",
    ambiguities=("AMB-43", "AMB-48"),
)

MESSAGES = (REPLICATED_WRITE,)
"""What passes between engines."""
