"""RustLog: records into and out of any broker that speaks its protocol.

::

    from lance_sdk.rustlog import RustlogClient

    with RustlogClient("127.0.0.1:9092") as client:
        client.create_topic("orders", partitions=2)
        client.produce("orders", [b"first", b"second"])
        for record in client.records("orders"):
            print(record.offset, record.value)

RustLog's programs speak a binary form (``dialect="binary"``); the written specification describes
JSON (``dialect="json"``), which has only four of the ten requests (RL-01). `AsyncRustlogClient` is
the same for asyncio and trio.
"""

from lance_sdk.rustlog.aio import AsyncRustlogClient
from lance_sdk.rustlog.client import RustlogClient
from lance_sdk.rustlog.errors import NoSuchPartition, RustlogError, TopicExists
from lance_sdk.rustlog.types import (
    DEFAULT_PORT,
    MAX_FRAME,
    RustlogBatch,
    RustlogRecord,
    StoredRecords,
)

__all__ = [
    "DEFAULT_PORT",
    "MAX_FRAME",
    "AsyncRustlogClient",
    "NoSuchPartition",
    "RustlogBatch",
    "RustlogClient",
    "RustlogError",
    "RustlogRecord",
    "StoredRecords",
    "TopicExists",
]
