"""Cases about GetClusterStatus (LWP section 16.5, AMB-11)."""

from collections.abc import Callable, Mapping
from typing import Any

from lance_conformance.engine.failures import NotApplicable
from lance_conformance.engine.registry import CaseFunction
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import BOTH, case
from lance_conformance.server.expect import answer
from lance_conformance.wire.consumers import CLUSTER_STATUS
from lance_conformance.wire.control import control, read_json
from lance_conformance.wire.frame import Command

REQUIRED = frozenset({"mode", "node_id", "is_leader", "leader_id", "current_term"})
"""Members that each status has; the others are optional."""
TYPES: Mapping[str, type] = {
    "mode": str,
    "node_id": int,
    "is_leader": bool,
    "leader_id": int,
    "current_term": int,
    "node_count": int,
    "healthy_nodes": int,
    "quorum_available": bool,
    "peer_states": dict,
}
WORDS: Mapping[type, str] = {
    int: "a whole number", bool: "true or false", dict: "an object", str: "text",
}  # fmt: skip


def status_case(
    case_id: str, clause: str, dialects: tuple[str, ...] = BOTH, *, quick: bool = False
) -> Callable[[CaseFunction], CaseFunction]:
    """Register a case for servers that tell their status."""
    return case(case_id, clause, dialects=dialects, needs=("cluster-status",), quick=quick)


async def _status(ctx: CaseContext, cite: str) -> Mapping[str, Any]:
    frame = await ctx.side.ask(CLUSTER_STATUS, answer(Command.CLUSTER_STATUS_RESPONSE, cite))
    body = read_json(frame.payload)
    if body is None:
        raise ctx.side.failure("body:not-json", f"not a JSON object: {frame.payload[:200]!r}")
    return body


@status_case("clu/status", "16.5/status", quick=True)
async def status(ctx: CaseContext) -> None:
    """GetClusterStatus is answered with a JSON object."""
    await _status(ctx, "16.5/status")


@status_case("clu/status-fields", "16.5/status-fields")
async def status_fields(ctx: CaseContext) -> None:
    """The status names mode, node, leader and term; each value is of its kind.

    A node that knows no leader says null.
    """
    body = await _status(ctx, "16.5/status-fields")
    for key, kind in TYPES.items():
        value, there = body.get(key), key in body
        right = isinstance(value, kind) and (kind is bool) == isinstance(value, bool)
        right = right or (there and key == "leader_id" and value is None)
        right = right or (not there and key not in REQUIRED)
        ctx.check(right, f"field:{key}", f"{key} must be {WORDS[kind]}, is {value!r}")


@status_case("clu/leader-is-named", "16.5/leader")
async def leader_is_named(ctx: CaseContext) -> None:
    """A node that says that it leads names itself as the leader."""
    body = await _status(ctx, "16.5/leader")
    if not body.get("is_leader"):
        raise NotApplicable("the target says that it is not the leader")
    said, own = body.get("leader_id"), body.get("node_id")
    ctx.check(said == own, "field:leader_id", f"leader_id must be its own id {own!r}, is {said!r}")


@status_case("clu/counts-fit", "16.5/counts")
async def counts_fit(ctx: CaseContext) -> None:
    """There is one node at least, and no more healthy ones than there are."""
    body = await _status(ctx, "16.5/counts")
    if not {"node_count", "healthy_nodes"} <= body.keys():
        raise NotApplicable("the status does not count nodes")
    nodes, healthy = body["node_count"], body["healthy_nodes"]
    fits = 1 <= healthy <= nodes
    ctx.check(fits, "field:healthy_nodes", f"{healthy} of {nodes} nodes cannot be healthy")


@status_case("clu/status-alias", "16.5/alias", ("specified",))
async def status_alias(ctx: CaseContext) -> None:
    """Command 0x30, as section 16.5 has it, brings the status as 0x07 does."""
    right = answer(Command.CLUSTER_STATUS_RESPONSE, "AMB-11")
    await ctx.side.ask(control(Command.GET_CLUSTER_STATUS_ALIAS), right)


@status_case("clu/retry-window", "16.5/retry-window", ("specified",))
async def retry_window(ctx: CaseContext) -> None:
    """A server that states how far back it knows retries does so in whole numbers."""
    window = (await _status(ctx, "16.5/status")).get("dedup_window")
    if window is None:
        raise NotApplicable("the target states no dedup_window: delivery is at least once")
    numbers = (
        [window.get(k) for k in ("entries", "max_age_secs")] if isinstance(window, dict) else []
    )
    right = len(numbers) == 2 and all(type(n) is int and n >= 0 for n in numbers)
    ctx.check(right, "field:dedup_window", f"two whole numbers must come: {window!r}")
