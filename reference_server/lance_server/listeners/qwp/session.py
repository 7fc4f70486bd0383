"""One connection: messages in, acknowledgements out, in order.

The reader judges and appends messages; the answerer waits for the disk and acknowledges. An OK
says that the rows are durable, because a sender forgets them then; a durable acknowledgement
says it again, to senders that wait for it.
"""

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Final

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from lance_server.listeners.qwp.options import QwpOptions
from lance_server.listeners.qwp.refusals import QwpRefusal, from_log
from lance_server.listeners.qwp.rows import Reader, TableRows
from lance_server.listeners.qwp.script import Rule, Script
from lance_server.listeners.qwp.tables import Tables, settled
from lance_server.log.log_manager import Topic
from lance_server.network.fairness import WorkSlice
from lance_server.runtime.completion import Completion
from lance_server.runtime.memory_quota import HeldQuota
from lance_server.security.authorizer import Authorizer
from lance_spec.messages.qwp import DurableAck, OkResponse, Status, TableSequence

_IN_PLACE: Final = 8 * 1024
"""Messages up to this size are read on the event loop; larger ones on a thread."""
_LINGER: Final = 1.0
"""Seconds that a sender has to leave after the script closed its connection."""
_RESET: Final = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class Answer:
    """What one message is to be answered with.

    Attributes:
        wire_sequence: its number on the connection.
        messages: how many messages it stands for.
        stored: the topics of its tables.
        outcomes: what their rows wait for.
        size: bytes of memory that its records take.
        refusal: why nothing of it is stored, or None.
        rule: what the script wants instead, or None.
    """

    wire_sequence: int
    messages: int = 1
    stored: dict[str, Topic] = field(default_factory=dict)
    outcomes: list[Completion[None]] = field(default_factory=list)
    size: int = 0
    refusal: QwpRefusal | None = None
    rule: Rule | None = None

    @property
    def ready(self) -> bool:
        """Whether it can be acknowledged without waiting, like those before it."""
        return (
            self.refusal is None
            and self.rule is None
            and all(each.done and each.error is None for each in self.outcomes)
        )

    def absorb(self, following: "Answer") -> None:
        """Stand for the next message too."""
        self.wire_sequence = following.wire_sequence
        self.messages += following.messages
        self.stored |= following.stored
        self.size += following.size


_END: Final = Answer(-1)
"""What stands after the last answer."""


class Session:
    """Serves one sender.

    Args:
        connection: the WebSocket, after the upgrade.
        number: which connection it is, counted from 0.
        tables: where rows go.
        options: limits.
        script: what to do wrong.
        held: what the connection may hold of the endpoint's memory.
        authorizer: knows what the sender may do.
        durable: whether the sender asked for durable acknowledgements.
    """

    def __init__(
        self,
        connection: ServerConnection,
        number: int,
        tables: Tables,
        options: QwpOptions,
        *,
        script: Script,
        held: HeldQuota,
        authorizer: Authorizer,
        durable: bool,
    ) -> None:
        self._connection = connection
        self._number = number
        self._tables = tables
        self._options = options
        self._script = script
        self._held_quota = held
        self._authorizer = authorizer
        self._durable = durable
        self._reader = Reader(options)
        self._deferred: list[TableRows] = []
        self._answers: asyncio.Queue[Answer] = asyncio.Queue()
        self._unanswered = asyncio.Semaphore(options.max_unanswered)
        self._reading: asyncio.Task[None] | None = None
        self._muted = False
        self.messages = 0

    def __repr__(self) -> str:
        return f"<Session {self._number}: {self.messages} messages, {self._reader!r}>"

    async def run(self) -> None:
        """Serve until the sender leaves, misbehaves or is silent for too long."""
        async with asyncio.TaskGroup() as group:
            self._reading = group.create_task(self._read_all())
            group.create_task(self._answer_all())

    def drain(self) -> None:
        """Take no more messages; what was received is answered, then the connection ends."""
        if self._reading is not None:
            self._reading.cancel()

    # Messages in -------------------------------------------------------------------------------

    async def _read_all(self) -> None:
        turn = WorkSlice()
        try:
            while True:
                await turn.step()
                async with asyncio.timeout(self._options.idle_timeout):
                    data = await self._connection.recv()
                if isinstance(data, str):
                    await self._connection.close(CloseCode.UNSUPPORTED_DATA, "QWP is binary")
                elif self._muted or not await self._take(data):
                    await self._discard()
        except TimeoutError:
            await self._connection.close(CloseCode.GOING_AWAY, "idle")
        except (ConnectionClosed, asyncio.CancelledError):
            pass
        finally:
            self._answers.put_nowait(_END)

    async def _discard(self) -> None:
        """Ignore what comes after a refused message, as senders expect it."""
        turn = WorkSlice()
        while True:
            await turn.step()
            async with asyncio.timeout(self._options.idle_timeout):
                await self._connection.recv()

    async def _take(self, data: bytes) -> bool:
        """Store a message and queue its answer; return whether the next one is wanted."""
        answer = Answer(self.messages)
        self.messages += 1
        try:
            rows, deferred = await self._read(data, answer)
            if deferred:
                self._defer(rows)
                return True
            await self._store(rows, answer)
        except QwpRefusal as refusal:
            answer.refusal = refusal
        self._answers.put_nowait(answer)
        await self._unanswered.acquire()
        return answer.refusal is None and not (answer.rule and answer.rule.ends)

    async def _read(self, data: bytes, answer: Answer) -> tuple[list[TableRows], bool]:
        now_ns = time.time_ns()
        if len(data) <= _IN_PLACE:
            deferred, rows = self._reader.read(data, now_ns)
        else:
            async with self._tables.reading:
                deferred, rows = await asyncio.to_thread(self._reader.read, data, now_ns)
        if not self._held_quota.hold("symbols", self._reader.symbol_bytes):
            raise _too_much()
        tables = {each.table for each in rows}
        answer.rule = self._script.on_message(self._number, answer.wire_sequence, tables)
        if answer.rule is not None and not answer.rule.keeps_rows:
            return [], False
        return rows, deferred

    def _defer(self, rows: list[TableRows]) -> None:
        kept = [each for each in rows if each.count]
        if not self._held_quota.add("deferred", sum(each.weight for each in kept)):
            raise _too_much()
        self._deferred += kept

    async def _store(self, rows: list[TableRows], answer: Answer) -> None:
        rows, self._deferred = [*self._deferred, *rows], []
        self._held_quota.hold("deferred", 0)
        answer.size = sum(each.weight for each in rows)  # given back with the answer
        if not self._held_quota.add("pending", answer.size):
            raise _too_much()
        found = {
            each.table: await self._tables.topic(each.table, self._authorizer)
            for each in rows
            if each.count
        }
        answer.stored = found
        for each in rows:
            if each.count:
                answer.outcomes += self._tables.append(found[each.table], each)

    # Answers out -------------------------------------------------------------------------------

    async def _answer_all(self) -> None:
        try:
            async for answer in self._coalesced():
                if not await self._answer(answer):
                    self._muted = True
                for _ in range(answer.messages):
                    self._unanswered.release()
                if self._muted:
                    return
        except ConnectionClosed:
            return
        finally:
            self._muted = True
            self._unanswered.release()  # whoever waits for an answer learns that there is none

    async def _send(self, data: bytes) -> None:
        """Send an answer; a sender that does not take it in time is let go."""
        try:
            async with asyncio.timeout(self._options.idle_timeout):
                await self._connection.send(data)
        except TimeoutError:
            self._connection.transport.abort()

    async def _coalesced(self) -> AsyncIterator[Answer]:
        """Yield what to answer; one answer stands for messages that became durable together."""
        held: Answer | None = None
        while (answer := held or await self._answers.get()) is not _END:
            held = None
            while answer.ready and not self._answers.empty():
                held = self._answers.get_nowait()
                if held is _END or not held.ready:
                    break
                answer.absorb(held)
                held = None
            yield answer

    async def _answer(self, answer: Answer) -> bool:
        """Answer; return whether there is an answer to the next message."""
        try:
            for outcome in answer.outcomes:
                await settled(outcome)
        except Exception as error:  # noqa: BLE001 - the sender is told
            answer.refusal = answer.refusal or from_log(error)
        finally:
            self._held_quota.add("pending", -answer.size)
        if answer.rule is not None:
            return await self._follow(answer.rule, answer)
        return await self._tell(answer, durable=self._durable)

    async def _tell(self, answer: Answer, *, durable: bool) -> bool:
        if answer.refusal is not None:
            await self._refuse(answer.refusal, answer)
            return False
        tables = list(_sequences(answer.stored.items()))
        await self._send(OkResponse(wire_sequence=answer.wire_sequence, tables=tables).encode())
        if durable and tables:
            await self._send(DurableAck(tables=tables).encode())
        return True

    async def _refuse(self, refusal: QwpRefusal, answer: Answer) -> None:
        """Say no, and have the sender come again for the rest.

        What it sent after the refused message is not stored. A sender that drops the message goes
        on after it on its next connection, whatever its policies are. Where only the moment is
        wrong, the close alone says so: some senders halt at an error that they do not know.
        """
        if refusal.status == Status.NOT_WRITABLE and answer.rule is None:
            self._close(CloseCode.TRY_AGAIN_LATER, refusal.text)
            return
        await self._send(refusal.frame(answer.wire_sequence))
        self._close(CloseCode.GOING_AWAY, "a message was refused; send what follows it again")

    async def _follow(self, rule: Rule, answer: Answer) -> bool:
        """Do what the script wants; return whether there is an answer to the next message."""
        if rule.stall:
            return False
        if rule.reset:
            self._reset()
            return False
        if rule.close is not None:
            self._close(rule.close, rule.reason)
            return False
        if rule.reject is not None:
            answer.refusal = QwpRefusal(int(rule.reject), rule.text)
        if rule.ack is not None:
            await self._send(OkResponse(wire_sequence=rule.ack, tables=[]).encode())
            return True
        if rule.send is not None:
            await self._send(rule.raw)
            return True
        await asyncio.sleep(rule.delay)
        return await self._tell(answer, durable=self._durable and not rule.hold_durable)

    def _reset(self) -> None:
        transport = self._connection.transport
        peer: socket.socket = transport.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()

    def _close(self, code: int, reason: str) -> None:
        """Close with any code at all, also one that nobody may send."""
        frame = struct.pack(">H", code) + reason.encode()[:123]
        transport = self._connection.transport
        transport.write(bytes([0x88, len(frame)]) + frame)
        asyncio.get_running_loop().call_later(_LINGER, transport.close)


def _sequences(stored: Iterable[tuple[str, Topic]]) -> Iterable[TableSequence]:
    """Say how far tables are: the number of records that their topics hold."""
    return (
        TableSequence(name=table.encode(), sequence=topic.partition.end_record)
        for table, topic in stored
    )


def _too_much() -> QwpRefusal:
    return QwpRefusal(
        Status.NOT_WRITABLE,
        "the endpoint's memory is used up by rows that wait for the disk; try again later",
    )
