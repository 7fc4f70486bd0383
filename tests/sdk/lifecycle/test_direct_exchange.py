"""A lone record is sent and acknowledged on the thread that waits for it, come what may."""

import contextlib
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from tests.interrupts import is_step

from lance_sdk import Producer
from lance_sdk._io.threads.direct_exchange import DirectExchange
from lance_sdk._io.threads.socket_selector import SocketSelector
from lance_sdk._io.threads.thread_driver import ThreadDriver
from lance_sdk.errors import DeadlineExceeded, DeliveryExpired, DeliveryFailed
from lance_sdk.testing import FakeServer
from lance_spec.frames import Frame


class Interrupt(BaseException):
    """Stands for what the handler of a signal raises."""


@pytest.fixture(autouse=True)
def possible() -> None:
    """Leave out the tests where the I/O thread does everything."""
    waiter = SocketSelector()
    found = waiter.can_leave_alone
    waiter.close()
    if not found:
        pytest.skip("this system has no epoll")


@pytest.fixture
def resting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return what is set while the I/O thread rests."""
    event = threading.Event()
    rest, rouse = DirectExchange.rest, DirectExchange.rouse

    def noted_rest(direct: DirectExchange, until: float) -> None:
        rest(direct, until)
        event.set()

    def noted_rouse(direct: DirectExchange) -> bool:
        event.clear()
        return rouse(direct)

    monkeypatch.setattr(DirectExchange, "rest", noted_rest)
    monkeypatch.setattr(DirectExchange, "rouse", noted_rouse)
    return event


@pytest.fixture
def producer(server: FakeServer, resting: threading.Event) -> Iterator[Producer]:
    """Return a producer that has sent one record."""
    del resting
    with Producer(server.url(), backoff_base=0.001) as producer:
        producer.send(b"first").result(20)
        yield producer


@pytest.fixture
def patient(server: FakeServer, producer: Producer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server answer when the program waits, or soon after."""
    waits: queue.SimpleQueue[None] = queue.SimpleQueue()  # an exception in it leaves no lock
    sit = DirectExchange.sit

    def noted(direct: DirectExchange, *args: Any) -> bool:
        try:
            return sit(direct, *args)
        finally:
            waits.put(None)

    def answer_late(_peer: object, _frame: Frame) -> bool:
        while not waits.empty():
            waits.get_nowait()
        direct = producer._driver._direct
        if direct is not None and not direct._seated:
            with contextlib.suppress(queue.Empty):
                waits.get(timeout=0.02)
        return False

    monkeypatch.setattr(DirectExchange, "sit", noted)
    server.on_ingest = answer_late


def count_steps(action: Callable[[], object]) -> int:
    """Return in how many places an action can be interrupted."""
    count = 0

    def note(frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += is_step(frame, event)

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def interrupted(action: Callable[[], object], step: int) -> None:
    """Run an action that is interrupted in one place."""
    count = 0

    def strike(frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += is_step(frame, event)
        if count == step:
            sys.setprofile(None)
            raise Interrupt

    sys.setprofile(strike)
    try:
        action()
    except Interrupt:
        pass
    finally:
        sys.setprofile(None)


def stored(server: FakeServer) -> int:
    """Return how many records the server has; what a slow machine has sent again counts once."""
    return len({frame.batch_id for frame in server.ingested})


def strike_everywhere(server: FakeServer, producer: Producer, resting: threading.Event) -> None:
    """Interrupt sending a record and waiting for it, at each step in turn."""
    handed_over: list[bytes] = []

    def exchange() -> None:
        delivery = producer.send(b"record")
        handed_over.append(b"record")
        delivery.result(20)

    steps = 0
    for _ in range(3):
        assert resting.wait(20)
        steps = max(steps, count_steps(exchange))
    assert steps > 50
    for step in range(1, steps + 1):
        assert resting.wait(20)
        before = stored(server)
        handed_over.clear()
        interrupted(exchange, step)
        producer.flush(20)
        assert len(handed_over) <= stored(server) - before <= 1, f"step {step}"
        assert producer.stats().acked_records == stored(server), f"step {step}"
    producer.send(b"last").result(20)
    stats = producer.stats()
    assert (stats.buffered_bytes, stats.in_flight, stats.failed_records) == (0, 0, 0)


@pytest.mark.usefixtures("patient")
def test_an_interrupt_anywhere_loses_and_doubles_nothing(
    server: FakeServer, producer: Producer, resting: threading.Event
) -> None:
    """What was handed over is stored once; the next flush has it acknowledged."""
    strike_everywhere(server, producer, resting)


def test_nor_does_one_beside_the_io_thread(
    server: FakeServer, resting: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the connection is encrypted, or has hooks."""
    monkeypatch.setattr(DirectExchange, "send", lambda *_: False)
    monkeypatch.setattr(DirectExchange, "sit", lambda *_: False)
    with Producer(server.url(), backoff_base=0.001) as producer:
        strike_everywhere(server, producer, resting)


@pytest.mark.usefixtures("patient")
def test_the_io_thread_sleeps_meanwhile(
    producer: Producer, resting: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the record nor its acknowledgement wakes it."""
    looks = 0
    exchange = ThreadDriver._exchange

    def noted(driver: ThreadDriver, deadline: float) -> None:
        nonlocal looks
        looks += 1
        exchange(driver, deadline)

    assert resting.wait(20)
    monkeypatch.setattr(ThreadDriver, "_exchange", noted)
    for _ in range(20):
        producer.send(b"x").result(20)
    assert looks <= 2  # for keepalives, where the machine is as slow as that


def test_many_in_turn_are_all_acknowledged(server: FakeServer, producer: Producer) -> None:
    """Far more than the events that may wait to be announced."""
    sent = [b"%d" % number for number in range(300)]
    for value in sent:
        producer.send(value).result(20)
    assert server.records() == [b"first", *sent]
    assert producer.stats().acked_records == 301


def test_a_callback_is_called_although_the_program_waits_itself(producer: Producer) -> None:
    """On the I/O thread, as ever."""
    threads: list[threading.Thread] = []
    called = threading.Event()

    def callback(_delivery: object) -> None:
        threads.append(threading.current_thread())
        called.set()

    delivery = producer.send(b"x")
    delivery.add_done_callback(callback)
    delivery.result(20)
    assert called.wait(20)
    assert delivery.exception() is None


def test_two_threads_may_wait_for_one_record(server: FakeServer, producer: Producer) -> None:
    """Both are let go by its acknowledgement."""
    go = threading.Event()
    server.on_ingest = lambda _peer, _frame: not go.wait(20)
    delivery = producer.send(b"x")
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda: results.append(delivery.result(20))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(20)
    assert len(results) == 2


def test_a_lost_connection_ends_the_wait_at_its_socket(
    server: FakeServer, producer: Producer
) -> None:
    """The record goes out again on the next one."""
    dropped: list[Frame] = []

    def drop_first(peer: Any, frame: Frame) -> bool:
        dropped.append(frame)
        if len(dropped) == 1:
            peer.close()
        return len(dropped) == 1

    server.on_ingest = drop_first
    assert producer.send(b"x").result(20).attempts == 2
    assert server.records() == [b"first", b"x"]


def test_what_comes_beside_the_answer_is_heeded(server: FakeServer, producer: Producer) -> None:
    """Its bytes are left to the I/O thread."""

    def press(peer: Any, _frame: Frame) -> bool:
        peer.backpressure()
        return False

    server.on_ingest = press
    producer.send(b"x").result(20)
    assert producer.stats().backpressure == 1


def test_a_wait_at_the_socket_ends_with_its_time(server: FakeServer, producer: Producer) -> None:
    """And the record with its own."""
    server.on_ingest = lambda _peer, _frame: True
    with pytest.raises(DeadlineExceeded):
        producer.send(b"x").result(0.05)
    with (
        Producer(server.url(), delivery_timeout=0.2, close_timeout=0.1) as hurried,
        pytest.raises(DeliveryExpired),
    ):
        hurried.send(b"y").result(20)
    producer.close(0.0)


def test_closing_ends_the_wait_at_a_socket(server: FakeServer, producer: Producer) -> None:
    """Whoever waits is told that nothing more is to be expected."""
    server.on_ingest = lambda _peer, _frame: True
    delivery = producer.send(b"x")
    failures: list[Exception] = []

    def wait() -> None:
        try:
            delivery.result(20)
        except DeliveryFailed as error:
            failures.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    producer.close(0.05)
    thread.join(20)
    assert len(failures) == 1


def test_what_others_send_meanwhile_is_sent(server: FakeServer, producer: Producer) -> None:
    """A record behind the lone one leaves when that is acknowledged, without a linger."""
    go = threading.Event()
    server.on_ingest = lambda _peer, _frame: not go.wait(20)
    first, second = producer.send(b"x"), producer.send(b"y")
    go.set()
    first.result(20)
    second.result(20)
    assert server.records() == [b"first", b"x", b"y"]
