"""Offsets that groups have committed: durable beside the topic, or in memory without one.

The published broker takes a commit for any topic, and keeps all of them in memory; here those of
topics that exist outlive the server, and go when the topic goes.
"""

from pathlib import Path
from typing import Final

from lance_server.errors import DataDirError
from lance_server.listeners.rustlog.refusals import RustlogRefusal
from lance_server.listeners.shared_offsets import RUSTLOG_GROUPS, consumer_number
from lance_server.log.log_manager import LogManager, Topic
from lance_server.log.metadata.checksummed_file import load_document
from lance_server.log.metadata.debounced_save import DebouncedSave
from lance_server.runtime.completion import Completion
from lance_spec.bodies import take_int
from lance_spec.errors import DecodeError
from lance_spec.messages.rustlog import ErrorCode

FILE_NAME: Final = RUSTLOG_GROUPS
_MAX_NAME: Final = 1024
_PROTOCOL: Final = "rustlog"


class TopicGroups:
    """The offsets of one topic's groups. Commits that arrive during a save share the next one.

    Args:
        engine: the log.
        path: where they are kept.
        limit: most groups that may commit.

    Raises:
        RustlogRefusal: what is kept there cannot be read.
    """

    def __init__(self, engine: LogManager, path: Path, limit: int) -> None:
        self._engine = engine
        self._path = path
        self._limit = limit
        self._saver = DebouncedSave(engine.storage, engine.scheduler, path, self._body)
        self._offsets = self._load()

    def __repr__(self) -> str:
        return f"<TopicGroups {len(self._offsets)} of at most {self._limit}>"

    def _load(self) -> dict[str, int]:
        try:
            document = load_document(self._engine.storage, self._path)
            found = {} if document is None else document.body["offsets"]
            return {group: take_int(found, group, FILE_NAME) for group, _ in found.items()}
        except (DataDirError, DecodeError, KeyError, AttributeError, OSError) as error:
            raise _uncommitted(
                f"{self._path} cannot be read: {error}; remove it to begin again"
            ) from error

    def committed(self, group: str) -> int | None:
        """Return what a group committed last, or None."""
        return self._offsets.get(group)

    def commit(self, group: str, offset: int) -> Completion[None]:
        """Note an offset; the outcome is settled when it is durable.

        Raises:
            RustlogRefusal: too many groups have committed.
        """
        if group not in self._offsets and len(self._offsets) >= self._limit:
            raise _uncommitted(f"{self._limit} groups have committed offsets to this partition")
        self._offsets[group] = offset
        return self._saver.save()

    def _body(self) -> dict[str, dict[str, int]]:
        return {"offsets": dict(self._offsets)}


class SharedTopicGroups:
    """The offsets of one topic's groups, in the log that the nodes of a cluster share.

    Args:
        topic: the topic.
    """

    def __init__(self, topic: Topic) -> None:
        self._consumers = topic.consumers

    def __repr__(self) -> str:
        return f"<SharedTopicGroups in {self._consumers!r}>"

    def committed(self, group: str) -> int | None:
        """Return what a group committed last, as far as this node knows, or None."""
        return self._consumers.committed(consumer_number(_PROTOCOL, group))

    def commit(self, group: str, offset: int) -> Completion[None]:
        """Propose an offset; the outcome is settled when this node has applied it."""
        return self._consumers.commit(consumer_number(_PROTOCOL, group), offset)


class Groups:
    """The offsets of all groups; those of a topic are read when they are first asked for.

    Args:
        engine: the log.
        limit: most groups of a partition, and most offsets of topics that do not exist.
    """

    def __init__(self, engine: LogManager, limit: int) -> None:
        self._engine = engine
        self._limit = limit
        self._topics: dict[int, TopicGroups | SharedTopicGroups] = {}
        self._elsewhere: dict[tuple[str, int, str], int] = {}

    def __repr__(self) -> str:
        return f"<Groups of {len(self._topics)} topics, {len(self._elsewhere)} of none>"

    def committed(self, found: Topic | None, place: tuple[str, int], group: str) -> int | None:
        """Return what a group committed last, or None.

        Args:
            found: the log's topic, or None.
            place: name of topic and number of partition.
            group: name of the group.

        Raises:
            RustlogRefusal: what is kept cannot be read.
        """
        offset = None if found is None else self._of(found).committed(group)
        return self._elsewhere.get((*place, group)) if offset is None else offset

    def commit(
        self, found: Topic | None, place: tuple[str, int], group: str, offset: int
    ) -> Completion[None]:
        """Note an offset; the outcome is settled when it is kept as well as can be.

        Raises:
            RustlogRefusal: it is not kept.
        """
        if len(group.encode()) > _MAX_NAME:
            raise _uncommitted(f"the name of the group takes over {_MAX_NAME} bytes")
        if found is not None:
            return self._of(found).commit(group, offset)
        key = (*place, group)
        if key not in self._elsewhere and len(self._elsewhere) >= self._limit:
            raise _uncommitted(f"{self._limit} offsets of missing topics are kept; create topics")
        if len(place[0].encode()) > _MAX_NAME:
            raise _uncommitted(f"the name of the topic takes over {_MAX_NAME} bytes")
        self._elsewhere[key] = offset
        done: Completion[None] = Completion()
        done.settle(None)
        return done

    def _of(self, topic: Topic) -> TopicGroups | SharedTopicGroups:
        found = self._topics.get(topic.id)
        if found is None:
            alive = {each.id for each in self._engine.topics()}
            self._topics = {key: each for key, each in self._topics.items() if key in alive}
            if self._engine.is_replicated:
                found = SharedTopicGroups(topic)
            else:
                found = TopicGroups(self._engine, topic.file.folder / FILE_NAME, self._limit)
            self._topics[topic.id] = found
        return found


def _uncommitted(text: str) -> RustlogRefusal:
    return RustlogRefusal(ErrorCode.COMMIT_FAILED, f"Offset commit failed: {text}")
