"""The test vectors for QWP, put to the sender."""

import json
from pathlib import Path
from typing import Any

import pytest

from lance_sdk.errors import LanceError
from lance_sdk.journal.qwp._connection.link import Answered, WebSocketLink
from lance_sdk.journal.qwp._connection.upgrade import Granted, granted

from .world import HOST

VECTORS = Path(__file__).parents[3] / "vectors"


KEYS = {"lance-sdk": "dGhlIHNhbXBsZSBub25jZQ==", "questdb for Python": "yZhRvJkieh2lpBZEEP5rLw=="}
"""What the requests to these answers had as ``Sec-WebSocket-Key``."""


def answers() -> list[Any]:
    """Return the vectors that are answers to an upgrade, with the key of the request."""
    document = json.loads((VECTORS / "qwp_upgrade.json").read_text())
    return [
        pytest.param(test, KEYS[group["source"]["name"]], id=test["id"])
        for group in document["testGroups"]
        if group["side"] == "answer"
        for test in group["tests"]
    ]


def understood(raw: bytes, key: str, *, durable: bool) -> Granted:
    """Return what a sender takes an answer for.

    Raises:
        LanceError: it does not take it.
    """
    link = WebSocketLink(HOST, tls=False, headers={})
    link._protocol.key = key
    (answer,) = [*link.receive(raw), *link.receive_eof()]
    assert isinstance(answer, Answered)
    return granted(answer, durable=durable)


@pytest.mark.parametrize(("test", "key"), answers())
def test_an_answer_is_taken_for_what_it_says(test: dict[str, Any], key: str) -> None:
    """Version, durable acknowledgements and the largest message; or a refusal."""
    raw, fields = bytes.fromhex(test["bytes"]), test.get("fields", {})
    if test["result"] != "valid" or fields["status"] != 101:
        with pytest.raises(LanceError):
            understood(raw, key, durable=False)
        return
    grant = understood(raw, key, durable=fields["durable_ack"])
    assert grant.max_message == fields["max_batch_size"]
