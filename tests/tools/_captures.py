"""Captures of TCP conversations, written as pcap and pcapng without a network."""

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

_RAW_IP = 101
_SNAPSHOT = 262144
SERVER_PORT = 1992


def packet(source: int, sequence: int, payload: bytes, target: int = SERVER_PORT) -> bytes:
    """Return an IPv4 packet with a TCP segment from one port to another.

    Checksums of IP and TCP are 0, which stands for "left to the network card".
    """
    tcp = struct.pack("!HHIIBBHHH", source, target, sequence, 1, 5 << 4, 0x18, 65535, 0, 0)
    length = 20 + len(tcp) + len(payload)
    address = bytes([127, 0, 0, 1])
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, 6, 0, address, address)
    return ip + tcp + payload


def conversation(client_port: int, segments: Iterable[bytes]) -> list[bytes]:
    """Return the packets that carry a client's bytes, cut into segments."""
    packets, sequence = [], 1
    for segment in segments:
        packets.append(packet(client_port, sequence, segment))
        sequence += len(segment)
    return packets


def dialogue(client: int, server: int, turns: Iterable[tuple[bool, bytes]]) -> list[bytes]:
    """Return the packets of a conversation; a turn says whether the client speaks, and what."""
    packets, sequences = [], {True: 1, False: 1}
    for asks, payload in turns:
        source, target = (client, server) if asks else (server, client)
        packets.append(packet(source, sequences[asks], payload, target))
        sequences[asks] += len(payload)
    return packets


def web_socket(payload: bytes, *, masked: bool) -> bytes:
    """Return a binary message as one frame of a WebSocket; senders mask theirs."""
    size = struct.pack("!BH", 126 | masked << 7, len(payload))
    mask = bytes(4) if masked else b""
    return b"\x82" + size + mask + payload


UPGRADE: Final = (
    (
        b"GET /api/v4/write HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
        b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nX-QWP-Max-Version: 1\r\n\r\n"
    ),
    (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nX-QWP-Version: 1\r\n\r\n"
    ),
)
"""How a sender asks for a WebSocket, and what a server answers."""


def write_pcap(path: Path, packets: Iterable[bytes], link_type: int = _RAW_IP) -> None:
    """Write a classic capture."""
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, _SNAPSHOT, link_type)
    records = [
        struct.pack("<IIII", number, 0, len(each), len(each)) + each
        for number, each in enumerate(packets)
    ]
    path.write_bytes(header + b"".join(records))


def write_pcapng(path: Path, packets: Iterable[bytes]) -> None:
    """Write a capture in the newer form."""
    section = _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    interface = _block(1, struct.pack("<HHI", _RAW_IP, 0, _SNAPSHOT))
    enhanced = [
        _block(6, struct.pack("<IIIII", 0, 0, number, len(each), len(each)) + each)
        for number, each in enumerate(packets)
    ]
    path.write_bytes(section + interface + b"".join(enhanced))


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def write_interfaces(
    path: Path, packets: Iterable[tuple[int, bytes]], links: Sequence[int]
) -> None:
    """Write a capture of several interfaces, one for each link type.

    Args:
        path: the file.
        packets: number of the interface, and bytes.
        links: the link type of each interface.
    """
    blocks = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    blocks += [_block(1, struct.pack("<HHI", link, 0, _SNAPSHOT)) for link in links]
    blocks += [
        _block(6, struct.pack("<IIIII", interface, 0, 0, len(each), len(each)) + each)
        for interface, each in packets
    ]
    path.write_bytes(b"".join(blocks))
