"""Partitioned topics: several topics that are created, changed and deleted as one (AMB-59)."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from lance_server.log.disk_reserve import DiskReserve
from lance_server.log.metadata.catalog import TopicIdAllocator
from lance_server.log.metadata.partition_description import (
    MAX_PARTITIONS,
    PartitionedTopic,
    base_name,
    partition_name,
)
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.metadata.topic_folders import TopicFolders
from lance_server.log.recovery.startup import Opened
from lance_server.log.topic import Topic
from lance_server.lwp.refusals import Refusal, storage_refusal
from lance_server.runtime.completion import Completion, pass_on
from lance_server.runtime.scheduling import Scheduler
from lance_spec.bodies import PartitionInfo
from lance_spec.enums import ErrorCode

_log = logging.getLogger(__name__)
_OF_THE_WHOLE: Final = (
    "Access denied: topic {} is partition {} of the partitioned topic {!r}; delete that, with "
    "DeletePartitionedTopic"
)


class Registry(Protocol):
    """The topics that a log manager serves."""

    def find(self, topic_id: int) -> Topic | None:
        """Return a topic, or None."""
        ...

    def names(self) -> Sequence[str]:
        """Return the names of all topics, and those that are being given."""
        ...

    def room(self) -> int:
        """Return how many topics may be created."""
        ...

    def adopt(self, opened: Opened) -> Topic:
        """Serve a topic that was created."""
        ...

    def withdraw(self, topic: Topic) -> list[Completion[Any]]:
        """Serve a topic no more; return what is to be waited for before its folder goes."""
        ...

    def restore(self, topic: Topic) -> None:
        """Serve a topic again that could not be deleted."""
        ...

    def abandon(self, topic: Topic) -> None:
        """Close the files of a topic that was withdrawn."""
        ...


class PartitionedTopics:
    """The partitioned topics of a log. Belongs to the event loop's thread.

    Args:
        registry: the topics that are served.
        catalog: has the descriptions.
        folders: makes and erases topics.
        scheduler: the loop and its worker threads.
        reserve: given up where the disk has no room for a deletion.

    Attributes:
        busy: what is being created, extended or deleted, by the name of the whole.
        unavailable: why there can be none; empty where there can.
    """

    def __init__(
        self,
        registry: Registry,
        catalog: TopicIdAllocator,
        folders: TopicFolders,
        scheduler: Scheduler,
        reserve: DiskReserve,
    ) -> None:
        self._registry = registry
        self._catalog = catalog
        self._folders = folders
        self._scheduler = scheduler
        self._reserve = reserve
        self._described: dict[str, PartitionedTopic] = {}
        self._parts: dict[int, PartitionInfo] = {}
        self.busy: dict[str, Completion[Any]] = {}
        self.unavailable = ""

    def __repr__(self) -> str:
        return f"<PartitionedTopics {sorted(self._described)}>"

    # What there is -----------------------------------------------------------------------------

    def load(self) -> None:
        """Take the descriptions of the catalog, and finish changes that a stop cut short."""
        for described in self._catalog.partitioned.values():
            topics = self._describe(described)
            for topic in topics:
                if topic.file.retention != described.retention:
                    try:
                        topic.file.set_retention(described.retention)
                    except OSError as error:
                        _log.warning("topic %d keeps its old retention: %s", topic.id, error)
            if len(topics) < len(described.topic_ids):
                _log.warning(
                    "%d of %d partitions of %r are served",
                    len(topics),
                    len(described.topic_ids),
                    described.name,
                )

    def _describe(self, described: PartitionedTopic) -> list[Topic]:
        """Have this description count from now on; return the topics that are served."""
        self._described[described.name] = described
        for index, topic_id in enumerate(described.topic_ids):
            self._parts[topic_id] = described.partition(index)
        topics = self._served(described)
        for topic in topics:
            topic.part = self._parts[topic.id]
        return topics

    def _served(self, described: PartitionedTopic) -> list[Topic]:
        found = (self._registry.find(each) for each in described.topic_ids)
        return [topic for topic in found if topic is not None]

    def part_of(self, topic_id: int) -> PartitionInfo | None:
        """Return which partition a topic is; None for a topic of its own."""
        return self._parts.get(topic_id)

    def named(self, name: str) -> PartitionedTopic | None:
        """Return the partitioned topic of a name in Unicode NFC, or None."""
        return self._described.get(name)

    def names(self) -> list[str]:
        """Return the names of partitioned topics."""
        return sorted(self._described)

    def topics_of(self, name: str) -> list[Topic]:
        """Return the topics of a partitioned topic that are served, in their order.

        Raises:
            Refusal: there is no such partitioned topic.
        """
        return self._served(self._find(name))

    def check_name(self, name: str) -> None:
        """Refuse to give a topic of its own a name that belongs to a partitioned topic.

        Raises:
            Refusal: it does.
        """
        for owner in (name, base_name(name)):
            if owner is not None and owner in self._described:
                raise Refusal(
                    ErrorCode.TOPIC_ALREADY_EXISTS,
                    f"Topic '{name}' already exists: its name belongs to the partitioned topic "
                    f"'{owner}'; choose another name, or delete that",
                )

    def check_alone(self, topic: Topic) -> None:
        """Refuse to delete a partition without the others.

        Raises:
            Refusal: the topic is one.
        """
        if (part := topic.part) is not None:
            words = _OF_THE_WHOLE.format(topic.id, part.index, part.topic)
            raise Refusal(ErrorCode.ACCESS_DENIED, words)

    def _find(self, name: str) -> PartitionedTopic:
        described = self._described.get(name)
        if described is None:
            raise Refusal(
                ErrorCode.TOPIC_NOT_FOUND,
                f"There is no partitioned topic '{name}'",
                text="Topic not found",
            )
        return described

    # Creating ----------------------------------------------------------------------------------

    def create(
        self, name: str, partitions: int, partitioner: str, retention: Retention
    ) -> Completion[list[Topic]]:
        """Create a partitioned topic, all or nothing; settled when it is durable.

        Args:
            name: a valid name in Unicode NFC; so are those of its partitions.
            partitions: how many.
            partitioner: how producers find the partition of a key.
            retention: of each.

        Raises:
            Refusal: there is a topic of its name or of a partition's, or there are too many.
        """
        if self.unavailable:
            raise Refusal(ErrorCode.INVALID_PAYLOAD, self.unavailable)
        if name in self.busy:
            return self._after(name, lambda: self.create(name, partitions, partitioner, retention))
        self.check_name(name)
        taken = [each for each in self._registry.names() if name in {each, base_name(each)}]
        if taken:
            raise Refusal(
                ErrorCode.TOPIC_ALREADY_EXISTS,
                f"Topic '{taken[0]}' already exists, so '{name}' cannot have partitions: they "
                f"are called '{partition_name(name, 0)}' and so on",
            )
        return self._extend(PartitionedTopic(name, (), partitioner, retention), partitions)

    def add(self, name: str, partitions: int) -> Completion[list[Topic]]:
        """Give a partitioned topic more partitions; settled when they are durable.

        Args:
            name: of the partitioned topic.
            partitions: how many it has afterwards; as many as it has change nothing.

        Raises:
            Refusal: there is none, or it has more already.
        """
        if name in self.busy:
            return self._after(name, lambda: self.add(name, partitions))
        described = self._find(name)
        there = len(described.topic_ids)
        if partitions < there:
            raise Refusal(
                ErrorCode.INVALID_PAYLOAD,
                f"Invalid partitions: '{name}' has {there}; they cannot become {partitions}",
                details={"field": "partitions"},
            )
        if partitions == there:
            done: Completion[list[Topic]] = Completion()
            done.settle(self._served(described))
            return done
        return self._extend(described, partitions)

    def _extend(self, described: PartitionedTopic, partitions: int) -> Completion[list[Topic]]:
        if not 1 <= partitions <= MAX_PARTITIONS:
            raise Refusal(
                ErrorCode.INVALID_PAYLOAD,
                f"Invalid partitions: {partitions}; expected 1 to {MAX_PARTITIONS}",
                details={"field": "partitions"},
            )
        if partitions - len(described.topic_ids) > self._registry.room():
            raise Refusal(
                ErrorCode.UNKNOWN_ERROR,
                f"{partitions} partitions are more topics than the server may hold; delete some, "
                "or raise its limit",
            )
        outcome = self.busy[described.name] = Completion[list[Topic]]()
        work = partial(self._folders.build_partitions, described, partitions)
        built = self._scheduler.run("meta", work)
        built.wake(lambda: self._extended(described.name, built, outcome))
        return outcome

    def _extended(
        self, name: str, built: Completion[Sequence[Opened]], outcome: Completion[list[Topic]]
    ) -> None:
        del self.busy[name]
        if built.error is not None:
            outcome.fail(_as_refusal(built.error))
            return
        for opened in built.result():
            self._registry.adopt(opened)
        outcome.settle(self._describe(self._catalog.partitioned[name]))

    def _after(
        self, name: str, again: Callable[[], Completion[list[Topic]]]
    ) -> Completion[list[Topic]]:
        """Do something when what is under way has ended."""
        outcome: Completion[list[Topic]] = Completion()

        def go_on() -> None:
            try:
                then = again()
            except Refusal as refusal:
                outcome.fail(refusal)
            else:
                then.wake(lambda: pass_on(then, outcome))

        self.busy[name].wake(go_on)
        return outcome

    # Changing and deleting ---------------------------------------------------------------------

    def set_retention(self, name: str, retention: Retention) -> Completion[None]:
        """Change the retention of all partitions; settled when it is durable.

        Raises:
            Refusal: there is no such partitioned topic.
        """
        described = replace(self._find(name), retention=retention)
        files = [topic.file for topic in self._served(described)]

        def change() -> None:
            known = self._catalog.partitioned[name]  # it may have more partitions by now
            self._folders.change_retention(known, files, retention)

        changed = self._scheduler.run("meta", lambda: self._reserve.with_room(change))
        changed.wake(lambda: self._retained(name, changed))
        return changed

    def _retained(self, name: str, changed: Completion[None]) -> None:
        if changed.error is None and name in self._described:
            self._described[name] = self._catalog.partitioned[name]

    def delete(self, name: str) -> Completion[list[int]]:
        """Delete a partitioned topic; batches that were accepted before are settled first.

        Returns:
            The numbers of its topics, once it is gone.

        Raises:
            Refusal: there is none, or it is being changed.
        """
        described = self._find(name)
        if name in self.busy:
            raise Refusal(
                ErrorCode.BACKPRESSURE, f"'{name}' is being changed just now; delete it again"
            )
        topics = self._served(described)
        waiting = [each for topic in topics for each in self._registry.withdraw(topic)]
        del self._described[name]
        outcome = self.busy[name] = Completion[list[int]]()
        wait_for_all(waiting, lambda: self._erase(described, topics, outcome))
        return outcome

    def _erase(
        self, described: PartitionedTopic, topics: list[Topic], outcome: Completion[list[int]]
    ) -> None:
        for topic in topics:
            self._registry.abandon(topic)
        identities = [topic.file.identity for topic in topics]
        epochs = {each.name: each.epoch for each in identities}
        work = partial(self._folders.erase_partitions, described, epochs)
        erased = self._scheduler.run("meta", lambda: self._reserve.with_room(work))
        erased.wake(lambda: self._erased(described, topics, erased, outcome))

    def _erased(
        self,
        described: PartitionedTopic,
        topics: list[Topic],
        erased: Completion[OSError | None],
        outcome: Completion[list[int]],
    ) -> None:
        del self.busy[described.name]
        if erased.error is not None:
            for topic in topics:
                self._registry.restore(topic)
            self._describe(described)
            outcome.fail(_as_refusal(erased.error))
            return
        for topic_id in described.topic_ids:
            self._parts.pop(topic_id, None)
        if (error := erased.result()) is not None:
            outcome.fail(storage_refusal(error))
        else:
            outcome.settle(list(described.topic_ids))


def wait_for_all(waiting: Sequence[Completion[Any]], then: Callable[[], object]) -> None:
    """Go on when everything of a list is done."""
    if waiting:
        waiting[0].wake(lambda: wait_for_all(waiting[1:], then))
    else:
        then()


def _as_refusal(error: Exception) -> Exception:
    return storage_refusal(error) if isinstance(error, OSError) else error
