"""A connection to a coordinator that speaks the published text protocol (AMB-38).

The member above asks in messages of LWP, as it asks every coordinator. Each becomes a request
in text, and the answer a message again; what the text has no word for is made up for here:
commits go to the member's own offset store, and topics that are not in an assignment any more
are given up after the fact.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from lance_sdk._protocol.connection import Connection, ConnectionLimits, FrameHandler, Request
from lance_sdk.errors import ConnectionLost, RemoteProtocolError
from lance_sdk.groups._protocol.membership import SubscriptionRequest
from lance_sdk.groups._protocol.position_claims import Claims, Codes
from lance_sdk.groups._protocol.wire import (
    fingerprint_of,
    identities_of,
    milliseconds,
    topic_position,
)
from lance_sdk.offsets.contract import MAX_GENERATION, Commit
from lance_spec.checksum import Buffer
from lance_spec.dialect import SPECIFIED, Dialect
from lance_spec.enums import Command
from lance_spec.errors import DecodeError
from lance_spec.groups import text_protocol as text
from lance_spec.messages import groups as m

TEXT: Final[Dialect] = replace(SPECIFIED, name="text")
"""Shown where other connections show their dialect; nothing is encoded by it."""
HEARTBEAT_INTERVAL: Final = 3.0
"""Seconds; the interval of published workers."""
_VERBS: Final = {
    Command.GROUP_JOIN: (text.Verb.JOIN, text.JoinAccepted),
    Command.GROUP_SYNC: (text.Verb.GET_ASSIGNMENTS, text.Assignments),
    Command.GROUP_HEARTBEAT: (text.Verb.HEARTBEAT, text.HeartbeatAck),
    Command.GROUP_LEAVE: (text.Verb.LEAVE, text.LeaveAcknowledged),
}
_HEADS: Final = (b"JoinAccepted {", b"HeartbeatAck {", b"Assignments {", b"Error {")
_LEFT: Final = b"LeaveAcknowledged"
_WHOLE: Final = re.compile(
    rb'LeaveAcknowledged|[A-Za-z]+ \{(?:[^"}]|"(?:[^"\\]|\\.)*+")*+\}', re.DOTALL
)
"""An answer has no end mark: it is whole where its brace is closed outside of a string."""
_UNKNOWN_WORKER: Final = "Worker not found"


class TextConnection(Connection):
    """Carries one request at a time, as the member asks them.

    Args:
        subscription: of the member, who has a name.
        claims: of the member.
        handler: the session.
        limits: deadlines.
        now: when the connection was made.

    Attributes:
        answers: how many were taken.
        over: whether the connection is gone, and nobody waits for its answers any more.
    """

    def __init__(
        self,
        subscription: SubscriptionRequest,
        claims: Claims,
        handler: FrameHandler,
        limits: ConnectionLimits,
        now: float,
    ) -> None:
        super().__init__((TEXT,), TEXT, handler, limits, now)
        self._subscription = subscription
        self._claims = claims
        self._input = bytearray()
        self.answers = 0
        self.over = False

    # Requests

    def ask(self, request: Request, now: float) -> None:
        """Say a request in text; a commit is the store's business."""
        if request.command == Command.GROUP_COMMIT:
            self._commit(request)
            return
        verb, _ = _VERBS[request.command]
        if verb is text.Verb.JOIN:
            topics = identities_of(m.GroupJoin.decode(request.payload).topics)
            self._claims.topics = {topic.id: topic for topic in topics}
        request.deadline = now + self._request_timeout
        self._requests.append(request)
        self._output.append(text.TextRequest(verb, self._subscription.member).encode())

    def _commit(self, request: Request) -> None:
        asked = m.GroupCommit.decode(request.payload)
        commits = [self._as_commit(each) for each in asked.topics if self._owns(each)]
        wanted = [each.topic.topic_id for each in asked.topics]

        def kept(codes: Codes, now: float) -> None:
            not_owner = m.GroupErrorCode.NOT_OWNER
            results = [
                m.TopicCommitResult(topic_id=topic_id, code=codes.get(topic_id, not_owner))
                for topic_id in wanted
            ]
            answer = m.GroupCommitAck(generation=asked.generation, results=results)
            self._settle(request, answer, now)

        self._claims.save(commits, kept)

    def _owns(self, asked: m.TopicCommit) -> bool:
        return asked.topic.topic_id in self._claims.held

    def _as_commit(self, asked: m.TopicCommit) -> Commit:
        topic_id = asked.topic.topic_id
        return Commit(
            consumer=self._subscription.group,
            topic=self._claims.topics[topic_id],
            offset=asked.offset,
            fingerprint=fingerprint_of(asked.fingerprint, asked.offset),
            generation=self._claims.held[topic_id].generation,
        )

    # Answers

    def receive_data(self, data: Buffer, now: float) -> None:
        """Take bytes from the peer; whatever is wrong with them ends up in `fault`."""
        self.received_bytes += len(data)
        self.keepalive.last_received = now
        try:
            self._input += data
            while self._input and self.fault is None and (whole := self._whole()):
                self._answered(text.decode_answer(whole), now)
        except DecodeError as error:
            self._fail(RemoteProtocolError(f"the coordinator's answer cannot be read: {error}"))
        except RemoteProtocolError as error:
            self._fail(error)

    def _whole(self) -> bytes | None:
        """Take a whole answer; None while it is not."""
        data = bytes(self._input[: text.MAX_MESSAGE + 1])
        if not self._requests:
            raise RemoteProtocolError(
                f"the coordinator sent {data[:40]!r}, which answers no request"
            )
        heads = (*_HEADS, _LEFT)
        if len(data) > text.MAX_MESSAGE or not any(_agree(data, head) for head in heads):
            text.decode_answer(data)  # says what is wrong
        match = _WHOLE.match(data)
        if match is None:
            return None
        del self._input[: match.end()]
        return match[0]

    def _answered(self, answer: text.Answer, now: float) -> None:
        request = self._requests.popleft()
        self.answers += 1
        verb, expected = _VERBS[request.command]
        if isinstance(answer, text.Refused):
            unknown = answer.message == _UNKNOWN_WORKER
            code = m.GroupErrorCode.UNKNOWN_MEMBER if unknown else m.GroupErrorCode.INVALID_REQUEST
            self._refuse(request, code, f"the coordinator refused {verb}: {answer.message}", now)
            return
        if not isinstance(answer, expected):
            raise RemoteProtocolError(f"the coordinator answered {verb} with {str(answer)[:80]}")
        generation = getattr(answer, "generation", 0)
        if generation > MAX_GENERATION:
            raise RemoteProtocolError(f"generation {generation} is more than {MAX_GENERATION}")
        self._translate(request, answer, now)

    def _translate(self, request: Request, answer: text.Answer, now: float) -> None:
        if isinstance(answer, text.JoinAccepted):
            self._settle(request, self._joined(answer), now)
        elif isinstance(answer, text.HeartbeatAck):
            self._settle(request, self._alive(answer), now)
        elif isinstance(answer, text.Assignments):
            self._assigned(request, answer, now)
        else:
            self._settle(request, m.GroupLeaveAck(generation=0), now)

    def _joined(self, answer: text.JoinAccepted) -> m.GroupJoinAck:
        subscription = self._subscription
        if answer.worker_id != subscription.member:
            raise RemoteProtocolError(
                f"the coordinator let in {answer.worker_id[:80]!r}, "
                f"asked by {subscription.member!r}"
            )
        interval = min(HEARTBEAT_INTERVAL, subscription.session_timeout / 3)
        return m.GroupJoinAck(
            member=subscription.member,
            generation=answer.generation,
            state=m.GroupState.STABLE,
            session_timeout_ms=milliseconds(subscription.session_timeout),
            heartbeat_interval_ms=milliseconds(interval),
            strategy="",
        )

    def _alive(self, answer: text.HeartbeatAck) -> m.GroupHeartbeatAck:
        return m.GroupHeartbeatAck(
            generation=answer.generation,
            state=m.GroupState.STABLE,
            changed=answer.generation != self._claims.generation,
        )

    # Assignments

    def _assigned(self, request: Request, answer: text.Assignments, now: float) -> None:
        claims, wanted = self._claims, dict.fromkeys(answer.assignments)
        foreign = [topic_id for topic_id in wanted if topic_id not in claims.topics]
        if foreign:
            message = (
                f"topic #{foreign[0]} was assigned to this member, which does not read it; a "
                f"member cannot say in the text protocol what it reads: give topics= all topics "
                f"of the coordinator"
            )
            self._refuse(request, m.GroupErrorCode.INVALID_REQUEST, message, now)
            return

        def claimed(at: float) -> None:
            # With a topic missing, the next heartbeat has the member ask again.
            complete = wanted.keys() <= claims.held.keys()
            if not self.over:
                claims.generation = answer.generation if complete else -1
                claims.wanted = ()
            self._settle(request, self._assignment(request, wanted, answer.generation), at)

        claims.wanted = wanted
        if wanted.keys() <= claims.held.keys():
            claimed(now)
        else:
            claims.claim(list(wanted), answer.generation, claimed)

    def _assignment(
        self, request: Request, wanted: Iterable[int], generation: int
    ) -> m.GroupAssignment:
        claims, had = self._claims, m.GroupSync.decode(request.payload).owned
        given = [topic_id for topic_id in wanted if topic_id in claims.held]
        return m.GroupAssignment(
            generation=generation,
            state=m.GroupState.STABLE,
            deadline_ms=milliseconds(self._subscription.rebalance_timeout),
            assigned=[
                topic_position(claims.topics[topic_id], claims.held[topic_id].commit)
                for topic_id in given
            ],
            revoked=sorted(set(had) - set(given)),
            lost=[],
        )

    # Time

    def next_deadline(self) -> float:
        """Return when `handle_timeout` may have something to do."""
        return min((request.deadline for request in self._requests), default=float("inf"))

    def handle_timeout(self, now: float) -> None:
        """Give up on a peer that does not answer; there is no keepalive in text."""
        if now >= self.next_deadline():
            verb, _ = _VERBS[self._requests[0].command]
            self._fail(ConnectionLost(f"no answer to {verb} in {self._request_timeout:.1f} s"))

    def _refuse(self, request: Request, code: m.GroupErrorCode, message: str, now: float) -> None:
        self._settle(request, m.GroupError(code=code, generation=0, message=message), now)

    def _settle(self, request: Request, answer: Any, now: float) -> None:
        if self.over or request.abandoned:
            return
        try:
            request.on_answer(answer.COMMAND, memoryview(answer.encode()), now)
        except RemoteProtocolError as error:
            self._fail(error)


def _agree(data: bytes, head: bytes) -> bool:
    """Whether data may be an answer that begins so."""
    return data.startswith(head) or head.startswith(data)
