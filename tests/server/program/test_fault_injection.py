"""Roles and faults: what a client must cope with, on request."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lance_server import EmbeddedServer, running
from lance_server.config.settings import Address
from lance_server.errors import ConfigError
from lance_server.fault_injection.faults import FaultInjector, FaultPlan
from lance_server.fault_injection.role import Role
from lance_server.testing import RawClient, SessionPeer, ask_http, free_port, the_error, told
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import FrameKind, encode_ack, encode_control
from lance_spec.messages.lwp import CatchingUp, GetTopic, SetRetention
from lance_spec.records import encode_records

BOTH = pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)
LEADER = Address("192.168.1.10", 1992)
ANYWHERE = Address("127.0.0.1", 0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server that takes orders over HTTP."""
    with running(tmp_path / "one", http=ANYWHERE, admin=True) as running_server:
        yield running_server


def order(server: EmbeddedServer, path: str, body: Any) -> tuple[int, str]:
    """Send an order; return status and answer."""
    answer = ask_http(server, f"/admin/{path}", "POST", body)
    return answer.status, answer.text


def follow(server: EmbeddedServer, **fields: Any) -> None:
    """Make a server a follower."""
    status, answer = order(server, "role", {"role": "follower", **fields})
    assert status == 200, answer


def go_wrong(server: EmbeddedServer, *rules: dict[str, Any]) -> None:
    """Order faults."""
    status, answer = order(server, "faults", {"rules": list(rules)})
    assert status == 200, answer


# A follower that refuses ------------------------------------------------------------------------


def follower(dialect: Dialect = SPECIFIED, leader: Address | None = LEADER) -> SessionPeer:
    """A connection to a follower that does not forward."""
    return SessionPeer(dialect, role=Role(is_follower=True, leader=leader))


def test_a_follower_names_the_leader() -> None:
    """0x20, and where to go (LWP section 12.3)."""
    error = the_error(follower().exchange(follower().ingest(7)))
    assert error.code is ErrorCode.NOT_LEADER
    assert error.details == {"leader_addr": "192.168.1.10:1992", "batch_id": 7}


def test_deployed_clients_are_told_in_the_known_words() -> None:
    """They look for the prefix."""
    peer = follower(DEPLOYED)
    (answer,) = peer.exchange(peer.ingest(7))
    assert bytes(answer.payload) == b"NOT_LEADER: redirect to 192.168.1.10:1992"


def test_a_follower_may_not_know_its_leader() -> None:
    """0x22."""
    peer = follower(leader=None)
    assert the_error(peer.exchange(peer.ingest(7))).code is ErrorCode.LEADER_UNKNOWN


@pytest.mark.parametrize(
    ("command", "payload"),
    [
        (Command.CREATE_TOPIC, b"orders"),
        (Command.CREATE_TOPIC_WITH_RETENTION, b"\x06\x00orders" + bytes(16)),
        (Command.DELETE_TOPIC, bytes(4)),
        (Command.SET_RETENTION, SetRetention(0, 1, 1).encode()),
    ],
)
def test_a_follower_refuses_every_write(command: Command, payload: bytes) -> None:
    """As the design classifies requests (section 21.3)."""
    assert follower().error(command, payload).code is ErrorCode.NOT_LEADER


def test_a_follower_serves_reads() -> None:
    """From what it has."""
    role = Role()
    peer = SessionPeer(role=role)
    peer.exchange(peer.ingest(1))
    role.change_to(Role(is_follower=True, leader=LEADER))
    assert told(peer.exchange(peer.fetch(), peer.keepalive())) == ["FETCH_RESPONSE", "KEEPALIVE"]
    assert peer.json(Command.GET_CLUSTER_STATUS)["is_leader"] is False


# A follower that forwards -----------------------------------------------------------------------


@BOTH
def test_a_follower_hands_writes_on(
    server: EmbeddedServer, tmp_path: Path, dialect: Dialect
) -> None:
    """They are stored at the leader, and its answers come back in order."""
    with running(tmp_path / "leader") as leader:
        follow(server, leader=f"127.0.0.1:{leader.address[1]}", forward=True)
        with RawClient(server.address, dialect) as client:
            assert client.create_topic("orders") == 1
            frames = [client.batch([b"%d" % n], batch_id=n, topic_id=1) for n in range(1, 51)]
            client.send(*frames)
            assert [client.acked() for _ in frames] == list(range(1, 51))
            client.send(client.batch([b"lost"], batch_id=51, topic_id=99))
            assert client.error().message
        with RawClient(leader.address, dialect) as reader:
            expected = encode_records([b"%d" % n for n in range(1, 51)])
            assert reader.read_all(topic_id=1) == expected


def test_a_leader_that_is_not_there_is_told(server: EmbeddedServer) -> None:
    """Nothing was sent; the client may retry."""
    follow(server, leader=f"127.0.0.1:{free_port()}", forward=True)
    with RawClient(server.address) as client:
        client.send(client.batch([b"one"], batch_id=1))
        error = client.error()
        assert (error.code, error.details["batch_id"]) == (ErrorCode.CLUSTER_NOT_READY, 1)


def test_a_leader_that_goes_away_leaves_it_open(server: EmbeddedServer) -> None:
    """Whether the batch was stored, nobody knows: 0x62."""
    with socket.create_server(("127.0.0.1", 0)) as listener, RawClient(server.address) as client:
        follow(server, leader=f"127.0.0.1:{listener.getsockname()[1]}", forward=True)
        client.send(client.batch([b"one"], batch_id=1))
        leader, _ = listener.accept()
        assert leader.recv(44)
        leader.close()
        assert client.error().code is ErrorCode.TIMEOUT_ERROR


# A follower that is catching up -----------------------------------------------------------------


def test_a_follower_that_is_behind_says_how_far_it_is() -> None:
    """CATCHING_UP beyond what it has; whole records before (design section 23)."""
    role = Role()
    peer = SessionPeer(role=role)
    peer.exchange(peer.ingest(1, [b"12345"] * 10))
    role.change_to(Role(is_follower=True, leader=LEADER, behind=25))
    (behind,) = peer.exchange(peer.fetch(80))
    assert behind.command == Command.CATCHING_UP
    assert CatchingUp.decode(behind.payload).current_max_offset == 75
    (fetched,) = peer.exchange(peer.fetch(0))
    assert bytes(fetched.payload[16:]) == encode_records([b"12345"] * 7)
    assert peer.json(Command.GET_TOPIC, GetTopic(0).encode())["end_offset"] == 75
    role.change_to(Role())
    (fetched,) = peer.exchange(peer.fetch(80))
    assert bytes(fetched.payload[16:]) == encode_records([b"12345"] * 2)


# Faults -----------------------------------------------------------------------------------------


def line(*rules: dict[str, Any]) -> FaultInjector:
    """A connection's answers under some rules."""
    plan = FaultPlan()
    plan.replace({"rules": list(rules)})
    return FaultInjector(plan)


ACKS = [encode_ack(SPECIFIED, number) for number in range(1, 5)]


def test_rules_apply_to_single_answers() -> None:
    """Also when several are written in one piece; `after` and `count` choose which."""
    dropping = line({"fault": "drop", "after": 1, "count": 2})
    assert dropping.send([b"".join(ACKS)], SPECIFIED, 0.0) == [ACKS[0], ACKS[3]]
    assert not dropping.is_active


def test_rules_apply_to_what_they_name() -> None:
    """An error is not an Ack."""
    error = encode_control(SPECIFIED, Command.ERROR_RESPONSE, b"{}")
    dropping = line({"fault": "drop", "on": "error"})
    assert dropping.send([ACKS[0], error, ACKS[1]], SPECIFIED, 0.0) == [ACKS[0], ACKS[1]]


def test_what_is_delayed_is_not_overtaken() -> None:
    """The order of answers stays; later ones wait with it."""
    delaying = line({"fault": "delay", "seconds": 2.0, "after": 1})
    assert delaying.send(ACKS, SPECIFIED, 10.0) == [ACKS[0]]
    assert delaying.next_at == 12.0
    assert delaying.send([], SPECIFIED, 12.0) == ACKS[1:]


def test_two_answers_change_places() -> None:
    """And one alone is not held for ever."""
    swapping = line({"fault": "reorder"})
    assert swapping.send(ACKS[:2], SPECIFIED, 0.0) == [ACKS[1], ACKS[0]]
    alone = line({"fault": "reorder"})
    assert alone.send(ACKS[:1], SPECIFIED, 0.0) == []
    assert alone.next_at is not None
    assert alone.send([], SPECIFIED, alone.next_at) == [ACKS[0]]


def test_faults_reach_the_client(server: EmbeddedServer) -> None:
    """Dropped, advised, swapped: on a real connection, and then no more."""
    go_wrong(
        server,
        {"fault": "drop", "on": "ack"},
        {"fault": "backpressure", "on": "ack"},
        {"fault": "reorder", "on": "keepalive"},
    )
    with RawClient(server.address) as client:
        client.send(client.batch([b"one"], batch_id=1))
        client.send(client.batch([b"two"], batch_id=2))
        assert [client.receive().kind, client.acked()] == [FrameKind.BACKPRESSURE, 2]
        client.send(client.keepalive() + client.control(Command.LIST_TOPICS))
        assert client.receive().kind is FrameKind.CONTROL
        assert client.receive().kind is FrameKind.KEEPALIVE
        client.store([b"three"], batch_id=3)


def test_a_corrupted_answer_does_not_pass_for_a_good_one(server: EmbeddedServer) -> None:
    """One bit is enough."""
    go_wrong(server, {"fault": "corrupt", "on": "control"})
    with RawClient(server.address) as client, pytest.raises(ConnectionError, match="no frame"):
        client.ask(Command.LIST_TOPICS)


def test_a_delayed_answer_comes_in_the_end(server: EmbeddedServer) -> None:
    """With everything after it."""
    go_wrong(server, {"fault": "delay", "seconds": 0.3})
    with RawClient(server.address) as client:
        client.send(client.batch([b"one"], batch_id=1), client.batch([b"two"], batch_id=2))
        assert [client.acked(), client.acked()] == [1, 2]


def test_a_half_closed_connection_says_nothing_more(server: EmbeddedServer) -> None:
    """The last answer arrives, then the end of the stream; requests are still taken."""
    go_wrong(server, {"fault": "half_close", "on": "ack", "after": 1})
    with RawClient(server.address) as client:
        client.store([b"one"], batch_id=1)
        client.store([b"two"], batch_id=2)
        assert client.wait_for_close() == []
        client.send(client.batch([b"three"], batch_id=3))
    with RawClient(server.address) as other:
        other.store([b"four"], batch_id=4)


def test_a_reset_connection_is_gone(server: EmbeddedServer) -> None:
    """In the middle of a conversation; the batch was stored."""
    go_wrong(server, {"fault": "reset", "on": "ack"})
    with RawClient(server.address) as client:
        client.send(client.batch([b"one"], batch_id=1))
        with pytest.raises(ConnectionError):
            client.receive()
    with RawClient(server.address) as other:
        assert other.read_all() == encode_records([b"one"])


# Orders that make no sense ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("role", [], "role must be an object"),
        ("role", {}, "role must be one of leader, follower"),
        ("role", {"role": "king"}, "role must be one of leader, follower, not 'king'"),
        ("role", {"role": "leader", "boss": 1}, "role has no field 'boss'"),
        ("role", {"role": "follower", "leader": "there"}, "'there' is not an address"),
        ("role", {"role": "follower", "forward": True}, "knows its leader"),
        ("role", {"role": "follower", "behind": -1}, "behind must be a whole number"),
        ("faults", {"rules": 5}, "rules must be a list"),
        ("faults", {"rules": [5]}, "a rule must be an object"),
        ("faults", {"rules": [{"fault": "boom"}]}, "fault must be one of delay, drop"),
        ("faults", {"rules": [{"fault": "drop", "on": "x"}]}, "on must be one of any"),
        ("faults", {"rules": [{"fault": "drop", "count": True}]}, "count must be a whole"),
        ("faults", {"rules": [{"fault": "delay", "seconds": 1e9}]}, "seconds must be a number"),
        ("faults", {"rules": [{"fault": "drop"}] * 101}, "at most 100 rules"),
    ],
)
def test_orders_that_make_no_sense_are_told(
    server: EmbeddedServer, path: str, body: Any, words: str
) -> None:
    """400, the field, and what would be right; nothing is taken of them."""
    status, answer = order(server, path, body)
    assert (status, words in answer) == (400, True), answer
    with RawClient(server.address) as client:
        client.store([b"one"], batch_id=1)


def test_a_role_cannot_contradict_itself() -> None:
    """A leader forwards to nobody."""
    with pytest.raises(ConfigError, match="only a follower"):
        Role(leader=LEADER, forwards=True)
