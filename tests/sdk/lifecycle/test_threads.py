"""The sync API under threads: concurrency, callbacks, closing from elsewhere."""

import contextlib
import gc
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_sdk import Client, Consumer, Delivery, Producer
from lance_sdk._io.resolve import resolve
from lance_sdk.errors import ClosedError, ConcurrencyError, DeadlineExceeded, DeliveryFailed
from lance_sdk.testing import FakeServer
from lance_sdk.url import parse_url
from lance_spec.dialect import SPECIFIED
from lance_spec.frames import encode_keepalive


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Every test leaves as many threads as it found."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert set(threading.enumerate()) <= before


def test_many_threads_may_send_at_once(server: FakeServer) -> None:
    """Every record of every thread arrives, each thread's in its own order."""
    barrier = threading.Barrier(8)

    def send_some(number: int) -> None:
        barrier.wait()
        for count in range(300):
            producer.send(b"%d %d" % (number, count))

    with Producer(server.url(), batch_bytes=500) as producer:
        threads = [threading.Thread(target=send_some, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    records = server.records()
    assert len(records) == 2400
    for number in range(8):
        mine = [record for record in records if record.startswith(b"%d " % number)]
        assert mine == [b"%d %d" % (number, count) for count in range(300)]


def test_many_threads_may_ask_at_once(server: FakeServer) -> None:
    """Each gets its own answer."""
    names: dict[int, list[str]] = {}

    def ask(number: int) -> None:
        topic = client.create_topic(f"topic-{number}")
        names[number] = [topic.name, client.get_topic(topic.id).name]

    with Client(server.url()) as client:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert names == {number: [f"topic-{number}"] * 2 for number in range(8)}


def test_a_server_that_never_stops_sending_does_not_stop_the_clock() -> None:
    """Its bytes are read between the deadlines, not instead of them."""
    flood = encode_keepalive(SPECIFIED) * 20_000
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pour() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                while True:
                    connection.sendall(flood)

        pourer = threading.Thread(target=pour)
        pourer.start()
        url = f"lance://127.0.0.1:{listener.getsockname()[1]}"
        with (
            Client(url, request_timeout=0.2, close_timeout=0.2) as client,
            pytest.raises(DeadlineExceeded, match="no answer to LIST_TOPICS"),
        ):
            client.list_topics()
        pourer.join(10)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_address_that_cannot_even_be_tried_is_one_attempt(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a host name has an IPv6 address, and the machine has no IPv6."""
    (real,) = resolve("127.0.0.1", parse_url(server.url()).endpoints[0].port)
    strange = (socket.AddressFamily.AF_UNSPEC, real[1])
    monkeypatch.setattr("lance_sdk._io.dialer.resolve", lambda _host, _port: [strange, real])
    with Client(server.url()) as client:
        assert client.ping() > 0


def test_a_callback_must_not_wait_for_its_own_thread(server: FakeServer) -> None:
    """Instead of a deadlock it gets an error that says so."""
    errors: list[Exception] = []
    called = threading.Event()

    def callback(_delivery: object) -> None:
        for blocking in (producer.flush, producer.close):
            try:
                producer.send(b"sending is fine")
                blocking()
            except ConcurrencyError as error:
                errors.append(error)
        called.set()

    added = threading.Event()
    server.on_ingest = lambda _peer, _frame: not added.wait(10)
    with Producer(server.url()) as producer:
        producer.send(b"x").add_done_callback(callback)
        added.set()
        assert called.wait(10)
        producer.flush()
    assert len(errors) == 2
    assert "callback" in str(errors[0])


def test_closing_lets_a_blocked_sender_go(server: FakeServer) -> None:
    """The thread that waits for room gets ClosedError."""
    server.on_ingest = lambda _peer, _frame: True
    producer = Producer(server.url(), batch_bytes=1000, buffer_bytes=1000).open()
    producer.send(bytes(995))
    raised: list[Exception] = []
    blocked = threading.Event()

    def send() -> None:
        blocked.set()
        try:
            producer.send(b"y")
        except ClosedError as error:
            raised.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    blocked.wait()
    report = producer.close(timeout=0)
    thread.join(10)
    assert len(raised) == 1
    assert report.lost == 1


def test_closing_lets_a_sender_go_that_is_about_to_wait(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed between the look for room and the wait for it, it does not wait."""
    server.on_ingest = lambda _peer, _frame: True
    producer = Producer(server.url(), batch_bytes=1000, buffer_bytes=1000).open()
    producer.send(bytes(995))
    look = producer._try_to_add

    def look_and_close(value: bytes, record_type: int) -> Delivery:
        try:
            return look(value, record_type)
        finally:
            producer.close(timeout=0)

    monkeypatch.setattr(producer, "_try_to_add", look_and_close)
    with pytest.raises(ClosedError):
        producer.send(b"y")


def test_closing_lets_a_waiting_reader_go(server: FakeServer) -> None:
    """The thread that polls gets ClosedError, now and not when data comes."""
    consumer = Consumer(server.url()).open()
    raised: list[Exception] = []

    def read() -> None:
        try:
            consumer.poll()
        except ClosedError as error:
            raised.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    server.wait_for(lambda: server.frames.count("FETCH") > 2)
    consumer.close()
    thread.join(10)
    assert len(raised) == 1


def test_close_returns_although_a_callback_never_does(server: FakeServer) -> None:
    """A program's own endless callback cannot hang close()."""
    forever = threading.Event()
    stuck = threading.Event()

    def never_ends(_delivery: object) -> None:
        stuck.set()
        forever.wait(60)

    added = threading.Event()
    server.on_ingest = lambda _peer, _frame: not added.wait(10)
    producer = Producer(server.url()).open()
    producer.send(b"x").add_done_callback(never_ends)
    added.set()  # settled before, it would be called at once, on this thread
    assert stuck.wait(10)
    begun = time.monotonic()
    producer.send(b"y")
    report = producer.close(timeout=0.01)
    assert time.monotonic() - begun < 10
    assert report.lost == 1
    forever.set()


def test_close_returns_although_the_server_reads_nothing(server: FakeServer) -> None:
    """Full socket buffers do not hold it up."""
    release = threading.Event()
    server.on_ingest = lambda _peer, _frame: release.wait(30)
    producer = Producer(server.url(), max_in_flight=1000).open()
    producer.send_many([bytes(60_000)] * 400)
    begun = time.monotonic()
    report = producer.close(timeout=0.05)
    assert time.monotonic() - begun < 10
    assert report.lost == 400
    release.set()


def test_a_failure_in_the_driver_is_not_a_hang(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were there a bug in it, whoever waits would be told."""
    seen: list[object] = []
    monkeypatch.setattr(threading, "excepthook", seen.append)
    server.on_ingest = lambda _peer, _frame: True  # no answer: it would come before the bug
    producer = Producer(server.url()).open()
    delivery = producer.send(b"x")

    def broken(now: float) -> None:
        raise RuntimeError(f"a bug at {now}")

    monkeypatch.setattr(producer._sender, "handle_timeout", broken)
    producer._driver.wake()
    with pytest.raises(DeliveryFailed, match="a bug"):
        delivery.result(timeout=10)
    with pytest.raises(ClosedError):
        producer.send(b"y")
    producer.close()
    assert len(seen) == 1


def test_opening_and_closing_leaves_no_descriptor(server: FakeServer) -> None:
    """Nor a thread; see the fixture."""

    def descriptors() -> int:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    with Producer(server.url()):
        pass
    before = descriptors()
    for _ in range(20):
        with Producer(server.url()) as producer, Consumer(server.url()) as consumer:
            producer.send(b"x")
            consumer.poll(timeout=0)
    server.drop_all()
    for thread in server._threads[1:]:
        thread.join(10)
    assert descriptors() <= before + 1


def test_waiting_for_a_delivery_has_a_deadline(server: FakeServer) -> None:
    """For one record, for many, for all of them."""
    release = threading.Event()
    server.on_ingest = lambda _peer, _frame: not release.wait(10)
    with Producer(server.url(), linger=0) as producer:
        one = producer.send(b"x")
        many = producer.send_many([b"y", b"z"])
        for wait in (one.result, many.result, producer.flush):
            with pytest.raises(DeadlineExceeded):
                wait(timeout=0.01)
        assert not many.done()
        release.set()
        assert many.result() == 2
        assert "done=True" in repr(many)
