"""The list of cases, filled by the modules of this package."""

from collections.abc import Container, Mapping
from functools import cache
from typing import Any

from lance_conformance.client.case_context import ClientCaseContext
from lance_conformance.client.cases.families import first_of_its_family
from lance_conformance.client.client_case import ClientCase
from lance_conformance.engine.registry import CaseRegistry
from lance_conformance.spec.clauses import Clause, read_clauses

BOTH = ("specified", "deployed")
SPECIFIED = ("specified",)
DEPLOYED = ("deployed",)
AREAS: Mapping[str, str] = {
    "wire": "Rules for every frame",
    "head": "Bad headers and payloads",
    "kind": "Each kind of answer",
    "piece": "Segmentation",
    "beat": "Keepalive",
    "ack": "Ingest and Ack",
    "rec": "Records",
    "admin": "Topics",
    "read": "Fetch",
    "follow": "Subscribe and commit",
    "code": "Errors",
    "loss": "Lost connections",
    "slow": "Backpressure",
    "stall": "Limits and time",
    "pass": "Token authentication",
    "cert": "TLS",
    "late": "Late on a connection",
    "large": "Large payloads",
    "wide": "Wide values",
    "many": "Many",
    "again": "Again",
    "between": "Interleaved",
    "pace": "Slow and idle",
    "drawn": "Long exchanges",
}


@cache
def client_clauses() -> Mapping[str, Clause]:
    """What the LWP document asks of a client, by key."""
    return read_clauses("lance_conformance.client")


CASES: CaseRegistry[ClientCaseContext] = CaseRegistry(
    ClientCaseContext, AREAS, client_clauses, BOTH
)


def add_case(
    case_id: str,
    clause: str,
    title: str,
    case: ClientCase,
    *,
    dialects: tuple[str, ...] = BOTH,
    quick: bool = True,
    weight: int = 1,
    thorough: bool = False,
    twin_of: str | None = None,
) -> None:
    """Register a case that is data.

    Args:
        case_id: ``area/slug``.
        clause: Key into the clauses.
        title: The rule in one sentence.
        case: The case.
        dialects: Where it has a meaning.
        quick: Whether it belongs to the quick profile.
        weight: How many times the usual deadline it gets.
        thorough: Whether only a thorough run asks it.
        twin_of: The case that it repeats for another value, where no family says so.
    """

    async def function(ctx: ClientCaseContext) -> None:
        await ctx.perform(case)

    function.__doc__ = title
    twin = twin_of or first_of_its_family(case_id)
    CASES.case(
        case_id, clause, dialects=dialects, quick=quick, weight=weight, twin_of=twin,
        thorough=thorough,
    )(function)  # fmt: skip


def more(value: int, usual: Container[int], first: str, *, alike: bool = False) -> dict[str, Any]:
    """What makes a case one of thorough runs only, for a value that a usual run does not ask.

    Args:
        value: The value.
        usual: Those of a usual run.
        first: A case of a usual run that asks the same.
        alike: No mutant tells those of a usual run apart, either.
    """
    if value in usual:
        return {"twin_of": first} if alike else {}
    return {"thorough": True, "twin_of": first}
