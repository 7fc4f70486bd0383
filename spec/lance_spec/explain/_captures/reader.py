"""Reading captures: pcap and pcapng files, and the TCP conversations in them.

Nothing here raises for what a capture holds: what cannot be read is left out and counted.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

Endpoint: TypeAlias = tuple[bytes, int]

_PCAP: Final = {
    b"\xd4\xc3\xb2\xa1": "<",
    b"\x4d\x3c\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">",
    b"\xa1\xb2\x3c\x4d": ">",
}
"""First bytes of classic captures, and the order of bytes that they tell."""
_SECTION: Final = b"\x0a\x0d\x0d\x0a"
_ORDERS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_LINK_HEADERS: Final = {0: 4, 1: 14, 101: 0, 108: 4, 113: 16, 228: 0, 229: 0, 276: 20}
"""Bytes before the IP packet, by link type: loopback, Ethernet, raw IP, Linux' "any" device."""
_VLAN: Final = b"\x81\x00"
_TCP: Final = 6
_SYN: Final = 0x02
_ACK: Final = 0x10
_WINDOW: Final = 2**31
_MOST_AHEAD: Final = 1000


class Segment(NamedTuple):
    """What one packet brought on a connection."""

    source: Endpoint
    target: Endpoint
    sequence: int
    flags: int
    payload: memoryview


@dataclass(slots=True)
class Direction:
    """The bytes that one side sent, put into their order.

    Attributes:
        taken: how many bytes are in order so far.
        expected: the sequence number of the next one; None before the first.
        ahead: what came early, by sequence number.
    """

    taken: int = 0
    expected: int | None = None
    ahead: dict[int, memoryview] = field(default_factory=dict)

    def take(self, sequence: int, payload: memoryview) -> Iterator[memoryview]:
        """Add a segment; return what is in order now. Bytes that came before are dropped."""
        if self.expected is None:
            self.expected = sequence
        if (self.expected - sequence) % 2**32 >= _WINDOW:
            if len(self.ahead) < _MOST_AHEAD:
                self.ahead[sequence] = payload
            return
        found = self._new(sequence, payload)
        while found is not None:
            self.expected = (self.expected + len(found)) % 2**32
            self.taken += len(found)
            yield found
            found = self._next()

    def _new(self, sequence: int, payload: memoryview) -> memoryview | None:
        """Return what a piece brings that is not known already."""
        assert self.expected is not None
        known = (self.expected - sequence) % 2**32
        return payload[known:] if known < len(payload) else None

    def _next(self) -> memoryview | None:
        """Take out a piece that came early and goes on where the bytes end now."""
        assert self.expected is not None
        for sequence, payload in list(self.ahead.items()):
            if (self.expected - sequence) % 2**32 < _WINDOW:
                del self.ahead[sequence]
                if (found := self._new(sequence, payload)) is not None:
                    return found
        return None


@dataclass(slots=True)
class Conversation:
    """One TCP connection.

    Attributes:
        client: who opened it, as far as can be told.
        server: the other side.
        turns: whether the client speaks, and what it says, in the order of the capture.
        missing: pieces that came early and whose bytes before them are not in the capture.
    """

    client: Endpoint
    server: Endpoint
    turns: list[tuple[bool, memoryview]] = field(default_factory=list)
    missing: int = 0
    directions: dict[bool, Direction] = field(
        default_factory=lambda: {True: Direction(), False: Direction()}, repr=False
    )

    def add(self, segment: Segment) -> None:
        """Add what a packet brought."""
        asks = segment.source == self.client
        opening = 1 if segment.flags & _SYN else 0
        direction = self.directions[asks]
        if opening:
            direction.expected = (segment.sequence + 1) % 2**32
        if segment.payload:
            start = (segment.sequence + opening) % 2**32
            self.turns += [(asks, each) for each in direction.take(start, segment.payload)]
        self.missing = sum(len(each.ahead) for each in self.directions.values())

    def said(self, *, by_client: bool) -> bytes:
        """Return all that one side said."""
        return b"".join(each for asks, each in self.turns if asks is by_client)


def is_capture(data: memoryview) -> bool:
    """Whether bytes are a capture."""
    return data[:4].tobytes() in _PCAP or data[:4].tobytes() == _SECTION


def conversations(data: memoryview, servers: frozenset[int]) -> list[Conversation]:
    """Return the TCP conversations of a capture, in the order of their first packets.

    Args:
        data: the capture.
        servers: ports that tell which side is the server, where no packet opens the connection.
    """
    found: dict[frozenset[Endpoint], Conversation] = {}
    for segment in segments(data):
        key = frozenset((segment.source, segment.target))
        if key not in found:
            found[key] = _opened(segment, servers)
        found[key].add(segment)
    return [each for each in found.values() if each.turns]


def _opened(segment: Segment, servers: frozenset[int]) -> Conversation:
    answered = segment.flags & _SYN and segment.flags & _ACK
    by_port = segment.source[1] in servers and segment.target[1] not in servers
    from_server = answered or (not segment.flags & _SYN and by_port)
    source, target = segment.source, segment.target
    return Conversation(target, source) if from_server else Conversation(source, target)


def segments(data: memoryview) -> Iterator[Segment]:
    """Return the TCP segments of a capture."""
    packets = _blocks(data) if data[:4].tobytes() == _SECTION else _records(data)
    for link, packet in packets:
        found = _tcp(_network(link, packet))
        if found is not None:
            yield found


def _records(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Return link type and bytes of the packets of a classic capture."""
    order = _PCAP[data[:4].tobytes()]
    if len(data) < 24:
        return
    (link,) = struct.unpack_from(f"{order}I", data, 20)
    place = 24
    while place + 16 <= len(data):
        (length,) = struct.unpack_from(f"{order}I", data, place + 8)
        yield link & 0xFFFF, data[place + 16 : place + 16 + length]
        place += 16 + length


def _blocks(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Return link type and bytes of the packets of a capture in blocks."""
    order, place, links = "<", 0, list[int]()
    while place + 12 <= len(data):
        if data[place : place + 4].tobytes() == _SECTION:
            order, links = _ORDERS.get(data[place + 8 : place + 12].tobytes(), "<"), []
        kind, length = struct.unpack_from(f"{order}II", data, place)
        if length < 12:
            return
        body = data[place + 8 : place + length - 4]
        if kind == 1 and len(body) >= 2:
            links += struct.unpack_from(f"{order}H", body)
        elif kind == 6 and len(body) >= 20:
            interface, _, _, size = struct.unpack_from(f"{order}IIII", body)
            if interface < len(links):
                yield links[interface], body[20 : 20 + size]
        place += length


def _network(link: int, packet: memoryview) -> memoryview:
    """Return the IP packet inside the bytes of a link, or nothing."""
    header = _LINK_HEADERS.get(link)
    if header is None:
        return packet[:0]
    if link == 1 and packet[12:14].tobytes() == _VLAN:
        header += 4
    return packet[header:]


def _tcp(packet: memoryview) -> Segment | None:
    """Return the TCP segment inside an IP packet, or nothing."""
    if not packet:
        return None
    version = packet[0] >> 4
    header, protocol, length = 40, packet[6] if len(packet) > 6 else 0, len(packet)
    if version == 4 and len(packet) >= 20:
        header, protocol = 4 * (packet[0] & 15), packet[9]
        length = int.from_bytes(packet[2:4], "big") or len(packet)
    if version not in (4, 6) or protocol != _TCP or len(packet) < header + 20:
        return None
    sides = (packet[12:16], packet[16:20]) if version == 4 else (packet[8:24], packet[24:40])
    return _segment(sides, packet[header:length])


def _segment(sides: tuple[memoryview, memoryview], data: memoryview) -> Segment | None:
    if len(data) < 20:
        return None
    source, target, sequence = struct.unpack_from("!HHI", data)
    payload = data[4 * (data[12] >> 4) :]
    addresses = (bytes(sides[0]), source), (bytes(sides[1]), target)
    return Segment(*addresses, sequence, data[13], payload)
