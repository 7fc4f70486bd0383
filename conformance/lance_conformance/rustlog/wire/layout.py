"""The fields of every binary message, and how each kind of field is written and read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lance_conformance.rustlog.wire.message import UnreadableError

ERROR = 0xFE
NAMES: Mapping[int, str] = {
    0x01: "Produce",
    0x02: "Fetch",
    0x03: "OffsetCommit",
    0x04: "OffsetFetch",
    0x05: "CreateTopic",
    0x06: "ListTopics",
    0x07: "DescribeTopic",
    0x08: "DescribePartition",
    0x09: "MetricsFetch",
    0xFF: "Ping",
    ERROR: "Error",
}
TYPES: Mapping[str, int] = {name: number for number, name in NAMES.items()}

Fields = Sequence[tuple[str, str]]
REQUESTS: Mapping[str, Fields] = {
    "Produce": (("topic", "text"), ("partition", "u32"), ("records", "blobs")),
    "Fetch": (
        ("group", "text"),
        ("topic", "text"),
        ("partition", "u32"),
        ("offset", "u64"),
        ("max_bytes", "u32"),
    ),
    "OffsetCommit": (("group", "text"), ("topic", "text"), ("partition", "u32"), ("offset", "u64")),
    "OffsetFetch": (("group", "text"), ("topic", "text"), ("partition", "u32")),
    "CreateTopic": (("topic", "text"), ("partitions", "u32")),
    "ListTopics": (),
    "DescribeTopic": (("topic", "text"),),
    "DescribePartition": (("topic", "text"), ("partition", "u32")),
    "MetricsFetch": (),
    "Ping": (),
}
ANSWERS: Mapping[str, Fields] = {
    "Produce": (("base_offset", "u64"), ("record_count", "u32")),
    "Fetch": (("records", "blobs"), ("next_offset", "u64")),
    "OffsetCommit": (("success", "flag"),),
    "OffsetFetch": (("offset", "maybe"),),
    "CreateTopic": (("success", "flag"),),
    "ListTopics": (("topics", "topics"),),
    "DescribeTopic": (("topic", "text"), ("partition_count", "u32"), ("partitions", "ends")),
    "DescribePartition": (("topic", "text"), ("partition", "u32"), ("high_watermark", "u64")),
    "MetricsFetch": (("text", "long"),),
    "Ping": (),
    "Error": (("code", "u16"), ("message", "text")),
}
_SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}


@dataclass(frozen=True, slots=True)
class LocatedField:
    """A field where it stands.

    Attributes:
        name: Its name.
        start: Its first byte.
        end: The byte after it.
        value: What it says.
    """

    name: str
    start: int
    end: int
    value: Any


class Cursor:
    """Reads fields one after the other.

    Args:
        data: The bytes of a message.
        at: Where to begin.
    """

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def __repr__(self) -> str:
        return f"<Cursor {self.at} of {len(self.data)}>"

    def take(self, size: int, name: str) -> bytes:
        """The next bytes.

        Raises:
            UnreadableError: There are not so many.
        """
        left = len(self.data) - self.at
        if size > left:
            raise UnreadableError(
                f"field:{name}", f"{name} at byte {self.at} needs {size} bytes, {left} are left"
            )
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int, name: str) -> int:
        """An unsigned number, the high byte first."""
        return int.from_bytes(self.take(size, name), "big")

    def text(self, name: str, size: int) -> str:
        """Text after its length of so many bytes."""
        start = self.at
        raw = self.take(self.number(size, name), name)
        try:
            return raw.decode()
        except UnicodeDecodeError as problem:
            raise UnreadableError(
                f"field:{name}", f"{name} at byte {start} is not UTF-8: {problem.reason}"
            ) from None

    def blob(self, name: str) -> bytes:
        """Bytes after their length of four."""
        return self.take(self.number(4, name), name)

    def value(self, kind: str, name: str) -> Any:
        """A field of any kind."""
        if kind in _SIZES:
            return self.number(_SIZES[kind], name)
        if kind == "maybe":
            return self._maybe(name)
        if kind in ("text", "long"):
            return self.text(name, 2 if kind == "text" else 4)
        if kind == "flag":
            return self._flag(name)
        return tuple(self._item(kind, name) for _ in range(self._count(name)))

    def _count(self, name: str) -> int:
        count = self.number(4, name)
        if count > len(self.data):
            raise UnreadableError(f"field:{name}", f"{name} claims {count} items, which do not fit")
        return count

    def _item(self, kind: str, name: str) -> Any:
        if kind == "blobs":
            return self.blob(name)
        if kind == "topics":
            return self.text(name, 2), self.number(4, name)
        return self.number(4, name), self.number(8, name)

    def _maybe(self, name: str) -> int | None:
        return self.number(8, name) if self._flag(name) else None

    def _flag(self, name: str) -> int:
        flag = self.number(1, name)
        if flag > 1:
            raise UnreadableError(
                f"field:{name}", f"{name} at byte {self.at - 1} is {flag}, not 0 or 1"
            )
        return flag

    def pieces(self, fields: Fields) -> Iterator[LocatedField]:
        """The fields, as far as they can be read.

        Raises:
            UnreadableError: One cannot.
        """
        for name, kind in fields:
            start = self.at
            value = self.value(kind, name)
            yield LocatedField(name, start, self.at, value)


def put(kind: str, value: Any) -> bytes:
    """Write a field of a request."""
    if kind in _SIZES:
        return int(value).to_bytes(_SIZES[kind], "big")
    if kind == "text":
        raw = value if isinstance(value, bytes) else str(value).encode()
        return len(raw).to_bytes(2, "big") + raw
    return b"".join(
        (len(value).to_bytes(4, "big"), *(len(each).to_bytes(4, "big") + each for each in value))
    )
