"""Deriving a faulty test from its pair: the fault, the whole fault and nothing but the fault."""

from collections.abc import Callable
from typing import Any, Final

from lance_spec.checksum import CRC32_IEEE, CRC32C, Checksum
from lance_spec.limits import HEADER_SIZE

CHECKSUMS: Final = {each.name: each for each in (CRC32C, CRC32_IEEE)}
HEADER: Final = {
    "magic": 4,
    "version": 1,
    "flags": 1,
    "reserved": 2,
    "header_crc": 4,
    "batch_id": 8,
    "timestamp_ns": 8,
    "record_count": 4,
    "payload_length": 4,
    "payload_crc": 4,
    "topic_id": 4,
}
"""Fields of a frame's header and their bytes; the grammar, which says the same, loads slowly."""
_GUARDED: Final = slice(0, 8)
_HEADER_CRC: Final = slice(8, 12)


def derive(data: bytes, fault: dict[str, Any], checksum: Checksum | None) -> bytes:
    """Return ``data`` with one fault.

    Args:
        data: the bytes of the valid test.
        fault: the fault, as its test words it.
        checksum: for frames, what to compute the header CRC with when the fault changes what it
            covers; None for bytes that are not a frame.

    Raises:
        ValueError: the fault does not apply to such bytes.
    """
    return _KINDS[fault["kind"]](data, fault, checksum)


def _truncate(data: bytes, fault: dict[str, Any], _checksum: Checksum | None) -> bytes:
    if fault["length"] >= len(data):
        raise ValueError(f"{fault['length']} bytes cut nothing off {len(data)}")
    return data[: fault["length"]]


def _append(data: bytes, fault: dict[str, Any], _checksum: Checksum | None) -> bytes:
    return data + bytes.fromhex(fault["bytes"])


def _splice(data: bytes, fault: dict[str, Any], _checksum: Checksum | None) -> bytes:
    start, end = fault["offset"], fault["offset"] + fault["remove"]
    if end > len(data):
        raise ValueError(f"there are no bytes {start} to {end} among {len(data)}")
    changed = data[:start] + bytes.fromhex(fault["insert"]) + data[end:]
    return _again(changed, fault["reseal"]) if "reseal" in fault else changed


def _again(data: bytes, seal: dict[str, Any]) -> bytes:
    """Compute a checksum anew that covers what the fault changed."""
    right = CHECKSUMS[seal["algorithm"]](data[seal["start"] : seal.get("end")])
    at = seal["at"]
    return data[:at] + right.to_bytes(4, seal["order"]) + data[at + 4 :]


def _version(data: bytes, _fault: dict[str, Any], _checksum: Checksum | None) -> bytes:
    return data


def _corrupt_bit(data: bytes, fault: dict[str, Any], _checksum: Checksum | None) -> bytes:
    damaged = bytearray(data)
    damaged[HEADER_SIZE + fault["bit"] // 8] ^= 1 << fault["bit"] % 8
    return bytes(damaged)


def _set(data: bytes, fault: dict[str, Any], checksum: Checksum | None) -> bytes:
    place = _place(fault["field"])
    value = fault["value"]
    if fault["field"] == "magic":
        return _resealed(data, place, bytes.fromhex(value), checksum)
    return _resealed(data, place, int(value).to_bytes(place.stop - place.start, "little"), checksum)


def _flip_bit(data: bytes, fault: dict[str, Any], checksum: Checksum | None) -> bytes:
    place = _place(fault["field"])
    value = int.from_bytes(data[place], "little") ^ 1 << fault["bit"]
    return _resealed(data, place, value.to_bytes(place.stop - place.start, "little"), checksum)


def _place(name: str) -> slice:
    """Return where a header field stands."""
    start = 0
    for each, size in HEADER.items():
        if each == name:
            return slice(start, start + size)
        start += size
    raise ValueError(f"the header has no field {name!r}")


def _resealed(data: bytes, place: slice, value: bytes, checksum: Checksum | None) -> bytes:
    """Change a header field, and the header CRC with it when that covers the field."""
    if checksum is None:
        raise ValueError("only frames have header fields")
    changed = bytearray(data)
    changed[place] = value
    if place.stop <= _GUARDED.stop:
        changed[_HEADER_CRC] = checksum(changed[_GUARDED]).to_bytes(4, "little")
    return bytes(changed)


_KINDS: Final[dict[str, Callable[[bytes, dict[str, Any], Checksum | None], bytes]]] = {
    "truncate": _truncate,
    "append": _append,
    "splice": _splice,
    "corrupt-bit": _corrupt_bit,
    "set": _set,
    "flip-bit": _flip_bit,
    "version": _version,
}
