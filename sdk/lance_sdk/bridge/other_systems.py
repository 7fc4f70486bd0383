"""Code that ends share that are not LWP servers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from lance_sdk.errors import ConfigError


class SystemClient(Protocol):
    """What talks to a server."""

    def close(self) -> None:
        """Close its connections."""
        ...


class End:
    """Closes a client at the end, and when it cannot even begin.

    Args:
        client: talks to the server.
    """

    def __init__(self, client: SystemClient) -> None:
        self._closing = client

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._closing.close()
            raise
        return self

    def _begin(self) -> None:
        """Find out, or make, what is needed."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.close()


@dataclass(frozen=True, slots=True)
class UrlParts:
    """What the URL of another system says.

    Attributes:
        address: host and port.
        topic: the topic.
        tls: whether the connection is protected.
        partition: which partition, or None.
        query: whatever else stands after the question mark.
    """

    address: str
    topic: str
    tls: bool
    partition: int | None
    query: Mapping[str, str] = field(default_factory=dict)


def split(url: str, *known: str) -> UrlParts:
    """Return what a URL says.

    Args:
        url: the URL.
        known: the keys that mean something beside ``partition``.

    Raises:
        ConfigError: it has no host or topic, or an unknown key.
    """
    try:
        found = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"{url!r}: {error}") from None
    topic = unquote(found.path.removeprefix("/"))
    query = dict(parse_qsl(found.query, keep_blank_values=True))
    if not found.netloc or not topic:
        raise ConfigError(f"{url!r}: expected {found.scheme}://HOST:PORT/TOPIC")
    for key in query.keys() - {"partition", *known}:
        there = ", ".join(("partition", *known))
        raise ConfigError(f"{url!r}: unknown key {key!r}; known keys are {there}")
    partition = _number(url, query.pop("partition", None))
    return UrlParts(_address(url, found), topic, found.scheme.endswith("s"), partition, query)


def _address(url: str, found: SplitResult) -> str:
    if "@" in found.netloc:
        raise ConfigError(f"{url!r}: {found.scheme} has no users or passwords")
    return found.netloc


def _number(url: str, partition: str | None) -> int | None:
    if partition is None:
        return None
    if not (partition.isascii() and partition.isdecimal()) or len(partition) > 9:
        raise ConfigError(f"{url!r}: partition={partition!r} is not a number of a partition")
    return int(partition)


def chosen(parts: UrlParts, count: Callable[[], int]) -> Sequence[int | None]:
    """Return which partitions of a topic are to be read.

    Args:
        parts: what the URL says.
        count: tells how many there are.
    """
    if parts.partition is not None:
        return [parts.partition]
    found = count()
    return list(range(found)) if found > 1 else [None]


def picked(parts: UrlParts, partition: int | None) -> int | None:
    """Return the partition that the URL names, or else another."""
    return partition if parts.partition is None else parts.partition
