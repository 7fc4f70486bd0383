"""Gate 8: whatever a hostile server does, the kit ends in time and does not praise it."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.run.schedule import ask_all
from lance_conformance.engine.run.verdict import Result, Verdict
from lance_conformance.engine.selftest.gates import Gate
from lance_conformance.engine.suite import StartServer, Suite
from lance_conformance.server.preflight import PreflightError

BUDGET = 0.3
LIMIT = 10.0
"""Seconds in which a whole run against a hostile server must end."""


async def attacked(suite: Suite, name: str, server: StartServer) -> list[str]:
    """Run the preflight and some cases against one hostile server; say what went wrong."""
    try:
        async with asyncio.timeout(LIMIT), server() as port:
            return await _attacked(suite, name, port)
    except TimeoutError:
        return [f"{name}: the kit did not end within {LIMIT:.0f} s"]


async def _attacked(suite: Suite, name: str, port: int) -> list[str]:
    preset = next(iter(suite.presets.values()))
    conditions = Conditions(Target("127.0.0.1", port), preset, preset, budget=BUDGET)
    refused = False
    try:
        await suite.preflight(conditions, step_timeout=BUDGET)
    except PreflightError:
        refused = True
    proof = suite.proof()
    faults = []
    if refused == (name in proof.reaching):
        faults.append(f"{name}: the preflight {'refused' if refused else 'let'} it pass")
    cases = [suite.by_id[case] for case in proof.attacked]
    results = await ask_all(cases, replace(conditions, budget=BUDGET), jobs=len(cases))
    return faults + [fault for each in results if (fault := _judged(proof.reaching, name, each))]


def _judged(reaching: Mapping[str, Mapping[str, str]], name: str, result: Result) -> str:
    case = result.case.id
    wanted = reaching.get(name, {}).get(case)
    if wanted is not None:
        found = result.reason if result.verdict is Verdict.FAIL else result.verdict.value
        return "" if found == wanted else f"{name}: {case} is {found}, not {wanted}"
    proven = name in reaching
    fits = (result.verdict is Verdict.PASS) == proven
    return "" if fits else f"{name}: {case} is {result.verdict} ({result.reason})"


async def _all(suite: Suite, servers: Mapping[str, StartServer]) -> list[str]:
    found = [await attacked(suite, name, server) for name, server in servers.items()]
    return [fault for faults in found for fault in faults]


def kit_survives(suite: Suite) -> Gate:
    """Gate 8, against every hostile server."""
    servers = suite.proof().hostile(next(iter(suite.presets)))
    faults = asyncio.run(_all(suite, servers), debug=False)
    return Gate("hostile servers cannot stop the kit", f"{len(servers)} attacks", tuple(faults))
