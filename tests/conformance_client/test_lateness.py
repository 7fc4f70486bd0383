"""Which failures of a client slowness may have caused."""

import itertools

import pytest

from lance_conformance.client.evaluation import judge
from lance_conformance.client.operations import list_topics
from lance_conformance.client.scripted.model import Model
from lance_conformance.client.scripted.server import ScriptedServer
from lance_conformance.dialect import SPECIFIED
from lance_conformance.engine.failures import Failure
from lance_conformance.engine.transcript import Transcript

FAILED = {"error": {"kind": "protocol", "text": "the magic is wrong"}}
LATE = {"error": {"kind": "timeout", "text": "no answer"}}


def a_server() -> ScriptedServer:
    """A scripted server whose topic is empty."""
    return ScriptedServer(Model(SPECIFIED), (), Transcript(lambda: 0.0), itertools.count(1))


def failure(server: ScriptedServer) -> Failure:
    """How a call ends that must succeed, and fails."""
    with pytest.raises(Failure) as caught:
        judge(list_topics(), FAILED, server, 0)
    return caught.value


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
