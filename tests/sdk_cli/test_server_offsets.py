"""``lwp offsets --store server:…``: what consumers have committed to a server."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.sdk_cli.conftest import Call

from lance_sdk import Client, Producer
from lance_sdk.offsets import Commit, FileStore, TopicIdentity, consumer_id
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


def offset_of(lwp: Call, server: EmbeddedServer, consumer: str) -> int:
    """Return what a consumer has committed."""
    shown = lwp("offsets", "show", consumer, "--store", store_of(server), "--json")
    (commit,) = json.loads(shown.stdout)
    return int(commit["offset"])


def test_a_commit_is_set(lwp: Call, server: EmbeddedServer) -> None:
    """As in every store; the topic is the one in which the consumer has committed."""
    result = lwp("offsets", "set", "42", "default", "0", "--store", store_of(server))
    assert result.exit_code == 0, result.stderr
    assert offset_of(lwp, server, "42") == 0


def test_a_name_is_committed_for_the_first_time(lwp: Call, server: EmbeddedServer) -> None:
    """The server's URL says which topic is meant, and where it ends."""
    place = ("--store", store_of(server), "--url", server.url)
    with Client(server.url) as client, Producer(f"{server.url}/orders", create_topic=True) as to:
        to.send(b"one").result()
        end = client.get_topic("orders").end_offset
    assert lwp("offsets", "set", "billing", "orders", "end", *place).exit_code == 0
    assert offset_of(lwp, server, "billing") == end


def test_the_commit_of_a_connected_consumer_is_not_set(lwp: Call, server: EmbeddedServer) -> None:
    """It would commit over it."""
    with RawClient(server.address) as client:
        client.ask(Command.COMMIT_OFFSET, CommitOffset(0, 42, 8).encode())
        result = lwp("offsets", "set", "42", "default", "0", "--store", store_of(server))
    assert result.exit_code == 1
    assert "Consumer 42 is connected; stop it first" in result.stderr


def test_a_commit_beyond_the_end_is_not_set(lwp: Call, server: EmbeddedServer) -> None:
    """The consumer would wait there for ever."""
    result = lwp("offsets", "set", "42", "default", "99", "--store", store_of(server))
    assert result.exit_code == 1
    assert "Topic 0 ends at 8" in result.stderr


def test_a_commit_is_not_copied_into_another_topic(
    lwp: Call, server: EmbeddedServer, tmp_path: Path
) -> None:
    """Two servers give the same number to topics of different names."""
    other = f"file:{tmp_path / 'offsets'}"
    topic = TopicIdentity(0, "orders")
    with closing(FileStore(tmp_path / "offsets")) as store:
        store.claim("billing", topic)
        store.save(Commit(consumer="billing", topic=topic, offset=0))
    result = lwp("offsets", "export", "--store", other, "--to", store_of(server))
    assert result.exit_code == 1
    assert "Topic 0 is called 'default' here" in result.stderr


def test_numbers_are_shown_as_the_names_that_the_command_was_told(
    lwp: Call, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the server was not told them."""
    with RawClient(server.address) as client:
        client.ask(Command.COMMIT_OFFSET, CommitOffset(0, consumer_id("billing"), 8).encode())
    monkeypatch.setenv("LANCE_CONSUMER_NAMES", "search, billing")
    assert committed(lwp, server) == ["7", "42", "billing"]


def test_a_store_without_an_address_is_answered_with_the_forms(lwp: Call) -> None:
    """A server's is one of them."""
    result = lwp("offsets", "show", "--store", "server")
    assert result.exit_code == 2
    assert "'server' is not a kind of offset store: expected server:HOST:PORT, " in result.stderr


def test_a_server_that_does_not_answer_is_named(lwp: Call) -> None:
    """With what to write."""
    result = lwp("offsets", "show", "--store", "server:127.0.0.1:1")
    assert result.exit_code != 0
    assert "127.0.0.1:1 does not answer" in result.stderr
