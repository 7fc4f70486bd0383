"""Logging: standard library, nothing configured, one warning an incident."""

import logging

import pytest

from lance_sdk import Producer
from lance_sdk.errors import AuthenticationFailed
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.enums import Command
from lance_spec.frames import Frame
from lance_spec.messages.lwp import AuthenticateResponse


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


def test_a_callback_that_raises_is_logged(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    """With its traceback; exceptions in callbacks do not vanish."""

    def bad(_delivery: object) -> None:
        raise ValueError("in a callback")

    with server, Producer(server.url(), linger=60) as producer:
        producer.send(b"x").add_done_callback(bad)
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
    logger = logging.getLogger("lance_sdk")
    assert [type(handler) for handler in logger.handlers] == [logging.NullHandler]
    assert logger.level == logging.NOTSET
