"""Refusals, as clients of both dialects read them (AMB-10)."""

from pathlib import Path

import pytest

from lance_sdk import Producer
from lance_sdk._errors.server import BY_CODE, server_error
from lance_sdk.hooks import DisconnectEvent, Hooks
from lance_server import running
from lance_server.lwp.refusals import Refusal, not_leader
from lance_server.lwp.responses import error_frame
from lance_server.testing import RawClient
from lance_spec.bodies import decode_error
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import ErrorCode
from lance_spec.limits import HEADER_SIZE

MAY_PASS = (
    ErrorCode.BACKPRESSURE,
    ErrorCode.CONNECTION_LIMIT,
    ErrorCode.CLUSTER_NOT_READY,
    ErrorCode.QUORUM_NOT_REACHED,
)


@pytest.mark.parametrize("code", MAY_PASS, ids=str)
def test_what_may_pass_is_read_so_from_the_published_words(code: ErrorCode) -> None:
    """Text has no code: without words that clients know they would give up."""
    payload = error_frame(DEPLOYED, Refusal(code, "Not now"))[HEADER_SIZE:]
    found = decode_error(payload)
    assert server_error(found.code, found.message).retryable
    assert BY_CODE[found.code].maybe_applied is BY_CODE[code].maybe_applied


def test_the_node_that_takes_a_request_is_read_from_the_published_words() -> None:
    """Its address is all that a client needs."""
    payload = error_frame(DEPLOYED, not_leader("10.0.0.7:1992", "Not here"))[HEADER_SIZE:]
    assert decode_error(payload).details["leader_addr"] == "10.0.0.7:1992"


class Leaving(Hooks):
    """Closes another connection once a client was turned away."""

    def __init__(self, other: RawClient) -> None:
        self._other = other

    def on_disconnect(self, event: DisconnectEvent) -> None:
        """Make room."""
        del event
        self._other.close()


@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)
def test_a_client_waits_for_a_place_at_a_full_server(tmp_path: Path, dialect: Dialect) -> None:
    """It connects again until somebody has left."""
    with running(tmp_path / "data", max_connections=1) as server:
        first = RawClient(server.address, dialect)
        first.store([b"x"], batch_id=1)
        at = {"dialect": dialect.name, "open_timeout": 60, "hooks": Leaving(first)}
        with Producer(f"{server.url}/orders", create_topic=True, **at) as producer:
            assert producer.send(b"x").result(60).attempts == 1


@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)
def test_who_comes_while_the_server_stops_is_told_so(tmp_path: Path, dialect: Dialect) -> None:
    """And not that it is full."""
    with running(tmp_path / "data", dialect=dialect.name) as server:
        server._running.service.stopping = True
        with RawClient(server.address, dialect) as late:
            assert "The server is stopping" in late.error().message
