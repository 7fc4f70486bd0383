"""Offsets of named consumers on a node of a cluster: in the shared log, like those of LWP.

A cluster keeps offsets by number. The number of a name is made of it, so every node knows it. Those
offsets count records, where those of LWP's consumers count bytes: the number tells which they are.
"""

from hashlib import blake2b
from typing import Final

_MARK: Final = b"re"
"""The highest bytes of the number of a consumer whose offset counts records."""


def consumer_number(protocol: str, name: str) -> int:
    """Return the number under which the nodes of a cluster keep a named consumer's offset.

    Args:
        protocol: whose consumer it is; names of different protocols have nothing in common.
        name: the consumer's.
    """
    size = 8 - len(_MARK)
    digest = blake2b(name.encode(), digest_size=size, person=protocol.encode()).digest()
    return int.from_bytes(digest + _MARK, "little")


def counts_records(consumer: int) -> bool:
    """Whether the number is that of a named consumer, whose offset counts records.

    One of 65,536 numbers that LWP's consumers choose at random looks so, too.
    """
    return consumer.to_bytes(8, "little").endswith(_MARK)
