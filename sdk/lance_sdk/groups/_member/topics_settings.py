"""Settings of a consumer of several topics, checked once for both APIs."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lance_sdk._api.admin_steps import matches
from lance_sdk._api.arguments.unit_parsing import Duration, positive, seconds
from lance_sdk._api.commit_policy import SERVER
from lance_sdk._protocol.consume.fetcher import Fetcher
from lance_sdk.config import ConsumerConfig
from lance_sdk.errors import ConfigError
from lance_sdk.offsets.contract import TopicIdentity, check_consumer_name
from lance_sdk.stats import ClientStats, TopicsStats
from lance_sdk.url import URL, parse_url
from lance_spec.bodies import TopicInfo

_OURS: Final = frozenset({"consumer", "offsets", "auto_commit", "commit_interval"})
"""Settings of a consumer that count for all topics together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsSettings:
    """The settings of a `TopicsConsumer`, whichever API it has.

    Attributes:
        server: where the topics are.
        topics: names or numbers of what is read.
        pattern: which other topics are read, also those that are created later.
        refresh_interval: seconds between two looks for topics that fit.
        group: name under which positions are committed.
        offsets: where; None commits nothing.
        auto_commit: ``processed``, ``interval`` or ``off``.
        commit_interval: least time between two automatic commits.
        max_poll_records: most records of one batch; 0 leaves batches as they arrive.
        start: where a topic begins that has no commit.
        options: settings of the topics' fetchers.
    """

    server: URL
    topics: tuple[str | int, ...]
    pattern: re.Pattern[str] | None
    refresh_interval: float
    group: str
    offsets: Any
    auto_commit: str
    commit_interval: float
    max_poll_records: int
    start: Any
    options: Mapping[str, Any]


def are_topics(given: object) -> bool:
    """Whether something is a list of names and numbers of topics, which may be empty."""
    return (
        isinstance(given, Collection)
        and not isinstance(given, str | bytes)
        and all(isinstance(each, str | int) for each in given)
    )


def check_topics(
    url: str | URL,
    topics: Sequence[str | int],
    *,
    pattern: str | re.Pattern[str] | None,
    refresh_interval: Duration,
    max_poll_records: int,
    options: Mapping[str, Any],
) -> TopicsSettings:
    """Return the settings, once they make sense.

    Raises:
        ConfigError: naming the one that does not.
    """
    server = parse_url(url)
    config = server.configure(ConsumerConfig, options)
    wanted = topics or [each for each in (server.topic, server.topic_id) if each is not None]
    if not are_topics(topics) or not (wanted or pattern):
        raise ConfigError(f"topics={topics!r}: expected a list of names or numbers, or pattern=")
    if type(max_poll_records) is not int or max_poll_records < 0:
        raise ConfigError(f"max_poll_records={max_poll_records!r}: expected 0 or more records")
    if config.offsets == SERVER:
        raise ConfigError("offsets='server' is for one topic; give a store, as 'file:/var/lib/app'")
    return TopicsSettings(
        server=server,
        topics=tuple(dict.fromkeys(wanted)),
        pattern=_compiled(pattern),
        refresh_interval=positive("refresh_interval", refresh_interval),
        group=check_consumer_name(config.consumer) if config.consumer else "",
        offsets=config.offsets,
        auto_commit="off" if config.offsets is None else config.auto_commit,
        commit_interval=seconds("commit_interval", config.commit_interval),
        max_poll_records=max_poll_records,
        start=config.start,
        options={name: value for name, value in options.items() if name not in _OURS},
    )


def _compiled(pattern: str | re.Pattern[str] | None) -> re.Pattern[str] | None:
    try:
        return None if pattern is None else re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ConfigError(f"pattern={pattern!r} is not a regular expression: {error}") from None


def wholes_of(found: Iterable[TopicInfo], wanted: Collection[str | int]) -> frozenset[str]:
    """Return the names among those that were wanted that stand for partitions (AMB-59)."""
    named = {each.partition.topic for each in found if each.partition is not None}
    return frozenset(name for name in named if name in wanted)


def fitting(
    topics: Iterable[TopicInfo], wholes: Collection[str], pattern: re.Pattern[str] | None
) -> list[TopicInfo]:
    """Return the partitions of some topics, and the topics that fit a pattern."""
    return [
        topic
        for topic in topics
        if (topic.partition is not None and topic.partition.topic in wholes)
        or (pattern is not None and matches(topic, pattern))
    ]


def new_topics(
    found: Iterable[TopicInfo], known: Sequence[TopicIdentity]
) -> Iterator[TopicIdentity]:
    """Yield the topics that are not read yet, each name once."""
    labels = {topic.label for topic in known}
    for each in found:
        topic = TopicIdentity.of(each)
        if topic.label not in labels:
            labels.add(topic.label)
            yield topic


def topics_stats(fetchers: Sequence[Fetcher], commits: int, server: ClientStats) -> TopicsStats:
    """Return the counters of a consumer of several topics."""
    return TopicsStats(
        topics=len(fetchers),
        records=sum(each.fetch_buffer.records for each in fetchers),
        fetched_bytes=sum(each.fetch_buffer.received_bytes for each in fetchers),
        buffered_bytes=sum(each.fetch_buffer.buffered for each in fetchers),
        fetches=sum(each.fetches for each in fetchers),
        pushes=sum(each.pushes for each in fetchers),
        commits=commits,
        server=server,
    )
