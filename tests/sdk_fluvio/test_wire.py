"""The connection without a socket: what it makes of any bytes."""

import pytest

from lance_sdk.errors import RemoteProtocolError, Unsupported
from lance_sdk.fluvio._asks import Ask
from lance_sdk.fluvio._wire import Wire
from lance_spec.messages.fluvio import (
    ApiVersionRange,
    ApiVersionsResponse,
    DeleteConsumerOffsetRequest,
    FetchOffsetsRequest,
    Frame,
    Request,
    Response,
    UpdateOffsetsRequest,
)


def greeted(*ranges: tuple[int, int, int]) -> Wire:
    """Return a connection to an SPU that offers some requests."""
    wire = Wire("spu", 1000)
    wire.greet()
    wire.data_to_send()
    keys = [ApiVersionRange(api_key=k, min_version=a, max_version=b) for k, a, b in ranges]
    wire.greeted(ApiVersionsResponse(error_code=0, api_keys=keys, platform_version="0.17.3"))
    return wire


def frame(number: int, body: bytes) -> bytes:
    """Return a response in its frame."""
    return Frame(body=Response(correlation_id=number, body=body).encode()).encode()


def sent(wire: Wire) -> Request:
    """Return the request that goes out."""
    return Request.decode(Frame.decode(wire.data_to_send()).body)


@pytest.mark.parametrize(
    ("offered", "spoken"), [((0, 25), 25), ((0, 24), 24), ((23, 99), 25), ((0, 0), 0)]
)
def test_the_highest_common_version_is_spoken(offered: tuple[int, int], spoken: int) -> None:
    """Old and new servers are both understood."""
    wire = greeted((1007, *offered))
    wire.request(
        Ask(1007, DeleteConsumerOffsetRequest(topic="t", partition=0, consumer_id="c"), "forget")
    )
    assert sent(wire).api_version == spoken


def test_a_server_without_a_common_version_is_named() -> None:
    """What cannot work is said before anything is sent."""
    wire = greeted((1002, 26, 30))
    with pytest.raises(Unsupported, match=r"FetchOffsets: .* 26 to 30, this client 0 to 25"):
        wire.request(Ask(1002, FetchOffsetsRequest(topics=[]), "offsets"))
    assert wire.data_to_send() == b""


def test_a_refused_greeting_is_an_error() -> None:
    """A server may know no client like this."""
    refused = ApiVersionsResponse(error_code=35, api_keys=[], platform_version="")
    with pytest.raises(RemoteProtocolError, match="error 35"):
        Wire("sc", 1000).greeted(refused)


def test_responses_come_in_any_order_and_in_any_pieces() -> None:
    """They are matched by their number."""
    wire = greeted()
    one = wire.request(Ask(1005, UpdateOffsetsRequest(offsets=[]), "go on"))
    two = wire.request(Ask(1005, UpdateOffsetsRequest(offsets=[]), "go on"))
    data = frame(two, bytes(4)) + frame(one, bytes(4))
    for place in range(len(data)):
        wire.receive_data(data[place : place + 1])
    assert wire.answer(one).status == []
    assert wire.answer(two).status == []


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x00\x00\x00\x03abc", "response of 3 bytes"),
        (b"\xff\xff\xff\xff", "response of -1 bytes"),
        (b"\x00\x01\x00\x00", "response of 65536 bytes"),
        (frame(4711, b""), "answers request 4711, which was never made"),
        (frame(2, b"\x00\x00\x00\x09"), "no UpdateOffsetsResponse of version 0"),
    ],
)
def test_a_broken_response_is_an_error(data: bytes, complaint: str) -> None:
    """It names what was wrong."""
    wire = greeted()
    assert wire.request(Ask(1005, UpdateOffsetsRequest(offsets=[]), "go on")) == 2
    with pytest.raises(RemoteProtocolError, match=complaint):
        wire.receive_data(data)


def test_a_server_that_floods_a_stream_is_stopped() -> None:
    """Responses that nobody asked for by an acknowledgement are not collected without end."""
    wire = greeted()
    number = wire.request(Ask(1005, UpdateOffsetsRequest(offsets=[]), "go on"))
    with pytest.raises(RemoteProtocolError, match="without waiting"):
        wire.receive_data(frame(number, bytes(4)) * 100)
