"""Nobody stops the server for the others: what waits is bounded, and what holds memory moves."""

import socket
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from lance_server import running
from lance_server.config.settings import ServerConfig
from lance_server.errors import ConfigError
from lance_server.http.health import unready_reasons
from lance_server.lwp.pending_requests import FRAME_COST, MOST_QUEUED
from lance_server.runtime.memory_quota import MemoryBudget
from lance_server.runtime.request_stall import STALL_SECONDS, RequestStall
from lance_server.testing import RawClient, SessionPeer, eventually
from lance_spec.enums import Command
from lance_spec.messages.lwp import Fetch, Subscribe

MIB = 1024 * 1024
PIPELINED = 100_000
ATTACKERS = 8


def wanted(client: RawClient) -> bytes:
    """Return a Fetch of all that there is."""
    return client.control(Command.FETCH, Fetch(0, 0, 16 * MIB).encode())


def _send_all(peer: socket.socket, data: bytes) -> None:
    try:
        peer.sendall(data)
    except OSError:
        return  # the server or the test closed it


def test_clients_that_never_read_do_not_stop_the_port(tmp_path: Path) -> None:
    """Eight pipeline 100,000 Fetches each, with default settings: another one is served."""
    with running(tmp_path) as server, ExitStack() as stack:
        healthy = stack.enter_context(RawClient(server.address))
        healthy.send(healthy.batch([bytes(MIB)], batch_id=1))
        healthy.receive()
        attackers = [stack.enter_context(RawClient(server.address)) for _ in range(ATTACKERS)]
        flood = wanted(healthy) * PIPELINED
        threads = [
            threading.Thread(target=_send_all, args=(each.socket, flood), daemon=True)
            for each in attackers
        ]
        for thread in threads:
            thread.start()
        memory = server._running.service.memory
        connection_manager = server._running.connection_manager
        eventually(lambda: sum(each._is_blocked for each in connection_manager) == ATTACKERS)
        assert len(healthy.fetch(0).data) > 0
        most = (MOST_QUEUED + 2 * MIB // 60) * FRAME_COST + 3 * MIB
        assert all(each.held <= most for each in connection_manager)
        assert not memory.is_short
        for each in attackers:
            each.socket.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for each in attackers:
            each.close()
        eventually(lambda: len(connection_manager) == 1)
        assert len(healthy.fetch(0).data) > 0


def test_no_more_is_read_than_may_wait() -> None:
    """A connection is not read from while as many requests wait as may."""
    peer = SessionPeer()
    peer.session.writable = False
    peer.send(*[peer.fetch() for _ in range(MOST_QUEUED - 1)])
    assert not peer.session.wants_data
    peer.session.writable = True
    assert peer.session.wants_data
    peer.session.writable = False
    peer.send(peer.fetch())
    peer.session.writable = True
    assert not peer.session.wants_data


def test_a_read_never_waits_for_requests_to_be_given_back() -> None:
    """Waiters that hold all memory with their requests: the first goes on, then the next."""
    memory = MemoryBudget(100 * MIB)
    waiters = [memory.new_holder() for _ in range(4)]
    for each in waiters:
        each.update(25 * MIB, 25 * MIB)
    served: list[int] = []
    answers = [memory.new_holder() for _ in waiters]

    def ask(number: int) -> None:
        if memory.may_hold(MIB, asking[number]):
            served.append(number)
            answers[number].update(MIB)

    asking = [lambda number=number: ask(number) for number in range(4)]
    for each in asking:
        each()
    assert served == [0]
    for number in range(3):
        answers[number].update(0)
        memory.serve_waiters()
    assert served == [0, 1, 2, 3]


def test_who_reads_nothing_of_its_answers_is_closed(tmp_path: Path) -> None:
    """After the time for slow peers, however long a connection may be idle."""
    with (
        running(tmp_path, slow_peer_timeout=0.2) as server,
        RawClient(server.address) as writer,
        RawClient(server.address) as silent,
    ):
        writer.send(writer.batch([bytes(8 * MIB)], batch_id=1))
        writer.receive()
        silent.send(wanted(silent) * 8)
        eventually(lambda: len(server._running.connection_manager) == 1)
        assert len(writer.fetch(0).data) > 0


def test_a_quiet_subscriber_is_not_slow(tmp_path: Path) -> None:
    """It is owed nothing and holds nothing."""
    with running(tmp_path, slow_peer_timeout=0.05) as server, RawClient(server.address) as client:
        client.ask(Command.SUBSCRIBE, Subscribe(0, 0, MIB, 1).encode())
        (connection,) = server._running.connection_manager
        for now in range(1, 30):
            assert not connection._is_stuck(server._running.now() + now)


def test_the_end_of_a_client_that_is_not_read_from_is_seen(tmp_path: Path) -> None:
    """Reading stops when too much waits; a connection that breaks is let go all the same."""
    with (
        running(tmp_path, slow_peer_timeout=1000.0) as server,
        RawClient(server.address) as writer,
        RawClient(server.address) as client,
    ):
        writer.send(writer.batch([bytes(8 * MIB)], batch_id=1))
        writer.receive()
        client.send(wanted(client) * 64)
        connection_manager = server._running.connection_manager
        eventually(lambda: any(each._is_blocked for each in connection_manager))
        client.close()
        eventually(lambda: len(connection_manager) == 1)


def test_a_server_that_completes_nothing_is_not_ready() -> None:
    """Requests wait, and none was completed for ten seconds."""
    stall = RequestStall()
    stall.note(5, 0.0, waiting=True)
    stall.note(5, STALL_SECONDS - 1, waiting=True)
    assert stall.reason is None
    stall.note(5, STALL_SECONDS, waiting=True)
    assert stall.reason is not None
    stall.note(6, STALL_SECONDS + 1, waiting=True)
    assert stall.reason is None


def test_a_server_of_which_nothing_is_wanted_is_ready() -> None:
    """However long nothing was completed."""
    stall = RequestStall()
    for now in range(100):
        stall.note(0, float(now), waiting=False)
    assert stall.reason is None


def test_the_readiness_probe_says_that_requests_wait() -> None:
    """In words, like its other reasons."""
    peer = SessionPeer()
    peer.service.stall.note(0, 0.0, waiting=True)
    peer.service.stall.note(0, STALL_SECONDS, waiting=True)
    assert unready_reasons(peer.service) == ["requests wait, and none was completed for 10 s"]


def test_the_time_for_slow_peers_is_above_zero(tmp_path: Path) -> None:
    """Zero would close everyone."""
    with pytest.raises(ConfigError, match="slow_peer_timeout"):
        ServerConfig(data_dir=tmp_path, slow_peer_timeout=0.0)


def test_who_does_not_wait_any_more_keeps_nobody_waiting() -> None:
    """One that waited for memory, and asks for nothing when its turn comes, leaves the queue."""
    memory = MemoryBudget(100 * MIB)
    holder = memory.new_holder()
    served: list[str] = []
    holder.update(90 * MIB)

    def gone() -> None:
        served.append("gone")

    def ask() -> None:
        if memory.may_hold(MIB, ask):
            served.append("served")

    assert not memory.may_hold(MIB, gone)
    ask()
    holder.update(0)
    memory.serve_waiters()
    assert (served, memory.is_short) == (["gone", "served"], False)


def test_who_is_served_without_waiting_does_not_wait() -> None:
    """A small read that fits at once takes back its question for a large one."""
    memory = MemoryBudget(100 * MIB)
    holder = memory.new_holder()
    holder.update(90 * MIB)

    def asker() -> None:
        """Ask again later."""

    assert not memory.may_hold(20 * MIB, asker)
    assert memory.is_short
    assert memory.may_hold(10, asker)
    holder.update(0)
    assert not memory.is_short


def test_a_read_waits_for_nothing_that_is_idle() -> None:
    """What is known of earlier batches counts, and nobody waits for it to be given back."""
    peer = SessionPeer()
    peer.send(peer.raw_ingest(b"\x01\x01\x00\x00\x00x", 1))
    peer.work()
    known = peer.session.remembered_bytes
    assert known > 0
    account = peer.service.memory.new_holder()
    account.update(peer.service.memory.limit + known, peer.service.memory.limit + known)
    assert peer.service.memory.may_hold(MIB, lambda: None)


def test_a_producer_forgets_old_batches_while_memory_is_short() -> None:
    """Also when it sends nothing more: else many of them would hold all memory."""
    peer = SessionPeer()
    for number in range(1, 1001):
        peer.send(peer.raw_ingest(b"\x01\x01\x00\x00\x00x", number))
    peer.work()
    before = peer.session.remembered_bytes
    account = peer.service.memory.new_holder()
    account.update(peer.service.memory.limit)
    peer.session.tick(peer.now)
    assert peer.session.remembered_bytes < before / 10
