"""Bytes of the binary form, written by hand."""

from struct import pack

TYPES = {
    1: "Produce",
    2: "Fetch",
    3: "OffsetCommit",
    4: "OffsetFetch",
    5: "CreateTopic",
    6: "ListTopics",
    7: "DescribeTopic",
    8: "DescribePartition",
    9: "MetricsFetch",
    255: "Ping",
}
LAYOUTS = {
    "Produce": "topic:s partition:4 records:r",
    "Fetch": "group_id:s topic:s partition:4 offset:8 max_bytes:4",
    "OffsetCommit": "group:s topic:s partition:4 offset:8",
    "OffsetFetch": "group:s topic:s partition:4",
    "CreateTopic": "topic:s partitions:4",
    "DescribeTopic": "topic:s",
    "DescribePartition": "topic:s partition:4",
}


def string(text: str) -> bytes:
    """Text after its length."""
    raw = text.encode()
    return pack(">H", len(raw)) + raw


def produced(base: int, count: int) -> bytes:
    """The answer to a Produce."""
    return pack(">BQI", 1, base, count)


def fetched(records: list[bytes], following: int) -> bytes:
    """The answer to a Fetch."""
    body = b"".join(pack(">I", len(record)) + record for record in records)
    return pack(">BI", 2, len(records)) + body + pack(">Q", following)


def success(kind: int, value: int) -> bytes:
    """The answer to an OffsetCommit or a CreateTopic."""
    return bytes([kind, value])


def offset(value: int | None) -> bytes:
    """The answer to an OffsetFetch."""
    return b"\4\0" if value is None else pack(">BBQ", 4, 1, value)


def topics(listed: list[tuple[str, int]]) -> bytes:
    """The answer to a ListTopics."""
    body = b"".join(string(name) + pack(">I", count) for name, count in listed)
    return pack(">BI", 6, len(listed)) + body


def topic(name: str, count: int, ends: list[tuple[int, int]]) -> bytes:
    """The answer to a DescribeTopic."""
    body = b"".join(pack(">IQ", number, end) for number, end in ends)
    return b"\7" + string(name) + pack(">II", count, len(ends)) + body


def partition(name: str, number: int, end: int) -> bytes:
    """The answer to a DescribePartition."""
    return b"\x08" + string(name) + pack(">IQ", number, end)


def metrics(text: bytes) -> bytes:
    """The answer to a MetricsFetch."""
    return pack(">BI", 9, len(text)) + text


def error(code: int, text: str) -> bytes:
    """A refusal."""
    return pack(">BH", 254, code) + string(text)
