"""The published coordinators' text protocol, for the workers of one group (AMB-38).

A worker opens a connection for each request as it likes, says its name, and is told topic
numbers. It has no word for releasing a topic: asking for its assignments releases what is not
in the answer. Offsets are the worker's own business.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from lance_sdk.errors import ConfigError
from lance_sdk.groups._coordinator.service import CoordinatorLink, GroupService
from lance_sdk.groups._protocol.group_metadata import Joining
from lance_sdk.groups._protocol.limits import Refusal
from lance_sdk.offsets.contract import TopicIdentity, check_consumer_name
from lance_spec.checksum import Buffer
from lance_spec.errors import DecodeError
from lance_spec.groups.text_protocol import (
    Answer,
    Assignments,
    HeartbeatAck,
    JoinAccepted,
    LeaveAcknowledged,
    Refused,
    TextRequest,
    Verb,
    encode_answer,
)
from lance_spec.messages.groups import GroupErrorCode

SESSION_TIMEOUT: Final = 30.0
"""Seconds; published workers cannot ask for another one."""


@dataclass(eq=False)
class TextService:
    """Answers the workers of one group.

    Attributes:
        service: the coordinator's groups.
        group: name of the workers' group.
        topics: that they read.
        session_timeout: seconds.
    """

    service: GroupService
    group: str
    topics: Sequence[TopicIdentity]
    session_timeout: float = SESSION_TIMEOUT
    _link: CoordinatorLink = field(default_factory=lambda: CoordinatorLink("text workers"))

    async def answer(self, data: Buffer, link: CoordinatorLink) -> bytes:
        """Answer one request, which is one read."""
        del link  # a worker is known by its name alone, whatever connection it uses
        try:
            return encode_answer(await self._answer(TextRequest.decode(data)))
        except Refusal as refusal:
            unknown = refusal.code is GroupErrorCode.UNKNOWN_MEMBER
            return encode_answer(Refused("Worker not found" if unknown else str(refusal)))
        except (DecodeError, ConfigError) as error:
            return encode_answer(Refused(str(error)))

    async def _answer(self, request: TextRequest) -> Answer:
        name = request.worker_id
        if request.verb is Verb.JOIN:
            return await self._join(check_consumer_name(name))
        group, now = self.service.group(self.group), self.service.clock()
        if request.verb is Verb.HEARTBEAT:
            group.heartbeat(name, self._link, now)
            return HeartbeatAck(group.generation)
        if request.verb is Verb.GET_ASSIGNMENTS:
            told = group.heard(name, self._link, now).told
            assigned = self._assigned(name, told.assigned)
            return Assignments(group.generation, assigned)
        group.leave(name, self._link, now)
        return LeaveAcknowledged()

    async def _join(self, name: str) -> Answer:
        joining = Joining(
            name=name,
            link=self._link,
            topics=tuple(self.topics),
            session_timeout=self.session_timeout,
            rebalance_timeout=self.session_timeout,
            client="text",
        )
        group, _ = await self.service.join(self.group, joining, "")
        assigned = self._assigned(name, frozenset())
        return JoinAccepted(name, group.generation, assigned)

    def _assigned(self, name: str, held: frozenset[int]) -> tuple[int, ...]:
        """Return a worker's topics, and release what it held and is not among them."""
        group, now = self.service.group(self.group), self.service.clock()
        told = group.sync(name, self._link, held, now)
        if told.revoked:
            group.generation += 1  # a heartbeat has no other word for topics that are free now
        while told.revoked or told.lost:
            kept = [each.identity.id for each in told.assigned]
            told = group.sync(name, self._link, kept, now)
        return tuple(sorted(each.identity.id for each in told.assigned))
