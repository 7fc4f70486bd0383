"""The JSON form: an object with one member, which names the message."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from lance_conformance.rustlog.wire.message import Message, UnreadableError

Check = Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**64


def _is_record(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"offset", "payload"}
        and _is_number(value["offset"])
        and isinstance(value["payload"], list)
        and all(type(byte) is int and 0 <= byte < 256 for byte in value["payload"])
    )


def _all(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


ANSWERS: Mapping[str, Mapping[str, Check]] = {
    "Produce": {"offsets": _all(_is_number)},
    "Fetch": {"records": _all(_is_record), "next_offset": _is_number},
    "OffsetCommit": {"success": lambda value: isinstance(value, bool)},
    "OffsetFetch": {"offset": lambda value: value is None or _is_number(value)},
    "Error": {"message": lambda value: isinstance(value, str) and bool(value)},
}


def write(request: Message) -> bytes:
    """A request as the payload of a frame."""
    body = {request.name: dict(request.fields)}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def read(payload: bytes) -> Message:
    """An answer from the payload of a frame; records become pairs of offset and bytes.

    Raises:
        UnreadableError: The payload is not an answer.
    """
    try:
        body = json.loads(payload.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as problem:
        raise UnreadableError("body:not-json", f"no JSON: {problem}") from None
    if not isinstance(body, dict) or len(body) != 1:
        raise UnreadableError("body:not-json", "not an object with one member")
    [(name, members)] = body.items()
    if name not in ANSWERS or not isinstance(members, dict):
        raise UnreadableError("field:variant", f"no answer is called {name!r}")
    for member, check in ANSWERS[name].items():
        if member not in members or not check(members[member]):
            raise UnreadableError(f"field:{member}", f"{member} is not what {name} must have there")
    return Message(name, _plain(members), "json")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a member stands there twice")
    return found


def _plain(members: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(members)
    if "records" in found:
        found["records"] = tuple((r["offset"], bytes(r["payload"])) for r in found["records"])
    if "offsets" in found:
        found["offsets"] = tuple(found["offsets"])
    return found
