"""Readers for the vectors of files, compressed bytes, JSON and HTTP."""

import gzip
import json
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeAlias

from lance_spec import schemas
from lance_spec.checksum import CRC32C
from lance_spec.errors import DecodeError
from lance_spec.messages import store_forward
from lance_spec.messages._cursor import Source
from lance_spec.messages._numbers import LEB128
from lance_spec.messages.fluvio import Records
from lance_spec.qwp import upgrade as qwp_upgrade
from lance_spec.vectors._foreign import plain

Json: TypeAlias = dict[str, Any]

_REFUSED: Final[Json] = {"outcome": {"action": "reject"}}
_RECORDS: Final = {
    "manifest": store_forward.ManifestRecord,
    "watermark": store_forward.WatermarkRecord,
    "floor": store_forward.FsnFloorRecord,
}


def read_lz4(_request: Json, _group: Json, data: bytes) -> Json:
    """Open a compressed payload: one LZ4 frame and nothing else (AMB-20)."""
    try:
        return {"fields": {"content": _lz4(data)}}
    except ValueError:
        return {"outcome": {"action": "reject"}}


def _lz4(data: bytes) -> bytes:
    opener = import_module("lz4.frame").LZ4FrameDecompressor()
    if data[4:5] and data[4] & 1:
        raise ValueError("a dictionary is asked for")
    try:
        content = opener.decompress(data, max_length=1 << 24)
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    if not opener.eof or opener.unused_data:
        raise ValueError("not exactly one frame")
    return bytes(content)


def _cramjam(kind: str) -> Callable[[bytes], bytes]:
    def opened(data: bytes) -> bytes:
        module: Any = import_module("cramjam")
        try:
            return bytes(getattr(module, kind).decompress(data))
        except module.DecompressionError as error:
            raise ValueError(str(error)) from None

    return opened


_OPENERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "none": bytes,
    "gzip": gzip.decompress,
    "snappy": _cramjam("snappy"),
    "lz4": _lz4,
    "zstd": _cramjam("zstd"),
}


def read_records(_request: Json, group: Json, data: bytes) -> Json:
    """Read the records of a Fluvio batch, in any compression."""
    try:
        content = _OPENERS[group["compression"]](data)
    except ModuleNotFoundError as error:
        return {"skip": f"{error.name} is not installed: pip install 'lance-sdk[fluvio]'"}
    except (ValueError, EOFError, OSError, zlib.error):
        return _REFUSED
    try:
        return {"fields": plain(Records.decode(content))}
    except DecodeError:
        return _REFUSED  # its place is inside the compression


def read_slot_file(_request: Json, group: Json, data: bytes) -> Json:
    """Find out what a side file of a slot says."""
    if group["file"] == "symbols":
        return _symbols(data)
    if group["file"] == "watermark" and len(data) == store_forward.WatermarkSimple.SIZE:
        return {"fields": {"record": plain(store_forward.WatermarkSimple.decode(data))}}
    if len(data) not in (128, 8192):
        return _REFUSED
    halves = [data[place : place + 64] for place in (0, len(data) // 2)]
    found = [record for each in halves for record in _whole(_RECORDS[group["file"]], each)]
    if not found and any(data):
        return _REFUSED
    held = max(found, key=lambda record: int(record.generation), default=None)
    return {"fields": {"record": plain(held)}}


def _whole(kind: Any, raw: bytes) -> list[Any]:
    try:
        record = kind.decode(raw)
    except DecodeError:
        return []
    return [record] if record.crc_ok() else []


def read_slot_segment(_request: Json, _group: Json, data: bytes) -> Json:
    """Find the whole frames of a segment, from its header on."""
    try:
        header = store_forward.SegmentHeader.decode(data[: store_forward.SegmentHeader.SIZE])
    except DecodeError:
        return _REFUSED
    end, frames = store_forward.SegmentHeader.SIZE, []
    while len(data) - end >= 8:
        behind = end + 8 + int.from_bytes(data[end + 4 : end + 8], "little")
        stated = int.from_bytes(data[end : end + 4], "little")
        if behind > len(data) or CRC32C(data[end + 4 : behind]) != stated:
            break
        frames.append(data[end + 8 : behind])
        end = behind
    fields = {"base_seq": header.base_seq, "frames": frames, "end": end, "torn": any(data[end:])}
    return {"fields": fields}


def _symbols(data: bytes) -> Json:
    if data[:8] != b"SYD1\x01\0\0\0":
        return _REFUSED
    symbols: list[str] = []
    source, end = Source(data), 8
    source.place = end
    while source.left:
        try:
            symbols += _chunk(source)
        except (DecodeError, ValueError):
            break
        end = source.place
    return {"fields": {"symbols": symbols, "end": end}}


def _chunk(source: Source) -> list[str]:
    start = source.place
    count, size = LEB128.read(source), LEB128.read(source)
    entries, inner = source.carve(size), []
    stated = int.from_bytes(source.carve(4), "little")
    if CRC32C(source.data[start : source.place - 4]) != stated:
        raise ValueError("its checksum does not fit")
    within = Source(entries)
    while within.left:
        inner.append(str(within.carve(LEB128.read(within)), "utf-8"))
    if len(inner) != count:
        raise ValueError(f"{len(inner)} entries where {count} are stated")
    return inner


def read_rustlog_json(_request: Json, group: Json, data: bytes) -> Json:
    """Read the JSON dialect of RustLog, as strictly as its specification means it."""
    try:
        jsonschema: Any = import_module("jsonschema")
    except ModuleNotFoundError:
        return {"skip": "jsonschema is not installed: pip install 'lance-sdk[test]'"}
    name = {"request": "rustlog_request", "answer": "rustlog_response"}[group["side"]]
    try:
        text = data.decode()  # bytes would be allowed to begin with a byte order mark
        found = json.loads(
            text, object_pairs_hook=_once, parse_constant=_refuse, parse_float=_refuse
        )
        jsonschema.Draft202012Validator(schemas.load(name)).validate(found)
    except (ValueError, jsonschema.ValidationError):
        return _REFUSED
    return {"fields": found}


def _once(pairs: list[tuple[str, Any]]) -> Json:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a member stands there twice")
    return dict(pairs)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not a number that the dialect has")


def read_upgrade(_request: Json, group: Json, data: bytes) -> Json:
    """Read the head of an HTTP message around QWP, or the end of its WebSocket."""
    if group["side"] == "close":
        return _closed(data)
    first, *lines = data.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
    }
    return (_asked if group["side"] == "request" else _answered)(first, headers)


def _asked(first: str, headers: dict[str, str]) -> Json:
    method, path, _ = first.split(" ")
    stated = headers.get(qwp_upgrade.MAX_VERSION_HEADER.lower(), "1")
    sound = (
        method == "GET"
        and path in qwp_upgrade.PATHS
        and _upgrades(headers)
        and headers.get("sec-websocket-version") == "13"
        and "sec-websocket-key" in headers
        and stated.isdecimal()
        and int(stated) >= qwp_upgrade.VERSION
    )
    durable = headers.get(qwp_upgrade.REQUEST_DURABLE_ACK_HEADER.lower()) == "true"
    fields = {"path": path, "durable_ack": durable, "max_version": stated}
    fields["client_id"] = headers.get(qwp_upgrade.CLIENT_ID_HEADER.lower())
    return {"fields": fields} if sound else {"outcome": {"action": "reject", "reason": "value"}}


def _answered(first: str, headers: dict[str, str]) -> Json:
    status = int(first.split(" ")[1])
    version = headers.get(qwp_upgrade.VERSION_HEADER.lower(), "1")
    if status in {401, 403}:
        return {"outcome": {"action": "reject", "reason": "terminal"}}
    if status != 101 or not _upgrades(headers) or version != str(qwp_upgrade.VERSION):
        return {"outcome": {"action": "reject", "reason": "transient"}}
    size = headers.get(qwp_upgrade.MAX_BATCH_SIZE_HEADER.lower(), "")
    durable = headers.get(qwp_upgrade.DURABLE_ACK_HEADER.lower(), "").lower() == "enabled"
    most = int(size) if size.isdecimal() else None
    fields = {"status": status, "version": version, "durable_ack": durable}
    return {"fields": fields | {"max_batch_size": most}}


def _upgrades(headers: dict[str, str]) -> bool:
    upgrade, connection = headers.get("upgrade", ""), headers.get("connection", "")
    return upgrade.lower() == "websocket" and connection.lower() == "upgrade"


def _closed(data: bytes) -> Json:
    code = int.from_bytes(data[:2], "big")
    sent = code in range(1000, 1004) or code in range(1007, 1015) or code in range(3000, 5000)
    try:
        text = data[2:].decode()
    except UnicodeDecodeError:
        return _REFUSED
    if len(data) < 2 or not sent:
        return _REFUSED
    return {"fields": {"code": code, "orderly": code in (1000, 1001), "text": text}}
