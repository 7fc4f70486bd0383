"""The golden rules of reading binary requests."""

from typing import Any

from lance_conformance.rustlog.golden.codec import LAYOUTS, TYPES
from lance_conformance.rustlog.golden.framing import Framing
from lance_conformance.rustlog.golden.state import Refused, Request


class Scan:
    """A place in a payload.

    Args:
        data: The payload.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 1

    def some(self, size: int) -> bytes | None:
        """The next bytes, `None` if there are not so many."""
        if self.at + size > len(self.data):
            return None
        self.at += size
        return self.data[self.at - size : self.at]

    def left(self) -> bytes:
        """All that is left."""
        found = self.data[self.at :]
        self.at = len(self.data)
        return found


class Decoding(Framing):
    """Rules about types, fields and what is said of bad ones."""

    def type_name(self, number: int, /) -> str | None:
        """The request of a type, `None` for others."""
        return TYPES.get(number)

    def unknown_type(self, number: int, /) -> Refused:
        """What is said about another type."""
        return Refused(2, f"Decode error: unknown request type: {number}")

    def decode(self, payload: bytes, /) -> Request:
        """A request from its payload."""
        if not payload:
            raise _undecodable("empty buffer")
        name = self.type_name(payload[0])
        if name is None:
            raise self.unknown_type(payload[0])
        scan, fields = Scan(payload), {}
        for field in LAYOUTS.get(name, "").split():
            key, _, kind = field.partition(":")
            fields[key] = self._field(scan, name, key, kind)
        self.behind(name, scan.left())
        return Request(name, fields)

    def _field(self, scan: Scan, name: str, key: str, kind: str) -> Any:
        if kind == "s":
            return self._text(scan, name, key)
        if kind == "r":
            return self._records(scan)
        raw = scan.some(int(kind))
        if raw is None:
            missing = "partition count" if key == "partitions" else key
            return self.short(name, f"missing {missing}", int(kind))
        return int.from_bytes(raw, "big")

    def _text(self, scan: Scan, name: str, key: str) -> str:
        size = scan.some(2)
        if size is None:
            return str(self.short(name, f"missing {key} length", 0) or "")
        raw = scan.some(int.from_bytes(size, "big"))
        if raw is None:
            raw = self.cut_name(name, key, scan.left())
        try:
            return raw.decode()
        except UnicodeDecodeError as problem:
            return self.not_utf8(name, key, raw, str(problem))

    def _records(self, scan: Scan) -> list[bytes]:
        count = scan.some(4)
        if count is None:
            return list(self.no_count())
        records: list[bytes] = []
        for _ in range(int.from_bytes(count, "big")):
            size = scan.some(4)
            if size is None:
                return self.too_few(records)
            record = scan.some(int.from_bytes(size, "big"))
            records.append(self.cut_record(scan.left()) if record is None else record)
        return records

    def short(self, _name: str, words: str, _size: int, /) -> int:
        """A request without all of its fields is refused."""
        raise _undecodable(words)

    def cut_name(self, _name: str, key: str, _rest: bytes, /) -> bytes:
        """A name that its payload ends in the middle of is refused."""
        raise _undecodable(f"truncated {key}")

    def no_count(self, /) -> list[bytes]:
        """A Produce that does not say how many records it has is refused."""
        raise _undecodable("missing record count")

    def too_few(self, _records: list[bytes], /) -> list[bytes]:
        """A Produce with fewer records than it says is refused."""
        raise _undecodable("truncated record length")

    def cut_record(self, _rest: bytes, /) -> bytes:
        """A Produce with a record that its payload ends in the middle of is refused."""
        raise _undecodable("truncated record")

    def not_utf8(self, _name: str, key: str, _raw: bytes, why: str, /) -> str:
        """A name that is not UTF-8 is refused."""
        raise _undecodable(f"invalid utf8 {key}: {why}")

    def behind(self, _name: str, _rest: bytes, /) -> None:
        """Bytes after the last field are ignored."""


def _undecodable(words: str) -> Refused:
    return Refused(2, f"Decode error: decode error: {words}")
