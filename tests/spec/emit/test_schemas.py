"""The JSON Schemas say of JSON what the vectors and `lance_spec.bodies` say."""

import json
from typing import Any

import jsonschema
import pytest
import referencing
from hypothesis import given
from hypothesis import strategies as st

from lance_spec import schemas, vectors
from lance_spec.bodies import ErrorBody, TopicInfo
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import ErrorCode
from lance_spec.qwp import upgrade
from lance_spec.vectors import Vector

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)


def validator(name: str) -> Any:
    """What judges JSON by a schema, the others at hand for references."""
    resources = [
        (f"{each}.schema.json", referencing.Resource.from_contents(schemas.load(each)))
        for each in schemas.NAMES
    ]
    registry = referencing.Registry().with_resources(resources)
    return jsonschema.Draft202012Validator(schemas.load(name), registry=registry)


def allowed(name: str, data: bytes) -> bool:
    """Whether bytes are JSON that a schema allows."""
    try:
        body = json.loads(data)
    except ValueError:
        return False
    return bool(validator(name).is_valid(body))


@pytest.mark.parametrize("name", schemas.NAMES)
def test_a_schema_is_one(name: str) -> None:
    """Each is valid JSON Schema of the draft it names."""
    jsonschema.Draft202012Validator.check_schema(schemas.load(name))


@pytest.mark.parametrize("name", [e for e in schemas.NAMES if not e.startswith(("rustlog", "qwp"))])
def test_every_schema_has_vectors_of_both_kinds(name: str) -> None:
    """No schema of LANCE stands without vectors; other systems have their own tests."""
    tests = [each for each in vectors.load("json_body") if each.group["body"] == name]
    assert {each.result for each in tests} == {"valid", "invalid"}


@pytest.mark.parametrize("vector", vectors.load("json_body").tests, ids=lambda vector: vector.id)
def test_schemas_judge_as_the_vectors_do(vector: Vector) -> None:
    """LWP sections 5.3 to 5.6, 6.2, 12.1: valid bodies are allowed, faulty ones are not."""
    assert allowed(vector.group["body"], vector.data) is (vector.result == "valid")


@given(
    st.builds(
        TopicInfo,
        id=U32,
        name=st.text(min_size=1, max_size=20),
        created_at=U64,
        topic_epoch=st.integers(1, 2**64 - 1),
        start_offset=U64 | st.none(),
        end_offset=U64 | st.none(),
        record_count=U64 | st.none(),
        max_age_secs=U64 | st.none(),
        max_bytes=U64 | st.none(),
    )
)
def test_what_bodies_write_of_topics_is_allowed(topic: TopicInfo) -> None:
    """LWP section 5.3: every TopicResponse of this package fits the schema."""
    assert validator("topic").is_valid(topic.to_body())


@given(st.sampled_from(ErrorCode), st.text(max_size=20), st.dictionaries(st.text(), U64))
def test_what_bodies_write_of_errors_is_allowed(
    code: ErrorCode, message: str, details: dict[str, int]
) -> None:
    """LWP section 12.1: every JSON error of this package fits the schema."""
    named = {"batch_id", "earliest", "next_offset", "leader_addr"}
    others = {name: value for name, value in details.items() if name not in named}
    assert allowed("error", ErrorBody(code, message, others).encode(SPECIFIED))


def test_an_unknown_schema_is_refused() -> None:
    """The error lists those there are."""
    with pytest.raises(ValueError, match="topic_metadata"):
        schemas.load("topics")


UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.mark.parametrize(
    ("name", "headers", "valid"),
    [
        ("qwp_upgrade_request", UPGRADE, True),
        ("qwp_upgrade_request", UPGRADE | {"x-qwp-max-version": "1"}, True),
        ("qwp_upgrade_request", UPGRADE | {"x-qwp-max-version": "one"}, False),
        ("qwp_upgrade_request", UPGRADE | {"x-qwp-request-durable-ack": "true"}, True),
        ("qwp_upgrade_request", UPGRADE | {"x-qwp-request-durable-ack": "on"}, False),
        ("qwp_upgrade_request", UPGRADE | {"authorization": "Digest x"}, False),
        ("qwp_upgrade_request", {k: v for k, v in UPGRADE.items() if k != "upgrade"}, False),
        ("qwp_upgrade_response", {}, True),
        ("qwp_upgrade_response", {"x-qwp-durable-ack": "Enabled"}, True),
        ("qwp_upgrade_response", {"x-qwp-durable-ack": "yes"}, False),
        ("qwp_upgrade_response", {"x-qwp-version": "2"}, False),
        ("qwp_upgrade_response", {"x-qwp-max-batch-size": "-1"}, False),
    ],
)
def test_headers_of_the_upgrade_are_judged(name: str, headers: dict[str, str], valid: bool) -> None:
    """QWP wire ingress: what senders ask and servers grant."""
    assert validator(name).is_valid(headers) is valid


def test_the_headers_in_schemas_are_those_of_the_code() -> None:
    """`lance_spec.qwp.upgrade` and the schemas name the same headers."""
    named = {v.lower() for k, v in vars(upgrade).items() if k.endswith("_HEADER")}
    every = set(schemas.load("qwp_upgrade_request")["properties"])
    every |= set(schemas.load("qwp_upgrade_response")["properties"])
    assert named == {each for each in every if each.startswith("x-")}
