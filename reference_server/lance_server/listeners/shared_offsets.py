"""Offsets of named consumers on a node of a cluster: in the shared log, like those of LWP.

A cluster keeps offsets by number. The number of a name is made of it, so every node knows it.
"""

from hashlib import blake2b


def consumer_number(protocol: str, name: str) -> int:
    """Return the number under which the nodes of a cluster keep a named consumer's offset.

    Args:
        protocol: whose consumer it is; names of different protocols have nothing in common.
        name: the consumer's.
    """
    digest = blake2b(name.encode(), digest_size=8, person=protocol.encode()).digest()
    return int.from_bytes(digest, "little")
