"""Answers ``vectors check --exec`` for this package, and shows how an adapter is written."""

import json
import sys
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from lance_spec.errors import DecodeError
from lance_spec.vectors._containers import (
    read_lz4,
    read_records,
    read_rustlog_json,
    read_slot_file,
    read_slot_segment,
    read_upgrade,
)
from lance_spec.vectors._foreign import NESTED, read_exchange, read_nested, read_slot_message
from lance_spec.vectors._framing import read_frames, write_bytes
from lance_spec.vectors._readings import (
    read_body,
    read_crc,
    read_message,
    read_segment,
    read_text,
)

Json: TypeAlias = dict[str, Any]


READERS: Final[dict[str, Callable[[Json, Json, bytes], Json]]] = {
    "crc": read_crc,
    "segment_scan": read_segment,
    "lz4_frame": read_lz4,
    "slot_message": read_slot_message,
    "slot_file": read_slot_file,
    "slot_segment": read_slot_segment,
    "qwp_upgrade": read_upgrade,
    "fluvio_exchange": read_exchange,
    "fluvio_records": read_records,
    "rustlog_json": read_rustlog_json,
    **dict.fromkeys(("frame_decode", "frame_stream"), read_frames),
    **dict.fromkeys(("frame_encode", "tlv_encode"), write_bytes),
    **dict.fromkeys(
        ("tlv_decode", "control_payload", "fetch_response", "engine_message"), read_message
    ),
    **dict.fromkeys(("error_payload", "json_body"), read_body),
    **dict.fromkeys(("file_name", "group_text", "packed_field"), read_text),
    **dict.fromkeys(NESTED, read_nested),
}


def answer(request: Json) -> Json:
    """Return what this package makes of one request."""
    if request["id"] == "hello":
        return {"name": "lance_spec", "families": list(READERS)}
    data = bytes.fromhex(request.get("bytes", ""))
    try:
        read = READERS[request["family"]](request, request["group"], data)
    except DecodeError as error:
        return {"outcome": {"action": "reject", "field": error.field, "offset": error.offset}}
    return {"outcome": {"action": "accept"}} | read


def main() -> None:
    """Answer line by line until the input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        answered = {"id": request["id"]} | answer(request)
        sys.stdout.write(json.dumps(answered, default=bytes.hex) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
