"""Requests and answers as bytes, in both dialects. No socket and no clock here."""

from typing import Any, Final, TypeVar

from lance_sdk.errors import (
    ConfigError,
    LocalProtocolError,
    RecordTooLarge,
    RemoteProtocolError,
    Unsupported,
)
from lance_sdk.rustlog._asks import Ask
from lance_sdk.rustlog.errors import rustlog_error
from lance_sdk.rustlog.types import MAX_FRAME, Dialect
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.messages.rustlog import (
    ErrorResponse,
    FetchRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from lance_spec.rustlog import json_messages

T = TypeVar("T")
_LENGTH: Final = 4
_IN_JSON: Final = (ProduceRequest, FetchRequest, OffsetCommitRequest, OffsetFetchRequest)


class Wire:
    """One connection: a request out, its answer in, one at a time.

    Args:
        dialect: how messages are written.
    """

    def __init__(self, dialect: Dialect) -> None:
        if dialect not in ("binary", "json"):
            raise ConfigError(f"dialect must be 'binary' or 'json', not {dialect!r}")
        self._dialect = dialect
        self._in = bytearray()

    def __repr__(self) -> str:
        return f"<Wire {self._dialect}, {len(self._in)} bytes came>"

    def frame(self, ask: Ask[Any]) -> bytes:
        """Return the bytes of a request.

        Raises:
            LocalProtocolError: a value does not fit its field.
            RecordTooLarge: it does not fit a frame.
            Unsupported: the dialect has no such request.
        """
        payload = self._payload(ask.request)
        if len(payload) > MAX_FRAME:
            raise RecordTooLarge(
                f"the request takes {len(payload)} bytes, a frame at most {MAX_FRAME}: "
                "send fewer records at once"
            )
        return len(payload).to_bytes(_LENGTH, "big") + payload

    def _payload(self, request: Any) -> bytes:
        try:
            binary: bytes = request.encode()
        except EncodeError as error:
            raise LocalProtocolError(str(error)) from None
        if self._dialect == "binary":
            return binary
        if not isinstance(request, _IN_JSON):
            name = type(request).__name__.removesuffix("Request")
            raise Unsupported(f"RustLog's JSON has no {name}; use dialect='binary' for it")
        return json_messages.encode_request(request)

    def receive_data(self, data: bytes) -> bool:
        """Take in what came; return whether the answer is complete.

        Raises:
            RemoteProtocolError: it is not a frame, or more than one.
        """
        self._in += data
        if len(self._in) < _LENGTH:
            return False
        size = int.from_bytes(self._in[:_LENGTH], "big")
        if not 1 <= size <= MAX_FRAME:
            raise RemoteProtocolError(
                f"the broker announces an answer of {size} bytes; expected 1 to {MAX_FRAME}"
            )
        if len(self._in) > _LENGTH + size:
            raise RemoteProtocolError("the broker sent bytes after its answer")
        return len(self._in) == _LENGTH + size

    def take(self, ask: Ask[T]) -> T:
        """Return what the complete answer says.

        Raises:
            RustlogError: the broker refused the request.
            RemoteProtocolError: it is not an answer to the request.
        """
        payload = bytes(self._in[_LENGTH:])
        self._in.clear()
        try:
            answer = self._decoded(payload, ask)
        except DecodeError as error:
            name = type(ask.request).__name__
            raise RemoteProtocolError(f"this is not an answer to a {name}: {error}") from error
        if isinstance(answer, ErrorResponse):
            raise rustlog_error(answer)
        return ask.read(answer)

    def _decoded(self, payload: bytes, ask: Ask[Any]) -> Any:
        if self._dialect == "binary":
            kind: Any = ErrorResponse if payload[0] == ErrorResponse.TYPE else ask.answer
            return kind.decode(payload)
        answer = json_messages.decode_answer(payload)
        if not isinstance(answer, ask.answer | ErrorResponse):
            wanted = ask.answer.__name__
            raise DecodeError("Message", "", 0, f"a {wanted}", f"a {type(answer).__name__}")
        return answer


def checked_timeout(timeout: object) -> float:
    """Return seconds to wait.

    Raises:
        ConfigError: it is not a number above 0.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise ConfigError(f"timeout must be a number of seconds above 0, not {timeout!r}")
    return timeout
