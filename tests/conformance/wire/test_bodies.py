"""What the kit asks of JSON bodies is what the specification's schemas say of them."""

from typing import Any

import pytest

from lance_conformance.server.cases.node.status import REQUIRED, TYPES, WORDS
from lance_conformance.server.golden.specified import Specified
from lance_spec import schemas

SCHEMA: dict[str, Any] = schemas.load("cluster_status")
PROPERTIES: dict[str, Any] = SCHEMA["properties"]
KINDS = {"integer": int, "boolean": bool, "object": dict, "string": str}


@pytest.mark.parametrize("name", TYPES)
def test_a_member_of_the_status_is_of_one_kind(name: str) -> None:
    """The kit's kind of a member (LWP section 16.5) is the schema's."""
    said = PROPERTIES[name]["type"]
    assert TYPES[name] is KINDS[said if isinstance(said, str) else said[0]]
    assert TYPES[name] in WORDS


def test_the_required_members_are_those_of_the_schema() -> None:
    """And of no other list."""
    assert frozenset(SCHEMA["required"]) == REQUIRED


def test_the_golden_status_has_the_members_of_the_schema() -> None:
    """All of them and no others."""
    assert Specified().status_body().keys() == PROPERTIES.keys()
