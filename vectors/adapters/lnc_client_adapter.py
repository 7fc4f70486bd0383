# ruff: noqa: INP001  # a script beside the vectors, in no package
"""Answers ``vectors check --exec`` for the published Python client, ``pip install lnc-client``.

Only its own functions are used; ``lnc_client.known.json`` lists where they differ.
"""

import asyncio
import json
import sys
from typing import Any

from lnc_client import errors, protocol, tlv
from lnc_client.connection import LwpConnection

Json = dict[str, Any]
ACCEPT = {"action": "accept"}
INSIDES = {"KeyValue": ("as_key_value", "key", "value")}
INSIDES |= {"Timestamped": ("as_timestamped", "timestamp_ns", "data")}
HEADER = ("batch_id", "timestamp_ns", "record_count", "topic_id", "payload_crc", "payload_length")


def kind_of(header: Any) -> str:
    """Name a frame by the client's own tests, in the order in which it makes them."""
    kinds = ("keepalive", "backpressure", "ack", "control", "batch")
    kind = next((each for each in kinds if getattr(header, f"is_{each}")), "none")
    return "INGEST" if kind == "batch" else kind.upper()


async def read_frames(pieces: list[str]) -> tuple[list[Json], str]:
    """Feed a connection that has no socket, and read frames until it has no more."""
    connection: Any = LwpConnection("nowhere", 1992)
    reader = asyncio.StreamReader()
    vars(connection).update(_reader=reader, _connected=True)
    reader.feed_data(b"".join(bytes.fromhex(piece) for piece in pieces))
    reader.feed_eof()
    frames: list[Json] = []
    while not reader.at_eof():
        try:
            header = await connection.recv_header()
            payload = await connection.recv_payload(header)
        except errors.InvalidFrameError:
            return frames, "reject"
        except errors.ConnectionError:  # the end of the input, in the middle of a frame
            return frames, "wait"
        frames.append({name: getattr(header, name) for name in HEADER})
        frames[-1] |= {"kind": kind_of(header), "payload": payload.hex()}
    return frames, "accept" if frames else "wait"


def split(request: Json) -> Json:
    """Read a stream of frames."""
    frames, action = asyncio.run(read_frames(request.get("pieces") or [request["bytes"]]))
    return {"outcome": {"action": action}, "frames": frames, "fields": (frames or [{}])[0]}


def decode(request: Json) -> Json:
    """Read records, or the inside of a typed value."""
    data, name = bytes.fromhex(request["bytes"]), request.get("message", "")
    if request["group"]["type"] == "TlvDecode":
        records = [
            {"type": r.record_type, "value": r.value.hex()} for r in tlv.decode_records(data)
        ]
        return {"outcome": ACCEPT, "records": records}
    if name not in INSIDES:
        return {"skip": f"the client has no function that reads {name}"}
    accessor, *names = INSIDES[name]
    first, rest = getattr(tlv.TlvRecord(1, data), accessor)()
    first = first.encode().hex() if isinstance(first, str) else first
    return {"outcome": ACCEPT, "fields": dict(zip(names, (first, rest.hex()), strict=True))}


def encode(request: Json) -> Json:
    """Write a frame, or records."""
    if "records" in request:
        pairs = [(each["type"], bytes.fromhex(each["value"])) for each in request["records"]]
        return {"bytes": tlv.encode_records([tlv.TlvRecord(*pair) for pair in pairs]).hex()}
    fields = {name: int(v) for name, v in request["fields"].items() if name != "payload"}
    payload = bytes.fromhex(request["fields"]["payload"])
    fields |= {"payload_length": len(payload), "payload_crc": protocol.zlib.crc32(payload)}
    return {"bytes": (protocol.LwpHeader(**fields).encode() + payload).hex()}


NAME = "lnc-client 0.2.9"
READERS = {"frame_decode": split, "frame_stream": split, "tlv_decode": decode}
READERS |= {"frame_encode": encode, "tlv_encode": encode}


def answer(request: Json) -> Json:
    """Return what the client makes of one request."""
    if request["id"] == "hello":
        return {"name": NAME, "families": list(READERS)}
    if request["group"].get("dialect", {}).get("name") == "specified":
        return {"skip": "the client speaks the deployed dialect only"}
    return READERS[request["family"]](request)


for line in sys.stdin:
    asked = json.loads(line)
    sys.stdout.write(json.dumps({"id": asked["id"]} | answer(asked)) + "\n")
    sys.stdout.flush()
