"""Logging: standard library, nothing configured, one warning an incident."""

import asyncio
import logging
import subprocess
import sys
import threading

import pytest

from lance_sdk import Consumer, Producer
from lance_sdk.errors import AuthenticationFailed
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame, FrameKind
from lance_spec.messages.lwp import AuthenticateResponse
from lance_spec.records import encode_record


@pytest.fixture
def server() -> FakeServer:
    """Return a server, not started."""
    return FakeServer()


def test_a_good_day_logs_nothing(server: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    """Not at INFO and above."""
    caplog.set_level(logging.INFO, "lance_sdk")
    with server, Producer(server.url()) as producer:
        producer.send(b"x")
    assert caplog.records == []


def test_an_outage_is_one_warning_and_its_end_one_line(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    """However many times it was tried meanwhile."""
    caplog.set_level(logging.INFO, "lance_sdk")

    def refuse_some(peer: FakePeer, _frame: Frame) -> bool:
        return 1 < peer.number < 6 and (peer.close() or True)

    def drop_first(peer: FakePeer, _frame: Frame) -> bool:
        return peer.number == 1 and (peer.close() or True)

    server.on_keepalive, server.on_ingest = refuse_some, drop_first
    with server, Producer(server.url(), dialect="specified", backoff_base=0.001) as producer:
        producer.send(b"x").result(timeout=30)
    levels = [record.levelname for record in caplog.records]
    assert levels == ["WARNING", "INFO"]
    assert "connected again" in caplog.records[1].getMessage()
    assert caplog.records[1].lance["dialect"] == "specified"


@pytest.mark.parametrize("kind", [ValueError, asyncio.CancelledError, SystemExit])
def test_a_callback_that_raises_is_logged(
    server: FakeServer, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    """With its traceback; exceptions in callbacks do not vanish."""

    def bad(_delivery: object) -> None:
        raise kind("in a callback")

    added = threading.Event()
    server.on_ingest = lambda _peer, _frame: not added.wait(10)
    with server, Producer(server.url()) as producer:
        producer.send(b"x").add_done_callback(bad)
        added.set()
    (record,) = caplog.records
    assert record.name == "lance_sdk.delivery"
    assert "in a callback" in str(record.exc_info)


def test_secrets_are_not_logged(server: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    """At any level, whether the token is accepted or not."""
    caplog.set_level(logging.DEBUG, "lance_sdk")
    tokens: list[bytes] = []

    def guard(peer: FakePeer, frame: Frame) -> bool:
        if frame.command is not Command.AUTHENTICATE:
            return False
        tokens.append(bytes(frame.payload))
        answer = AuthenticateResponse(ok=len(tokens) == 1, message=b"")
        peer.control(Command.AUTHENTICATE_RESPONSE, answer.encode())
        return True

    server.on_control = guard
    with server:
        url = f"lance://s3cret@127.0.0.1:{server.port}/orders"
        with Producer(url) as producer:
            producer.send(b"x")
        with pytest.raises(AuthenticationFailed) as caught, Producer(url):
            pytest.fail("it must not open")
    assert tokens == [b"s3cret"] * 2
    assert caplog.records
    assert "s3cret" not in caplog.text + str(caught.value)


def test_the_package_configures_nothing() -> None:
    """A NullHandler, so that nothing is printed unasked, and no level."""
    code = (
        "import logging; from lance_sdk import Producer; logger = logging.getLogger('lance_sdk'); "
        "print([type(each).__name__ for each in logger.handlers], logger.level)"
    )
    told = subprocess.run(  # in a process of its own: commands that other tests run add handlers
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert told.stdout == "['NullHandler'] 0\n"


def test_the_wire_log_shows_frames_and_no_contents(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    """At DEBUG every frame, in both directions; tokens and records at no level."""
    caplog.set_level(logging.DEBUG, "lance_sdk.wire")

    def welcome(peer: FakePeer, frame: Frame) -> bool:
        if frame.command is not Command.AUTHENTICATE:
            return False
        answer = AuthenticateResponse(ok=True, message=b"")
        peer.control(Command.AUTHENTICATE_RESPONSE, answer.encode())
        return True

    server.on_control = welcome
    with server, Producer(f"lance://s3cret@127.0.0.1:{server.port}/orders") as producer:
        producer.send(b"private").result(timeout=30)
    lines = [record.getMessage().partition("/orders ")[2] for record in caplog.records]
    assert "> frame=CONTROL command=AUTHENTICATE bytes=6" in lines
    batch_id = hex(server.ingested[0].batch_id)
    assert (
        f"> frame=INGEST batch_id={batch_id} topic_id=1 records=1 compressed=False bytes=12"
        in lines
    )
    assert f"< frame=ACK batch_id={batch_id}" in lines
    assert "s3cret" not in caplog.text
    assert "private" not in caplog.text
    assert caplog.records[-1].lance["direction"] in {"<", ">"}


def test_one_refusal_after_the_other_is_one_warning(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    """However often a batch is sent again within a minute."""
    left = [5]

    def refuse(peer: FakePeer, frame: Frame) -> bool:
        left[0] -= 1
        if left[0] > 0:
            peer.error(0x30, "slow down", batch_id=frame.batch_id)
        return left[0] > 0

    server.on_ingest = refuse
    with server, Producer(server.url(), backoff_base=0.001) as producer:
        producer.send(b"x").result(timeout=30)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert caplog.records[0].lance["kind"] == "refused"


@pytest.mark.parametrize("kind", [Producer, Consumer])
def test_a_redirect_that_is_followed_is_one_line(
    kind: type[Producer] | type[Consumer], caplog: pytest.LogCaptureFixture
) -> None:
    """At INFO: the server has said where to go, and nothing is wrong."""
    caplog.set_level(logging.INFO, "lance_sdk")
    with FakeServer() as there, FakeServer() as here:
        there.topics.append(1, encode_record(b"x", 1))
        address = f"127.0.0.1:{there.port}"

        def redirect(peer: FakePeer, frame: Frame) -> bool:
            batch = {"batch_id": frame.batch_id} if frame.kind is FrameKind.INGEST else {}
            if batch or frame.command is Command.FETCH:
                peer.error(ErrorCode.NOT_LEADER, "not here", leader_addr=address, **batch)
                return True
            return False

        here.on_ingest = here.on_control = redirect
        with kind(here.url()) as client:
            if isinstance(client, Producer):
                client.send(b"x").result(timeout=30)
            else:
                next(iter(client))
    (line,) = caplog.records
    assert line.levelname == "INFO"
    assert f"redirected to {address}" in line.getMessage()
