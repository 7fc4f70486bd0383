"""Tables as topics: a table's rows go to the topic of its name, created when it is not there."""

import asyncio
from typing import TypeVar

from lance_server.listeners.qwp.refusals import QwpRefusal, from_log
from lance_server.listeners.qwp.rows import TableRows
from lance_server.log.log_manager import LogManager, Topic
from lance_server.log.metadata.topic_file import Retention
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import Completion
from lance_server.security.access import Right
from lance_server.security.authorizer import Authorizer
from lance_spec.checksum import CRC32C
from lance_spec.codec.ingest_runs import BatchMeta
from lance_spec.errors import EncodeError
from lance_spec.messages.qwp import Status
from lance_spec.names import check_topic_name

T = TypeVar("T")


class Tables:
    """Finds and creates the topics of tables, for all connections.

    Attributes:
        reading: who reads a large message holds it; two at once keep a processor and a few
            hundred MiB busy, and more would only take longer.
    """

    def __init__(self, engine: LogManager) -> None:
        self.reading = asyncio.Semaphore(2)
        self._engine = engine
        self._creating: dict[str, Completion[Topic]] = {}

    def __repr__(self) -> str:
        return f"<Tables {len(self._creating)} being created>"

    async def topic(self, table: str, authorizer: Authorizer) -> Topic:
        """Return the topic of a table.

        Args:
            table: the table's name.
            authorizer: knows what the sender may do.

        Raises:
            QwpRefusal: the sender may not write there, or there is no such topic and none can
                be created.
        """
        name = _topic_name(table)
        try:
            found = self._find(name, authorizer)
            if found is not None:
                authorizer.check(Right.WRITE, found.id, name)
                return found
            authorizer.check(Right.ADMIN, None, name)
            return await settled(self._created(name))
        except Refusal as refusal:
            raise from_log(refusal) from refusal

    def _find(self, name: str, authorizer: Authorizer) -> Topic | None:
        try:
            return self._engine.topic_named(name)
        except Refusal:  # another node of the cluster serves it, and says which to who may know
            authorizer.check(Right.WRITE, None, name)
            raise

    def _created(self, name: str) -> Completion[Topic]:
        outcome = self._creating.get(name)
        if outcome is None:
            outcome = self._engine.create_topic(name, Retention())
            self._creating[name] = outcome
            outcome.wake(lambda: self._forget(name))
        return outcome

    def _forget(self, name: str) -> None:
        del self._creating[name]

    def append(self, topic: Topic, rows: TableRows) -> list[Completion[None]]:
        """Give rows to the log; they are stored when every outcome is settled."""
        now_ns = self._engine.now_ns(topic)
        outcomes: dict[Completion[None], None] = {}
        for data, count in rows.chunks:
            crc = CRC32C.compute(data)
            batch = BatchMeta(len(data), count, 0, 0, now_ns, crc, 0)
            outcomes[topic.partition.append(data, batch)] = None
        return list(outcomes)


def _topic_name(table: str) -> str:
    try:
        return check_topic_name(table)
    except EncodeError as error:
        raise QwpRefusal(
            Status.SCHEMA_MISMATCH,
            f"table {table!r} cannot be a topic: expected {error.expected}, got {error.got}",
        ) from error


async def settled(outcome: Completion[T]) -> T:
    """Wait for an outcome and return its value, or raise its error."""
    if not outcome.done:
        done = asyncio.Event()
        outcome.wake(done.set)
        await done.wait()
    return outcome.result()
