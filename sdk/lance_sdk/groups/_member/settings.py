"""Settings of a member of a group, checked once for both APIs."""

import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, TypeAlias

from lance_sdk._api.arguments.unit_parsing import Duration, positive, seconds
from lance_sdk._api.arguments.validation import check_one_of
from lance_sdk.config import ConsumerConfig
from lance_sdk.errors import ConfigError
from lance_sdk.groups._member.store_adapter import OffsetStoreAdapter
from lance_sdk.groups._member.topics_settings import are_topics
from lance_sdk.groups._protocol.membership import AssignedTopic, SubscriptionRequest
from lance_sdk.offsets.contract import TopicIdentity, check_consumer_name
from lance_sdk.url import URL, parse_url

OnAssigned: TypeAlias = Callable[[Sequence[AssignedTopic]], object]
"""Told which topics are new, before their first record; may seek."""
OnGone: TypeAlias = Callable[[Sequence[TopicIdentity]], object]
"""Told which topics are given up, or are gone."""

_FOREIGN: Final = frozenset({"consumer", "offsets", "generation"})
"""Settings of a consumer that a group decides."""
_OURS: Final = frozenset({"auto_commit", "commit_interval"})
_PROTOCOLS: Final = ("lwp", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The settings of a `GroupConsumer`, whichever client it has.

    Attributes:
        server: where the topics are.
        group: name of the group.
        topics: names or numbers of what this member reads.
        member: its name in the group; empty leaves that to the coordinator.
        strategy: name of the way in which topics are divided; empty leaves it to the group.
        session_timeout: silence after which others take over.
        rebalance_timeout: time that giving up topics may take.
        auto_commit: ``processed``, ``interval`` or ``off``.
        commit_interval: least time between two automatic commits.
        metadata: what a custom strategy wants to know.
        max_poll_records: most records of one batch; 0 leaves batches as they arrive.
        refresh_interval: seconds between two looks for partitions that topics got.
        store: keeps commits, in text; None where the coordinator does.
        options: settings of the topics' consumers.
    """

    server: URL
    group: str
    topics: tuple[str | int, ...]
    member: str
    strategy: str
    session_timeout: float
    rebalance_timeout: float
    auto_commit: str
    commit_interval: float
    metadata: bytes
    max_poll_records: int
    refresh_interval: float
    store: OffsetStoreAdapter | None
    options: Mapping[str, Any]

    def subscription(self, topics: Sequence[TopicIdentity]) -> SubscriptionRequest:
        """Return what the member asks its coordinator for."""
        return SubscriptionRequest(
            group=self.group,
            member=self.member,
            topics=tuple(topics),
            strategy=self.strategy,
            session_timeout=self.session_timeout,
            rebalance_timeout=self.rebalance_timeout,
            client=_client(),
            metadata=self.metadata,
        )

    @property
    def start(self) -> Any:
        """Where a topic begins that has no commit."""
        config: ConsumerConfig = self.server.configure(ConsumerConfig, self.options)
        return config.start


def check_settings(
    url: str | URL,
    *,
    group: str,
    topics: Sequence[str | int],
    member: str,
    strategy: str,
    session_timeout: Duration,
    rebalance_timeout: Duration,
    metadata: bytes,
    max_poll_records: int = 0,
    refresh_interval: Duration = 30.0,
    protocol: str = "lwp",
    options: Mapping[str, Any],
) -> GroupSettings:
    """Return the settings, once they make sense.

    Raises:
        ConfigError: naming the one that does not.
    """
    server = parse_url(url)
    check_one_of("protocol", protocol, _PROTOCOLS)
    store = None
    if protocol == "text":
        _check_speakable(strategy, metadata)
        store = OffsetStoreAdapter(check_consumer_name(group), _offsets(options))
        options = {name: value for name, value in options.items() if name != "offsets"}
        member = member or f"member-{token_hex(8)}"
    foreign = sorted(_FOREIGN & options.keys())
    if foreign:
        raise ConfigError(f"{foreign[0]}= is decided by the group: commit() commits to it")
    config = server.configure(ConsumerConfig, options)
    if not topics or not are_topics(topics):
        raise ConfigError(f"topics={topics!r}: expected a list of names or numbers")
    if type(max_poll_records) is not int or max_poll_records < 0:
        raise ConfigError(f"max_poll_records={max_poll_records!r}: expected 0 or more records")
    return GroupSettings(
        server=server,
        group=check_consumer_name(group),
        topics=tuple(dict.fromkeys(topics)),
        member=check_consumer_name(member) if member else "",
        strategy=strategy,
        session_timeout=positive("session_timeout", session_timeout),
        rebalance_timeout=seconds("rebalance_timeout", rebalance_timeout),
        auto_commit=config.auto_commit,
        commit_interval=seconds("commit_interval", config.commit_interval),
        metadata=bytes(metadata),
        max_poll_records=max_poll_records,
        refresh_interval=positive("refresh_interval", refresh_interval),
        store=store,
        options={name: value for name, value in options.items() if name not in _OURS},
    )


def _offsets(options: Mapping[str, Any]) -> Any:
    """Return the ``offsets`` option, which text needs."""
    offsets = options.get("offsets")
    if offsets is None:
        raise ConfigError(
            "protocol='text': the coordinator keeps no offsets; give offsets= a store that all "
            "members reach, such as 'file:/var/lib/app/offsets'"
        )
    return offsets


def _check_speakable(strategy: str, metadata: bytes) -> None:
    for name, value in (("strategy", strategy), ("metadata", metadata)):
        if value:
            raise ConfigError(f"{name}={value!r}: protocol='text' cannot carry it")


def _client() -> str:
    """Return program, host and process, for people."""
    program = Path(sys.argv[0] or "python").name
    return f"{program} {socket.gethostname()} {os.getpid()}"[:120]
