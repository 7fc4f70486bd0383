"""Which module opens which URL, and how."""

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, Literal, Self, TypeAlias

from lance_sdk.bridge.contract import Source, Target
from lance_sdk.errors import ConfigError

Start: TypeAlias = int | Literal["beginning"]

ENDS: Final = {
    "lance": "lance_sdk.bridge.lance",
    "lances": "lance_sdk.bridge.lance",
    "fluvio": "lance_sdk.bridge.fluvio",
    "fluvios": "lance_sdk.bridge.fluvio",
    "rustlog": "lance_sdk.bridge.rustlog",
    "rustlogs": "lance_sdk.bridge.rustlog",
}
"""By scheme: a module with ``partitions(url, options)``, ``open_source(url, reading, options)``
and ``open_target(url, writing, options)``."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a source.

    Attributes:
        start: ``beginning``, or an `offset` or `following` that a record had.
        follow: whether to go on at the end.
        partition: which partition, where the URL names none.
        wait: seconds after which a source that is followed says that there is nothing.
    """

    start: Start = "beginning"
    follow: bool = False
    partition: int | None = None
    wait: float = 0.25


_DICE: Final = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class CopyIdentity:
    """By what a target recognises what it has of a copy already (AMB-25).

    Attributes:
        nonce: the upper 24 bits of the copy's batch ids; not 0.
        began_ns: the time that goes with all of them, in nanoseconds since 1970.
    """

    nonce: int = field(default_factory=lambda: _DICE.randrange(1, 1 << 24))
    began_ns: int = field(default_factory=time.time_ns)

    def checked(self) -> Self:
        """Return the identity if a batch can carry it.

        Raises:
            ValueError: it cannot.
            TypeError: something in it is not a number.
        """
        if not (0 < self.nonce < 1 << 24 and 0 < self.began_ns < 1 << 64):
            raise ValueError("not the identity of a copy")
        return self


@dataclass(frozen=True, slots=True)
class Writing:
    """How to write to a target.

    Attributes:
        create_topic: whether to create the topic when it is not there.
        partition: which partition, where the URL names none.
        partitions: how many to create the topic with.
        identity: of the copy; one that is gone on with keeps it.
    """

    create_topic: bool = False
    partition: int | None = None
    partitions: int = 1
    identity: CopyIdentity = field(default_factory=CopyIdentity)


def partitions(url: str, *, options: Mapping[str, Any] | None = None) -> Sequence[int | None]:
    """Return which partitions of a topic are to be read: None where there is nothing to choose.

    Args:
        url: the system and the topic.
        options: settings of the connection, by the names that the SDK's clients give them.

    Raises:
        ConfigError: the URL cannot be used.
        LanceError: the server cannot be asked.
    """
    found: Sequence[int | None] = _module(url).partitions(url, options or {})
    return found


def open_source(
    url: str, reading: ReadOptions | None = None, *, options: Mapping[str, Any] | None = None
) -> Source:
    """Return where records come from.

    Args:
        url: the system and the topic, such as ``fluvio://localhost:9003/orders?partition=1``.
        reading: how to read; by default all that there is now.
        options: settings of the connection, by the names that the SDK's clients give them.

    Raises:
        ConfigError: the URL cannot be used.
    """
    source: Source = _module(url).open_source(url, reading or ReadOptions(), options or {})
    return source


def open_target(
    url: str, writing: Writing | None = None, *, options: Mapping[str, Any] | None = None
) -> Target:
    """Return where records go.

    Args:
        url: the system and the topic.
        writing: how to write; by default to a topic that is there.
        options: settings of the connection, by the names that the SDK's clients give them.

    Raises:
        ConfigError: the URL cannot be used.
    """
    target: Target = _module(url).open_target(url, writing or Writing(), options or {})
    return target


def _module(url: str) -> Any:
    scheme = url.partition("://")[0]
    if "://" not in url or scheme not in ENDS:
        known = ", ".join(f"{each}://" for each in ENDS)
        raise ConfigError(f"{url!r}: expected a URL that begins with one of {known}")
    return import_module(ENDS[scheme])
