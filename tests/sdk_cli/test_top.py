"""``lwp top``: what servers do, at one moment or as it changes."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.sdk_cli.conftest import Call

from lance_sdk.cli.top.figures import Look, gather
from lance_sdk.cli.top.tables import tables
from lance_sdk.offsets.consumer_ids import consumer_id
from lance_server.config.settings import Address
from lance_server.embedded import EmbeddedServer, running
from lance_server.testing import RawClient
from lance_spec.enums import Command
from lance_spec.messages.lwp import CommitOffset

DEADLINE = 60.0


def port_of(server: EmbeddedServer) -> str:
    """Return the address of a server's HTTP port."""
    assert server.http_url is not None
    return server.http_url.removeprefix("http://")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server with one record, a consumer 7 that has read none of it, and one connection."""
    with ExitStack() as stack:
        server = stack.enter_context(running(tmp_path / "one", http=Address("127.0.0.1", 0)))
        client = stack.enter_context(RawClient(server.address))
        client.store([b"one"], batch_id=1)
        client.ask(Command.COMMIT_OFFSET, CommitOffset(0, 7, 0).encode())
        yield server


@pytest.fixture
def silent() -> Iterator[str]:
    """An address at which nobody listens: bound, so that nobody else takes it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def told(lwp: Call, *arguments: str) -> dict[str, Any]:
    """Return what ``--json`` prints of one moment."""
    result = lwp("top", "--once", "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_json_tells_topics_with_their_lag(lwp: Call, server: EmbeddedServer) -> None:
    """The one record that is there, and who has not read it."""
    [topic] = told(lwp, port_of(server))["topics"]
    assert (topic["topic"], topic["records"], topic["consumers"]) == ("default", 1, 1)
    assert topic["lag"] == topic["bytes"] > 0


def test_json_tells_consumers(lwp: Call, server: EmbeddedServer) -> None:
    """By number, with what they have committed."""
    [consumer] = told(lwp, port_of(server))["consumers"]
    assert (consumer["consumer_id"], consumer["committed"]) == (7, 0)


def test_json_tells_connections_and_sync_latency(lwp: Call, server: EmbeddedServer) -> None:
    """One client is connected, and its record was synced."""
    found = told(lwp, port_of(server))
    [about] = found["servers"]
    assert about["connections"] == len(found["connections"]) == 1
    assert 0 < about["sync_p50_ms"] <= about["sync_p99_ms"]


def test_once_prints_a_table_of_each(lwp: Call, server: EmbeddedServer) -> None:
    """Where the output is no terminal, also without --once."""
    result = lwp("top", port_of(server))
    assert result.exit_code == 0, result.stderr
    for word in ("Servers", "Topics", "Consumers", "Connections", "sync p99", "default"):
        assert word in result.stdout


def test_a_consumer_without_a_name_is_hinted_at(lwp: Call, server: EmbeddedServer) -> None:
    """With the option that names it."""
    shown = lwp("top", port_of(server)).stdout
    assert "Consumers (a number is a consumer without a known name: --consumer-names" in shown


def test_where_all_consumers_have_names_nothing_is_hinted_at(lwp: Call, tmp_path: Path) -> None:
    """The names are given to the command here."""
    with (
        running(tmp_path / "data", http=Address("127.0.0.1", 0)) as server,
        RawClient(server.address) as client,
    ):
        client.store([b"one"], batch_id=1)
        client.ask(Command.COMMIT_OFFSET, CommitOffset(0, consumer_id("billing"), 0).encode())
        shown = lwp("top", port_of(server), "--consumer-names", "billing").stdout
    assert "Consumers\n" in shown
    assert "billing" in shown


def test_several_servers_are_told_apart(lwp: Call, server: EmbeddedServer, tmp_path: Path) -> None:
    """Each has a topic of this name; they are no cluster."""
    with running(tmp_path / "two", http=Address("127.0.0.1", 0)) as other:
        found = told(lwp, port_of(server), port_of(other))
    assert {each["server"] for each in found["topics"]} == {port_of(server), port_of(other)}


def test_a_server_that_does_not_answer_hides_no_other(
    lwp: Call, server: EmbeddedServer, silent: str
) -> None:
    """The others are shown, and the command says which one failed."""
    result = lwp("top", "--once", port_of(server), silent)
    assert result.exit_code == 3
    assert "default" in result.stdout
    assert f"{silent} does not answer" in result.stderr


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "\udcff"])
def test_a_host_that_cannot_exist_does_not_answer(lwp: Call, host: str) -> None:
    """No more than one that is away."""
    result = lwp("top", "--once", f"{host}:9090")
    assert result.exit_code == 3
    assert "does not answer" in result.stderr


def test_no_server_at_all_is_an_error(lwp: Call, silent: str) -> None:
    """With what to do about it, and nothing on stdout."""
    result = lwp("top", silent)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "name the server's HTTP port, as in: lwp top" in result.stderr


def test_another_program_at_the_port_is_named(lwp: Call, server: EmbeddedServer) -> None:
    """For example the port at which records are sent."""
    host, port = server.address
    result = lwp("top", f"{host}:{port}")
    assert result.exit_code == 3
    assert "HTTP port" in result.stderr


def test_the_terminal_shows_it_until_ctrl_c(server: EmbeddedServer) -> None:
    """It draws over the screen, and ends well when it is told to."""
    primary, secondary = pty.openpty()
    command = [sys.executable, "-m", "lance_sdk.cli", "top", port_of(server)]
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "140", "LINES": "50"}
    process = subprocess.Popen(
        command, stdin=secondary, stdout=secondary, stderr=secondary, env=env
    )
    os.close(secondary)
    shown = b""
    while b"Connections" not in shown:
        shown += os.read(primary, 65536)
    process.send_signal(signal.SIGINT)
    while (more := _more(primary)) != b"":
        shown += more
    os.close(primary)
    assert process.wait(DEADLINE) == 0
    assert b"default" in shown


def _more(terminal: int) -> bytes:
    """Return what else was drawn; nothing at the end, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


DISK_FIGURES = (
    "sync_p50_ms", "sync_p99_ms", "pending_bytes", "free", "scrubbed_bytes", "scrub_passes",
)  # fmt: skip


def node(address: str, end: int, committed: int, peers: dict[str, Any]) -> Look:
    """A node that has applied ``end`` bytes of one topic, as it tells that itself."""
    topic = {
        "id": 1, "name": "t", "records": end, "start_offset": 0, "end_offset": end,
        "bytes_per_second": 0.0,
    }  # fmt: skip
    consumer = {
        "topic_id": 1, "topic": "t", "consumer_id": 7, "committed": committed,
        "lag": end - committed, "name": "billing",
    }  # fmt: skip
    rates = ("records_in", "bytes_in", "bytes_out", "bytes_pushed", "fetches")
    status: dict[str, Any] = {
        "address": address, "node_id": 1, "unready": [], "uptime_seconds": 1.0,
        "rates": dict.fromkeys(rates, 0),
        "disk": dict.fromkeys(DISK_FIGURES, 0) | {"damaged": []},
        "counters": {"connections_open": 0}, "memory": {"used": 0, "limit": 1},
        "cluster": {"is_leader": end > 50, "behind": 100 - end, "peer_states": peers},
        "topics": [topic], "consumers": [consumer], "connections": [],
    }  # fmt: skip
    return Look(address, status)


def test_nodes_of_a_cluster_tell_a_topic_once() -> None:
    """As the node that is furthest has it; what it has not applied is told of each node."""
    peers = {"1": {"address": "a:1"}, "2": {"address": "b:1"}}
    found = gather([node("a:2", 40, 10, peers), node("b:2", 90, 30, peers)])
    assert [(each["server"], each["end_offset"]) for each in found["topics"]] == [("b:2", 90)]
    assert [each["committed"] for each in found["consumers"]] == [30]
    assert [each["role"] for each in found["servers"]] == ["follower", "leader"]
    assert [each["behind_records"] for each in found["servers"]] == [60, 10]


@pytest.mark.parametrize(
    ("damaged", "state"),
    [
        ([], "leader"),
        (["0_1.lnc"], "leader; damaged: 0_1.lnc"),
        (["0_1.lnc", "5_2.lnc", "9_3.lnc"], "leader; damaged: 0_1.lnc and 2 more"),
    ],
)
def test_damage_that_reading_against_checksums_found_is_shown(
    damaged: list[str], state: str
) -> None:
    """With the server's state, in the table and as JSON."""
    look = node("a:2", 90, 10, {"1": {"address": "a:1"}})
    look.status["disk"]["damaged"] = damaged
    figures = gather([look])
    assert figures["servers"][0]["damaged_segments"] == damaged
    assert next(tables(figures, rows=2)).rows[0][1] == state


def test_rows_that_are_left_out_are_counted() -> None:
    """The busiest stand first, so these matter least."""
    looks = [node(f"{name}:2", 40, 10, {}) for name in "abc"]
    topics = list(tables(gather(looks), rows=2))[1]
    assert (len(topics.rows), topics.left_out) == (2, 1)
