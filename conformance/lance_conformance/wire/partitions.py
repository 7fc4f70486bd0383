"""Requests about partitioned topics, an extension (AMB-59)."""

import struct

from lance_conformance.wire.control import control
from lance_conformance.wire.frame import Command, Frame

MURMUR2 = 1


def _named(name: str) -> bytes:
    raw = name.encode()
    return struct.pack("<H", len(raw)) + raw


def create_partitioned(name: str, partitions: int, partitioner: int = MURMUR2) -> Frame:
    """CreatePartitionedTopic, without limits of retention.

    Args:
        name: The name of the whole; its partitions are ``NAME-0`` and so on.
        partitions: How many.
        partitioner: How producers choose one of them for a key: 1 murmur2, 2 siphash.
    """
    rest = struct.pack("<IBQQ", partitions, partitioner, 0, 0)
    return control(Command.CREATE_PARTITIONED_TOPIC, _named(name) + rest)


def add_partitions(name: str, partitions: int) -> Frame:
    """AddPartitions: so many there are to be afterwards."""
    return control(Command.ADD_PARTITIONS, _named(name) + struct.pack("<I", partitions))


def delete_partitioned(name: str) -> Frame:
    """DeletePartitionedTopic: the whole with all its partitions."""
    return control(Command.DELETE_PARTITIONED_TOPIC, name.encode())
