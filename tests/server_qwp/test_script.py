"""Misbehaving on request: every rule does what it says, as often as it says."""

import socket
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from lance_server.errors import ConfigError
from lance_server.listeners.qwp import Rule, Script
from lance_server.listeners.qwp.testing import Endpoint, QwpPeer, longs
from lance_spec.messages.qwp import DurableAck, OkResponse, Status

DURABLE = [("X-QWP-Request-Durable-Ack", "true")]


def test_a_role_is_told_with_421(qwp: Endpoint) -> None:
    """A replica turns senders away and says what it is."""
    qwp.when(on="connect", status=421, role="REPLICA", headers={"X-Zone": "b"})
    with pytest.raises(InvalidStatus) as refused:
        QwpPeer(qwp.addr)
    assert refused.value.response.status_code == 421
    assert refused.value.response.headers["X-QuestDB-Role"] == "REPLICA"
    assert refused.value.response.headers["X-Zone"] == "b"
    with QwpPeer(qwp.addr) as peer:
        assert peer.ok(longs("t", 1)).wire_sequence == 0


def test_a_version_can_be_claimed(qwp: Endpoint) -> None:
    """The upgrade succeeds and names another version."""
    qwp.when(on="connect", version="2")
    with QwpPeer(qwp.addr) as peer:
        assert peer.granted("X-QWP-Version") == "2"


def test_durable_acks_can_be_withheld_from_the_upgrade(qwp: Endpoint) -> None:
    """The echo is missing although it was asked for."""
    qwp.when(on="connect", no_durable_ack=True)
    with QwpPeer(qwp.addr, headers=DURABLE) as peer:
        assert peer.granted("X-QWP-Durable-Ack") is None


def test_an_upgrade_can_stall(qwp: Endpoint) -> None:
    """The connection is accepted and never answered."""
    qwp.when(on="connect", stall=True)
    host, _, port = qwp.addr.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=0.2) as peer:
        peer.sendall(b"GET /write/v4 HTTP/1.1\r\nHost: x\r\n\r\n")
        with pytest.raises(TimeoutError):
            peer.recv(1)


def test_a_message_can_be_rejected(qwp: Endpoint) -> None:
    """Nothing of it is stored."""
    qwp.when(message=1, reject="SCHEMA_MISMATCH", text="no column v")
    with QwpPeer(qwp.addr) as peer:
        answer = peer.refused(longs("t", 1), longs("t", 2))
    assert (answer.status, answer.wire_sequence) == (Status.SCHEMA_MISMATCH, 1)
    assert answer.text == b"no column v"
    assert qwp.values("t") == [1]


def test_a_rule_can_wait_for_a_table(qwp: Endpoint) -> None:
    """Other tables are not concerned."""
    qwp.when(table="bad", reject=9)
    with QwpPeer(qwp.addr) as peer:
        assert peer.refused(longs("good", 1), longs("bad", 2)).wire_sequence == 1


@pytest.mark.parametrize("code", [1000, 1002, 1011, 4000])
def test_a_connection_can_be_closed_with_any_code(qwp: Endpoint, code: int) -> None:
    """The code and the reason arrive."""
    qwp.when(close=code, reason="as told")
    with QwpPeer(qwp.addr) as peer:
        peer.send(longs("t", 1))
        assert peer.closed() == code
    assert qwp.rows("t") == []


def test_rows_can_be_stored_before_the_close(qwp: Endpoint) -> None:
    """So a sender that sends again makes duplicates, as it may."""
    qwp.when(close=1001, store=True)
    with QwpPeer(qwp.addr) as peer:
        peer.send(longs("t", 1))
        assert peer.closed() == 1001
    assert qwp.values("t") == [1]


def test_a_connection_can_be_reset(qwp: Endpoint) -> None:
    """No goodbye at all."""
    qwp.when(reset=True)
    with QwpPeer(qwp.addr) as peer:
        peer.send(longs("t", 1))
        assert peer.closed() == 1006


def test_any_number_can_be_acknowledged(qwp: Endpoint) -> None:
    """Too much, too little, or less than nothing."""
    qwp.when(ack=-1)
    qwp.when(ack=1_000_000)
    with QwpPeer(qwp.addr) as peer:
        for expected in (-1, 1_000_000):
            peer.send(longs("t", 1))
            answer = peer.receive()
            assert isinstance(answer, OkResponse)
            assert answer.wire_sequence == expected


def test_any_bytes_can_be_sent(qwp: Endpoint) -> None:
    """An answer that is none."""
    qwp.when(send="00 01")
    with QwpPeer(qwp.addr) as peer:
        peer.send(longs("t", 1))
        assert peer.socket.recv(timeout=5, decode=False) == b"\0\1"


def test_a_stall_ends_all_answers(qwp: Endpoint) -> None:
    """The message and those after it are never answered."""
    qwp.when(stall=True)
    with QwpPeer(qwp.addr) as peer:
        peer.send(longs("t", 1), longs("t", 2))
        assert peer.silent()


def test_a_durable_ack_can_be_held(qwp: Endpoint) -> None:
    """It comes with the next message of the table."""
    qwp.when(hold_durable=True)
    with QwpPeer(qwp.addr, headers=DURABLE) as peer:
        peer.ok(longs("t", 1))
        assert peer.silent()
        peer.send(longs("t", 2))
        assert isinstance(peer.receive(), OkResponse)
        answer = peer.receive()
        assert isinstance(answer, DurableAck)
        assert answer.tables[0].sequence == 2


def test_an_answer_can_be_late(qwp: Endpoint) -> None:
    """It comes after the delay, and the message is stored."""
    qwp.when(delay=0.3)
    with QwpPeer(qwp.addr) as peer:
        peer.send(longs("t", 1))
        assert peer.silent(0.1)
        assert isinstance(peer.receive(), OkResponse)
    assert qwp.values("t") == [1]


def test_rules_apply_as_often_as_they_say() -> None:
    """0 means always; a spent rule makes way for the next."""
    script = Script(Rule(reject=3, times=2), Rule(reject=5, times=0))
    seen = [script.on_message(0, number, ()) for number in range(4)]
    assert [rule.reject for rule in seen if rule] == [3, 3, 5, 5]
    assert script.on_connect(0) is None


def test_rules_can_wait_for_a_connection() -> None:
    """Connections are counted from 0."""
    script = Script(Rule(connection=1, close=1000))
    assert script.on_message(0, 0, ()) is None
    assert script.on_message(1, 0, ()) is not None


def test_a_script_is_read_from_toml(tmp_path: Path) -> None:
    """One table for each rule."""
    file = tmp_path / "script.toml"
    file.write_text(
        '[[rule]]\non = "connect"\nstatus = 503\n\n[[rule]]\nmessage = 3\nreject = "WRITE_ERROR"\n'
    )
    script = Script.load(file)
    assert [rule.status for rule in script.rules] == [503, None]
    assert script.rules[1].reject == Status.WRITE_ERROR


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[rule]]\nrejekt = 3\n", "there is no 'rejekt'"),
        ("[[rule]]\nclose = 'x'\n", "close = 'x' is of the wrong type"),
        ("[[rule]]\nreject = 'NOPE'\n", "expected a number or one of"),
        ("[[rule]]\non = 'lunch'\n", "'connect' or 'message'"),
        ("[[rule]]\non = 'connect'\nclose = 1000\n", "not for a rule on 'connect'"),
        ("[[rule]]\nstatus = 503\n", "not for a rule on 'message'"),
        ("[[rule]]\nsend = 'xyz'\n", "expected hex digits"),
        ("[[rule]]\napplied = 1\n", "there is no 'applied'"),
        ("rule = 3\n", "a list of"),
        ("[other]\n", "a list of"),
        ("[[", "cannot read the script"),
    ],
)
def test_a_script_with_a_fault_names_it(tmp_path: Path, text: str, complaint: str) -> None:
    """The file, the rule and the word at fault."""
    file = tmp_path / "script.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        Script.load(file)


def test_a_script_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """The path is named."""
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        Script.load(tmp_path / "nowhere.toml")
