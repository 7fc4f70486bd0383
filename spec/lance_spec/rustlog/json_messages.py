"""The JSON dialect that RustLog's specification describes, as messages of the binary one (RL-01).

A request or an answer is an object with one member, which names it: ``{"Fetch": {...}}``. Both
dialects say the same, so both are read into the classes of `lance_spec.messages.rustlog`.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeAlias

from lance_spec.errors import DecodeError
from lance_spec.messages.rustlog import (
    ErrorResponse,
    FetchRequest,
    FetchResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ProduceRequest,
    ProduceResponse,
)

JsonRequest: TypeAlias = ProduceRequest | FetchRequest | OffsetCommitRequest | OffsetFetchRequest
"""What can be asked in JSON."""
JsonAnswer: TypeAlias = (
    ProduceResponse | FetchResponse | OffsetCommitResponse | OffsetFetchResponse | ErrorResponse
)
"""What can be answered in JSON; errors have no code there, and are read with the code 0."""

WHITE_SPACE: Final = b" \t\r\n"
_U32: Final = 2**32
_U64: Final = 2**64
_ONLY_INT: Final = {int}


class _Members:
    """The members of one message, checked as they are taken.

    Args:
        message: its name, for errors.
        members: what was decoded.
    """

    def __init__(self, message: str, members: Any) -> None:
        if not isinstance(members, dict):
            raise DecodeError(message, "", 0, "an object", _shown(members))
        self._message = message
        self._members: Mapping[str, Any] = members

    def _take(self, name: str) -> Any:
        if name not in self._members:
            raise DecodeError(self._message, name, 0, "this member", "none")
        return self._members[name]

    def _wrong(self, name: str, expected: str, got: Any) -> DecodeError:
        return DecodeError(self._message, name, 0, expected, _shown(got))

    def number(self, name: str, below: int = _U64) -> int:
        """Return an unsigned number."""
        value = self._take(name)
        if type(value) is not int or not 0 <= value < below:
            raise self._wrong(name, f"a whole number from 0 to {below - 1}", value)
        return value

    def number_or_null(self, name: str) -> int | None:
        """Return an unsigned number, or None."""
        return None if self._take(name) is None else self.number(name)

    def text(self, name: str) -> str:
        """Return a text that UTF-8 can carry."""
        value = self._take(name)
        if not isinstance(value, str) or _is_broken(value):
            raise self._wrong(name, "a text", value)
        return value

    def text_or_none(self, name: str) -> str:
        """Return a text; an empty one where it is null or not there."""
        return "" if self._members.get(name) is None else self.text(name)

    def truth(self, name: str) -> bool:
        """Return a truth value."""
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def items(self, name: str) -> list[Any]:
        """Return a list."""
        value = self._take(name)
        if not isinstance(value, list):
            raise self._wrong(name, "a list", value)
        return value

    def octets(self, name: str) -> bytes:
        """Return the bytes that a list of numbers stands for."""
        return self.as_octets(name, self._take(name))

    def as_octets(self, name: str, value: Any) -> bytes:
        """Return the bytes that a list of numbers stands for."""
        if isinstance(value, list) and set(map(type, value)) <= _ONLY_INT:
            try:
                return bytes(value)
            except ValueError:
                pass
        raise self._wrong(name, "a list of numbers from 0 to 255", value)


def _is_broken(text: str) -> bool:
    """Whether UTF-8 cannot carry a text: JSON can escape half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value)[:80]


# Reading ---------------------------------------------------------------------------------------


def decode_request(data: bytes) -> JsonRequest:
    """Return the request that a frame's payload holds.

    Raises:
        DecodeError: the bytes are not a valid message; its message and field say why.
    """
    request: JsonRequest = _opened(data, _REQUESTS)
    return request


def decode_answer(data: bytes) -> JsonAnswer:
    """Return the answer that a frame's payload holds.

    Raises:
        DecodeError: the bytes are not a valid message; its message and field say why.
    """
    answer: JsonAnswer = _opened(data, _ANSWERS)
    return answer


def _opened(data: bytes, variants: Mapping[str, Callable[[_Members], Any]]) -> Any:
    body = _parsed(data)
    if not isinstance(body, dict) or len(body) != 1:
        raise DecodeError("Message", "", 0, "an object with one member", _shown(body))
    [(variant, members)] = body.items()
    if variant not in variants:
        known = ", ".join(variants)
        raise DecodeError("Message", "", 0, f"one of {known}", _shown(variant))
    return variants[variant](_Members(variant, members))


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(
            data.decode(), object_pairs_hook=_without_doubles, parse_constant=_no_number
        )
    except UnicodeDecodeError as error:
        raise DecodeError("Message", "", error.start, "UTF-8", error.reason) from None
    except json.JSONDecodeError as error:
        raise DecodeError("Message", "", error.pos, "JSON", error.msg) from None
    except DecodeError:
        raise
    except (RecursionError, ValueError) as error:
        raise DecodeError("Message", "", 0, "JSON of reasonable size", str(error)[:80]) from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise DecodeError("Message", name[:80], 0, "each member once", "it twice")
        found[name] = value
    return found


def _no_number(text: str) -> NoReturn:
    raise DecodeError("Message", "", 0, "JSON", text)


def _produce(members: _Members) -> ProduceRequest:
    topic, partition = members.text("topic"), members.number("partition", _U32)
    records = [members.as_octets("records", each) for each in members.items("records")]
    return ProduceRequest(topic=topic, partition=partition, records=records)


def _fetch(members: _Members) -> FetchRequest:
    return FetchRequest(
        group=members.text_or_none("group_id"),
        topic=members.text("topic"),
        partition=members.number("partition", _U32),
        offset=members.number("offset"),
        max_bytes=members.number("max_bytes"),
    )


def _offset_commit(members: _Members) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group=members.text("group_id"),
        topic=members.text("topic"),
        partition=members.number("partition", _U32),
        offset=members.number("offset"),
    )


def _offset_fetch(members: _Members) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        group=members.text("group_id"),
        topic=members.text("topic"),
        partition=members.number("partition", _U32),
    )


def _produced(members: _Members) -> ProduceResponse:
    offsets = members.items("offsets")
    if not set(map(type, offsets)) <= _ONLY_INT or not all(0 <= each < _U64 for each in offsets):
        raise DecodeError("Produce", "offsets", 0, "a list of offsets", _shown(offsets))
    base = offsets[0] if offsets else 0
    if offsets != list(range(base, base + len(offsets))):
        raise DecodeError("Produce", "offsets", 0, "offsets without gaps", _shown(offsets))
    return ProduceResponse(base_offset=base, record_count=len(offsets))


def _fetched(members: _Members) -> FetchResponse:
    found = [_Members("Record", each) for each in members.items("records")]
    offsets = [each.number("offset") for each in found]
    following = members.number("next_offset")
    if found and offsets != list(range(following - len(found), following)):
        raise DecodeError("Fetch", "records", 0, f"offsets up to {following - 1}", "others")
    records = [each.octets("payload") for each in found]
    return FetchResponse(records=records, next_offset=following)


_REQUESTS: Final[Mapping[str, Callable[[_Members], Any]]] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "OffsetCommit": _offset_commit,
    "OffsetFetch": _offset_fetch,
}
_ANSWERS: Final[Mapping[str, Callable[[_Members], Any]]] = {
    "Produce": _produced,
    "Fetch": _fetched,
    "OffsetCommit": lambda members: OffsetCommitResponse(success=members.truth("success")),
    "OffsetFetch": lambda members: OffsetFetchResponse(offset=members.number_or_null("offset")),
    "Error": lambda members: ErrorResponse(code=0, message=members.text("message")),
}

# Writing ---------------------------------------------------------------------------------------


def encode_request(request: JsonRequest) -> bytes:
    """Return a request as the payload of a frame; an empty group of a Fetch means no group."""
    place: dict[str, Any] = {"topic": request.topic, "partition": request.partition}
    if isinstance(request, ProduceRequest):
        return _written("Produce", place | {"records": [list(each) for each in request.records]})
    if isinstance(request, FetchRequest):
        place |= {"offset": request.offset, "max_bytes": request.max_bytes}
        return _written("Fetch", place | {"group_id": request.group or None})
    place["group_id"] = request.group
    if isinstance(request, OffsetCommitRequest):
        return _written("OffsetCommit", place | {"offset": request.offset})
    return _written("OffsetFetch", place)


def encode_answer(answer: JsonAnswer) -> bytes:
    """Return an answer as the payload of a frame; the code of an error is not in it."""
    if isinstance(answer, ProduceResponse):
        behind = answer.base_offset + answer.record_count
        return _written("Produce", {"offsets": list(range(answer.base_offset, behind))})
    if isinstance(answer, FetchResponse):
        first = answer.next_offset - len(answer.records)
        records = [
            {"offset": number, "payload": list(each)}
            for number, each in enumerate(answer.records, first)
        ]
        return _written("Fetch", {"records": records, "next_offset": answer.next_offset})
    if isinstance(answer, OffsetCommitResponse):
        return _written("OffsetCommit", {"success": answer.success})
    if isinstance(answer, OffsetFetchResponse):
        return _written("OffsetFetch", {"offset": answer.offset})
    return _written("Error", {"message": answer.message})


def _written(variant: str, members: Mapping[str, Any]) -> bytes:
    body = {variant: members}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
