"""A server that repeats the token does not get it into messages, logs or hooks."""

import logging
from typing import Any

import pytest

from lance_sdk import Hooks
from lance_sdk.errors import AccessDenied, AuthenticationFailed, DeliveryFailed
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame
from lance_spec.messages.lwp import AuthenticateResponse

pytestmark = pytest.mark.anyio

TOKEN = "s3cret-token"


class Seen(Hooks):
    """Writes down how every event looks."""

    def __init__(self) -> None:
        self.text = ""

    def __getattribute__(self, name: str) -> Any:
        return self._see if name.startswith("on_") else super().__getattribute__(name)

    def _see(self, event: Any) -> None:
        self.text += f"{event!r} {getattr(event, 'error', None)}\n"


def talkative(server: FakeServer, *, admits: bool = True) -> None:
    """Have a server put the token into everything it says."""

    def control(peer: FakePeer, frame: Frame) -> bool:
        if frame.command is Command.AUTHENTICATE:
            answer = AuthenticateResponse(ok=admits, message=b"you sent " + bytes(frame.payload))
            peer.control(Command.AUTHENTICATE_RESPONSE, answer.encode())
        elif frame.command is Command.GET_TOPIC:
            peer.error(ErrorCode.ACCESS_DENIED, f"not for {TOKEN}", who=[TOKEN])
        else:
            return False
        return True

    def ingest(peer: FakePeer, frame: Frame) -> bool:
        peer.error(ErrorCode.INVALID_PAYLOAD, f"{TOKEN} sent that", batch_id=frame.batch_id)
        return True

    server.on_control, server.on_ingest = control, ingest


async def fresh() -> str:
    """Return the token, as a function of the application does."""
    return TOKEN


async def test_an_error_never_shows_the_token(api: Any, server: FakeServer) -> None:
    """Neither its message nor its details (LWP section 12.3)."""
    talkative(server)
    async with api.client(server.url(), token=TOKEN) as client:
        with pytest.raises(AccessDenied) as caught:
            await client.get_topic(7)
    assert TOKEN not in f"{caught.value!r} {caught.value.details}"
    assert "not for ***" in str(caught.value)


async def test_a_refused_token_is_not_shown(api: Any, server: FakeServer) -> None:
    """The refusal has words of its own (LWP section 5.2)."""
    talkative(server, admits=False)
    with pytest.raises(AuthenticationFailed, match=r"you sent \*\*\*"):
        async with api.client(server.url(), token=TOKEN):
            pytest.fail("it must not open")


async def test_hooks_and_logs_never_show_the_token(
    api: Any, server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even at DEBUG, and not with what a record carries beside its words."""
    caplog.set_level(logging.DEBUG, "lance_sdk")
    talkative(server)
    seen = Seen()
    token = TOKEN if api.name == "threads" else fresh
    async with api.producer(server.url(), token=token, hooks=seen) as producer:
        delivery = await producer.send(b"x")
        with pytest.raises(DeliveryFailed, match=r"\*\*\* sent that"):
            await delivery.result(timeout=30)
    assert "*** sent that" in seen.text
    assert TOKEN not in seen.text
    assert TOKEN not in "".join(str(record.__dict__) for record in caplog.records)
