"""Captures of TCP conversations, written as pcap and pcapng without a network."""

import struct
from collections.abc import Iterable
from pathlib import Path

_RAW_IP = 101
_SNAPSHOT = 262144
SERVER_PORT = 1992


def packet(client_port: int, sequence: int, payload: bytes) -> bytes:
    """Return an IPv4 packet with a TCP segment from a client to the server.

    Checksums of IP and TCP are 0, which stands for "left to the network card".
    """
    tcp = struct.pack(
        "!HHIIBBHHH", client_port, SERVER_PORT, sequence, 1, 5 << 4, 0x18, 65535, 0, 0
    )
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
