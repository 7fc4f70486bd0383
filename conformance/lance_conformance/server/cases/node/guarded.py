"""Cases about what needs a token, request by request (design section 28.4)."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from lance_conformance.engine.expectations import Allowed
from lance_conformance.server.case_context import ALIVE, CaseContext
from lance_conformance.server.cases import requests
from lance_conformance.server.cases.node.tokens import required, stranger
from lance_conformance.server.cases.registry import case
from lance_conformance.server.cases.requests import CONSUMER, Request
from lance_conformance.server.consumers import commit_ack, subscribe_ack, unsubscribe_ack
from lance_conformance.server.expect import ack, answer
from lance_conformance.wire.frame import Command, Frame


@dataclass(frozen=True, slots=True)
class Guarded:
    """A request that needs a token.

    Attributes:
        what: Its name.
        clause: Why it needs one.
        request: Makes it.
        good: What it brings with a token.
    """

    what: str
    clause: str
    request: Request
    good: Callable[[Frame], Allowed]


def _topic(command: Command) -> Callable[[Frame], Allowed]:
    return lambda _: answer(command, "28.4/write")


_TOPIC = _topic(Command.TOPIC_RESPONSE)
WRITES = {
    "ingest": Guarded("Ingest", "28.4/write", requests.ingest, lambda f: ack(f.batch_id)),
    "create": Guarded("CreateTopic", "28.4/write", requests.create, _TOPIC),
    "delete": Guarded("DeleteTopic", "28.4/write", requests.delete, _TOPIC),
    "create-limited": Guarded(
        "CreateTopicWithRetention", "28.4/write", requests.create_limited, _TOPIC
    ),
    "set-retention": Guarded("SetRetention", "28.4/other", requests.set_retention, _TOPIC),
    "commit": Guarded(
        "CommitOffset",
        "28.4/other",
        requests.commit,
        lambda _: commit_ack(CONSUMER, cite="28.4/other"),
    ),
}
READS = {
    "list": Guarded("ListTopics", "28.4/read", requests.list_topics, lambda _: ALIVE),
    "fetch": Guarded("Fetch", "28.4/read", requests.fetch, _topic(Command.FETCH_RESPONSE)),
    "subscribe": Guarded(
        "Subscribe",
        "28.4/read",
        requests.subscribe,
        lambda _: subscribe_ack(CONSUMER, cite="28.4/read"),
    ),
    "get": Guarded("GetTopic", "28.4/other", requests.get, _TOPIC),
    "unsubscribe": Guarded(
        "Unsubscribe", "28.4/other", requests.unsubscribe, lambda _: unsubscribe_ack("5.13/ack")
    ),
    "status": Guarded(
        "GetClusterStatus", "28.4/other", requests.status, _topic(Command.CLUSTER_STATUS_RESPONSE)
    ),
    "time": Guarded(
        "OffsetForTime",
        "28.4/other",
        requests.offset_for_time,
        _topic(Command.OFFSET_FOR_TIME_RESPONSE),
    ),
}
OPTIONAL = {"status": "cluster-status", "time": "offset-for-time"}
"""Requests that not every target knows."""


def _declare_guarded(slug: str, guarded: Guarded, mode: str, prefix: str) -> None:
    async def function(ctx: CaseContext) -> None:
        request = await guarded.request(ctx)
        peer = await stranger(ctx)
        await peer.ask(request, required(ctx, guarded.clause))
        await ctx.log_in(peer)
        await peer.ask(request, guarded.good(request))

    function.__doc__ = f"{guarded.what} is refused before a token is shown, and served after it."
    needs = (mode, OPTIONAL[slug]) if slug in OPTIONAL else (mode,)
    case(f"auth/{prefix}{slug}", guarded.clause, needs=needs, quick=False)(function)


for _slug, _guarded in chain(WRITES.items(), READS.items()):
    _declare_guarded(_slug, _guarded, "token-all", "needed-for-")
for _slug in ("ingest", "create", "delete", "set-retention"):
    _declare_guarded(_slug, WRITES[_slug], "token-write-only", "write-only-")


def _declare_free(slug: str, guarded: Guarded, clause: str) -> None:
    async def function(ctx: CaseContext) -> None:
        request = await guarded.request(ctx)
        await (await stranger(ctx)).ask(request, guarded.good(request))

    function.__doc__ = f"Where only writing needs a token, {guarded.what} needs none."
    case(f"auth/free-{slug}", clause, needs=("token-write-only",), quick=False)(function)


for _slug in ("list", "fetch", "subscribe"):
    _declare_free(_slug, READS[_slug], "28.4/write-only")
_declare_free("get", READS["get"], "28.4/other")
