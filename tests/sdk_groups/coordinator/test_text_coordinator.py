"""A coordinator on a real socket that speaks the published text protocol, too."""

from collections.abc import Iterator

import pytest

from lance_sdk.groups import Coordinator
from lance_spec.groups.text_protocol import decode_answer

from .coordinator_peer import JOIN, connected


@pytest.fixture
def text() -> Iterator[Coordinator]:
    """Return a coordinator that speaks to text workers, too."""
    with Coordinator("127.0.0.1:0", text_group="t", text_topics=[1, 2, 3, 4]) as coordinator:
        yield coordinator


def say(coordinator: Coordinator, request: str) -> str:
    """Send a text request on a connection of its own, as published workers do."""
    with connected(coordinator) as peer:
        peer.send(request.encode())
        answer = peer.sock.recv(4096).decode()
    decode_answer(answer.encode())
    return answer


def test_text_worker_joins(text: Coordinator) -> None:
    """A worker that joins is told its topics in the published form."""
    expected = 'JoinAccepted { worker_id: "w1", generation: 1, assignments: [1, 2, 3, 4] }'
    assert say(text, "JOIN:w1") == expected


def test_text_workers_share(text: Coordinator) -> None:
    """Workers share topics; each gives up what it is not told any more."""
    say(text, "JOIN:w1")
    assert (
        say(text, "JOIN:w2") == 'JoinAccepted { worker_id: "w2", generation: 2, assignments: [] }'
    )
    assert say(text, "HEARTBEAT:w1") == "HeartbeatAck { generation: 2 }"
    first = say(text, "GET_ASSIGNMENTS:w1")
    second = say(text, "GET_ASSIGNMENTS:w2")
    assert first == "Assignments { generation: 3, assignments: [1, 2] }"
    assert say(text, "HEARTBEAT:w2") == "HeartbeatAck { generation: 3 }"  # so that it asks
    assert second == "Assignments { generation: 3, assignments: [3, 4] }"
    assert say(text, "LEAVE:w1") == "LeaveAcknowledged"
    third = say(text, "GET_ASSIGNMENTS:w2")
    assert third == "Assignments { generation: 4, assignments: [1, 2, 3, 4] }"


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        ("HEARTBEAT:nobody", 'Error { message: "Worker not found" }'),
        ("LEAVE:nobody", 'Error { message: "'),
        ("DANCE:w1", 'Error { message: "'),
        ("JOIN:", 'Error { message: "'),
        ("JOIN:a/b", 'Error { message: "'),
    ],
)
def test_text_errors(text: Coordinator, request_: str, answer: str) -> None:
    """What cannot be done is answered in the published form."""
    say(text, "JOIN:w1")
    assert say(text, request_).startswith(answer)


def test_one_port_speaks_both(text: Coordinator) -> None:
    """Beside text workers, members speak LWP on the same port."""
    say(text, "JOIN:w1")
    with connected(text) as peer:
        assert peer.ask(JOIN).member == "a"
