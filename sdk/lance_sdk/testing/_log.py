"""The topics of a fake server, in memory."""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from lance_spec.bodies import ErrorBody
from lance_spec.enums import Command, ErrorCode
from lance_spec.messages.lwp import DeleteTopic, GetTopic
from lance_spec.records import decode_records, scan_records

Hook: TypeAlias = Callable[[], object]


class FakeTopics:
    """Topics by number, each a log of records.

    Args:
        names: names of the topics that exist, numbered from 1.

    Attributes:
        cut: bytes after which a fetch is cut, wherever that falls; None cuts at records.
        clock_ns: the server's clock, for `offset_for_time`.
        on_append: called, without a lock, whenever a topic has grown.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._lock = threading.Lock()
        self._names: dict[int, str] = {}
        self._logs: dict[int, bytearray] = {0: bytearray()}
        self._times: dict[int, list[tuple[int, int]]] = {}
        self.cut: int | None = None
        self.clock_ns = time.time_ns
        self.on_append: Hook = int
        for name in names:
            self._create(name)

    def __repr__(self) -> str:
        return f"<FakeTopics {self._names}>"

    def _create(self, name: str) -> int:
        number = max(self._logs) + 1
        self._names[number] = name
        self._logs[number] = bytearray()
        return number

    def log(self, topic_id: int) -> bytes | None:
        """Return a topic's bytes, or None when there is no such topic."""
        with self._lock:
            log = self._logs.get(topic_id)
            return None if log is None else bytes(log)

    def append(self, topic_id: int, payload: bytes) -> bool:
        """Store records; return False when there is no such topic."""
        with self._lock:
            log = self._logs.get(topic_id)
            if log is None:
                return False
            self._times.setdefault(topic_id, []).append((self.clock_ns(), len(log)))
            log += payload
        self.on_append()
        return True

    def offset_for_time(self, topic_id: int, time_ns: int) -> int | None:
        """Return where the first batch that came at or after a time begins (AMB-37)."""
        with self._lock:
            if (log := self._logs.get(topic_id)) is None:
                return None
            later = (offset for at, offset in self._times.get(topic_id, ()) if at >= time_ns)
            return next(later, len(log))

    def batch_times(self, topic_id: int, start: int, end: int) -> list[tuple[int, int]]:
        """Return offset and time of each batch that has bytes in a range (AMB-61)."""
        with self._lock:
            batches = [(offset, at) for at, offset in self._times.get(topic_id, ())]
            ends = [*(offset for offset, _ in batches[1:]), len(self._logs.get(topic_id, b""))]
            return [
                batch
                for batch, behind in zip(batches, ends, strict=False)
                if batch[0] < end and start < behind
            ]

    def truncate(self, topic_id: int, size: int) -> None:
        """Cut a topic's log."""
        with self._lock:
            del self._logs[topic_id][size:]

    def records(self, topic_id: int) -> list[bytes]:
        """Return the values of a topic's records."""
        return [value for _, value in decode_records(self.log(topic_id) or b"")]

    def read(self, log: bytes, start: int, size: int) -> tuple[bytes, int]:
        """Return the data for a Fetch and the number of its records (AMB-19)."""
        if self.cut is not None:
            data = log[start : start + min(size, self.cut)]
            return data, 1 if data else 0
        data = log[start : start + size]
        scan = scan_records(data)
        if not _is_boundary(log, start):
            return data, 0
        return (data[: scan.end], scan.count) if scan.count else (data, 0)

    def ask(self, command: int, payload: bytes) -> dict[str, Any] | ErrorBody | None:
        """Answer a question about topics; None when there is no such topic."""
        with self._lock:
            if command == Command.CREATE_TOPIC:
                return self._answer_create(payload.decode())
            if command == Command.LIST_TOPICS:
                return {"topics": [self._body(number) for number in self._names]}
            if command == Command.GET_TOPIC:
                number = GetTopic.decode(payload).topic_id
                return self._body(number) if number in self._names else None
            if command == Command.DELETE_TOPIC:
                number = DeleteTopic.decode(payload).topic_id
                known = self._names.pop(number, None) is not None
                return {"deleted": number} if known else None
            if command == Command.GET_CLUSTER_STATUS:
                return {"is_leader": True, "node_count": 1, "healthy_nodes": 1}
        return ErrorBody(ErrorCode.INVALID_PAYLOAD, "Invalid client command")

    def _answer_create(self, name: str) -> dict[str, Any] | ErrorBody:
        if name in self._names.values():
            return ErrorBody(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists")
        return self._body(self._create(name))

    def _body(self, number: int) -> dict[str, Any]:
        return {"id": number, "name": self._names[number], "created_at": 1_700_000_000}


def _is_boundary(log: bytes, offset: int) -> bool:
    scan = scan_records(log[:offset])
    return scan.fault is None
