"""Authentication and authorization: the server's security, and the authorizer of one connection."""

import ssl
import time
from typing import Final

from lance_server.errors import ConfigError
from lance_server.lwp.refusals import Refusal
from lance_server.network.peer_log import peer_logger
from lance_server.security.access import AccessConfig, AccessRules, Right
from lance_server.security.tls import ANONYMOUS, PeerIdentity, TlsConfig, build_context
from lance_server.security.tokens import AuthConfig, TokenSet
from lance_spec.enums import ErrorCode

_log = peer_logger(__name__)

_REMEMBERED: Final = 1024

MOST_FAILURES: Final = 10
"""Wrong tokens after which a connection is closed."""


class Security:
    """What protects the server; all of it can be loaded again while it runs.

    Args:
        tls: certificates, or None for plain connections.
        auth: tokens, or None when none is asked for.
        access: rules for clients and topics; empty means that everyone may do everything.

    Attributes:
        generation: rises with each reload, so that open connections are judged again.
        allows_anonymous: whether everyone may do everything.

    Raises:
        ConfigError: a file cannot be used. The server does not start with less protection
            than it was told to have.
    """

    def __init__(
        self,
        tls: TlsConfig | None = None,
        auth: AuthConfig | None = None,
        access: AccessConfig | None = None,
    ) -> None:
        self.generation = 0
        self._failures = 0
        self._warned_at = -1.0
        self._latest: ssl.SSLContext | None = None
        self._load(tls, auth, access or AccessConfig())
        self._context = self._first_context()

    def __repr__(self) -> str:
        return f"<Security tls={self._context is not None} {self.tokens!r} {self.rules!r}>"

    def _first_context(self) -> ssl.SSLContext | None:
        """Return the context that the server listens with; it hands over to later ones."""
        if self._latest is not None:
            self._latest.sni_callback = self._use_latest
        return self._latest

    @property
    def context(self) -> ssl.SSLContext | None:
        """What accepts TLS connections, or None when they are plain."""
        return self._context

    def _load(self, tls: TlsConfig | None, auth: AuthConfig | None, access: AccessConfig) -> None:
        """Replace everything, or nothing when one part cannot be used."""
        latest = None if tls is None else build_context(tls, access.authorities)
        tokens = None if auth is None else TokenSet.load(auth)
        rules = _rules(access, tls)
        self._latest, self.tokens, self.rules = latest, tokens, rules
        self.write_only = auth is not None and auth.write_only
        self.allows_anonymous = tokens is None and rules is None

    def reload(
        self,
        tls: TlsConfig | None,
        auth: AuthConfig | None,
        access: AccessConfig | None,
    ) -> None:
        """Take new certificates, tokens and rules; whether there is TLS at all stays.

        Raises:
            ConfigError: one of the files cannot be used; everything stays as it was.
        """
        if (tls is None) != (self._context is None):
            raise ConfigError("TLS is switched on or off only at a start; restart the server")
        self._load(tls, auth, access or AccessConfig())
        self.generation += 1

    def note_failure(self, client: PeerIdentity) -> None:
        """Log a token that is not valid; of many, one a second, with how many they were."""
        self._failures += 1
        now = time.monotonic()
        if now - self._warned_at >= 1.0:
            _log.warning(
                "a client %s sent a token that is not valid, one of %d since the last such line",
                client,
                self._failures,
            )
            self._warned_at, self._failures = now, 0

    def _use_latest(
        self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext
    ) -> None:
        """Let a handshake go on with the latest certificates (called for each handshake)."""
        del name
        if self._latest is not None and self._latest is not context:
            connection.context = self._latest


class Authorizer:
    """Judges the requests of one connection.

    Args:
        security: what protects the server.

    Attributes:
        client: who TLS says is at the other end.
    """

    def __init__(self, security: Security) -> None:
        self._security = security
        self._generation = security.generation
        self.client: PeerIdentity = ANONYMOUS
        self._token: bytes | None = None
        self._failures = 0
        self._allowed: set[tuple[Right, int | None]] = set()

    def __repr__(self) -> str:
        known = "with token" if self._token else "without token"
        return f"<Authorizer {self.client} {known}>"

    @property
    def attempts_exhausted(self) -> bool:
        """Whether so many tokens were wrong that the connection is to be closed."""
        return self._failures >= MOST_FAILURES

    def authenticate(self, payload: bytes) -> tuple[bool, str]:
        """Take a token; return whether it is valid, and what to say (design section 28).

        A wrong one also ends what a right one before it allowed.
        """
        tokens = self._security.tokens
        if tokens is None:
            return True, "Authenticated"
        self._allowed.clear()
        self._token = tokens.find(payload)
        if self._token is not None:
            return True, "Authenticated"
        self._failures += 1
        self._security.note_failure(self.client)
        if not payload:
            return False, "No token provided"
        return False, "Invalid token" if _is_text(payload) else "Invalid token encoding"

    def check(self, right: Right, topic_id: int | None = None, name: str | None = None) -> None:
        """Refuse what this connection may not do.

        Args:
            right: what the request needs.
            topic_id: the topic's number, or None when the request is about no topic or one
                that is to be created.
            name: the topic's name, or None.

        Raises:
            Refusal: no valid token was sent (0x40), or a rule is missing (0x42).
        """
        if self._security.allows_anonymous:
            return
        if self._generation != self._security.generation:
            self._generation = self._security.generation
            self._allowed.clear()
        request = (right, topic_id)
        if request in self._allowed:
            return
        self._check_token(right)
        about_topic = topic_id is not None or name is not None
        if about_topic and not self.may_see(right, topic_id, name):
            raise self._denied(topic_id, name)
        if topic_id is not None and name is not None:
            if len(self._allowed) >= _REMEMBERED:
                self._allowed.clear()
            self._allowed.add(request)

    def may_see(self, right: Right, topic_id: int | None, name: str | None) -> bool:
        """Return whether the rules let this client do something with a topic."""
        rules = self._security.rules
        return rules is None or rules.allow(self.client, right, topic_id, name)

    def _check_token(self, right: Right) -> None:
        tokens = self._security.tokens
        if tokens is None or (self._security.write_only and right is Right.READ):
            return
        if self._token is None or self._token not in tokens:
            raise Refusal(
                ErrorCode.AUTHENTICATION_REQUIRED,
                "Authentication required: send a valid token with Authenticate first",
                text="Authentication required",
            )

    def _denied(self, topic_id: int | None, name: str | None) -> Refusal:
        topic = f"'{name}'" if topic_id is None else str(topic_id)
        return Refusal(
            ErrorCode.ACCESS_DENIED,
            f"Access denied: client {self.client} not authorized for topic {topic}",
        )


def _rules(access: AccessConfig, tls: TlsConfig | None) -> AccessRules | None:
    if not access:
        return None
    if tls is None:
        raise ConfigError("access rules need TLS: set tls.cert_path, tls.key_path and an authority")
    return AccessRules(access, tls.client_ca_path)


def _is_text(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True
