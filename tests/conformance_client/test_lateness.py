"""Which failures of a client slowness may have caused."""

import itertools
from collections.abc import Mapping
from typing import Literal

import pytest

from lance_conformance.client.evaluation import judge
from lance_conformance.client.operations import list_topics
from lance_conformance.client.scripted.model import Model
from lance_conformance.client.scripted.server import ScriptedConnection, ScriptedServer
from lance_conformance.dialect import SPECIFIED
from lance_conformance.engine.failures import Failure
from lance_conformance.engine.transcript import Transcript

FAILED = {"error": {"kind": "protocol", "text": "the magic is wrong"}}
LATE = {"error": {"kind": "timeout", "text": "no answer"}}
HUNG_UP = {"error": {"kind": "closed", "text": "no answer to the handshake in 1.0 s"}}


def a_server() -> ScriptedServer:
    """A scripted server whose topic is empty."""
    return ScriptedServer(Model(SPECIFIED), (), Transcript(lambda: 0.0), itertools.count(1))


def failure(server: ScriptedServer, result: Mapping[str, Mapping[str, str]] = FAILED) -> Failure:
    """How a call ends that must succeed, and fails."""
    with pytest.raises(Failure) as caught:
        judge(list_topics(), result, server, 0)
    return caught.value


def after_a_connection(*, ended: Literal["fin", "rst"] | None, wronged: bool = False) -> Failure:
    """A call fails because its connection is gone, which the client has ended, or not."""
    server = a_server()
    connection = ScriptedConnection(server)
    connection.ended, connection.wronged = ended, wronged
    server.connections.append(connection)
    return failure(server, HUNG_UP)


def test_a_client_that_hangs_up_on_a_right_server_may_have_waited_in_vain() -> None:
    """It gave the connection up because the answer took too long, as it may tell."""
    assert after_a_connection(ended="fin").timing


def test_a_client_that_lost_the_connection_is_not_late() -> None:
    """The server ended it."""
    assert not after_a_connection(ended=None).timing


def test_a_client_that_hangs_up_over_something_wrong_is_not_late() -> None:
    """What was sent is the reason."""
    assert not after_a_connection(ended="fin", wronged=True).timing


def test_a_failure_is_the_clients() -> None:
    """Another attempt would end the same."""
    assert not failure(a_server()).timing


def test_a_failure_after_one_that_ran_out_of_time_may_be_late() -> None:
    """The answer that it did not wait for can be what the next one meets."""
    server = a_server()
    judge(list_topics().safe(), LATE, server, 0)
    assert failure(server).timing


def test_a_failure_after_one_that_failed_in_time_is_the_clients() -> None:
    """Nothing was late."""
    server = a_server()
    judge(list_topics().safe(), FAILED, server, 0)
    assert not failure(server).timing
