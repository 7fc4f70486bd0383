"""Captures of a case, made up from its transcript: no root, no capture program, no TLS.

Packets begin with their IP header. Every connection has its own
client port, so that a dissector follows it as a TCP stream of its own.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lance_conformance.engine.transcript import Chunk

FIRST_CLIENT_PORT = 40_000
_RAW_IP = 101
"""Link type of packets that begin with the IP header."""
_MOST = 60_000
"""Bytes of data in one packet, below the limit of IP."""
_SYN, _ACK, _PUSH, _FIN, _RST = 0x02, 0x10, 0x08, 0x01, 0x04
_CLIENT, _SERVER = bytes((127, 0, 0, 1)), bytes((127, 0, 0, 2))


def capture(chunks: Sequence[Chunk], comment: str, port: int) -> bytes:
    """Return a pcapng file.

    Args:
        chunks: everything that went over the connections of a case.
        comment: told to whoever opens the file.
        port: where the servers of the protocol listen, so that the right dissector is used.
    """
    streams: dict[int, _Stream] = {}
    parts = [_section(comment), _interface()]
    for chunk in chunks:
        stream = streams.get(chunk.connection)
        if stream is None:
            stream = streams[chunk.connection] = _Stream(port, FIRST_CLIENT_PORT + chunk.connection)
            parts += [_packet(chunk.at, each) for each in stream.opening()]
        parts += [_packet(chunk.at, each) for each in stream.packets(chunk)]
    return b"".join(parts)


@dataclass(slots=True)
class _Stream:
    """One connection: the sequence numbers of both sides."""

    server_port: int
    port: int
    sent: int = 1000
    received: int = 2000

    def opening(self) -> Iterator[bytes]:
        yield self._tcp("sent", _SYN)
        self.sent += 1
        yield self._tcp("received", _SYN | _ACK)
        self.received += 1
        yield self._tcp("sent", _ACK)

    def packets(self, chunk: Chunk) -> Iterator[bytes]:
        if chunk.direction == "closed":
            yield self._tcp("received", _RST | _ACK if chunk.note == "rst" else _FIN | _ACK)
            return
        for start in range(0, len(chunk.data), _MOST):
            part = chunk.data[start : start + _MOST]
            yield self._tcp(chunk.direction, _PUSH | _ACK, part)
            if chunk.direction == "sent":
                self.sent += len(part)
            else:
                self.received += len(part)

    def _tcp(self, direction: str, flags: int, data: bytes = b"") -> bytes:
        outward = direction == "sent"
        ports = (self.port, self.server_port) if outward else (self.server_port, self.port)
        numbers = (self.sent, self.received) if outward else (self.received, self.sent)
        acknowledged = numbers[1] if flags & _ACK else 0
        ends = (_CLIENT, _SERVER) if outward else (_SERVER, _CLIENT)
        header = struct.pack(
            "!HHLLBBHHH",
            *ports,
            numbers[0] % 2**32,
            acknowledged % 2**32,
            0x50,
            flags,
            65_535,
            0,
            0,
        )
        pseudo = ends[0] + ends[1] + struct.pack("!BBH", 0, 6, len(header) + len(data))
        crc = _checksum(pseudo + header + data)
        header = header[:16] + struct.pack("!H", crc) + header[18:]
        return _ip(ends, header + data)


def _ip(ends: tuple[bytes, bytes], payload: bytes) -> bytes:
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0x4000, 64, 6, 0)
    header += ends[0] + ends[1]
    return header[:10] + struct.pack("!H", _checksum(header)) + header[12:] + payload


def _checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    padded = data + b"\0" * (len(data) % 2)
    words: tuple[int, ...] = struct.unpack(f"!{len(padded) // 2}H", padded)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _block(kind: int, body: bytes) -> bytes:
    size = 12 + len(body)
    return struct.pack("<LL", kind, size) + body + struct.pack("<L", size)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def _section(comment: str) -> bytes:
    text = comment.encode()[:60_000]
    option = struct.pack("<HH", 1, len(text)) + _padded(text) + struct.pack("<HH", 0, 0)
    return _block(0x0A0D0D0A, struct.pack("<LHHq", 0x1A2B3C4D, 1, 0, -1) + option)


def _interface() -> bytes:
    microseconds = struct.pack("<HHB3x", 9, 1, 6)
    return _block(1, struct.pack("<HHL", _RAW_IP, 0, 0) + microseconds + struct.pack("<HH", 0, 0))


def _packet(at: float, data: bytes) -> bytes:
    time = round(at * 1_000_000)
    head = struct.pack("<LLLLL", 0, time >> 32, time & 0xFFFFFFFF, len(data), len(data))
    return _block(6, head + _padded(data))
