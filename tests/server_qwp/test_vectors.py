"""The test vectors for QWP, put to the endpoint."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from lance_server.listeners.qwp import QwpOptions
from lance_server.listeners.qwp.refusals import QwpRefusal
from lance_server.listeners.qwp.rows import Reader
from lance_server.listeners.qwp.testing import Endpoint

VECTORS = Path(__file__).parents[2] / "vectors"


def vectors(name: str, **group: str) -> list[Any]:
    """Return the vectors of the groups that have these properties."""
    document = json.loads((VECTORS / f"{name}.json").read_text())
    return [
        pytest.param(test, id=test["id"])
        for each in document["testGroups"]
        if group.items() <= each.items()
        for test in each["tests"]
    ]


@pytest.mark.parametrize("test", vectors("qwp_message", message="QwpMessage"))
def test_a_message_that_is_none_is_refused(test: dict[str, Any]) -> None:
    """What the vectors call invalid is never stored."""
    taken = True
    try:
        Reader(QwpOptions()).read(bytes.fromhex(test["bytes"]), 1)
    except QwpRefusal:
        taken = False
    assert test["result"] == "valid" or not taken


@pytest.mark.parametrize("test", vectors("qwp_upgrade", side="request"))
def test_an_upgrade_is_answered_as_it_deserves(qwp: Endpoint, test: dict[str, Any]) -> None:
    """Valid requests get a connection, others an answer that says no."""
    address = (qwp.listener.address.host, qwp.listener.address.port)
    valid = test["result"] == "valid"
    with socket.create_connection(address, timeout=10 if valid else 0.2) as peer:
        peer.sendall(bytes.fromhex(test["bytes"]))
        try:
            answer = peer.recv(4096)
        except TimeoutError:
            answer = b""  # it waits for the rest
    assert answer.startswith(b"HTTP/1.1 101") is valid
