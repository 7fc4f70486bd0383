"""What the examples of Fluvio's messages are made of."""

from typing import Any

from generate.composed import Example
from generate.fluvio import common_types

MAX31, MAX32, MAX63, MAX64 = 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1
NOON = 1_706_918_400_000
LATEST = 25


def ex(
    name: str, comment: str, version: int = 24, others: tuple[int, ...] = (), /, **value: Any
) -> Example:
    """Return an example."""
    return Example(name, comment, value, version, others)


def record(
    value: bytes, *, key: bytes | None = None, at: int = 0, delta: int = 0
) -> dict[str, Any]:
    """Return a record."""
    return {
        "attributes": 0,
        "timestamp_delta": delta,
        "offset_delta": at,
        "key": key,
        "value": value,
    }


def batch(
    *records: dict[str, Any], attributes: int = 0, content: bytes | None = None
) -> dict[str, Any]:
    """Return a batch as producers write it."""
    inner = common_types.RECORDS.encode({"records": list(records)}) if content is None else content
    return {
        "base_offset": 0,
        "partition_leader_epoch": -1,
        "attributes": attributes,
        "last_offset_delta": max(len(records) - 1, 0),
        "first_timestamp": NOON,
        "max_time_stamp": NOON,
        "producer_id": -1,
        "producer_epoch": -1,
        "first_sequence": -1,
        "records": inner,
    }


K1 = record(b"hello world", key=b"k1")
NONE = {"code": 0, "detail": None}
EVICTED = {"code": 71, "detail": {"offset": 3, "next_available": 9}}
INVOKED: dict[str, Any] = {
    "wasm": {"form": 0, "source": {"name": "filter"}},
    "role": {"kind": 0, "context": None},
    "params": [{"name": "key", "value": "größe"}],
}
