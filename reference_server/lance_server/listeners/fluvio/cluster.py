"""Topics and partitions as Fluvio's clients see them, and how they are made.

Which topics of the log they are is told by `lance_server.listeners.partition_names`: the
partitions of a partitioned topic, or else ``name`` and ``name.n``. Clients create the latter here.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lance_server.listeners.fluvio.committed import CommittedOffsets
from lance_server.listeners.fluvio.options import FluvioOptions
from lance_server.listeners.fluvio.refusals import FluvioRefusal, from_log, no_partition
from lance_server.listeners.partition_names import part_name, shown_partition, shown_topics
from lance_server.log.log_manager import LogManager, Topic
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.reading.record_index import RecordIndex
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import settled
from lance_server.runtime.memory_quota import Quota
from lance_server.security.access import Right
from lance_server.security.authorizer import Authorizer, Security
from lance_spec.errors import EncodeError
from lance_spec.messages.fluvio import ErrorCode
from lance_spec.names import check_topic_name

if TYPE_CHECKING:
    from lance_server.config.settings import Address

OFFSETS_TOPIC: Final = "consumer-offset"
"""A topic that clients look for; the offsets themselves stand beside each topic."""
_READERS: Final = 2
_TELLING: Final = 1.0
"""Seconds that an answer waits for clients that are told what it changed."""


@dataclass(frozen=True, slots=True)
class FluvioTopic:
    """A topic as Fluvio's clients see it.

    Attributes:
        name: its name.
        partitions: the log's topic of each partition; none for the one of consumer offsets.
    """

    name: str
    partitions: tuple[Topic, ...] = ()

    @property
    def count(self) -> int:
        """How many partitions clients see."""
        return max(len(self.partitions), 1)

    @property
    def is_system(self) -> bool:
        """Whether it is the server's own."""
        return self.name == OFFSETS_TOPIC

    @property
    def identity(self) -> tuple[int, ...]:
        """What differs between two topics of one name."""
        return tuple(each.id for each in self.partitions)


class Cluster:
    """What both servers share. Belongs to the event loop's thread.

    Args:
        options: limits and security.

    Attributes:
        options: limits and security.
        security: certificates and rules.
        quota: the memory that clients use.
        readers: who opens or builds a large batch holds it.
        spu: where the SPU listens, once it does.
        epoch: rises whenever topics came or went.
        streams: how many streams there were.
    """

    def __init__(self, options: FluvioOptions | None = None) -> None:
        self.options = options or FluvioOptions()
        self.security = self.options.security or Security()
        self.quota = Quota(self.options.max_memory)
        self.readers = asyncio.Semaphore(_READERS)
        self.spu: Address | None = None
        self.epoch = 0
        self.streams = 0
        self._opened: tuple[LogManager, RecordIndex, CommittedOffsets] | None = None
        self._seen: list[int] = []
        self._watchers: dict[Callable[[], None], None] = {}
        self._owed: set[Callable[[], None]] = set()
        self._nothing_owed = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Cluster at {self.spu}, {len(self._seen)} topics of the log, {self.quota!r}>"

    def open(self, engine: LogManager) -> None:
        """Serve this log from now on."""
        if self._opened is None:
            record_index = RecordIndex(engine.storage, engine.scheduler)
            self._opened = engine, record_index, CommittedOffsets(engine)
            self._seen = [each.id for each in engine.topics()]
            self._looking = asyncio.create_task(self._look())

    async def close(self) -> None:
        """Look for new topics no more."""
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looking

    @property
    def engine(self) -> LogManager:
        """The log."""
        assert self._opened is not None, "it was opened"
        return self._opened[0]

    @property
    def record_index(self) -> RecordIndex:
        """Where records stand."""
        assert self._opened is not None, "it was opened"
        return self._opened[1]

    @property
    def committed(self) -> CommittedOffsets:
        """What consumers have committed."""
        assert self._opened is not None, "it was opened"
        return self._opened[2]

    # Changes -----------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Notice what other protocols do: the log tells nobody of it."""
        while True:
            await asyncio.sleep(self.options.refresh)
            self.refresh()

    def refresh(self) -> None:
        """Call everyone who watches if topics came or went."""
        found = [each.id for each in self.engine.topics()]
        if found == self._seen:
            return
        self._seen = found
        self.epoch += 1
        self.committed.forget(set(found))
        self._owed.update(self._watchers)
        self._note_owed()
        for watcher in list(self._watchers):
            watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call ``watcher`` whenever topics came or went, until `unwatch`."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """Stop calling ``watcher``."""
        self._watchers.pop(watcher, None)
        self.told(watcher)

    def told(self, watcher: Callable[[], None]) -> None:
        """Note that who was called has told its client of all that changed."""
        self._owed.discard(watcher)
        self._note_owed()

    def _note_owed(self) -> None:
        self._nothing_owed.clear() if self._owed else self._nothing_owed.set()

    async def watchers_told(self) -> None:
        """Wait until those who watch know of the last change, unless one of them does not read.

        Clients create a topic and use it at once, on what their watch has told them.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TELLING):
                await self._nothing_owed.wait()

    # Topics ------------------------------------------------------------------------------------

    def topics(self, authorizer: Authorizer) -> list[FluvioTopic]:
        """Return the topics that a client may know of, and the one of consumer offsets."""
        shown = shown_topics(self.engine)
        found = [FluvioTopic(name, parts) for name, parts in shown.items()]
        seen = [each for each in found if _may_see(authorizer, each)]
        if OFFSETS_TOPIC not in shown:
            seen.append(FluvioTopic(OFFSETS_TOPIC))
        return seen

    def partition(self, topic: str, index: int, authorizer: Authorizer, right: Right) -> Topic:
        """Return the log's topic of a partition.

        Raises:
            FluvioRefusal: there is none, or the client may not use it.
        """
        self._judge_remote(part_name(topic, index), authorizer, right)
        found = shown_partition(self.engine, topic, index)
        if found is None:
            raise no_partition(topic, index)
        try:
            authorizer.check(right, found.id, found.access_name)
        except Refusal as refusal:
            raise from_log(refusal) from refusal
        return found

    async def create(
        self,
        name: str,
        partitions: int,
        retention: Retention,
        authorizer: Authorizer,
        *,
        dry_run: bool,
    ) -> None:
        """Create a topic with all its partitions; the first one last, so that it shows whole.

        Raises:
            FluvioRefusal: it cannot be created.
        """
        self._check_new(name, partitions, authorizer)
        if dry_run:
            return
        try:
            for index in reversed(range(partitions)):
                part = part_name(name, index)
                if index and self._left_over(part):
                    continue
                await settled(self.engine.create_topic(part, retention))
        except Refusal as refusal:
            raise from_log(refusal) from refusal
        finally:
            self.refresh()

    def _check_new(self, name: str, partitions: int, authorizer: Authorizer) -> None:
        try:
            check_topic_name(part_name(name, partitions - 1))
            authorizer.check(Right.ADMIN, None, name)
        except EncodeError as error:
            raise FluvioRefusal(ErrorCode.TOPIC_INVALID_NAME, str(error)) from error
        except Refusal as refusal:
            raise from_log(refusal) from refusal
        if not 1 <= partitions <= self.options.max_partitions:
            raise FluvioRefusal(
                ErrorCode.TOPIC_INVALID_CONFIGURATION,
                f"{partitions} partitions; expected 1 to {self.options.max_partitions}",
            )
        try:
            parts = [self.engine.topic_named(part_name(name, each)) for each in range(partitions)]
        except Refusal as refusal:  # another node of the cluster serves one
            raise FluvioRefusal(ErrorCode.TOPIC_ALREADY_EXISTS, refusal.message) from refusal
        taken = parts[0] or self.engine.partitioned.named(name)
        if name == OFFSETS_TOPIC or taken is not None:
            raise FluvioRefusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"there is a topic '{name}'")
        for index in range(1, partitions):
            part = parts[index]
            if part is not None and part.partition.end_record:
                raise FluvioRefusal(
                    ErrorCode.TOPIC_ALREADY_EXISTS,
                    f"partition {index} would be the log's topic '{part_name(name, index)}', "
                    "which holds records; delete it first",
                )

    def _left_over(self, part: str) -> bool:
        """Whether an empty partition stands there from a creation that was cut short."""
        return self.engine.topic_named(part) is not None

    def _judge_remote(self, name: str, authorizer: Authorizer, right: Right) -> None:
        """Refuse a topic that another node of a cluster serves, and say which."""
        try:
            self.engine.topic_named(name)
        except Refusal as refusal:
            try:
                authorizer.check(right, None, name)
            except Refusal as denied:
                raise from_log(denied) from denied
            raise from_log(refusal) from refusal

    async def delete(self, name: str, authorizer: Authorizer) -> None:
        """Delete a topic with all its partitions, the first one last.

        Raises:
            FluvioRefusal: it cannot be deleted.
        """
        shown = shown_topics(self.engine)
        if name == OFFSETS_TOPIC and name not in shown:
            raise FluvioRefusal(
                ErrorCode.INVALID_DELETE_REQUEST, f"'{name}' belongs to the server and stays"
            )
        if name not in shown:
            self._judge_remote(name, authorizer, Right.ADMIN)
            raise FluvioRefusal(ErrorCode.TOPIC_NOT_FOUND, f"there is no topic '{name}'")
        parts = shown[name]
        try:
            for part in parts:
                authorizer.check(Right.ADMIN, part.id, part.access_name)
            if parts[0].part is not None:
                await settled(self.engine.partitioned.delete(name))
            else:
                for part in reversed(parts):
                    await settled(self.engine.delete_topic(part.id, text="Topic not found"))
        except Refusal as refusal:
            raise from_log(refusal) from refusal
        finally:
            self.refresh()


def _may_see(authorizer: Authorizer, topic: FluvioTopic) -> bool:
    first = topic.partitions[0].id
    return any(authorizer.may_see(right, first, topic.name) for right in (Right.READ, Right.WRITE))
