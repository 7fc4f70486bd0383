"""``lwp offsets --store server:…``: what consumers have committed to a server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sdk_cli.conftest import Call

from lance_sdk.offsets import consumer_id
from lance_server.config.settings import Address
from lance_server.embedded import EmbeddedServer, running
from lance_server.testing import RawClient
from lance_spec.enums import Command
from lance_spec.messages.lwp import CommitOffset


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server to which consumers 7 and 42 have committed."""
    with running(tmp_path, http=Address("127.0.0.1", 0), admin=True) as server:
        with RawClient(server.address) as client:
            client.store([b"one"], batch_id=1)
            for consumer in (7, 42):
                client.ask(Command.COMMIT_OFFSET, CommitOffset(0, consumer, 8).encode())
        yield server


def store_of(server: EmbeddedServer) -> str:
    """Return how the server's commits are named as a store."""
    assert server.http_url is not None
    return "server:" + server.http_url.removeprefix("http://")


def committed(lwp: Call, server: EmbeddedServer) -> list[str]:
    """Return who has committed something."""
    result = lwp("offsets", "show", "--store", store_of(server), "--json")
    return [each["consumer"] for each in json.loads(result.stdout)]


def test_commits_are_shown(lwp: Call, server: EmbeddedServer) -> None:
    """Of all consumers or of one, by their numbers."""
    assert committed(lwp, server) == ["7", "42"]
    result = lwp("offsets", "show", "42", "--store", store_of(server))
    assert result.exit_code == 0
    assert "42" in result.stdout
    assert "default" in result.stdout


def test_a_commit_is_removed(lwp: Call, server: EmbeddedServer) -> None:
    """The other one stays."""
    result = lwp("offsets", "reset", "42", "default", "--yes", "--store", store_of(server))
    assert result.exit_code == 0, result.stderr
    assert committed(lwp, server) == ["7"]


def test_a_consumer_is_named_as_its_program_names_it(lwp: Call, server: EmbeddedServer) -> None:
    """What it committed is found by the name, and removed."""
    with RawClient(server.address) as client:
        client.ask(Command.COMMIT_OFFSET, CommitOffset(0, consumer_id("billing"), 8).encode())
    named = ("billing", "--store", store_of(server))
    (shown,) = json.loads(lwp("offsets", "show", *named, "--json").stdout)
    assert (shown["consumer"], shown["offset"]) == ("billing", 8)
    assert lwp("offsets", "reset", "billing", "default", "--yes", *named[1:]).exit_code == 0
    assert committed(lwp, server) == ["7", "42"]


def test_commits_are_not_set_from_outside(lwp: Call, server: EmbeddedServer) -> None:
    """Consumers do that; the message says what can be done."""
    result = lwp("offsets", "set", "42", "default", "0", "--store", store_of(server))
    assert result.exit_code != 0
    assert "reset" in result.stderr


def test_a_server_that_does_not_answer_is_named(lwp: Call) -> None:
    """With what to write."""
    result = lwp("offsets", "show", "--store", "server:127.0.0.1:1")
    assert result.exit_code != 0
    assert "127.0.0.1:1 does not answer" in result.stderr
