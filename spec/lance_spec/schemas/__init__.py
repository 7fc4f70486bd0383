"""JSON Schemas of the JSON that LWP carries and servers keep, and of HTTP headers.

They describe what a conforming program writes. `lance_spec.bodies` reads more widely, as LWP
section 5 asks of clients: members it does not know are kept or ignored.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

NAMES: Final = (
    "topic",
    "topic_list",
    "topic_deleted",
    "error",
    "cluster_status",
    "topic_metadata",
    "qwp_upgrade_request",
    "qwp_upgrade_response",
    "rustlog_request",
    "rustlog_response",
)
"""The names of all schemas."""


@cache
def load(name: str) -> dict[str, Any]:
    """Return a schema, JSON Schema draft 2020-12.

    Args:
        name: one of `NAMES`.

    Raises:
        ValueError: there is no such schema.
    """
    if name not in NAMES:
        raise ValueError(f"no schema {name!r}; there are {', '.join(NAMES)}")
    path = Path(__file__).with_name(f"{name}.schema.json")
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema
