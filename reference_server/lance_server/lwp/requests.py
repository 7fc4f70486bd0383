"""Reading the payloads of commands: exactly as specified, or as leniently as is deployed."""

from typing import ClassVar, Final, Protocol, Self, TypeVar

from lance_server.lwp.refusals import Refusal
from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.messages.lwp import CreateTopicWithRetention
from lance_spec.names import check_topic_name


class FixedMessage(Protocol):
    """A generated message whose size never varies."""

    SIZE: ClassVar[int]
    COMMAND: ClassVar[Command]

    @classmethod
    def decode(cls, data: Buffer, /) -> Self:
        """Return the message that ``data`` is."""
        ...


class NamingMessage(Protocol):
    """A generated message that names a topic."""

    @property
    def name(self) -> bytes:
        """The name as it was sent."""
        ...

    @classmethod
    def decode(cls, data: Buffer, /) -> Self:
        """Return the message that ``data`` is."""
        ...


M = TypeVar("M", bound=FixedMessage)
N = TypeVar("N", bound=NamingMessage)

_TOO_SHORT: Final = {
    Command.DELETE_TOPIC: "Configuration error: Topic 0 not found",
    Command.GET_TOPIC: "Topic not found",
    Command.SET_RETENTION: "Invalid set retention payload",
    Command.FETCH: "Protocol error: Fetch request payload too small",
    Command.SUBSCRIBE: "Invalid subscribe payload",
    Command.UNSUBSCRIBE: "Invalid unsubscribe payload",
    Command.COMMIT_OFFSET: "Invalid commit offset payload",
    Command.OFFSET_FOR_TIME: "Invalid offset for time payload",
    Command.BATCH_TIMES: "Invalid batch times payload",
}
"""The published server's words for a payload that is too short (AMB-26)."""

_SHORTEST_CREATE: Final = CreateTopicWithRetention.MIN_SIZE


def read_request(kind: type[M], payload: memoryview, dialect: Dialect) -> M:
    """Return a command's arguments.

    Args:
        kind: the message.
        payload: the frame's payload.
        dialect: a strict one demands the exact length; another ignores what follows.

    Raises:
        Refusal: the payload is not such a message (AMB-26).
    """
    if dialect.strict:
        try:
            return kind.decode(payload)
        except DecodeError as error:
            raise invalid_payload(error) from None
    if len(payload) >= kind.SIZE:
        return kind.decode(payload[: kind.SIZE])
    text = _TOO_SHORT[kind.COMMAND]
    if kind.COMMAND is Command.FETCH and not payload:
        text = "Fetch request payload required"
    raise Refusal(ErrorCode.INVALID_PAYLOAD, text)


def read_create_with_retention(payload: memoryview, dialect: Dialect) -> CreateTopicWithRetention:
    """Return the arguments of CreateTopicWithRetention (LWP section 5.11, AMB-07).

    Raises:
        Refusal: the payload is not such a message.
    """
    if not dialect.strict:
        if len(payload) < _SHORTEST_CREATE:
            raise Refusal(ErrorCode.INVALID_PAYLOAD, "Invalid create topic payload")
        size = _SHORTEST_CREATE + int.from_bytes(payload[:2], "little")
        if len(payload) < size:
            raise Refusal(ErrorCode.INVALID_PAYLOAD, "Invalid payload length")
        payload = payload[:size]
    try:
        return CreateTopicWithRetention.decode(payload)
    except DecodeError as error:
        raise invalid_payload(error) from None


def read_topic_name(raw: Buffer, dialect: Dialect) -> str:
    """Return the name of a topic to create, in the form in which names are compared (AMB-24).

    Raises:
        Refusal: no topic may have this name; invalid UTF-8 is an invalid name (AMB-34).
    """
    shown = bytes(raw).decode(errors="replace")
    text = (
        f"Invalid data: Topic name '{shown}' contains invalid characters. Only alphanumeric "
        "characters (a-z, A-Z, 0-9) and dashes (-) are allowed"
    )
    if not raw:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_NAME, "A topic needs a name", text="Topic name required"
        )
    try:
        return check_topic_name(bytes(raw).decode(), dialect)
    except UnicodeDecodeError as error:
        message = f"The topic name is not UTF-8: byte {error.start} cannot be read"
        raise Refusal(ErrorCode.INVALID_TOPIC_NAME, message, text=text) from None
    except EncodeError as error:
        message = f"No topic may have this name: expected {error.expected}, got {error.got}"
        raise Refusal(ErrorCode.INVALID_TOPIC_NAME, message, text=text) from None


def read_partitioned(kind: type[N], payload: memoryview, dialect: Dialect) -> tuple[N, str]:
    """Return the arguments of a command about a partitioned topic, and its name (AMB-59).

    It is an extension, so it is read exactly under every dialect.

    Raises:
        Refusal: the payload is not such a message, or no topic may have this name.
    """
    try:
        request = kind.decode(payload)
    except DecodeError as error:
        raise invalid_payload(error) from None
    return request, read_topic_name(request.name, dialect)


def invalid_payload(error: DecodeError) -> Refusal:
    """Return the answer to a payload that does not decode; it names field and offset."""
    return Refusal(
        ErrorCode.INVALID_PAYLOAD,
        f"Invalid payload: {error}",
        details={"field": error.field, "offset": error.offset},
    )
