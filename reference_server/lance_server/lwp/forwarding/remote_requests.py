"""Requests of one connection for topics that another node of the cluster hosts."""

from collections.abc import Mapping
from typing import Final, Protocol

from lance_server.config.settings import Address
from lance_server.log.log_manager import LogManager
from lance_server.lwp.flow_control.throttle import ReadGate
from lance_server.lwp.forwarding.node_connection import ConnectNode, NodeConnection
from lance_server.lwp.refusals import Refusal
from lance_server.lwp.requests import FixedMessage
from lance_server.lwp.responses import Answer
from lance_server.runtime.completion import Completion
from lance_spec.dialect import Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame
from lance_spec.messages import lwp


class _TopicRequest(FixedMessage, Protocol):
    @property
    def topic_id(self) -> int: ...


_FORWARDED: Final[Mapping[int, type[_TopicRequest]]] = {
    Command.DELETE_TOPIC: lwp.DeleteTopic,
    Command.GET_TOPIC: lwp.GetTopic,
    Command.SET_RETENTION: lwp.SetRetention,
    Command.FETCH: lwp.Fetch,
    Command.COMMIT_OFFSET: lwp.CommitOffset,
    Command.OFFSET_FOR_TIME: lwp.OffsetForTime,
    Command.BATCH_TIMES: lwp.BatchTimes,
}
"""Commands that are forwarded. A subscription is not: its pushes answer no request."""


class RemoteRequests:
    """Forwards the requests of one connection, each topic's on one connection to its host.

    So the order of a producer's batches holds. Once a connection that carried batches is at its
    end, the client's connection ends, too, and the client sends again what was not acknowledged.

    Args:
        engine: knows who hosts a topic.
        reads: sets memory aside for answers.
        connect_node: opens a connection to a node, with the name by which errors call it.
    """

    def __init__(
        self,
        engine: LogManager,
        reads: ReadGate,
        connect_node: ConnectNode,
    ) -> None:
        self._engine = engine
        self._is_needed = engine.forwards
        self._reads = reads
        self._connect_node = connect_node
        self._connections: dict[Address, NodeConnection] = {}
        self._written: set[Address] = set()
        self._chosen: dict[int, Address] = {}

    def __repr__(self) -> str:
        return f"<RemoteRequests to {sorted(map(str, self._connections))}>"

    def host_of_batch(self, frame: Frame) -> Address | None:
        """Return where an Ingest frame is to be forwarded, or None: it is judged here."""
        if not self._is_needed or not frame.payload:
            return None
        return self._host_of(frame.topic_id)

    def host_of_command(self, frame: Frame, dialect: Dialect) -> Address | None:
        """Return where a Control frame is to be forwarded, or None: it is carried out here."""
        if not self._is_needed:
            return None
        request = _request_in(frame, dialect)
        return None if request is None else self._host_of(request.topic_id)

    def _host_of(self, topic_id: int) -> Address | None:
        chosen = self._chosen.get(topic_id)
        if chosen is not None and (
            chosen in self._written or not self._connections[chosen].is_closed
        ):
            return chosen
        return self._engine.host_of(topic_id)

    def pass_batch(self, frame: Frame, dialect: Dialect, host: Address) -> Completion[Answer]:
        """Forward a batch; where that fails nothing more is answered on the client's connection."""
        outcome: Completion[Answer] = Completion()
        passed = self._pass(frame, dialect, host, frame.topic_id)
        self._written.add(host)
        passed.wake(lambda: _judge_batch(passed, outcome))
        return outcome

    def pass_command(self, frame: Frame, dialect: Dialect, host: Address) -> Completion[Answer]:
        """Forward a command.

        Raises:
            PostponedError: there is no memory for the answer now.
        """
        request = _request_in(frame, dialect)
        assert request is not None, "it is known where it goes"
        size = 0
        if isinstance(request, lwp.Fetch):
            size = min(request.max_bytes, dialect.max_fetch_data)
            self._reads.begin(size)
        passed = self._pass(frame, dialect, host, request.topic_id)
        if size:
            passed.wake(lambda: self._reads.end(size, 0 if passed.error else len(passed.result())))
        return passed

    def _pass(
        self, frame: Frame, dialect: Dialect, host: Address, topic_id: int
    ) -> Completion[Answer]:
        connection = self._connections.get(host)
        if connection is not None and connection.is_closed and host in self._written:
            ended: Completion[Answer] = Completion()
            words = f"the connection to the node at {host} has ended; connect again"
            ended.fail(_ending(ErrorCode.CLUSTER_NOT_READY, words))
            return ended
        if connection is None or connection.is_closed:
            connection = self._connections[host] = self._connect_node(
                host, dialect, f"the node at {host}"
            )
        self._chosen[topic_id] = host
        return connection.forward(frame)

    def close(self) -> None:
        """Need the other nodes no more."""
        for connection in self._connections.values():
            connection.close()


def _request_in(frame: Frame, dialect: Dialect) -> _TopicRequest | None:
    """Return the request in a Control frame, if it is one for a topic that may be forwarded."""
    kind = _FORWARDED.get(frame.batch_id if dialect.strict else frame.batch_id & 0xFF)
    if kind is None or len(frame.payload) < kind.SIZE:
        return None
    return kind.decode(frame.payload[: kind.SIZE])


def _judge_batch(passed: Completion[Answer], outcome: Completion[Answer]) -> None:
    """Say of a batch that was not answered that it is not stored, or that nobody knows."""
    error = passed.error
    if error is None:
        outcome.settle(passed.result())
    elif isinstance(error, Refusal) and error.code is ErrorCode.CLUSTER_NOT_READY:
        outcome.fail(_ending(error.code, f"Nothing was stored: {error.message}"))
    elif isinstance(error, Refusal):
        words = f"Whether it was stored is not known: {error.message}; send it again"
        outcome.fail(_ending(ErrorCode.QUORUM_NOT_REACHED, f"{words} with the same id"))
    else:
        outcome.fail(error)


def _ending(code: ErrorCode, message: str) -> Refusal:
    return Refusal(code, message, ends_connection=True)
