"""Which client may do what with which topic (LWP section 7.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Final

from lance_server.errors import ConfigError
from lance_server.security.tls import PeerIdentity, fingerprints
from lance_spec.limits import DEFAULT_TOPIC_ID

DEFAULT_TOPIC_NAME: Final = "default"
_EVERY: Final = "*"


class Right(IntEnum):
    """What a request needs, in ascending order."""

    READ = 0
    WRITE = 1
    ADMIN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAccess:
    """Who may use a topic (LWP section 7.2).

    Attributes:
        mtls_enabled: False opens the topic to clients without a certificate.
        client_ca_path: the authority that must vouch for its clients; None means any of the
            server's.
        allowed_cns: common names of its clients; none listed means all that the authority
            vouches for.
    """

    mtls_enabled: bool = True
    client_ca_path: Path | None = None
    allowed_cns: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAccess:
    """What a client may use.

    Attributes:
        allowed_topics: names or numbers of topics; ``*`` stands for all.
        read: it may fetch, subscribe and commit.
        write: it may send batches.
        admin: it may create and delete these topics and set their retention.
    """

    allowed_topics: frozenset[str | int] = frozenset()
    read: bool = True
    write: bool = True
    admin: bool = False

    def covers(self, topic_id: int | None, name: str | None) -> bool:
        """Whether a topic is on the list."""
        return bool(self.allowed_topics & {_EVERY, topic_id, name})

    def grants(self, right: Right) -> bool:
        """Whether it may do such a thing to its topics."""
        return (self.read, self.write, self.admin)[right]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessConfig:
    """All rules. With any rule at all, what no rule allows is refused.

    Attributes:
        topics: rules by topic name; ``default`` is the topic with number 0.
        clients: rules by common name.
    """

    topics: Mapping[str, TopicAccess] = field(default_factory=dict)
    clients: Mapping[str, ClientAccess] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.topics or self.clients)

    @property
    def authorities(self) -> list[Path]:
        """The authorities that single topics trust."""
        paths = (rule.client_ca_path for rule in self.topics.values())
        return sorted({path for path in paths if path is not None})


class AccessRules:
    """Answers whether a client may use a topic.

    A common name means something only together with who vouches for it: the authority of one
    topic cannot make its clients those that the rules of the server name.

    Args:
        config: the rules.
        authority: the server's own authority for clients, or None.

    Raises:
        ConfigError: the file of an authority cannot be used, or a rule needs one.
    """

    def __init__(self, config: AccessConfig, authority: Path | None) -> None:
        if config.clients and authority is None:
            raise ConfigError(
                "access.clients needs tls.client_ca_path, the authority that signs their "
                ""
                ""
                ""
                ""
                ""
                "certificates"
            )
        self._config = config
        self._own = frozenset() if authority is None else fingerprints(authority)
        self._trusted = {path: fingerprints(path) for path in config.authorities}

    def __repr__(self) -> str:
        return (
            f"<AccessRules {len(self._config.topics)} topics, {len(self._config.clients)} clients>"
        )

    def allow(
        self, client: PeerIdentity, right: Right, topic_id: int | None, name: str | None
    ) -> bool:
        """Return whether a client may do something with a topic.

        Args:
            client: who asks.
            right: what it wants to do.
            topic_id: the topic's number, or None when it has none yet.
            name: its name, or None when there is no such topic.
        """
        if topic_id == DEFAULT_TOPIC_ID:
            name = DEFAULT_TOPIC_NAME
        own = self._rule_for(client)
        if own is not None and not (own.covers(topic_id, name) and own.grants(right)):
            return False
        rule = self._config.topics.get(name or "")
        if rule is not None and not self._admits(rule, client):
            return False
        if right is Right.ADMIN:
            return own is not None
        return own is not None or rule is not None

    def _rule_for(self, client: PeerIdentity) -> ClientAccess | None:
        if client.common_name is None or not self._own & client.authorities:
            return None
        return self._config.clients.get(client.common_name)

    def _admits(self, rule: TopicAccess, client: PeerIdentity) -> bool:
        if not rule.mtls_enabled:
            return True
        if client.common_name is None:
            return False
        if rule.allowed_cns and client.common_name not in rule.allowed_cns:
            return False
        path = rule.client_ca_path
        return bool((self._own if path is None else self._trusted[path]) & client.authorities)
