"""One connection without a socket: what is answered, and in which order (AMB-28)."""

import pytest

from lance_server.testing import SessionPeer, told
from lance_spec.bodies import decode_error
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command, ErrorCode, Flag
from lance_spec.frames import encode_ack, encode_header
from lance_spec.records import encode_records

BOTH = pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)


# Order ------------------------------------------------------------------------------------------


@BOTH
def test_a_batch_is_acknowledged_only_when_it_is_durable(dialect: Dialect) -> None:
    """Before the sync nothing is sent; after it the Ack."""
    peer = SessionPeer(dialect)
    peer.send(peer.ingest(7))
    assert peer.received() == []
    peer.work()
    assert told(peer.received()) == [7]


@BOTH
def test_answers_come_in_the_order_of_their_requests(dialect: Dialect) -> None:
    """A keepalive and a command wait for the batches before them."""
    peer = SessionPeer(dialect)
    answers = peer.exchange(
        peer.keepalive(),
        peer.ingest(1),
        peer.keepalive(),
        peer.ingest(2),
        peer.control(Command.LIST_TOPICS),
        peer.keepalive(),
    )
    assert told(answers) == ["KEEPALIVE", 1, "KEEPALIVE", 2, "TOPIC_RESPONSE", "KEEPALIVE"]


def test_acks_of_one_flush_are_sent_in_one_piece() -> None:
    """What became durable together is acknowledged with a single write."""
    peer = SessionPeer()
    peer.send(*(peer.ingest(number) for number in range(1, 101)))
    peer.work()
    acks = b"".join(encode_ack(SPECIFIED, number) for number in range(1, 101))
    assert peer.session.data_to_send() == [acks]


def test_a_fetch_behind_a_batch_sees_it() -> None:
    """A command is carried out when everything before it has been answered."""
    peer = SessionPeer()
    ack, answer = peer.exchange(peer.ingest(1, [b"seen"]), peer.fetch())
    assert told([ack]) == [1]
    assert bytes(answer.payload[16:]) == encode_records([b"seen"])


def test_a_batch_behind_a_creation_finds_its_topic() -> None:
    """What follows a command in the same piece is handled after it."""
    peer = SessionPeer()
    answers = peer.exchange(peer.create("new"), peer.ingest(1, topic_id=1), peer.fetch(topic_id=1))
    assert told(answers) == ["TOPIC_RESPONSE", 1, "FETCH_RESPONSE"]


def test_a_refused_batch_keeps_its_place() -> None:
    """An error stands between the acknowledgements of its neighbours."""
    peer = SessionPeer()
    answers = peer.exchange(peer.ingest(1), peer.ingest(2, topic_id=77), peer.ingest(3))
    assert told(answers) == [1, "ERROR_RESPONSE", 3]


@pytest.mark.parametrize("flags", [Flag.CONTROL, Flag.KEEPALIVE], ids=["command", "keepalive"])
def test_an_encrypted_frame_is_refused_as_specified(flags: Flag) -> None:
    """Nobody defines that flag; published servers do not look at it (AMB-33)."""
    for dialect, answers in ((SPECIFIED, ["ERROR_RESPONSE"]), (DEPLOYED, None)):
        peer = SessionPeer(dialect)
        frame = encode_header(dialect, flags | Flag.ENCRYPTED, batch_id=Command.LIST_TOPICS)
        found = told(peer.exchange(frame))
        plain = told(peer.exchange(encode_header(dialect, flags, batch_id=Command.LIST_TOPICS)))
        assert found == (answers or plain)


def test_requests_may_arrive_byte_by_byte() -> None:
    """Where the stream is cut makes no difference."""
    whole, pieces = SessionPeer(), SessionPeer()
    request = whole.ingest(1) + whole.keepalive() + whole.fetch()
    for place in range(len(request)):
        pieces.session.receive_data(request[place : place + 1], 0.0)
    pieces.work()
    assert told(pieces.received()) == told(whole.exchange(request))


# Dialects ---------------------------------------------------------------------------------------


@BOTH
def test_the_first_header_decides_the_dialect(dialect: Dialect) -> None:
    """In auto mode a connection is answered in the dialect it speaks."""
    peer = SessionPeer(dialect)
    assert told(peer.exchange(peer.keepalive())) == ["KEEPALIVE"]


def test_a_pinned_dialect_refuses_the_other() -> None:
    """With the dialect pinned, the other polynomial is a wrong header CRC."""
    peer = SessionPeer(DEPLOYED, dialect="specified")
    peer.send(peer.keepalive())
    assert "header_crc" in str(peer.session.closing)
    assert peer.session.data_to_send() == []


# Faults of the stream ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place", [0, 4, 8, 36, 44], ids=["magic", "version", "crc", "pcrc", "data"]
)
def test_a_broken_stream_closes_without_a_word(place: int) -> None:
    """Bad magic, version and CRC close the connection; no error frame is sent (LWP 11)."""
    peer = SessionPeer()
    frame = bytearray(peer.ingest(1))
    frame[place] ^= 0x02
    peer.send(bytes(frame))
    assert peer.session.closing is not None
    assert peer.session.data_to_send() == []


def test_answers_before_a_fault_are_still_sent() -> None:
    """What was ready when the fault came in the same piece is not lost."""
    peer = SessionPeer()
    peer.send(peer.keepalive(), b"JUNK" * 11)
    assert told(peer.received()) == ["KEEPALIVE"]
    assert peer.session.closing is not None


def test_an_oversize_frame_is_told_after_pending_acks() -> None:
    """Acks first, then PayloadTooLarge with the batch id, then the end (AMB-17)."""
    peer = SessionPeer(max_payload=2048)
    huge = peer.raw_ingest(bytes(4096), 2)
    peer.send(peer.ingest(1), huge[:44])
    assert (peer.session.closing, peer.received()) == (None, [])
    peer.work()
    ack, answer = peer.received()
    assert told([ack]) == [1]
    error = decode_error(answer.payload)
    assert (error.code, error.details["batch_id"]) == (ErrorCode.PAYLOAD_TOO_LARGE, 2)
    assert peer.session.closing is not None


def test_a_deployed_oversize_frame_just_closes() -> None:
    """The published server closes without a frame (AMB-17)."""
    peer = SessionPeer(DEPLOYED, max_payload=2048)
    peer.send(peer.raw_ingest(bytes(4096), 2)[:44])
    assert peer.session.closing is not None
    assert peer.received() == []


def test_a_peer_that_ends_its_stream_still_gets_its_answers() -> None:
    """Half a close is no reason to forget an acknowledgement."""
    peer = SessionPeer()
    peer.send(peer.ingest(1))
    peer.session.end_of_stream(0.0)
    assert peer.session.closing is None
    peer.work()
    assert told(peer.received()) == [1]
    assert peer.session.closing is not None
