"""Cases about control payloads of a wrong size: one row each (AMB-26)."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lance_conformance.engine.expectations import Allowed
from lance_conformance.engine.failures import NotApplicable
from lance_conformance.server.case_context import AllowedOutcome, CaseContext
from lance_conformance.server.cases import requests
from lance_conformance.server.cases.registry import BOTH, case
from lance_conformance.server.cases.requests import CONSUMER, Request
from lance_conformance.server.consumers import commit_ack, subscribe_ack, unsubscribe_ack
from lance_conformance.server.expect import answer, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.frame import Command, Frame

THREE_BYTES = 2**24
Change = Callable[[bytes], bytes]


def short(payload: bytes) -> bytes:
    """Without its last byte."""
    return payload[:-1]


def long(payload: bytes) -> bytes:
    """With a byte too many."""
    return payload + b"\0"


def empty(_payload: bytes) -> bytes:
    """Nothing at all."""
    return b""


async def _delete(ctx: CaseContext) -> Frame:
    frame = await requests.delete(ctx)
    if int.from_bytes(frame.payload, "little") >= THREE_BYTES:
        # Else three bytes of it could name somebody else's topic.
        raise NotApplicable("topic ids have grown beyond three bytes")
    return frame


@dataclass(frozen=True, slots=True)
class Sized:
    """A case: a request is right, and wrong once its payload has another size.

    Attributes:
        id: The case.
        clause: Its clause.
        title: Its rule.
        request: Makes the right request.
        change: Makes its payload wrong.
        good: What the right one brings.
        deployed: What the published server says: words of its error, the answer to the right
            request where it does not mind, `None` where that is not known.
        needs: What the target must be able to do.
    """

    id: str
    clause: str
    title: str
    request: Request
    change: Change
    good: Allowed
    deployed: str | Allowed | None = None
    needs: tuple[str, ...] = ()

    async def ask(self, ctx: CaseContext) -> None:
        """Ask it."""
        right = await self.request(ctx)
        wrong = replace(right, payload=self.change(right.payload))
        invalid = ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-26")
        await ctx.assert_pair(
            right, wrong, answer=self.good, specified=[invalid], deployed=self._deployed(ctx)
        )

    def _deployed(self, ctx: CaseContext) -> AllowedOutcome:
        if isinstance(self.deployed, str):
            return [ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-26", text=self.deployed)]
        return [] if self.deployed is None else [self.deployed]

    def register(self) -> None:
        """Add it to the cases."""

        async def function(ctx: CaseContext) -> None:
            await self.ask(ctx)

        function.__doc__ = self.title
        dialects = BOTH if self.deployed is not None else ("specified",)
        case(self.id, self.clause, dialects=dialects, quick=False, needs=self.needs)(function)


TOPIC = topic_response("AMB-26")
SUBSCRIBED = subscribe_ack(CONSUMER, cite="AMB-26")
UNSUBSCRIBED = unsubscribe_ack("AMB-26")
COMMITTED = commit_ack(CONSUMER, cite="AMB-26")
TIMED = answer(Command.OFFSET_FOR_TIME_RESPONSE, "AMB-37")
STATUS = answer(Command.CLUSTER_STATUS_RESPONSE, "AMB-11")

# fmt: off
ROWS = (
    Sized("ctl/get-empty", "5.5/payload", "GetTopic without a payload is not one of topic 0.",
          requests.get, empty, TOPIC, "not found"),
    Sized("ctl/delete-short", "5.6/payload", "DeleteTopic with three bytes is refused.",
          _delete, short, TOPIC, "not found"),
    Sized("ctl/delete-long", "5.6/payload", "DeleteTopic with five bytes is refused.",
          _delete, long, TOPIC),
    Sized("ctl/list-payload", "5.4/payload", "ListTopics with a payload is refused.",
          requests.list_topics, long, TOPIC),
    Sized("ctl/status-payload", "16.5/payload", "GetClusterStatus with a payload is refused.",
          requests.status, long, STATUS, needs=("cluster-status",)),
    Sized("ctl/subscribe-short", "5.12/payload", "Subscribe with 23 bytes is refused.",
          requests.subscribe, short, SUBSCRIBED, "invalid subscribe payload"),
    Sized("ctl/subscribe-long", "5.12/payload", "Subscribe with 25 bytes is refused.",
          requests.subscribe, long, SUBSCRIBED),
    Sized("ctl/subscribe-empty", "5.12/payload", "Subscribe without a payload is refused.",
          requests.subscribe, empty, SUBSCRIBED, "invalid subscribe payload"),
    Sized("ctl/unsubscribe-short", "5.13/payload", "Unsubscribe with eleven bytes is refused.",
          requests.unsubscribe, short, UNSUBSCRIBED, ""),
    Sized("ctl/unsubscribe-long", "5.13/payload", "Unsubscribe with 13 bytes is refused.",
          requests.unsubscribe, long, UNSUBSCRIBED),
    Sized("ctl/commit-short", "5.14/payload", "CommitOffset with 19 bytes is refused.",
          requests.commit, short, COMMITTED, ""),
    Sized("ctl/commit-long", "5.14/payload", "CommitOffset with 21 bytes is refused.",
          requests.commit, long, COMMITTED),
    Sized("ctl/commit-empty", "5.14/payload", "CommitOffset without a payload is refused.",
          requests.commit, empty, COMMITTED, ""),
    Sized("ret/set-long", "5.10/payload", "SetRetention with 21 bytes is refused.",
          requests.set_retention, long, TOPIC),
    Sized("ret/create-short", "5.11/payload", "CreateTopicWithRetention with 17 bytes is refused.",
          requests.create_limited, lambda payload: payload[:17], TOPIC,
          "invalid create topic payload"),
    Sized("ret/create-empty", "5.11/payload", "CreateTopicWithRetention of 0 bytes is refused.",
          requests.create_limited, empty, TOPIC, "invalid create topic payload"),
    Sized("ret/create-limit-cut", "5.11/payload",
          "CreateTopicWithRetention that lacks its last byte is refused.",
          requests.create_limited, short, TOPIC, "invalid payload length"),
    Sized("time/short", "5.2/offset-for-time-payload", "OffsetForTime with 11 bytes is refused.",
          requests.offset_for_time, short, TIMED, needs=("offset-for-time",)),
    Sized("time/long", "5.2/offset-for-time-payload", "OffsetForTime with 13 bytes is refused.",
          requests.offset_for_time, long, TIMED, needs=("offset-for-time",)),
)
# fmt: on

for row in ROWS:
    row.register()
