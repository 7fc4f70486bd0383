"""LWP: what crosses a connection, assembled from its parts; groups are a family of their own."""

from lance_spec.grammar._vocab import Grammar
from lance_spec.grammar.lwp import header, lz4, reading, tlv, topics

GRAMMAR = Grammar(
    name="lwp",
    doc="LWP messages: the header, control payloads and TLV records.",
    sources=tuple(
        f"lance_spec/grammar/lwp/{part}.py"
        for part in ("header", "topics", "reading", "tlv", "lz4")
    ),
    messages=(header.HEADER, *topics.MESSAGES, *reading.MESSAGES, *tlv.MESSAGES, *lz4.MESSAGES),
    frames=header.FRAMES,
)
"""The header, control payloads, records, and the kinds of frames."""
