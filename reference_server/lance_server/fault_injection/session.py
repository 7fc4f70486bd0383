"""A session of a node whose role can be set: a leader, or a simulated follower (AMB-43)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lance_server.fault_injection.follower import FollowerRole
from lance_server.fault_injection.role import Role
from lance_server.log.topic import Topic
from lance_server.lwp.control import ControlHandler
from lance_server.lwp.fetch import FetchHandler
from lance_server.lwp.pending_requests import cost
from lance_server.lwp.refusals import Refusal
from lance_server.lwp.response_queue import ResponseQueue
from lance_server.lwp.service import Service
from lance_server.lwp.session import Session
from lance_spec.bodies import TopicInfo
from lance_spec.dialect import Dialect
from lance_spec.frames import Frame, FrameKind


class _LaggingFetch(FetchHandler):
    """Serves what the role says that this node has."""

    role: Role

    def fetch_plainly(
        self, frames: Sequence[Frame], dialect: Dialect, answers: ResponseQueue
    ) -> int:
        """Leave every request to `fetch` while this node lags."""
        return 0 if self.role.behind else super().fetch_plainly(frames, dialect, answers)

    def _end_offset(self, topic: Topic) -> int:
        return self.role.visible_end(topic.partition.start_offset, super()._end_offset(topic))


class _FollowerControl(ControlHandler):
    """Tells of the node as of one that plays the role."""

    role: Role

    def _info(self, topic: Topic) -> TopicInfo:
        partition = topic.partition
        end = self.role.visible_end(partition.start_offset, partition.end_offset)
        return replace(super()._info(topic), end_offset=end)

    def _status(self) -> dict[str, Any]:
        status = super()._status()
        return status | {"is_leader": False, "leader_id": None} if self.role.is_follower else status


class SimulatedSession(Session):
    """The protocol state of one connection to a node that plays a role.

    Args:
        service: what all connections share.
        dialects: what the peer may speak.
        wake: called when `advance` may have something to do.
        now: the current time in seconds.
        role: the node's.
    """

    def __init__(
        self,
        service: Service,
        dialects: tuple[Dialect, ...],
        *,
        wake: Callable[[], None],
        now: float,
        role: Role,
    ) -> None:
        self._role = role
        super().__init__(service, dialects, wake=wake, now=now)
        self._follower = FollowerRole(role, self._authorizer, service.connect_node)

    def _handlers(self) -> tuple[FetchHandler, ControlHandler]:
        shared = (self._service, self._authorizer, self._subscriptions)
        fetching = _LaggingFetch(*shared, self._reads)
        commands = _FollowerControl(*shared, fetching)
        fetching.role = commands.role = self._role
        return fetching, commands

    @property
    def other_bytes(self) -> int:
        """Bytes that this connection makes the server hold beside requests and batches."""
        return super().other_bytes + self._follower.held

    def close(self, reason: str) -> None:
        """Stop serving; answers that are not ready are never sent."""
        super().close(reason)
        self._follower.close()

    def _take_together(
        self, frames: list[Frame], position: int, dialect: Dialect, now: float
    ) -> int:
        if self._role.is_follower:
            return 0
        return super()._take_together(frames, position, dialect, now)

    def _handle(self, frame: Frame, now: float) -> None:
        if not self._follower.concerns(frame):
            super()._handle(frame, now)
            return
        self._slice.take()
        if not self._answers.waiting:
            self._stall_detector.begins(now)
        batch_id = frame.batch_id if frame.kind is FrameKind.INGEST else None
        try:
            outcome = self._follower.take(frame, self._dialect)
        except Refusal as refusal:
            self._answers.add_error(self._dialect, refusal, batch_id)
            return
        self._answers.add_forwarded(outcome, cost(frame), batch_id)
