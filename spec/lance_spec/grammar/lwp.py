"""LWP: everything that crosses a connection, assembled from its parts."""

from lance_spec.grammar import groups, header, reading, tlv, topics
from lance_spec.grammar._vocab import Grammar

GRAMMAR = Grammar(
    name="lwp",
    doc="LWP messages: the header, control payloads and TLV records.",
    sources=tuple(
        f"lance_spec/grammar/{part}.py" for part in ("header", "topics", "reading", "groups", "tlv")
    ),
    messages=(header.HEADER, *topics.MESSAGES, *reading.MESSAGES, *groups.MESSAGES, *tlv.MESSAGES),
    frames=header.FRAMES,
)
"""The header, every control payload, records, and the kinds of frames."""
