"""Messages: every byte is judged before a row is stored."""

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_server.listeners.qwp import QwpOptions
from lance_server.listeners.qwp.refusals import QwpRefusal
from lance_server.listeners.qwp.rows import Reader
from lance_server.listeners.qwp.testing import (
    DELTA,
    PUBLISHED,
    Endpoint,
    QwpPeer,
    endpoint,
    longs,
    message,
)
from lance_spec.messages.qwp import ErrorResponse, MessageFlag, Status
from lance_spec.qwp import gorilla

GORILLA = int(MessageFlag.GORILLA)
LIMITS = QwpOptions(max_rows=100, max_records=10_000, max_symbols=50)


def refusal(data: bytes, options: QwpOptions = LIMITS) -> QwpRefusal:
    """Return why a message is refused."""
    with pytest.raises(QwpRefusal) as refused:
        Reader(options).read(data, 1)
    return refused.value


def judged(data: bytes) -> None:
    """Read a message; if it is refused, the error frame is one."""
    refused = None
    try:
        Reader(LIMITS).read(data, 1)
    except QwpRefusal as refusal:
        refused = ErrorResponse.decode(refusal.frame(0))
    assert refused is None or refused.text


def test_a_row_of_a_published_sender_becomes_a_record(qwp: Endpoint) -> None:
    """The record has the designated timestamp in nanoseconds and the other columns."""
    with QwpPeer(qwp.addr) as peer:
        peer.ok(PUBLISHED)
    assert qwp.records("t") == [(1_700_000_000_000_000_000, {"sym": "A0", "v": 0})]


def test_rows_without_a_time_get_the_servers(qwp: Endpoint) -> None:
    """A table without designated timestamp is stamped when its rows arrive."""
    with QwpPeer(qwp.addr) as peer:
        peer.ok(longs("t", 7))
    ((stamp, columns),) = qwp.records("t")
    assert columns == {"v": 7}
    assert stamp > 1_700_000_000_000_000_000


def test_tables_become_topics_of_their_own(qwp: Endpoint) -> None:
    """Each table has its topic, created with its first row."""
    with QwpPeer(qwp.addr) as peer:
        peer.ok(longs("a", 1), longs("b", 2), longs("a", 3))
    assert (qwp.values("a"), qwp.values("b")) == ([1, 3], [2])


def test_a_message_of_rows_for_nobody_creates_no_topic(qwp: Endpoint) -> None:
    """A table block without rows is fine, and leaves nothing behind."""
    with QwpPeer(qwp.addr) as peer:
        peer.ok(longs("empty"))
    assert qwp.rows("empty") == []


@pytest.mark.parametrize("size", range(len(PUBLISHED)))
def test_a_message_cut_anywhere_is_refused(size: int) -> None:
    """Truncation at every byte is found, and named."""
    assert refusal(PUBLISHED[:size]).status == Status.PARSE_ERROR


def test_a_byte_too_many_is_refused() -> None:
    """A message ends where its header says."""
    assert "QwpMessage" in refusal(PUBLISHED + b"\0").text


@given(st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_no_bytes_do_more_than_be_refused(data: st.DataObject) -> None:
    """Whatever is flipped, a message is read or refused, and nothing else happens."""
    raw = bytearray(PUBLISHED)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] = data.draw(st.integers(0, 255))
    judged(bytes(raw))


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_random_payloads_are_refused(payload: bytes) -> None:
    """A right header does not make a message."""
    judged(message(payload))


@pytest.mark.parametrize("flag", [0x02, 0x10, 0x20, 0x40, 0x80])
def test_flags_that_nobody_knows_are_refused(flag: int) -> None:
    """They may change the layout; the error names those that are known."""
    assert "GORILLA" in refusal(message(b"\0\0", 0, flags=DELTA | flag)).text


def packed(times: list[int], *, dictionary: bool) -> bytes:
    """Return a message with a designated timestamp and a column of times, both packed."""
    data = gorilla.pack(times)
    assert data is not None
    head = b"\x01t" + bytes([len(times)]) + b"\x02\x01w\x0a\x00\x10"
    section = b"\x00\x01" + data
    flags = GORILLA | (DELTA if dictionary else 0)
    return message(b"\0\0" * dictionary + head + 2 * section, flags=flags)


@pytest.mark.parametrize("dictionary", [True, False])
def test_packed_times_are_read(qwp: Endpoint, *, dictionary: bool) -> None:
    """With flag GORILLA a column says whether its times are packed (QWP wire ingress)."""
    start = 1_700_000_000_000_000
    times = [start, start + 10, start + 20, start + 999]
    with QwpPeer(qwp.addr) as peer:
        peer.ok(packed(times, dictionary=dictionary))
    assert [stamp for stamp, _ in qwp.records("t")] == times
    assert qwp.values("t", "w")[3] == "2023-11-14T22:13:20.000999Z"


@pytest.mark.parametrize("size", range(12, len(packed([1, 2, 3, 4000], dictionary=True))))
def test_packed_times_cut_anywhere_are_refused(size: int) -> None:
    """They end where their number says."""
    raw = packed([1, 2, 3, 4000], dictionary=True)
    assert refusal(message(raw[12:size], flags=raw[5])).status == Status.PARSE_ERROR


@given(st.data())
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_no_packed_bytes_do_more_than_be_refused(data: st.DataObject) -> None:
    """Whatever is flipped in packed times, they are read or refused."""
    raw = bytearray(packed([1, 2, 3, 4000, 5], dictionary=True))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(12, len(raw) - 1))] = data.draw(st.integers(0, 255))
    judged(bytes(raw))


def test_any_flag_but_zero_says_that_null_bits_follow(qwp: Endpoint) -> None:
    """QWP wire ingress: published senders write 1, and others may write another number."""
    head, bits = b"\0\0\x01t\x02\x01\x01v\x05", b"\x01" + (7).to_bytes(8, "little")
    with QwpPeer(qwp.addr) as peer:
        peer.ok(message(head + b"\x01" + bits), message(head + b"\xff" + bits))
    assert qwp.values("t") == [None, 7, None, 7]


def test_a_column_may_bring_its_own_symbols(qwp: Endpoint) -> None:
    """Without flag 0x08 a message has no dictionary, and its symbols count for it alone."""
    local = b"\x01t\x02\x01\x01s\x09" + b"\x00\x02\x01a\x01b\x01\x00"
    with QwpPeer(qwp.addr) as peer:
        peer.ok(message(local, flags=0), PUBLISHED)
    assert [row.get("s") or row.get("sym") for row in qwp.rows("t")] == ["b", "a", "A0"]


def test_the_header_must_count_the_tables() -> None:
    """A payload with more or fewer tables than announced is refused."""
    assert "table_count" in refusal(message(longs("t", 1)[12:], tables=2)).text


def test_more_rows_than_allowed_are_refused_before_they_are_made() -> None:
    """A few bytes can claim many rows; the claim is judged first."""
    many = b"\0\0\x01t" + b"\xff\xff\xff\xff\x0f" + b"\x00"
    assert "rows" in refusal(message(many)).text


def test_rows_that_grow_in_json_are_bounded() -> None:
    """A null is one bit on the wire and more in a record."""
    name = b"n" * 120
    nulls = b"\0\0\x01t" + bytes([100]) + b"\x01" + bytes([120]) + name + b"\x05"
    assert "records" in refusal(message(nulls + b"\x01" + b"\xff" * 13)).text


def test_a_message_of_nulls_takes_no_more_memory_than_its_records() -> None:
    """A hundred columns of a hundred thousand nulls are 1.3 MB on the wire, and refused early."""
    names = b"".join(b"\x03" + f"c{number:02}".encode() + b"\x05" for number in range(100))
    section = b"\x01" + b"\xff" * 12_500
    body = b"\0\0\x01t" + b"\xa0\x8d\x06" + b"\x64" + names + section * 100
    tracemalloc.start()
    try:
        refused = refusal(message(body), QwpOptions(max_records=100_000))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "records" in refused.text
    assert most < 8_000_000


def test_a_dictionary_that_leaves_ids_out_is_a_gap() -> None:
    """Who skips ids is asked to send the dictionary again."""
    assert refusal(message(b"\x05\x00", 0)).status == Status.DICTIONARY_GAP


def test_a_symbol_that_was_never_defined_is_a_gap() -> None:
    """An id after the dictionary is not a symbol."""
    assert refusal(message(b"\0\0" + PUBLISHED[17:])).status == Status.DICTIONARY_GAP


def test_symbols_may_be_defined_again() -> None:
    """Frames that bring all their symbols each time are read like the others."""
    reader = Reader(LIMITS)
    reader.read(PUBLISHED, 1)
    reader.read(PUBLISHED, 1)
    assert reader.symbols == ["A0"]
    assert reader.symbol_bytes == 2 + 64


def test_too_many_symbols_are_refused() -> None:
    """The dictionary of a connection is bounded."""
    assert "symbols" in refusal(message(b"\0\x33" + b"\x01x" * 51, 0)).text


def test_a_time_before_1970_does_not_fit_in_a_record() -> None:
    """The row is named, and the range."""
    data = bytearray(PUBLISHED)
    data[-8:] = (-1).to_bytes(8, "little", signed=True)
    refused = refusal(bytes(data))
    assert refused.status == Status.SCHEMA_MISMATCH
    assert "row 0" in refused.text


def test_a_table_that_cannot_be_a_topic_is_named(qwp: Endpoint) -> None:
    """The sender learns which table, and why."""
    with QwpPeer(qwp.addr) as peer:
        answer = peer.refused(longs("a/b", 1))
    assert answer.status == Status.SCHEMA_MISMATCH
    assert b"a/b" in answer.text


def test_after_a_refusal_nothing_is_taken_and_the_sender_is_asked_to_come_again(
    qwp: Endpoint,
) -> None:
    """A close that blames nobody: each published sender then sends what follows again."""
    with QwpPeer(qwp.addr) as peer:
        answer = peer.refused(longs("t", 1), b"nonsense", longs("t", 2))
        assert (answer.wire_sequence, answer.status) == (1, Status.PARSE_ERROR)
        assert peer.closed() == 1001
    assert qwp.values("t") == [1]


def test_text_ends_the_connection(qwp: Endpoint) -> None:
    """QWP is binary."""
    with QwpPeer(qwp.addr) as peer:
        peer.socket.send("hello")
        assert peer.closed() == 1003


def test_an_oversized_message_ends_the_connection(tmp_path: Path) -> None:
    """The limit that the upgrade told is enforced before the message is complete."""
    with (
        endpoint(tmp_path, options=QwpOptions(max_message=1000)) as qwp,
        QwpPeer(qwp.addr) as peer,
    ):
        peer.send(bytes(1001))
        assert peer.closed() == 1009


def test_a_large_message_is_stored_in_order(qwp: Endpoint) -> None:
    """Messages that are read on a thread keep their place."""
    rows = [*range(100)]
    big = b"\0\0\x01t" + b"\xa0\x9c\x01" + b"\x01\x01v\x05\x00"  # 20,000 rows
    data = b"".join(each.to_bytes(8, "little") for each in range(20_000))
    with QwpPeer(qwp.addr) as peer:
        peer.ok(longs("t", -1), message(big + data), longs("t", -2))
    values = qwp.values("t")
    assert values[0] == -1
    assert values[1:101] == rows
    assert values[-2:] == [19_999, -2]


def test_an_error_text_is_cut_on_a_character() -> None:
    """At most 1024 bytes of UTF-8 go into an error frame."""
    frame = QwpRefusal(Status.WRITE_ERROR, "é" * 2000).frame(3)
    answer = ErrorResponse.decode(frame)
    assert len(answer.text) == 1024
    assert answer.text.decode() == "é" * 512
