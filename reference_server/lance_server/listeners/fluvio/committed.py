"""Offsets that consumers have Fluvio's servers keep for them, durable, by topic.

They stand in the topic's folder, and go when the topic goes.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lance_server.errors import DataDirError
from lance_server.listeners.fluvio.refusals import FluvioRefusal
from lance_server.log.log_manager import LogManager, Topic
from lance_server.log.metadata.checksummed_file import load_document
from lance_server.log.metadata.debounced_save import DebouncedSave
from lance_server.runtime.completion import Completion
from lance_spec.bodies import take_int
from lance_spec.errors import DecodeError
from lance_spec.messages.fluvio import ErrorCode

FILE_NAME: Final = "fluvio-consumers.json"
_MAX_ID: Final = 1024


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
        if len(consumer.encode()) > _MAX_ID:
            raise FluvioRefusal(
                ErrorCode.OFFSET_MANAGEMENT_DISABLED, f"a consumer id of over {_MAX_ID} bytes"
            )
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


def _commit(found: Any) -> Commit:
    return Commit(take_int(found, "offset", FILE_NAME), take_int(found, "modified", FILE_NAME))


class CommittedOffsets:
    """The offsets of all topics' consumers, each read when it is first asked for."""

    def __init__(self, engine: LogManager) -> None:
        self._engine = engine
        self._topics: dict[int, Committed] = {}

    def __repr__(self) -> str:
        return f"<CommittedOffsets of {len(self._topics)} topics>"

    def of(self, topic: Topic) -> Committed:
        """Return those of one topic.

        Raises:
            FluvioRefusal: what is kept cannot be read.
        """
        found = self._topics.get(topic.id)
        if found is None:
            found = Committed(self._engine, topic.file.folder / FILE_NAME)
            self._topics[topic.id] = found
        return found

    def forget(self, alive: set[int]) -> None:
        """Forget topics that are gone."""
        for gone in self._topics.keys() - alive:
            del self._topics[gone]
