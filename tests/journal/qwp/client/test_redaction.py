"""A host that repeats the sender's credentials does not get them into messages."""

import pytest
from tests.journal.qwp.world import Host, Wire, World

from lance_sdk.journal.qwp import Credentials
from lance_spec.messages.qwp import ErrorResponse

BASIC = Credentials(username="me", password="hunter22")
BEARER = Credentials(token="s3cret-token")


@pytest.mark.parametrize(
    ("credentials", "secret"),
    [(BASIC, "hunter22"), (BASIC, "bWU6aHVudGVyMjI="), (BEARER, "s3cret-token")],
)
def test_an_error_frame_does_not_show_them(credentials: Credentials, secret: str) -> None:
    """In the clear or as they were sent."""

    def refuse(wire: Wire) -> None:
        text = f"{secret} may not".encode()
        wire.answer(ErrorResponse(status=8, wire_sequence=0, text=text).encode())

    world = World(Host(on_message=refuse), credentials=credentials)
    world.append(b"QWP1\x01\0\0\0\0\0\0\0")
    world.run()
    assert world.inbox[0].message == "*** may not"


def test_a_reason_for_closing_does_not_show_them() -> None:
    """A WebSocket has words of its own."""
    host = Host(on_message=lambda wire: wire.close(1008, "not you, s3cret-token"))
    world = World(host, credentials=BEARER)
    world.append(b"QWP1\x01\0\0\0\0\0\0\0")
    world.run()
    assert "not you, ***" in world.inbox[0].message
