"""LWP: what crosses a connection, assembled from its parts; groups are a family of their own."""

from lance_spec.grammar import header, lz4, reading, tlv, topics
from lance_spec.grammar._vocab import Grammar

GRAMMAR = Grammar(
    name="lwp",
    doc="LWP messages: the header, control payloads and TLV records.",
    sources=tuple(
        f"lance_spec/grammar/{part}.py" for part in ("header", "topics", "reading", "tlv", "lz4")
    ),
    messages=(header.HEADER, *topics.MESSAGES, *reading.MESSAGES, *tlv.MESSAGES, *lz4.MESSAGES),
    frames=header.FRAMES,
)
"""The header, control payloads, records, and the kinds of frames."""
