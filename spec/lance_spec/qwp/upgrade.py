"""The HTTP upgrade to a WebSocket around QWP messages, and how the WebSocket ends.

These are not binary messages and have no grammar (QWP wire ingress, Upgrade).
"""

from enum import IntEnum
from typing import Final, TypeAlias

from lance_spec.messages import qwp
from lance_spec.messages.qwp import MessageFlag

PATHS: Final = ("/api/v4/write", "/write/v4")
"""Where senders ask for it: the Python client at the first, the Go client at the second."""

VERSION: Final = 1
"""The only version of the protocol."""

MAX_VERSION_HEADER: Final = "X-QWP-Max-Version"
"""Request: highest version the sender speaks; absent means 1."""
REQUEST_DURABLE_ACK_HEADER: Final = "X-QWP-Request-Durable-Ack"
"""Request: ``true`` asks for acknowledgements of what is safe on storage."""
CLIENT_ID_HEADER: Final = "X-QWP-Client-Id"
"""Request: name of the sender, for example ``go/4.3.0``; the Python client leaves it out."""

VERSION_HEADER: Final = "X-QWP-Version"
"""Response: the version both will speak; absent means 1."""
DURABLE_ACK_HEADER: Final = "X-QWP-Durable-Ack"
"""Response: ``enabled``, in any case of letters, grants what was asked for."""
MAX_BATCH_SIZE_HEADER: Final = "X-QWP-Max-Batch-Size"
"""Response: most bytes of a message; absent means that the server does not say."""
ROLE_HEADER: Final = "X-QuestDB-Role"
"""Response 421: the role for which the server cannot take rows."""


class CloseCode(IntEnum):
    """How a WebSocket that carries QWP ends."""

    NORMAL = 1000
    """The server or sender is done."""
    GOING_AWAY = 1001
    """The server stops, or hands over to another."""
    PROTOCOL_ERROR = 1002
    """A frame breaks the rules of WebSockets."""
    UNSUPPORTED_DATA = 1003
    """A frame is of a kind that QWP does not use."""
    INVALID_DATA = 1007
    """A message cannot be read."""
    POLICY_VIOLATION = 1008
    """A message is not allowed."""
    TOO_LARGE = 1009
    """A message is larger than the server takes."""
    EXTENSION_REQUIRED = 1010
    """An extension is missing that the sender wanted."""
    INTERNAL_ERROR = 1011
    """The server failed inside."""

    @property
    def orderly(self) -> bool:
        """Whether it is not a sign that the message before it was bad."""
        return self in (CloseCode.NORMAL, CloseCode.GOING_AWAY)


AnyPayload: TypeAlias = (
    type[qwp.Payload]
    | type[qwp.GorillaPayload]
    | type[qwp.LocalPayload]
    | type[qwp.LocalGorillaPayload]
)


def payload_class(flags: int) -> AnyPayload:
    """Return the class of a message's payload, which two of its flags decide.

    All four have ``tables``; those with flag DELTA_DICTIONARY have a ``dictionary`` before.
    """
    gorilla = bool(flags & MessageFlag.GORILLA)
    if flags & MessageFlag.DELTA_DICTIONARY:
        return qwp.GorillaPayload if gorilla else qwp.Payload
    return qwp.LocalGorillaPayload if gorilla else qwp.LocalPayload
