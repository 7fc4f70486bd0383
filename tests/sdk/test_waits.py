"""No wait of a user's thread outlasts Ctrl-C, although the signal came a moment before it."""

import contextlib
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from tests.interrupts import strikes

from lance_sdk._api import interruptible
from lance_sdk.groups._member.wakeup import Wakeup
from lance_sdk.journal._ring.journal import Journal
from lance_sdk.journal._ring.workers import Worker
from lance_sdk.journal.config import Durability, JournalConfig
from lance_sdk.journal.errors import JournalFull
from lance_sdk.journal.lwp.batch_ids import BatchIdAssigner
from lance_spec.messages.store_forward import StoredBatch

FAR = 60.0
"""Seconds that the waits would last."""


@pytest.fixture(autouse=True)
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often, so that the tests are fast."""
    monkeypatch.setattr(interruptible, "LOOK", 0.02)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return two connected sockets."""
    with contextlib.ExitStack() as stack:
        left, right = (stack.enter_context(each) for each in socket.socketpair())
        yield left, right


def note_interrupt() -> None:
    """Do what a signal does that comes between a look of the interpreter and a wait.

    It is noted, and interrupts no wait of the main thread: another thread gets it.
    """
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


def interrupted(wait: Callable[[], object]) -> None:
    """Require that a wait of `FAR` seconds ends by an interrupt that was only noted."""
    before = time.monotonic()
    timer = threading.Timer(0.05, note_interrupt)

    def run() -> None:
        timer.start()
        wait()
        time.sleep(FAR)  # the wait has ended before the signal came

    with pytest.raises(KeyboardInterrupt):
        run()
    timer.join()
    assert time.monotonic() - before < FAR / 2


def test_a_pause_ends(pair: object) -> None:
    """As between two attempts."""
    del pair
    interrupted(lambda: interruptible.pause(FAR))


def test_joining_a_thread_ends() -> None:
    """As in close()."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait, args=(2 * FAR,))
    thread.start()
    interrupted(lambda: interruptible.join(thread, FAR))
    end.set()
    thread.join()


def test_taking_a_lock_ends() -> None:
    """As where several threads store into one journal."""
    lock = threading.Lock()
    with lock:
        interrupted(lambda: interruptible.acquire(lock, FAR, []))


def test_an_event_that_does_not_come_ends() -> None:
    """As for an acknowledgement."""
    event = threading.Event()
    until = time.monotonic() + FAR

    def wait() -> None:
        while interruptible.wait_on(event, until - time.monotonic()):
            pass

    interrupted(wait)


def test_receiving_ends(pair: tuple[socket.socket, socket.socket]) -> None:
    """As for the answer of a broker."""
    interrupted(lambda: interruptible.receive(pair[0], 10, time.monotonic() + FAR))


def test_sending_ends(pair: tuple[socket.socket, socket.socket]) -> None:
    """As to a broker that takes nothing."""
    much = bytes(16 * 1024 * 1024)
    interrupted(lambda: interruptible.send_all(pair[0], much, time.monotonic() + FAR))


def test_connecting_ends(pair: tuple[socket.socket, socket.socket]) -> None:
    """As to a host that does not answer."""
    interrupted(lambda: interruptible.ready(pair[0], write=False, deadline=time.monotonic() + FAR))


def test_a_members_wait_for_records_ends() -> None:
    """As in a group's poll()."""
    wakeup = Wakeup()

    def wait() -> None:
        while not wakeup.wait(FAR):
            pass

    interrupted(wait)


def test_an_interrupt_leaves_no_wakeup_locked() -> None:
    """Wherever it strikes in the wait: whoever has news must not hang."""
    for strike in strikes():
        wakeup = Wakeup()
        strike(partial(wakeup.wait, 0.001))
        in_time(wakeup.wake)


def test_an_interrupt_leaves_no_worker_of_a_journal_locked() -> None:
    """Wherever it strikes who wakes the worker: the next one is heard, and the worker ends."""
    for strike in strikes():
        ran = queue.SimpleQueue[None]()
        worker = Worker("worker", partial(ran.put, None), lambda error: pytest.fail(str(error)))
        worker.start()
        ran.get(timeout=FAR)  # it begins with a run
        strike(worker.wake)
        worker.wake()
        ran.get(timeout=FAR / 10)
        assert worker.stop(FAR / 10)


@pytest.mark.parametrize("durability", Durability)
def test_an_interrupt_leaves_no_journal_locked(durability: Durability) -> None:
    """Wherever it strikes who stores a batch: the batch is stored whole, or not at all."""
    for strike in strikes():
        journal = Journal.open(None, JournalConfig(durability=durability))
        ids = BatchIdAssigner(journal, lambda: 1, FAR / 10)
        strike(partial(ids.append, 0, 1, b"struck"))
        in_time(partial(ids.append, 0, 1, b"next"))
        frames = [StoredBatch.decode(frame) for _, frame in journal.read_from(0)]
        assert [frame.records for frame in frames] in ([b"next"], [b"struck", b"next"])
        assert [frame.batch_id & 0xFF for frame in frames] == [*range(1, len(frames) + 1)]
        journal.close()


def test_an_interrupt_leaves_no_ring_locked_that_is_full() -> None:
    """Wherever it strikes who waits for room: the lock is given back once, by who holds it."""
    config = JournalConfig(segment_bytes=1 << 16, max_total_bytes=1 << 17)

    def fill(journal: Journal, timeout: float) -> None:
        with contextlib.suppress(JournalFull):
            while True:
                journal.append(bytes(1 << 14), timeout=timeout)

    for strike in strikes():
        journal = Journal.open(None, config)
        fill(journal, 0.0)
        strike(partial(fill, journal, 0.001))
        last = max(number for number, _ in journal.read_from(0))
        in_time(partial(journal.ack, last))
        in_time(partial(journal.append, bytes(1 << 14)))
        journal.close()


def in_time(work: Callable[[], object]) -> None:
    """Require that something does not hang in a thread of its own."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(FAR / 10)
    assert not thread.is_alive()


def test_an_interrupt_leaves_no_handler_of_signals_behind() -> None:
    """Wherever it strikes who waits for the process's end."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    for strike in strikes():
        strike(partial(interruptible.wait_for_end, bool))
        assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_signal_ends_the_wait_for_the_process_to_end() -> None:
    """Wherever its handler runs: it waits for nothing that the wait holds."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        for strike in strikes(signal.SIGTERM):
            strike(partial(interruptible.wait_for_end, bool))
    finally:
        signal.signal(signal.SIGTERM, before)


def test_news_that_came_before_ends_the_wait() -> None:
    """And the next one, until it is cleared."""
    wakeup = Wakeup()
    wakeup.wake()
    assert wakeup.wait(FAR)
    assert wakeup.wait(FAR)
    wakeup.clear()
    assert not wakeup.wait(0.0)


def test_what_comes_in_time_is_received(pair: tuple[socket.socket, socket.socket]) -> None:
    """Over several looks."""
    timer = threading.Timer(0.1, pair[1].sendall, [b"late"])
    timer.start()
    assert interruptible.receive(pair[0], 10, time.monotonic() + FAR) == b"late"
    timer.join()


def test_what_does_not_come_in_time_is_a_timeout(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """After the deadline, not after a look."""
    with pytest.raises(TimeoutError):
        interruptible.receive(pair[0], 10, time.monotonic() + 0.1)


def test_everything_is_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    """In as many pieces as it takes."""
    much = bytes(range(256)) * 8192
    thread = threading.Thread(target=interruptible.send_all, args=(pair[0], much))
    thread.start()
    taken = bytearray()
    while len(taken) < len(much):
        taken += interruptible.receive(pair[1], 1 << 20, time.monotonic() + FAR)
    thread.join()
    assert taken == much


def test_a_lock_that_is_not_given_back_is_not_taken() -> None:
    """Within the time, and not at all without any."""
    lock = threading.Lock()
    assert interruptible.acquire(lock, 0, [])
    assert not interruptible.acquire(lock, 0, [])
    assert not interruptible.acquire(lock, 0.1, [])
