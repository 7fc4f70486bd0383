"""The bound of what clients can make the server hold, counted and measured."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_server import running
from lance_server.config.settings import ServerConfig
from lance_server.errors import ConfigError
from lance_server.runtime.disk_backlog import Backlog
from lance_server.runtime.memory_quota import MemoryBudget, MemoryLevel
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import (
    FaultyStorage,
    RawClient,
    ServerProcess,
    SessionPeer,
    eventually,
    told,
)
from lance_spec.bodies import decode_error
from lance_spec.dialect import DEPLOYED, SPECIFIED
from lance_spec.enums import Command, ErrorCode, Flag
from lance_spec.frames import Frame, FrameKind, encode_keepalive
from lance_spec.messages.lwp import Fetch, Subscribe

MIB = 1024 * 1024
BUDGET = 64 * MIB
SLACK = 40 * MIB
"""What the process needs besides: imported modules, copies in the middle of a read, the heap."""


# The budget -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "level"),
    [
        (0, MemoryLevel.NORMAL),
        (79, MemoryLevel.NORMAL),
        (80, MemoryLevel.HIGH),
        (94, MemoryLevel.HIGH),
        (95, MemoryLevel.CRITICAL),
    ],
)
def test_the_marks_are_at_80_and_95_percent(held: int, level: MemoryLevel) -> None:
    """Of the budget, by what is held."""
    memory = MemoryBudget(100)
    memory.new_holder().update(held)
    assert memory.level is level


def test_what_is_not_durable_counts() -> None:
    """Bytes in the log's buffers are held for clients, too."""
    backlog = Backlog()
    backlog.size = 90
    memory = MemoryBudget(100, backlog)
    assert (memory.used, memory.level) == (90, MemoryLevel.HIGH)


def test_who_asks_first_gets_memory_first() -> None:
    """A small request does not overtake a large one that waits."""
    memory = MemoryBudget(100 * MIB)
    holder = memory.new_holder()
    holder.update(70 * MIB)
    served: list[str] = []
    assert not memory.may_hold(20 * MIB, first := lambda: take("first", 20 * MIB))
    assert not memory.may_hold(MIB, second := lambda: take("second", MIB))

    def take(name: str, size: int) -> None:
        assert memory.may_hold(size, first if name == "first" else second)
        served.append(name)

    memory.serve_waiters()
    assert served == []
    holder.update(50 * MIB)
    memory.serve_waiters()
    assert served == ["first", "second"]


def test_who_waited_and_gave_up_holds_up_nobody() -> None:
    """A connection that ends leaves the queue."""
    memory = MemoryBudget(100 * MIB)
    memory.new_holder().update(70 * MIB)
    woken: list[bool] = []
    memory.on_relief = lambda: woken.append(True)
    memory.may_hold(50 * MIB, gone := lambda: None)
    memory.may_hold(MIB, lambda: None)
    memory.forget(gone)
    assert woken == [True]


@given(sizes=st.lists(st.integers(0, 1000), max_size=30))
def test_accounts_add_up(sizes: list[int]) -> None:
    """Whatever they go through, and to nothing in the end."""
    memory = MemoryBudget(100)
    accounts = [memory.new_holder() for _ in range(3)]
    for place, size in enumerate(sizes):
        accounts[place % 3].update(size)
        assert memory.held == sum(account.size for account in accounts)
    for account in accounts:
        account.update(0)
    assert memory.held == 0


def test_a_budget_must_hold_a_few_of_the_largest_frames() -> None:
    """Otherwise a single one could not be taken in."""
    with pytest.raises(ConfigError, match="max_memory must be at least 3 times"):
        ServerConfig(data_dir=Path("/data"), max_memory=16 * MIB)


# One connection ---------------------------------------------------------------------------------


def test_producers_are_told_to_slow_down_when_memory_is_short() -> None:
    """The batch is stored, and a Backpressure frame says the rest, once in a while (AMB-35)."""
    peer = SessionPeer(max_memory=BUDGET)
    peer.service.memory.new_holder().update(55 * MIB)
    assert told(peer.exchange(peer.ingest(1), peer.ingest(2))) == ["BACKPRESSURE", 1, 2]


def test_batches_are_refused_when_memory_is_all_but_used_up() -> None:
    """Nothing of them is stored, and the error says so (AMB-35)."""
    peer = SessionPeer(max_memory=BUDGET)
    others = peer.service.memory.new_holder()
    others.update(62 * MIB)
    pressure, refused = peer.exchange(peer.ingest(1))
    assert pressure.kind is FrameKind.BACKPRESSURE
    error = decode_error(refused.payload)
    assert (error.code, error.details) == (ErrorCode.BACKPRESSURE, {"batch_id": 1})
    others.update(0)
    assert told(peer.exchange(peer.ingest(1))) == [1]


def test_deployed_clients_are_told_in_words_they_know() -> None:
    """They retry what exceeds a limit; nothing of it was stored."""
    peer = SessionPeer(DEPLOYED, max_memory=BUDGET)
    peer.service.memory.new_holder().update(62 * MIB)
    _, refused = peer.exchange(peer.ingest(1))
    assert decode_error(refused.payload).code is ErrorCode.RATE_LIMITED


def test_a_large_read_waits_for_memory_and_keeps_its_place() -> None:
    """What comes after it on the connection waits too; then all is answered in order."""
    peer = SessionPeer(max_memory=BUDGET)
    peer.exchange(peer.ingest(1, [bytes(MIB // 2)]))
    others = peer.service.memory.new_holder()
    others.update(55 * MIB)
    fetch = peer.control(Command.FETCH, Fetch(0, 0, 2 * MIB).encode())
    assert told(peer.exchange(fetch, peer.keepalive(), peer.ingest(2))) == []
    others.update(0)
    peer.service.memory.serve_waiters()
    assert told(peer.exchange()) == ["FETCH_RESPONSE", "KEEPALIVE", 2]


def test_a_small_read_goes_on_when_memory_is_short() -> None:
    """Who is at the end of a topic is served as ever."""
    peer = SessionPeer(max_memory=BUDGET)
    peer.exchange(peer.ingest(1, [b"one"]))
    peer.service.memory.new_holder().update(55 * MIB)
    assert told(peer.exchange(peer.fetch())) == ["FETCH_RESPONSE"]


def test_a_push_waits_for_memory() -> None:
    """A subscriber is served when there is room again."""
    peer = SessionPeer(max_memory=BUDGET)
    peer.exchange(peer.control(Command.SUBSCRIBE, Subscribe(0, 0, 8 * MIB, 1).encode()))
    others = peer.service.memory.new_holder()
    others.update(55 * MIB)
    pushed = peer.exchange(peer.ingest(1, [bytes(MIB)]))
    assert told(pushed) == ["BACKPRESSURE", 1]
    others.update(0)
    peer.service.memory.serve_waiters()
    assert told(peer.received()) == ["FETCH_RESPONSE"]


def test_what_was_set_aside_for_a_read_is_given_back() -> None:
    """After the answer, nothing is reserved; nor after a read that is refused."""
    peer = SessionPeer()
    peer.exchange(peer.ingest(1, [bytes(MIB // 2)]))
    before = peer.session.other_bytes
    peer.exchange(peer.fetch(0, 2 * MIB), peer.fetch(2**63, 2 * MIB), peer.fetch(5, 0))
    assert peer.session.other_bytes == before


def test_errors_that_wait_for_their_turn_are_bounded() -> None:
    """Cheap mistakes behind a batch that waits for the disk do not fill the memory."""
    peer = SessionPeer(max_unacked_bytes=100_000)
    peer.send(peer.ingest(1))
    wrong = peer.raw_ingest(b"", 1, flags=Flag.BATCH_MODE | Flag.KEEPALIVE)
    sent = 0
    while peer.session.wants_data:
        peer.send(wrong)
        sent += 1
    assert sent < 100_000 / 64
    peer.work()
    assert peer.session.wants_data


# Measured ---------------------------------------------------------------------------------------


@contextmanager
def flooded(data_dir: Path, *options: str) -> Iterator[ServerProcess]:
    """Run a server with a small budget; check its peak memory at the end."""
    limits = ["--max-memory", "64MiB", "--shed-after", "0.5", *options]
    with ServerProcess.running(data_dir, *limits) as server:
        before = server.memory("VmRSS")
        yield server
        assert server.memory("VmHWM") - before < BUDGET + SLACK


def answer_of(client: RawClient) -> Frame:
    """Return the next frame that is not advice to slow down."""
    while (answer := client.receive()).kind is FrameKind.BACKPRESSURE:
        pass
    return answer


def test_readers_that_do_not_read_cannot_fill_the_memory(tmp_path: Path) -> None:
    """Twenty of them ask for 1.5 GiB; others are served, at the latest when those are let go."""
    with flooded(tmp_path) as server, RawClient(server.address) as client:
        for batch in range(1, 3):
            client.store([bytes(8 * MIB)], batch_id=batch)
        fetch = client.control(Command.FETCH, Fetch(0, 0, 16 * MIB).encode())
        slow = [RawClient(server.address) for _ in range(20)]
        for each in slow:
            each.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.send(fetch * 10)
        client.store([b"small"], batch_id=3)
        assert len(client.fetch(0, 16 * MIB).data) > 8 * MIB
        for each in slow:
            each.close()


def test_unfinished_frames_cannot_fill_the_memory(tmp_path: Path) -> None:
    """Sixty halves of 4 MiB: some are closed with a word, and others store what they like."""
    with flooded(tmp_path) as server, RawClient(server.address) as client:
        half = client.batch([bytes(8 * MIB)], batch_id=1)[: 4 * MIB]
        greedy = [RawClient(server.address) for _ in range(60)]
        ended = 0
        for each in greedy:
            try:
                each.send(half)
            except OSError:
                ended += 1
        client.send(client.batch([b"small"], batch_id=3))
        assert told([answer_of(client)]) == [3]
        for each in greedy:
            each.close()
        assert ended < 60


def test_who_needs_the_last_of_the_memory_is_told(tmp_path: Path) -> None:
    """A Backpressure error, then the end of the stream; the others finish their frames."""
    with running(tmp_path, max_memory=BUDGET, shed_after=60.0) as server:
        with RawClient(server.address) as maker:
            frame = maker.batch([bytes(15 * MIB)], batch_id=1)
        holders = [RawClient(server.address) for _ in range(4)]
        for holder in holders:
            holder.send(frame[: 14 * MIB])
        eventually(lambda: server.stats()["memory"] > 55 * MIB)
        with RawClient(server.address) as greedy:
            greedy.send(frame[: 12 * MIB])
            error = greedy.error()
            assert (error.code, error.message[:29]) == (
                ErrorCode.BACKPRESSURE,
                "The server is short of memory",
            )
        for holder in holders:
            holder.send(frame[14 * MIB :])
            assert told([answer_of(holder)]) == [1]
            holder.close()
        eventually(lambda: server.stats()["memory"] == 0)


def test_batches_that_wait_for_the_disk_are_bounded_together(tmp_path: Path) -> None:
    """A stalled disk stops the reading from everyone; nothing is lost."""
    disk = FaultyStorage(PwritevStorage())
    with running(
        tmp_path, storage=disk, inline_commits=False, max_memory=4 * MIB, max_payload=MIB
    ) as server:
        clients = [RawClient(server.address) for _ in range(4)]
        for client in clients:
            client.store([b"one"], batch_id=1)
        disk.block_syncs()
        frames = {
            client: [client.batch([bytes(MIB // 4)], batch_id=n) for n in range(2, 5)]
            for client in clients
        }
        for client in clients:
            client.send(*frames[client])
        eventually(lambda: server.stats()["memory"] >= 3 * MIB)
        assert server.stats()["memory"] < 5 * MIB
        disk.release_syncs()
        for client in clients:
            answers = [client.receive() for _ in range(3)]
            assert {answer.kind for answer in answers} <= {
                FrameKind.ACK,
                FrameKind.BACKPRESSURE,
                FrameKind.CONTROL,
            }
            client.close()


def test_everything_is_given_back_when_everyone_has_gone(tmp_path: Path) -> None:
    """However they went: in the middle of a frame, of an answer, of a push, or in order."""
    with running(tmp_path, max_memory=BUDGET) as server:
        with RawClient(server.address) as client:
            client.store([bytes(4 * MIB)], batch_id=1)
        half, reader, subscriber, orderly = (RawClient(server.address) for _ in range(4))
        half.send(half.batch([bytes(4 * MIB)], batch_id=1)[: 2 * MIB])
        reader.send(reader.control(Command.FETCH, Fetch(0, 0, 8 * MIB).encode()) * 20)
        subscriber.send(subscriber.control(Command.SUBSCRIBE, Subscribe(0, 0, 8 * MIB, 1).encode()))
        orderly.store([b"one"], batch_id=2)
        eventually(lambda: server.stats()["memory_held"] > 4 * MIB)
        for each in (half, reader, subscriber, orderly):
            each.close()
        eventually(lambda: server.stats()["connections_open"] == 0)
        assert server.stats()["memory_held"] == 0


def test_a_thousand_idle_connections_cost_less_than_100_mib(tmp_path: Path) -> None:
    """Receive buffers are shared: a connection owns one only for a frame that is not whole."""
    ask = encode_keepalive(SPECIFIED)
    with ServerProcess.running(tmp_path) as server, ExitStack() as clients:
        before = server.memory("VmRSS")
        for _ in range(1000):
            client = clients.enter_context(socket.create_connection(server.address, timeout=10))
            client.sendall(ask)
            assert client.recv(len(ask), socket.MSG_WAITALL) == ask
        cost = server.memory("VmRSS") - before
        assert cost < 100 * MIB
