"""Frames for a reader: header fields one by one, bodies as bytes."""

from collections.abc import Iterable, Iterator

from lance_conformance.dump import Row, hexdump
from lance_conformance.engine.transcript import Direction

_REQUEST = (("length", 4), ("api_key", 2), ("api_version", 2), ("correlation_id", 4))
_RESPONSE = (("length", 4), ("correlation_id", 4))
_NAMES = {
    0: "Produce",
    18: "ApiVersions",
    1001: "Create",
    1002: "Delete or FetchOffsets",
    1003: "List or StreamFetch",
    1004: "Watch",
    1005: "UpdateOffsets",
    1006: "UpdateConsumerOffset",
    1007: "DeleteConsumerOffset",
    1008: "FetchConsumerOffsets",
}


class FluvioFrameFormatter:
    """Frames of Fluvio."""

    def frames(self, stream: bytes) -> list[bytes]:
        """Cut a stream where its lengths say that frames end; the rest stays in one piece."""
        found = []
        while len(stream) >= 4:
            length = int.from_bytes(stream[:4], "big", signed=True)
            if not 0 <= length <= len(stream) - 4:
                break
            found.append(stream[: 4 + length])
            stream = stream[4 + length :]
        return [*found, stream] if stream else found

    def rows(self, frame: bytes, direction: Direction, fault: str | None) -> Iterable[Row]:
        """Annotate one frame; a fault outside its header is somewhere in its body."""
        fields = _REQUEST if direction == "sent" else _RESPONSE
        return _rows(frame, fields, fault)

    def text(self, frame: bytes, direction: Direction) -> str | None:
        """All frames are binary."""
        del frame, direction
        return None


def _rows(frame: bytes, fields: tuple[tuple[str, int], ...], fault: str | None) -> Iterator[Row]:
    at = 0
    for name, size in fields:
        piece = frame[at : at + size]
        if not piece:
            return
        whole = len(piece) == size
        yield Row(at, piece, name, _meaning(name, piece) if whole else "cut short", fault == name)
        at += size
    in_body = fault is not None and fault not in dict(fields)
    yield from hexdump(frame[at:], at, "body", fault=in_body)


def _meaning(name: str, piece: bytes) -> str:
    number = int.from_bytes(piece, "big", signed=True)
    return _NAMES.get(number, f"{number}, unknown") if name == "api_key" else str(number)
