"""Subscriptions of the specified dialect: data comes by itself (AMB-21)."""

from lance_server.testing import SessionPeer
from lance_spec.bodies import decode_error
from lance_spec.dialect import DEPLOYED
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame, FrameKind
from lance_spec.limits import END_OFFSET
from lance_spec.messages import lwp
from lance_spec.records import encode_records


class Subscriber(SessionPeer):
    """A connection that is woken by the log."""

    def do(self, command: Command, payload: bytes) -> None:
        """Send a command and let it finish."""
        self.send(self.control(command, payload))
        self.work()

    def subscribe(
        self, start: int = 0, max_bytes: int = 1000, *, topic_id: int = 0, consumer: int = 9
    ) -> list[Frame]:
        """Subscribe and return what came by now."""
        request = lwp.Subscribe(topic_id, start, max_bytes, consumer)
        self.do(Command.SUBSCRIBE, request.encode())
        return self.received()

    def store(self, value: bytes, batch_id: int, topic_id: int = 0) -> None:
        """Let somebody else store a record."""
        self.log.store([value], batch_id=batch_id, topic_id=topic_id)


def data_of(frames: list[Frame]) -> bytes:
    """Return the data of pushed frames, which must follow each other."""
    assert {frame.command for frame in frames} <= {Command.FETCH_RESPONSE}
    return b"".join(bytes(lwp.FetchResponse.decode(frame.payload).data) for frame in frames)


def test_what_is_there_is_pushed_behind_the_ack() -> None:
    """SubscribeAck first, then the data from the start offset."""
    peer = Subscriber()
    peer.store(b"one", 1)
    ack, *pushed = peer.subscribe()
    assert lwp.SubscribeAck.decode(ack.payload) == lwp.SubscribeAck(9, 0)
    assert data_of(pushed) == encode_records([b"one"])


def test_what_is_stored_later_is_pushed_when_it_is_durable() -> None:
    """Not a moment earlier."""
    peer = Subscriber()
    peer.subscribe()
    peer.log.append([b"one"])
    peer.log.scheduler.run_soon()
    assert peer.received() == []
    peer.log.scheduler.run_work()
    assert data_of(peer.received()) == encode_records([b"one"])


def test_a_push_says_which_topic_it_belongs_to() -> None:
    """The header's topic id, so that one connection may have several subscriptions."""
    peer = Subscriber()
    other = peer.log.create_topic("other").id
    peer.subscribe()
    peer.subscribe(topic_id=other)
    peer.store(b"0", 1)
    peer.store(b"1", 2, other)
    assert [frame.topic_id for frame in peer.received()] == [0, other]


def test_a_push_is_no_larger_than_asked_for() -> None:
    """max_batch_bytes bounds each frame; together they are everything."""
    peer = Subscriber()
    for number in range(1, 6):
        peer.store(b"12345", number)
    _, *pushed = peer.subscribe(max_bytes=20)
    assert max(len(frame.payload) - 16 for frame in pushed) <= 20
    assert data_of(pushed) == encode_records([b"12345"] * 5)


def test_a_subscription_at_the_end_begins_with_what_comes() -> None:
    """2^64-1 is the end, and the ack tells where that is."""
    peer = Subscriber()
    peer.store(b"old", 1)
    (ack,) = peer.subscribe(END_OFFSET)
    assert lwp.SubscribeAck.decode(ack.payload).offset == 8
    peer.store(b"new", 2)
    assert data_of(peer.received()) == encode_records([b"new"])


def test_nothing_is_pushed_after_the_ack_of_unsubscribe() -> None:
    """A client that has unsubscribed may fetch again."""
    peer = Subscriber()
    peer.subscribe()
    peer.do(Command.UNSUBSCRIBE, lwp.Unsubscribe(0, 9).encode())
    (ack,) = peer.received()
    assert (ack.kind, ack.batch_id) == (FrameKind.ACK, 9)
    peer.store(b"late", 1)
    assert peer.received() == []
    peer.do(Command.FETCH, lwp.Fetch(0, 0, 100).encode())
    assert data_of(peer.received()) == encode_records([b"late"])


def test_subscriptions_take_turns() -> None:
    """A long topic does not keep a short one waiting."""
    peer = Subscriber()
    other = peer.log.create_topic("other").id
    peer.session.writable = False
    for number in range(1, 4):
        peer.store(b"0", number)
        peer.store(b"1", 10 + number, other)
    peer.session.writable = True
    peer.subscribe(max_bytes=6)
    peer.log.scheduler.run_all()
    peer.session.writable = False
    peer.subscribe(max_bytes=6, topic_id=other)
    for number in range(4, 7):
        peer.store(b"0", number)
    peer.session.writable = True
    peer.session.advance(0.0)
    _, *pushed = peer.received()
    assert [frame.topic_id for frame in pushed[:4]] == [0, other, 0, other]


def test_who_has_unsubscribed_is_not_woken_any_more() -> None:
    """Nothing of a subscription stays behind in the log."""
    peer = Subscriber()
    peer.subscribe()
    peer.do(Command.UNSUBSCRIBE, lwp.Unsubscribe(0, 9).encode())
    assert peer.log.engine.topic(0).partition._watchers == {}


def test_a_slow_reader_is_not_pushed_to() -> None:
    """Data waits in the log, not in memory, until the socket takes it."""
    peer = Subscriber()
    peer.subscribe(max_bytes=1 << 20)
    peer.session.writable = False
    for number in range(1, 6):
        peer.store(bytes(1000), number)
    assert peer.received() == []
    peer.session.writable = True
    peer.session.advance(0.0)
    assert data_of(peer.received()) == encode_records([bytes(1000)] * 5)


def test_cold_data_is_pushed_when_it_was_read() -> None:
    """The event loop does not wait for the disk."""
    peer = Subscriber()
    peer.store(b"one", 1)
    peer.disk.cold = True
    _, *pushed = peer.subscribe()
    assert data_of(pushed) == encode_records([b"one"])


def test_a_second_subscription_to_a_topic_is_refused() -> None:
    """One for each topic and connection."""
    peer = Subscriber()
    peer.subscribe()
    (answer,) = peer.subscribe(consumer=10)
    assert decode_error(answer.payload).code is ErrorCode.INVALID_PAYLOAD


def test_a_fetch_on_a_subscribed_connection_is_refused() -> None:
    """Its answer could not be told from a push."""
    peer = Subscriber()
    peer.subscribe()
    peer.do(Command.FETCH, lwp.Fetch(0, 0, 100).encode())
    (answer,) = peer.received()
    assert decode_error(answer.payload).code is ErrorCode.INVALID_PAYLOAD


def test_a_subscription_beyond_the_end_is_refused() -> None:
    """There is no offset to begin at; the answer tells the end."""
    peer = Subscriber()
    (answer,) = peer.subscribe(5)
    error = decode_error(answer.payload)
    assert (error.code, error.details) == (ErrorCode.OFFSET_OUT_OF_RANGE, {"end_offset": 0})


def test_a_deleted_topic_ends_its_subscription_with_an_error() -> None:
    """The client learns that nothing more will come, and of which topic."""
    peer = Subscriber()
    topic_id = peer.log.create_topic("gone").id
    peer.subscribe(topic_id=topic_id)
    peer.log.engine.delete_topic(topic_id, text="gone")
    peer.log.scheduler.run_all()
    (answer,) = peer.received()
    error = decode_error(answer.payload)
    assert (error.code, error.details) == (ErrorCode.TOPIC_DELETED, {"topic_id": topic_id})


def test_deployed_subscriptions_are_bookkeeping_only() -> None:
    """The published server never pushes; its clients poll."""
    peer = Subscriber(DEPLOYED)
    peer.store(b"one", 1)
    (ack,) = peer.subscribe(END_OFFSET)
    assert lwp.SubscribeAck.decode(ack.payload).offset == END_OFFSET
    peer.store(b"two", 2)
    assert peer.received() == []
