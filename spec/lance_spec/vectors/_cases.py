"""Whether the cases for servers are well formed, and each fault changes something."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lance_spec import ambiguities

FILE = "server_case.json"


def problems(folder: Path) -> Iterator[str]:
    """Yield what a schema cannot say about the cases in a folder, one sentence each.

    Args:
        folder: where the file is, which fits its schema.
    """
    document = json.loads((folder / FILE).read_text(encoding="utf-8"))
    cases = [case for group in document["testGroups"] for case in group["tests"]]
    if document["numberOfTests"] != len(cases):
        yield f"numberOfTests is {document['numberOfTests']}, there are {len(cases)}"
    for name, count in Counter(case["id"] for case in cases).items():
        if count > 1:
            yield f"{name} is the id of {count} cases"
    for group in document["testGroups"]:
        for case in group["tests"]:
            if case["id"].partition("/")[0] != group["area"]:
                yield f"{case['id']}: it stands in the area {group['area']}"
    known = {row.id for row in ambiguities.load()}
    for case in cases:
        yield from _case_problems(case, known)


def _case_problems(case: dict[str, Any], known: set[str]) -> Iterator[str]:
    for cite in _cited(case):
        if cite.startswith("AMB-") and cite not in known:
            yield f"{case['id']}: {cite} is not a row of the ambiguity register"
    fault = case.get("fault", {})
    same = "value" in fault and case["right"].get(fault["field"]) == fault["value"]
    if same:
        yield f"{case['id']}: its fault changes nothing"


def _cited(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("cite"), str):
            yield value["cite"]
        for part in value.values():
            yield from _cited(part)
    elif isinstance(value, list):
        for part in value:
            yield from _cited(part)
