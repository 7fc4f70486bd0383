"""A badge: the JSON that shields.io calls an endpoint."""

import json

from lance_conformance.engine.report.reading import Told
from lance_conformance.engine.run.verdict import Verdict

_COLOURS = {0: "brightgreen", 1: "red"}


def badge(run: Told) -> str:
    """Return the badge of a run: how many of the MUST cases that were asked are kept."""
    asked = [
        case["verdict"]
        for case in run.cases.values()
        if case["level"] == "MUST" and case["verdict"] != Verdict.SKIP.value
    ]
    kept = asked.count(Verdict.PASS.value)
    return json.dumps(
        {
            "schemaVersion": 1,
            "label": f"{run.suite.title} {run.header['dialect']}",
            "message": f"{kept}/{len(asked)} MUST",
            "color": _COLOURS.get(run.footer["exit_code"], "yellow"),
        }
    )
