"""Answers as bytes, in the dialect of the connection."""

from struct import Struct
from typing import Any, Final, TypeAlias

from lance_server.log.reading.fast_fetch import Form
from lance_server.log.reading.reader import Fetched
from lance_server.lwp.refusals import Refusal, storage_refusal
from lance_server.network.peer_log import peer_logger
from lance_spec._native import accelerator
from lance_spec.bodies import ErrorBody, encode_json
from lance_spec.checksum import CRC32C
from lance_spec.codec.header_prefix import prefixes
from lance_spec.dialect import Dialect
from lance_spec.enums import Command, ErrorCode, Flag
from lance_spec.frames import encode_control, seal_control
from lance_spec.limits import HEADER_SIZE
from lance_spec.messages.lwp import CatchingUp, FetchResponseExtended

_log = peer_logger(__name__)

Answer: TypeAlias = bytes | bytearray

# What is written for each Fetch is laid out here once more; tests compare it with the grammar's.
_RESPONSE: Final = Struct("<QLL")
_EXTENDED: Final = FetchResponseExtended.MIN_SIZE
_FETCH_RESPONSE: Final = int(Command.FETCH_RESPONSE)


def error_frame(dialect: Dialect, refusal: Refusal, batch_id: int | None = None) -> bytes:
    """Return an ErrorResponse (LWP section 5.7, AMB-10).

    Args:
        dialect: JSON with a code, or the published server's words.
        refusal: what to say.
        batch_id: the Ingest frame that is refused; only JSON can carry it.
    """
    details = refusal.details if batch_id is None else {**refusal.details, "batch_id": batch_id}
    message = refusal.message if dialect.json_errors else refusal.text
    body = ErrorBody(refusal.code, message, details).encode(dialect)
    return encode_control(dialect, Command.ERROR_RESPONSE, body)


def as_refusal(error: Exception) -> Refusal:
    """Return how an error that came up while a request was served is told to the client.

    Raises:
        Exception: the error itself, when it is a mistake of the server's.
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, OSError):
        return storage_refusal(error)
    raise error


def json_frame(dialect: Dialect, command: Command, body: dict[str, Any]) -> bytes:
    """Return an answer whose payload is a JSON object."""
    return encode_control(dialect, command, encode_json(body))


def catching_up(dialect: Dialect, end_offset: int) -> bytes:
    """Return the answer to a Fetch after the end of the topic (AMB-18)."""
    return encode_control(dialect, Command.CATCHING_UP, CatchingUp(end_offset).encode())


def room_for_headers(dialect: Dialect) -> int:
    """Return how many bytes stand before the data of a FetchResponse."""
    return HEADER_SIZE + dialect.fetch_header


def fetch_form(dialect: Dialect) -> Form | None:
    """Return how `fetch_response` looks, for the fast path; None for what these cannot build."""
    if accelerator is None or dialect.fetch_header == _EXTENDED:
        return None
    checksum = dialect.checksum
    prefix = prefixes(checksum)[Flag.CONTROL]
    return prefix, _FETCH_RESPONSE, dialect.strict, checksum.compute, checksum is CRC32C


def fetch_response(
    dialect: Dialect, fetched: Fetched, end_offset: int, *, topic_id: int = 0
) -> Answer:
    """Complete a FetchResponse in the buffer that its data was read into (AMB-05).

    Args:
        dialect: decides the form; toward published clients the record count is 1 or 0, as
            their server has it.
        fetched: what was read, with `room_for_headers` bytes left free.
        end_offset: the high water mark.
        topic_id: set in the header of a push (AMB-21).
    """
    behind, count, buffer = fetched
    header = dialect.fetch_header
    room = HEADER_SIZE + header
    size = len(buffer) - room
    if header == _EXTENDED:
        data = memoryview(buffer)[room:]
        message = FetchResponseExtended(behind - size, behind, end_offset, data)
        buffer[HEADER_SIZE:room] = message.encode_prefix()
    else:
        if not dialect.strict:
            count = min(size, 1)
        _RESPONSE.pack_into(buffer, HEADER_SIZE, behind, size, count)
    seal_control(dialect, _FETCH_RESPONSE, buffer, topic_id)
    return buffer


INTERNAL: Final = Refusal(
    ErrorCode.INTERNAL_ERROR, "The server made a mistake; its log has the details"
)


def explained(error: Exception) -> Refusal:
    """Return the refusal that tells a client of an error; a mistake of this server is logged."""
    try:
        return as_refusal(error)
    except Exception:  # noqa: BLE001 - the log gets the traceback, the client a short word
        _log.exception("a request failed by a mistake of this server")
        return INTERNAL
