"""Gate 8: whatever a hostile server does, the kit ends in time and does not praise it."""

import asyncio
from dataclasses import replace

from lance_conformance.cases import all_cases
from lance_conformance.dialect import SPECIFIED
from lance_conformance.golden.server import Connections, serving
from lance_conformance.mutants.hostile import hostile
from lance_conformance.peer.conditions import Conditions, Target
from lance_conformance.run.preflight import PreflightError, preflight
from lance_conformance.run.schedule import ask_all
from lance_conformance.run.verdict import Result, Verdict
from lance_conformance.selftest.gates import Gate

BUDGET = 0.3
LIMIT = 10.0
"""Seconds in which a whole run against a hostile server must end."""
ASKED = ("hdr/magic-closes", "kal/answered")
REACHES_THE_CASES = {"never-closes": {"hdr/magic-closes": "not-closed"}}
"""Hostile servers that pass the preflight, with the one verdict that must find them out."""


async def attacked(name: str, connections: Connections) -> list[str]:
    """Run the preflight and some cases against one hostile server; say what went wrong."""
    try:
        async with asyncio.timeout(LIMIT), serving(connections) as port:
            return await _attacked(name, port)
    except TimeoutError:
        return [f"{name}: the kit did not end within {LIMIT:.0f} s"]


async def _attacked(name: str, port: int) -> list[str]:
    conditions = Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED, budget=BUDGET)
    refused = False
    try:
        await preflight(conditions, patience=BUDGET)
    except PreflightError:
        refused = True
    faults = []
    if refused == (name in REACHES_THE_CASES):
        faults.append(f"{name}: the preflight {'refused' if refused else 'let'} it pass")
    cases = [case for case in all_cases() if case.id in ASKED]
    results = await ask_all(cases, replace(conditions, budget=BUDGET), jobs=len(cases))
    return faults + [fault for result in results if (fault := _judged(name, result))]


def _judged(name: str, result: Result) -> str:
    case = result.case.id
    wanted = REACHES_THE_CASES.get(name, {}).get(case)
    if wanted is not None:
        found = result.reason if result.verdict is Verdict.FAIL else result.verdict.value
        return "" if found == wanted else f"{name}: {case} is {found}, not {wanted}"
    proven = name in REACHES_THE_CASES
    fits = (result.verdict is Verdict.PASS) == proven
    return "" if fits else f"{name}: {case} is {result.verdict} ({result.reason})"


async def _all() -> list[str]:
    found = [await attacked(name, made) for name, made in hostile("specified").items()]
    return [fault for faults in found for fault in faults]


def kit_survives() -> Gate:
    """Gate 8, against every hostile server."""
    faults = asyncio.run(_all(), debug=False)
    count = len(hostile("specified"))
    return Gate("hostile servers cannot stop the kit", f"{count} attacks", tuple(faults))
