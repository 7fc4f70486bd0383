"""Batches: which are stored, which are refused, which are known already."""

import lz4.frame
import pytest

from lance_server.storage.contract import read_file
from lance_server.testing import SessionPeer, the_error, told
from lance_spec.bodies import ErrorBody
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import ErrorCode, Flag
from lance_spec.frames import encode_ack, encode_backpressure
from lance_spec.messages.engine import EntryFlag, SidecarEntry, SidecarHeader
from lance_spec.records import encode_records

BOTH = pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)


# Refusals of batches ----------------------------------------------------------------------------


def refused(frame: bytes, peer: SessionPeer) -> ErrorBody:
    """Send one frame and return the error it is answered with; nothing may be stored."""
    error = the_error(peer.exchange(frame))
    assert peer.log.end() == 0
    return error


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"batch_id": 0}, "batch id"),
        ({"values": []}, "empty"),
        ({"count": 2}, "2 records"),
        ({"flags": Flag.BATCH_MODE | Flag.ENCRYPTED}, "Encrypted"),
        ({"flags": Flag.BATCH_MODE | Flag.CONTROL}, "more than one kind"),
        ({"flags": 0}, "kind flag"),
    ],
    ids=["batch id 0", "empty", "wrong count", "encrypted", "two kinds", "no kind"],
)
def test_a_malformed_batch_is_refused_as_specified(change: dict[str, object], word: str) -> None:
    """InvalidPayload, and nothing is stored (AMB-27, AMB-33)."""
    peer = SessionPeer()
    error = refused(peer.ingest(**{"batch_id": 9, **change}), peer)  # type: ignore[arg-type]
    assert error.code is ErrorCode.INVALID_PAYLOAD
    assert word in error.message


def test_a_broken_chain_names_record_and_offset() -> None:
    """The error says which record is not whole, and where it begins."""
    peer = SessionPeer()
    error = refused(peer.raw_ingest(encode_records([b"whole"]) + b"\x01\x09", 9, count=2), peer)
    assert error.code is ErrorCode.INVALID_PAYLOAD
    assert error.details == {"batch_id": 9, "record": 1, "offset": 10}


def test_a_record_over_the_limit_is_payload_too_large() -> None:
    """LWP section 8.7 has a code of its own for it."""
    peer = SessionPeer()
    error = refused(peer.raw_ingest(b"\x01\x01\x00\x00\x01"), peer)
    assert error.code is ErrorCode.PAYLOAD_TOO_LARGE


def test_errors_of_batches_carry_the_batch_id() -> None:
    """With several batches under way the client must know which one is meant (AMB-10)."""
    peer = SessionPeer()
    assert refused(peer.ingest(41, topic_id=9), peer).details["batch_id"] == 41


def test_deployed_clients_get_the_published_words() -> None:
    """Text errors have no batch id; clients match on the words."""
    peer = SessionPeer(DEPLOYED)
    (answer,) = peer.exchange(peer.ingest(1, topic_id=9))
    assert bytes(answer.payload) == b"Unknown topic"


def test_a_deployed_empty_batch_is_met_with_silence() -> None:
    """The published server says nothing at all (AMB-27)."""
    peer = SessionPeer(DEPLOYED)
    assert told(peer.exchange(peer.ingest(1, []), peer.keepalive())) == ["KEEPALIVE"]


def test_a_deployed_batch_that_is_no_chain_is_stored_as_it_is() -> None:
    """Opaque bytes come back unchanged to clients of the same kind (AMB-27)."""
    peer = SessionPeer(DEPLOYED)
    ack, answer = peer.exchange(peer.raw_ingest(b"Hello, LANCE!"), peer.fetch())
    assert told([ack]) == [1]
    assert bytes(answer.payload[16:]) == b"Hello, LANCE!"


@pytest.mark.parametrize("flags", [0x00, 0x01, Flag.BATCH_MODE])
def test_deployed_ingest_needs_no_flag_and_no_batch_id(flags: int) -> None:
    """As observed: a payload makes a frame Ingest, and batch id 0 is accepted (AMB-33)."""
    peer = SessionPeer(DEPLOYED)
    assert told(peer.exchange(peer.ingest(0, flags=flags))) == [0]


def test_frames_that_only_a_server_sends_are_ignored() -> None:
    """Ack and Backpressure from a client are counted and nothing else (AMB-33)."""
    peer = SessionPeer()
    answers = peer.exchange(
        encode_ack(SPECIFIED, 1), encode_backpressure(SPECIFIED), peer.keepalive()
    )
    assert told(answers) == ["KEEPALIVE"]
    assert peer.counters.ignored_frames == 2


# Duplicates -------------------------------------------------------------------------------------

LASTING = (7 << 40) + 1


def test_a_repeated_batch_is_stored_once_and_acknowledged_twice() -> None:
    """Same id, time and content on one connection: a retry (AMB-25)."""
    peer = SessionPeer()
    assert told(peer.exchange(peer.ingest(1), peer.ingest(1))) == [1, 1]
    assert told(peer.exchange(peer.ingest(1))) == [1]
    assert peer.log.end() == len(encode_records([b"value"]))


def test_a_retry_of_a_batch_in_flight_waits_for_its_sync() -> None:
    """Both acknowledgements come when the one copy is durable, not before."""
    peer = SessionPeer()
    peer.send(peer.ingest(1))
    peer.send(peer.ingest(1))
    assert peer.received() == []
    peer.work()
    assert told(peer.received()) == [1, 1]


def test_an_id_with_other_content_is_an_error_as_specified() -> None:
    """Batch ids are unique on a connection (LWP section 4.1)."""
    peer = SessionPeer()
    peer.exchange(peer.ingest(1, [b"one"]))
    error = the_error(peer.exchange(peer.ingest(1, [b"two"])))
    assert (error.code, error.details["batch_id"]) == (ErrorCode.INVALID_PAYLOAD, 1)


def test_an_id_with_other_content_is_stored_when_deployed() -> None:
    """The published server never looks at ids; we count what happened."""
    peer = SessionPeer(DEPLOYED)
    assert told(peer.exchange(peer.ingest(1, [b"one"]), peer.ingest(1, [b"two"]))) == [1, 1]
    assert (peer.log.end(), peer.counters.conflicts) == (16, 1)


def test_a_batch_without_a_time_is_never_taken_for_a_duplicate() -> None:
    """Timestamp 0 says nothing about identity: both copies are stored."""
    peer = SessionPeer()
    frame = peer.ingest(1, timestamp_ns=0)
    assert told(peer.exchange(frame, frame)) == [1, 1]
    assert peer.log.end() == 2 * len(encode_records([b"value"]))


def test_a_retry_after_a_failed_write_is_stored() -> None:
    """What was refused is not a duplicate."""
    peer = SessionPeer()
    peer.disk.fail = {"sync": 5}
    assert the_error(peer.exchange(peer.ingest(LASTING))).code is ErrorCode.STORAGE_ERROR
    peer.disk.fail = {}
    assert told(peer.exchange(peer.ingest(LASTING))) == [LASTING]
    assert peer.log.end() == len(encode_records([b"value"]))


def test_small_ids_of_another_connection_mean_another_batch() -> None:
    """Only ids with a producer's nonce last beyond their connection."""
    peer = SessionPeer()
    peer.exchange(peer.ingest(1))
    peer.reconnect()
    peer.exchange(peer.ingest(1))
    assert peer.log.end() == 2 * len(encode_records([b"value"]))


def test_a_batch_in_flight_is_known_on_another_connection() -> None:
    """The retry after a reconnect waits for the same sync."""
    peer = SessionPeer()
    peer.send(peer.ingest(LASTING))
    peer.reconnect()
    peer.send(peer.ingest(LASTING))
    assert peer.received() == []
    peer.work()
    assert told(peer.received()) == [LASTING]
    assert peer.log.end() == len(encode_records([b"value"]))


def test_the_memory_for_ids_of_a_connection_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last ones are known, those long ago are not."""
    monkeypatch.setattr("lance_server.lwp.ingest._REMEMBERED", 4)
    peer = SessionPeer()
    peer.exchange(*(peer.ingest(number) for number in range(1, 8)))
    size = len(encode_records([b"value"]))
    peer.exchange(peer.ingest(2))
    assert peer.log.end() == 7 * size
    peer.exchange(*(peer.ingest(number) for number in range(8, 12)), peer.ingest(2))
    assert peer.log.end() == 12 * size


def test_lasting_ids_are_known_on_another_connection() -> None:
    """A retry after a reconnect appends nothing, and is acknowledged."""
    peer = SessionPeer()
    peer.exchange(peer.ingest(LASTING))
    peer.reconnect()
    peer.send(peer.ingest(LASTING))
    assert told(peer.received()) == [LASTING]
    assert peer.log.end() == len(encode_records([b"value"]))


# Compression ------------------------------------------------------------------------------------

COMPRESSED = Flag.BATCH_MODE | Flag.COMPRESSED


@BOTH
def test_a_compressed_batch_is_stored_as_plain_records(dialect: Dialect) -> None:
    """Readers need no LZ4; the CRC on the wire is that of the compressed bytes (AMB-20)."""
    peer = SessionPeer(dialect)
    records = encode_records([b"one" * 100, b"two" * 100])
    frame = peer.raw_ingest(lz4.frame.compress(records), 1, count=2, flags=COMPRESSED)
    ack, answer = peer.exchange(frame, peer.fetch())
    assert told([ack]) == [1]
    assert bytes(answer.payload[16:]) == records


def test_a_retry_may_be_compressed_although_the_first_was_not() -> None:
    """Identity is judged on the records, not on the wire bytes (AMB-25)."""
    peer = SessionPeer()
    records = encode_records([b"one" * 100])
    plain = peer.raw_ingest(records, LASTING)
    squeezed = peer.raw_ingest(lz4.frame.compress(records), LASTING, flags=COMPRESSED)
    assert told(peer.exchange(plain, squeezed)) == [LASTING, LASTING]
    assert peer.log.end() == len(records)


def test_a_bomb_is_refused() -> None:
    """What unfolds to more than a payload may hold is PayloadTooLarge."""
    peer = SessionPeer(max_payload=4096)
    error = refused(peer.raw_ingest(lz4.frame.compress(bytes(100_000)), flags=COMPRESSED), peer)
    assert error.code is ErrorCode.PAYLOAD_TOO_LARGE


def test_a_deployed_payload_that_is_no_lz4_is_stored_as_it_is() -> None:
    """The published server never looks at the flag (AMB-20, AMB-27)."""
    peer = SessionPeer(DEPLOYED)
    ack, answer = peer.exchange(peer.raw_ingest(b"no lz4", flags=COMPRESSED), peer.fetch())
    assert told([ack]) == [1]
    assert bytes(answer.payload[16:]) == b"no lz4"


def test_producers_can_be_trusted() -> None:
    """Without validation the count is the producer's word, and marked as such (AMB-27)."""
    peer = SessionPeer(validate_records=False)
    assert told(peer.exchange(peer.raw_ingest(b"no records at all", 1, count=7))) == [1]
    (segment,) = peer.log.engine.topic(0).partition.segment_list
    sidecar = read_file(peer.disk, segment.sidecar_path, 1000)
    entry = SidecarEntry.decode(sidecar[SidecarHeader.SIZE :])
    assert (entry.record_count, entry.flags) == (7, EntryFlag.COUNT_UNVERIFIED)
    assert peer.counters.opaque_batches == 0
