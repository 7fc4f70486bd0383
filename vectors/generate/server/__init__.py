"""Family ``server_case``: what to send to a server, and what may come back.

The cases are data for the conformance kit, and for anybody who wants to play them in another
language. What they are called, and when an id may change, is the kit's business.
"""

from typing import Any

from generate.document import CORPUS, LWP
from generate.server import batches, compression, headers, records, sizes

HEADER = [
    "What to send to a server, and what may come back. vectors/README.md says how to play a case.",
    "A duel sends `right`, which must bring `answer`, and then, on a fresh connection, the same",
    "frame with its one `fault`, which must bring one of the outcomes `allowed` in the dialect.",
    "An exchange is a list of steps: frames in one write, and the answers in their order.",
]
MODULES = (headers, batches, records, compression, sizes)


def build() -> dict[str, Any]:
    """Return the family's file."""
    cases = [case for module in MODULES for case in module.CASES]
    groups: dict[str, list[Any]] = {}
    for each in cases:
        groups.setdefault(each["id"].partition("/")[0], []).append(each)
    return {
        "schema": "schema/server_case_v1.schema.json",
        "spec": LWP,
        "corpus": CORPUS,
        "numberOfTests": len(cases),
        "header": HEADER,
        "testGroups": [{"area": area, "tests": tests} for area, tests in groups.items()],
    }
