"""Readers for the vectors of other systems: messages that nest, and frames."""

import dataclasses
from typing import Any, Final, TypeAlias

from lance_spec.checksum import CRC32C
from lance_spec.errors import DecodeError
from lance_spec.messages import store_forward
from lance_spec.messages._cursor import whole
from lance_spec.messages.fluvio import Frame, Request, Response
from lance_spec.vectors._codecs import codec

Json: TypeAlias = dict[str, Any]

NESTED: Final = {
    "group_message": "groups",
    "replication_message": "replication",
    "qwp_message": "qwp",
    "rustlog_message": "rustlog",
    "fluvio_message": "fluvio",
}


def read_nested(request: Json, group: Json, data: bytes) -> Json:
    """Read a message of QWP, RustLog or Fluvio, in a version where there are any."""
    cls = codec(f"{NESTED[request['family']]}.{group['message']}")
    decoded = whole(cls, data, request.get("version", 0))
    _check_seal(decoded)
    return {"fields": plain(decoded), "bytes": _written(decoded, request)}


def read_slot_message(_request: Json, group: Json, data: bytes) -> Json:
    """Read a message of a store-and-forward slot."""
    decoded = codec(group["message"]).decode(data)
    _check_seal(decoded)
    return {"fields": plain(decoded), "bytes": decoded.encode()}


def read_exchange(request: Json, group: Json, data: bytes) -> Json:
    """Read a frame of Fluvio from its length to its message."""
    opening = Request if group["side"] == "request" else Response
    try:
        opened = opening.decode(Frame.decode(data).body)
        body = whole(codec(f"fluvio.{group['message']}"), opened.body, request["version"])
    except DecodeError:
        return {"outcome": {"action": "reject"}}  # its offset is that of the part, not of the frame
    return {"fields": {"frame": plain(opened) | {"body": plain(body)}}}


def plain(value: Any) -> Any:
    """Return a message as objects, lists, texts, numbers and bytes."""
    if dataclasses.is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    return [plain(each) for each in value] if isinstance(value, list) else value


def _written(decoded: Any, request: Json) -> bytes:
    if request["family"] != "fluvio_message":
        return bytes(decoded.encode())
    try:
        return bytes(decoded.encode(request["version"]))
    except TypeError:  # it is the same in every version
        return bytes(decoded.encode())


def _check_seal(decoded: Any) -> None:
    """Check a checksum that decoding leaves to the caller.

    Raises:
        DecodeError: it does not fit.
    """
    name = type(decoded).__name__
    if isinstance(decoded, store_forward.SegmentFrame):
        sealed = CRC32C(decoded.encode()[4:]) == decoded.crc
    else:
        sealed = not hasattr(decoded, "crc_ok") or decoded.crc_ok()
    if not sealed:
        field = "crc" if hasattr(decoded, "crc") else "record_crc"
        place = {"Batch": 17, "SegmentFrame": 0}.get(name, len(decoded.encode()) - 4)
        raise DecodeError(name, field, place, "its checksum", "another")
