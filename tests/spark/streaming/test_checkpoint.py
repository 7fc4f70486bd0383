"""What Spark's checkpoint holds: read again by every later version, refused where it is spoiled."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk.offsets.contract import Fingerprint, TopicIdentity
from lance_sdk.spark.errors import CheckpointError
from lance_sdk.spark.streaming.checkpoint import (
    Cut,
    TopicCheckpoint,
    decode_checkpoint,
    encode_checkpoint,
    version_of,
)

GOLDEN = Path(__file__).parent / "golden" / "checkpoint_v1.json"


def test_the_golden_checkpoint_is_read_and_written_the_same() -> None:
    """What version 1 has written, every later version reads."""
    body = json.loads(GOLDEN.read_text())
    checkpoints = decode_checkpoint(body)
    assert checkpoints["orders"] == TopicCheckpoint(
        TopicIdentity(7, "orders", 1795292115, 2),
        35,
        399980,
        Fingerprint(334460, 65520, "55928d6a13921dc40a1b34c512768afd"),
        (Cut(199990, 2414221748), Cut(399980, 17)),
    )
    assert encode_checkpoint(checkpoints, version_of(body)) == body


def test_fields_of_a_later_version_are_kept() -> None:
    """So that going back and forth loses nothing."""
    body = json.loads(GOLDEN.read_text())
    body["topics"]["orders"]["novelty"] = 5
    assert encode_checkpoint(decode_checkpoint(body), version_of(body)) == body


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"v": 3, "topics": {}}, "version 3 and this package reads up to 2"),
        ({}, "version None"),
        ({"v": 2}, "no field 'topics'"),
        ({"v": 1, "topics": {"a": {}}}, "topic 'a'"),
        ({"v": 1, "topics": {"a": 7}}, "topic 'a'"),
        ({"v": 1, "topics": {"a": {"id": 1, "from": 0, "offset": -1}}}, "is not an offset"),
        ({"v": 1, "topics": {"a": {"id": 1, "from": 0, "offset": True}}}, "is not an offset"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_says_why(body: dict[str, Any], message: str) -> None:
    """Rather than beginning somewhere."""
    with pytest.raises(CheckpointError, match=message):
        decode_checkpoint(body)


def places(body: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value of a JSON document."""
    yield path
    if isinstance(body, dict | list):
        for key, value in body.items() if isinstance(body, dict) else enumerate(body):
            yield from places(value, (*path, key))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@given(st.sampled_from(list(places(json.loads(GOLDEN.read_text())))), JSON)
def test_a_spoiled_checkpoint_is_read_or_refused(path: tuple[Any, ...], value: Any) -> None:
    """Wherever something else stands: no other error, and no split that goes back."""
    body: Any = json.loads(GOLDEN.read_text())
    if path:
        parent = body
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = value
    else:
        body = value
    try:
        checkpoints = decode_checkpoint(body)
    except CheckpointError:
        return
    for checkpoint in checkpoints.values():
        edges = [checkpoint.start, *(cut.end for cut in checkpoint.cuts), checkpoint.offset]
        assert edges == sorted(edges)
