"""Capabilities of the target: optional abilities, found by trying or named by its operator.

A case that needs a capability the target has not is skipped, with the reason: a server that pushes
nothing is not a broken server.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

from lance_conformance.engine.expectations import Allowed
from lance_conformance.engine.failures import Failure, NotApplicable
from lance_conformance.engine.restarting import pause
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.expect import ack, answer
from lance_conformance.wire.consumers import (
    CLUSTER_STATUS,
    batch_times,
    commit_offset,
    offset_for_time,
    subscribe,
)
from lance_conformance.wire.control import KEEPALIVE, ingest, set_retention
from lance_conformance.wire.frame import Command, Flag, Frame, FrameKind
from lance_conformance.wire.partitions import create_partitioned

CAPABILITIES: Final[Mapping[str, str]] = {
    "push": "the target pushes nothing to subscribers",
    "offset-for-time": "the target does not know OffsetForTime (0x70)",
    "batch-times": "the target does not know BatchTimes (0x75)",
    "cluster-status": "the target does not tell its cluster's status",
    "partitions": "the target does not know CreatePartitionedTopic (0x72)",
    "token": "no token was given (--token-file)",
    "token-all": "no token was given that everything asks for (--token-file)",
    "token-write-only": "no token was given that only writing asks for (--token-mode write-only)",
    "tls": "the target was not asked over TLS (--tls)",
    "mtls": "no certificate of the kit's was given (--cert)",
    "restart": "no way to restart the target was given (--restart-cmd)",
    "second-target": "no other node of the cluster was given (--second-target)",
    "groups": "no coordinator of consumer groups was given (--coordinator)",
}
"""Each capability, and why there is nothing to ask without it."""
BETWEEN: Final = (0.0, 0.0, 0.25)
"""Seconds to wait before each Keepalive after a Subscribe: a task that pushes may come late."""
OPTIONAL: Final = (
    "push",
    "offset-for-time",
    "batch-times",
    "cluster-status",
    "partitions",
    "groups",
)
"""Those that a target has or has not by itself; the others depend on what the kit is told."""

_CONSUMER: Final = 0x0C0F_FEE0_0C0F_FEE0
_PUSHED_TO: Final = _CONSUMER + 1
"""Not the same: a target that takes a consumer only once serves Subscribe, wrongly."""
LZ4_HEADER: Final = bytes.fromhex("04224d18604082")
"""Magic, flags (independent blocks, no checksum), blocks of 64 KiB, header checksum."""
_CANNOT: Final = (Failure, NotApplicable)
"""The target does not do it, or it was left out on purpose and is not sent."""
ENDED: Final = ("closed-early", "refused")
"""Reasons that say no more than that the connection is gone."""
_REFUSED: Final = answer(Command.ERROR_RESPONSE, "5.7/error")


def missing(needs: Collection[str], capabilities: Collection[str]) -> str | None:
    """Why the needs of a case are not met, or `None` when they are."""
    lacking = sorted(set(needs) - set(capabilities))
    return "; ".join(CAPABILITIES[need] for need in lacking) or None


async def probe(ctx: CaseContext, topic: Topic) -> frozenset[str]:
    """Try what can be tried; a target cannot do what it refuses, or does not answer.

    One that answers wrongly can do it: what is wrong is for the cases to tell.

    Args:
        ctx: The preflight's.
        topic: A topic with at least one record.
    """
    found = set()
    if await _knows(ctx, CLUSTER_STATUS):
        found.add("cluster-status")
    if await _knows(ctx, offset_for_time(topic.id, 0)):
        found.add("offset-for-time")
    if await _knows(ctx, batch_times(topic.id, 0, 1)):
        found.add("batch-times")
    if await _knows(ctx, create_partitioned(ctx.name(), 1)):
        found.add("partitions")
    if await _pushes(ctx, topic):
        found.add("push")
    return frozenset(found)


async def missing_features(ctx: CaseContext, topic: Topic) -> frozenset[str]:
    """Try each feature once, and say which are not served.

    Args:
        ctx: The preflight's.
        topic: A topic with at least one record.
    """
    tried = {
        "subscribe": (subscribe(topic.id, _CONSUMER), Command.SUBSCRIBE_ACK),
        "commits": (commit_offset(topic.id, _CONSUMER, 0), Command.COMMIT_ACK),
        "retention": (set_retention(topic.id, 1 << 30, 1 << 40), Command.TOPIC_RESPONSE),
    }
    found = {
        name for name, (request, wanted) in tried.items()
        if not await _answers(ctx, request, wanted)
    }  # fmt: skip
    return frozenset(found if await _takes_lz4(ctx, topic) else found | {"lz4"})


async def _takes_lz4(ctx: CaseContext, topic: Topic) -> bool:
    """Whether a batch in one LZ4 frame, whose one block is stored, is acknowledged."""
    plain = ingest(topic.id, ctx.batch(), ctx.values(1))
    size = (len(plain.payload) | 1 << 31).to_bytes(4, "little")
    payload = LZ4_HEADER + size + plain.payload + bytes(4)
    try:
        peer = await ctx.open()
        await peer.ask(
            replace(plain, flags=plain.flags | Flag.COMPRESSED, payload=payload),
            ack(plain.batch_id),
        )
    except _CANNOT:
        return False
    return True


async def _answers(ctx: CaseContext, request: Frame, wanted: Command) -> bool:
    """Whether a request has its answer before a Keepalive after it; silence costs no time."""
    try:
        peer = await ctx.open()
        peer.send(request)
        peer.send(KEEPALIVE)
        right = answer(wanted, "5.2/commands")
        frame = await peer.frame(right, _REFUSED, _any(_is_keepalive), _any(_is_fetch_response))
    except _CANNOT:
        return False
    return frame.batch_id == wanted


async def _knows(ctx: CaseContext, request: Frame) -> bool:
    """Whether a request is answered before a Keepalive after it, and not refused."""
    try:
        peer = await ctx.open()
        peer.send(request)
        peer.send(KEEPALIVE)
        frame = await peer.frame(_REFUSED, _any(lambda event: isinstance(event, Frame)))
    except NotApplicable:
        return False
    except Failure as failure:
        return _is_broken(failure)
    return not _is_keepalive(frame) and frame.batch_id != Command.ERROR_RESPONSE


def _is_broken(failure: Failure) -> bool:
    """Whether an incorrect frame came; silence and a closed connection do not count."""
    return not failure.timing and failure.reason not in ENDED


async def _pushes(ctx: CaseContext, topic: Topic) -> bool:
    """Whether a FetchResponse comes that nobody asked for, before the last Keepalive's answer."""
    try:
        peer = await ctx.open()
        request = subscribe(topic.id, _PUSHED_TO)
        await peer.ask(request, answer(Command.SUBSCRIBE_ACK, "5.12/ack"))
    except _CANNOT:
        return False
    try:
        for seconds in BETWEEN:
            await pause(seconds)
            peer.send(KEEPALIVE)
            frame = await peer.frame(_any(_is_keepalive), _any(_is_fetch_response))
            if _is_fetch_response(frame):
                return True
    except Failure as failure:
        return failure.reason not in {"unexpected-frame", *ENDED} and not failure.timing
    return False


def _is_keepalive(event: object) -> bool:
    return isinstance(event, Frame) and event.kind is FrameKind.KEEPALIVE


def _is_fetch_response(event: object) -> bool:
    return isinstance(event, Frame) and event.batch_id == Command.FETCH_RESPONSE


def _any(holds: Callable[[object], bool]) -> Allowed:
    return Allowed("a push or a Keepalive", "5.12/push", lambda e: None if holds(e) else "neither")
