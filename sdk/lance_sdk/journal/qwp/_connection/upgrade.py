"""The upgrade request of a sender, and the server's answer (SF client section 8)."""

import base64
from dataclasses import dataclass
from typing import Final

from lance_sdk._api.arguments.redaction import Redaction
from lance_sdk.errors import ConfigError
from lance_sdk.journal.qwp._connection.link import Answered
from lance_sdk.journal.qwp.errors import (
    DurableAckUnavailable,
    UpgradeRefused,
    VersionUnsupported,
)
from lance_spec.qwp.upgrade import (
    DURABLE_ACK_HEADER,
    MAX_BATCH_SIZE_HEADER,
    MAX_VERSION_HEADER,
    REQUEST_DURABLE_ACK_HEADER,
    ROLE_HEADER,
    VERSION,
    VERSION_HEADER,
)

_SWITCHING: Final = 101


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who the sender is.

    Attributes:
        username: for Basic authentication, with ``password``.
        password: its secret; never shown.
        token: for Bearer authentication; never shown.

    Raises:
        ConfigError: they contradict each other, or cannot stand in a header.
    """

    username: str | None = None
    password: str | None = None
    token: str | None = None

    def __post_init__(self) -> None:
        if self.token is not None and self.username is not None:
            raise ConfigError("token and username: give one of them; they exclude each other")
        if (self.username is None) is not (self.password is None):
            raise ConfigError("username and password go together; one of them is missing")
        if self.username is not None and ":" in self.username:
            raise ConfigError("username: Basic authentication allows no ':' in it")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ConfigError("token: expected printable ASCII")

    def __repr__(self) -> str:
        kind = "Bearer" if self.token is not None else "Basic" if self.username else "none"
        return f"<Credentials {kind}>"

    def headers(self) -> dict[str, str]:
        """Return the headers that carry them."""
        if self.token is not None:
            return {"Authorization": f"Bearer {self.token}"}
        return {} if self.username is None else {"Authorization": f"Basic {self._pair()}"}

    def redaction(self) -> Redaction:
        """Return what hides them in a host's words, in the clear and as they are sent."""
        sent = None if self.username is None else self._pair()
        return Redaction(self.token, self.password, sent)

    def _pair(self) -> str:
        return base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


@dataclass(frozen=True, slots=True)
class Granted:
    """What the host agreed to.

    Attributes:
        durable: whether it sends durable acknowledgements.
        max_message: largest message that it takes, in bytes; None when it did not say.
    """

    durable: bool
    max_message: int | None


def request_headers(credentials: Credentials, *, durable: bool) -> dict[str, str]:
    """Return the headers that ask for QWP."""
    headers = {MAX_VERSION_HEADER: str(VERSION)}
    if durable:
        headers[REQUEST_DURABLE_ACK_HEADER] = "true"
    return headers | credentials.headers()


def granted(answer: Answered, *, durable: bool) -> Granted:
    """Return what the host agreed to.

    Args:
        answer: its answer to the upgrade.
        durable: whether durable acknowledgements were asked for.

    Raises:
        UpgradeRefused: it did not switch protocols.
        VersionUnsupported: it speaks another version of QWP.
        DurableAckUnavailable: it sends no durable acknowledgements.
    """
    if answer.status != _SWITCHING:
        role = _said(answer, ROLE_HEADER) or None
        raise UpgradeRefused(answer.status, answer.reason, role)
    version = _said(answer, VERSION_HEADER) or str(VERSION)
    if version != str(VERSION):
        raise VersionUnsupported(version)
    echoed = _said(answer, DURABLE_ACK_HEADER).lower() == "enabled"
    if durable and not echoed:
        raise DurableAckUnavailable
    return Granted(durable and echoed, _largest(_said(answer, MAX_BATCH_SIZE_HEADER)))


def _said(answer: Answered, header: str) -> str:
    return answer.headers.get(header.lower(), "").strip()


def _largest(said: str) -> int | None:
    """Return the host's limit; what is not a number means that it is unknown."""
    if not said.isascii() or not said.isdecimal() or len(said) > 18:
        return None
    return int(said) or None
