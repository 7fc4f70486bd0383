"""Offsets that consumers have Fluvio's servers keep for them, durable, by topic.

They stand in the topic's folder, and go when the topic goes.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lance_server.errors import DataDirError
from lance_server.listeners.fluvio.refusals import FluvioRefusal
from lance_server.listeners.shared_offsets import FLUVIO_CONSUMERS, consumer_number
from lance_server.log.log_manager import LogManager, Topic
from lance_server.log.metadata.checksummed_file import load_document
from lance_server.log.metadata.debounced_save import DebouncedSave
from lance_server.runtime.completion import Completion
from lance_spec.bodies import take_int
from lance_spec.errors import DecodeError
from lance_spec.messages.fluvio import ErrorCode

FILE_NAME: Final = FLUVIO_CONSUMERS
_MAX_ID: Final = 1024
_MAX_NAMES: Final = 10_000
_PROTOCOL: Final = "fluvio"
_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Commit:
    """What a consumer has committed.

    Attributes:
        offset: the last record it has consumed.
        modified: when, in seconds since the Unix epoch.
    """

    offset: int
    modified: int


class Committed:
    """The offsets of one topic's consumers. Commits that arrive during a save share the next.

    Args:
        engine: the log.
        path: where they are kept.
        limit: most consumers that may commit.

    Raises:
        FluvioRefusal: what is kept there cannot be read.
    """

    def __init__(self, engine: LogManager, path: Path, *, limit: int = 10_000) -> None:
        self._engine = engine
        self._path = path
        self._limit = limit
        self._saver = DebouncedSave(engine.storage, engine.scheduler, path, self._body)
        self.offsets = self._load()

    def __repr__(self) -> str:
        return f"<Committed {len(self.offsets)} of at most {self._limit} consumers>"

    def found(self, consumer: str | None) -> dict[str, Commit]:
        """Return what a consumer has committed, if anything, or what all have."""
        if consumer is None:
            return dict(self.offsets)
        commit = self.offsets.get(consumer)
        return {} if commit is None else {consumer: commit}

    def _load(self) -> dict[str, Commit]:
        try:
            document = load_document(self._engine.storage, self._path)
            if document is None:
                return {}
            return {name: _commit(found) for name, found in document.body["offsets"].items()}
        except (DataDirError, DecodeError, KeyError, AttributeError, OSError) as error:
            raise FluvioRefusal(
                ErrorCode.OFFSET_MANAGEMENT_DISABLED,
                f"{self._path} cannot be read: {error}; remove it to begin again",
            ) from error

    def commit(self, consumer: str, offset: int) -> Completion[None]:
        """Note an offset; the outcome is settled when it is durable.

        Raises:
            FluvioRefusal: too many consumers have committed, or the name is too long.
        """
        _check_name(consumer)
        if consumer not in self.offsets and len(self.offsets) >= self._limit:
            raise FluvioRefusal(
                ErrorCode.OFFSET_MANAGEMENT_DISABLED,
                f"{self._limit} consumers have committed offsets to this topic; delete some",
            )
        self.offsets[consumer] = Commit(offset, int(time.time()))
        return self._saver.save()

    def delete(self, consumer: str) -> Completion[None] | None:
        """Forget a consumer; None when there is none of this name."""
        if self.offsets.pop(consumer, None) is None:
            return None
        return self._saver.save()

    def _body(self) -> dict[str, Any]:
        return {
            "offsets": {
                name: {"offset": each.offset, "modified": each.modified}
                for name, each in self.offsets.items()
            }
        }


class SharedCommitted:
    """The offsets of one topic's consumers, in the log that the nodes of a cluster share.

    A cluster keeps them by number: names are known that were used at this node since it started.

    Args:
        topic: the topic.
    """

    def __init__(self, topic: Topic) -> None:
        self._consumers = topic.consumers
        self._names: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<SharedCommitted, {len(self._names)} names known>"

    def found(self, consumer: str | None) -> dict[str, Commit]:
        """Return what a consumer has committed, if anything, or what all have that are known."""
        commits, found = self._consumers.commits(), dict[str, Commit]()
        for name in self._names if consumer is None else (consumer,):
            each = commits.get(self._number(name))
            if each is not None:
                found[name] = Commit(each.offset - 1, each.time_ns // _SECOND)
        return found

    def _number(self, name: str) -> int:
        return self._names.get(name) or consumer_number(_PROTOCOL, name)

    def commit(self, consumer: str, offset: int) -> Completion[None]:
        """Propose an offset; the outcome is settled when this node has applied it.

        Raises:
            FluvioRefusal: the name is too long, or too many were used.
        """
        _check_name(consumer)
        if consumer not in self._names and len(self._names) >= _MAX_NAMES:
            raise FluvioRefusal(
                ErrorCode.OFFSET_MANAGEMENT_DISABLED,
                f"{_MAX_NAMES} consumers have committed offsets to this topic at this node",
            )
        number = self._names.setdefault(consumer, consumer_number(_PROTOCOL, consumer))
        return self._consumers.commit(number, offset + 1)  # -1 says that none is consumed

    def delete(self, consumer: str) -> Completion[None] | None:
        """Propose to forget a consumer; None when there is none of this name."""
        number = self._names.pop(consumer, None) or consumer_number(_PROTOCOL, consumer)
        try:
            return self._consumers.delete(number)
        except KeyError:
            return None


def _check_name(consumer: str) -> None:
    if len(consumer.encode()) > _MAX_ID:
        raise FluvioRefusal(
            ErrorCode.OFFSET_MANAGEMENT_DISABLED, f"a consumer id of over {_MAX_ID} bytes"
        )


def _commit(found: Any) -> Commit:
    return Commit(take_int(found, "offset", FILE_NAME), take_int(found, "modified", FILE_NAME))


class CommittedOffsets:
    """The offsets of all topics' consumers, each read when it is first asked for."""

    def __init__(self, engine: LogManager) -> None:
        self._engine = engine
        self._topics: dict[int, Committed | SharedCommitted] = {}

    def __repr__(self) -> str:
        return f"<CommittedOffsets of {len(self._topics)} topics>"

    def of(self, topic: Topic) -> Committed | SharedCommitted:
        """Return those of one topic.

        Raises:
            FluvioRefusal: what is kept cannot be read.
        """
        found = self._topics.get(topic.id)
        if found is None:
            if self._engine.is_replicated:
                found = SharedCommitted(topic)
            else:
                found = Committed(self._engine, topic.file.folder / FILE_NAME)
            self._topics[topic.id] = found
        return found

    def forget(self, alive: set[int]) -> None:
        """Forget topics that are gone."""
        for gone in self._topics.keys() - alive:
            del self._topics[gone]
