"""Sort keys and the two indexes of a segment (AMB-15, AMB-16)."""

from construct import Construct, Int64ul

from lance_spec.grammar._vocab import field, message

_INDEXES = "AMB-15"


def _node_actor_sequence() -> Construct:
    return field(
        "node_actor_sequence",
        Int64ul,
        doc="Low half of the sort key: node (16 bits), actor (8) and sequence (40), from the top",
        section="Design section 13.10",
        ambiguities=("AMB-16",),
    )


def _key_time() -> Construct:
    return field(
        "timestamp_ns",
        Int64ul,
        doc="High half of the sort key: time by the server's clock, since the Unix epoch",
        unit="nanoseconds",
        section=_INDEXES,
        ambiguities=("AMB-16",),
    )


def _place() -> Construct:
    return field(
        "offset",
        Int64ul,
        doc="Byte offset within the segment",
        unit="bytes",
        section=_INDEXES,
    )


SORT_KEY = message(
    "SortKey",
    _node_actor_sequence(),
    _key_time(),
    doc="Orders records across nodes: one little-endian 128-bit number",
    section="Design section 4.3",
    ambiguities=("AMB-16",),
)

SPARSE_INDEX_ENTRY = message(
    "SparseIndexEntry",
    _node_actor_sequence(),
    _key_time(),
    _place(),
    doc="Maps a sort key, one little-endian 128-bit number, to a place in a segment",
    section=_INDEXES,
    ambiguities=("AMB-15",),
)

SECONDARY_INDEX_ENTRY = message(
    "SecondaryIndexEntry",
    field(
        "server_time_ns",
        Int64ul,
        doc="Time by the server's clock, since the Unix epoch",
        unit="nanoseconds",
        section=_INDEXES,
    ),
    _place(),
    doc="Maps a time to a place in a segment",
    section=_INDEXES,
    ambiguities=("AMB-15",),
)

PUBLISHED_INDEX_ENTRY = message(
    "PublishedIndexEntry",
    field(
        "hlc_timestamp",
        Int64ul,
        doc="Hybrid logical clock: milliseconds (44 bits) and a counter (20), from the top",
        section="Design section 29.1",
        ambiguities=("AMB-16",),
    ),
    field(
        "node_sequence",
        Int64ul,
        doc="Node (16 bits) and sequence (48), from the top",
        section="AMB-16",
        ambiguities=("AMB-16",),
    ),
    _place(),
    doc="An entry of the sparse index as published servers write it",
    section=_INDEXES,
    ambiguities=("AMB-15", "AMB-16"),
)

MESSAGES = (SORT_KEY, SPARSE_INDEX_ENTRY, SECONDARY_INDEX_ENTRY, PUBLISHED_INDEX_ENTRY)
"""Sort keys and index entries, in reading order."""
