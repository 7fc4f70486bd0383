"""Snapshot: a copy of a data directory that is being served, with all that was acknowledged."""

import errno
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_server import running
from lance_server.config.settings import Address
from lance_server.errors import ConfigError
from lance_server.log.log_manager import LogOptions
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.segments.compaction import CompactionPolicy
from lance_server.log.snapshot import SnapshotReport
from lance_server.offline.commands import offline
from lance_server.offline.verifying import verify
from lance_server.runtime.completion import Completion
from lance_server.storage.wal import WalStorage
from lance_server.testing import (
    FaultyStorage,
    LogDriver,
    MemoryStorage,
    RawClient,
    ServerProcess,
    eventually,
)
from lance_spec.records import decode_records

POLICY = CompactionPolicy(min_segments=2, max_segments=4, small=600)
OPTIONS = LogOptions(segment_size=250, compaction=POLICY)
MERGING = LogOptions(segment_size=1000, compaction=POLICY)
TARGET = Path("/copies/one")
ANYWHERE = Address("127.0.0.1", 0)
SERVED = {"http": ANYWHERE, "admin": True}


def no_links(source: Path, target: Path) -> None:
    """Refuse to link, as a disk in memory does."""
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), str(source), 0, str(target))


def take(log: LogDriver, disk: MemoryStorage) -> Completion[SnapshotReport]:
    """Ask for a snapshot; nothing of it is done yet."""
    disk.make_dir(TARGET.parent)
    return log.engine.snapshots.take(TARGET, disk, no_links)


def values_in(log: LogDriver, topic_id: int = 0) -> list[bytes]:
    """Return the values of a topic; nothing of it may be damaged."""
    found = log.read_all(topic_id)
    assert found.damage == []
    return [value for _, value in decode_records(found.data)]


def test_a_snapshot_has_topics_offsets_commits_and_retention() -> None:
    """A server that is started on it serves the same, and goes on."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=OPTIONS)
    log.create_topic("gone")
    log.create_topic("kept", Retention(max_bytes=10_000))
    log.engine.delete_topic(1, text="")
    log.scheduler.run_all()
    for number in range(1, 9):
        log.store([b"%d" % number * 60], batch_id=number, topic_id=2)
    log.engine.topic(2).consumers.commit(7, 130)
    log.scheduler.run_all()
    report = take(log, disk)
    log.scheduler.run_all()
    assert (report.result().topics, report.result().skipped) == (2, {})
    copy = LogDriver(disk, TARGET, OPTIONS)
    assert copy.engine.report.findings == []
    assert copy.read_all(2).pieces == log.read_all(2).pieces
    assert copy.engine.topic(2).consumers.offsets() == {7: 130}
    assert copy.engine.topic(2).info() == log.engine.topic(2).info()
    assert copy.create_topic("new").id == 3
    copy.store([b"more"], topic_id=2)


@settings(max_examples=30)
@given(st.data())
def test_a_snapshot_has_what_was_acknowledged_before_and_nothing_that_was_not(
    data: st.DataObject,
) -> None:
    """Whatever else is done while it is made: writing, closing, merging, dropping, creating."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=MERGING)
    log.create_topic("limited", Retention(max_bytes=1500))
    sent: list[tuple[int, bytes, Completion[None]]] = []

    def append() -> None:
        topic_id, number = data.draw(st.sampled_from([0, 1])), len(sent) + 1
        value = b"%d " % number + bytes(data.draw(st.integers(0, 120)))
        outcome = log.append([value], batch_id=number, topic_id=topic_id)
        sent.append((topic_id, value, outcome))

    def step() -> None:
        log.scheduler.run_soon()
        if log.scheduler.work:
            log.scheduler.run_work()

    def create() -> None:
        log.engine.create_topic(f"topic-{len(log.engine.names())}", Retention())

    def visit() -> None:
        log.engine.upkeep.visit(log.engine.topic(data.draw(st.sampled_from([0, 1]))))

    def roll() -> None:
        log.engine.topic(data.draw(st.sampled_from([0, 1]))).partition.roll()

    steps = st.sampled_from([append, append, step, step, roll, visit, create])
    for _ in range(data.draw(st.integers(0, 40))):
        data.draw(steps)()
    before = [(topic_id, value) for topic_id, value, each in sent if each.done and not each.error]
    report = take(log, disk)
    for _ in range(data.draw(st.integers(0, 40))):
        data.draw(steps)()
    while not report.done:
        step()
    acked = [(topic_id, value) for topic_id, value, each in sent if each.done]
    assert report.result().skipped == {}
    assert verify(TARGET, storage=disk).findings == []
    copy = LogDriver(disk, TARGET, OPTIONS)
    assert copy.engine.report.findings == []
    held = [(topic_id, value) for topic_id in (0, 1) for value in values_in(copy, topic_id)]
    assert len(held) == len(set(held))
    assert set(held) <= set(acked)
    assert {each for each in before if each[0] == 0} <= set(held)


@pytest.mark.parametrize("method", ["create", "write", "sync", "rename", "sync_dir", "make_dir"])
@pytest.mark.parametrize("calls", [0, 1, 4])
def test_a_snapshot_that_the_disk_refuses_leaves_nothing(method: str, calls: int) -> None:
    """The log goes on, and the next one is made where there is room again."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=OPTIONS)
    for number in range(1, 9):
        log.store([b"%d" % number * 60], batch_id=number)
    copies = FaultyStorage(disk)
    disk.make_dir(TARGET.parent)
    report = log.engine.snapshots.take(TARGET, copies, no_links)
    for _ in range(calls):
        if log.scheduler.work:
            log.scheduler.run_work()
    if report.done:
        return
    copies.fail[method] = errno.ENOSPC
    log.scheduler.run_all()
    if report.error is None:  # it was not called any more
        assert verify(TARGET, storage=disk).findings == []
        return
    assert isinstance(report.error, OSError)
    assert [path for path in disk.files() if TARGET.parent in path.parents] == []
    again = take(log, disk)
    log.scheduler.run_all()
    assert again.result().topics == 1
    log.store([b"on it goes"], batch_id=9)


def test_a_write_ahead_log_is_in_a_snapshot_by_its_effect() -> None:
    """What only the log has durably is durable in the copy, which has no such log."""
    disk = MemoryStorage()
    disk.make_dir(Path("/data"))
    log = LogDriver(WalStorage(disk, Path("/data")), options=LogOptions())
    log.store([b"small"])
    report = take(log, disk)
    log.scheduler.run_all()
    report.result()
    survivor = disk.crash(Random(1))
    assert values_in(LogDriver(survivor, TARGET, OPTIONS)) == [b"small"]


def test_a_merge_that_failed_halfway_is_finished_first() -> None:
    """The merged files may have their names already, while readers are led to the sources."""
    disk = MemoryStorage()
    faulty = FaultyStorage(disk)
    log = LogDriver(faulty, options=MERGING)
    topic = log.engine.topic(0)
    for number in range(1, 4):
        log.store([b"%d" % number * 200], batch_id=number)
        topic.partition.roll()
        log.scheduler.run_all()
    log.engine.upkeep.visit(topic)
    while topic.file.merging is None:
        log.scheduler.run_work()
    faulty.fail = {"sync_dir": errno.EIO}
    log.scheduler.run_all()
    faulty.fail = {}
    report = take(log, disk)
    log.scheduler.run_all()
    report.result()
    found = verify(TARGET, storage=disk)
    assert (found.segments, found.batches, found.findings) == (1, 3, [])
    assert LogDriver(disk, TARGET, OPTIONS).read_all().data == log.read_all().data


def test_a_closed_topic_is_left_out_aloud() -> None:
    """What the disk has of it is not certain; the others are copied."""
    disk = MemoryStorage()
    faulty = FaultyStorage(disk)
    log = LogDriver(faulty, options=OPTIONS)
    log.create_topic("fine")
    log.store([b"one"])
    faulty.fail = {"sync": errno.EIO, "truncate": errno.EIO}
    log.append([b"two"], batch_id=2)
    log.scheduler.run_all()
    faulty.fail = {}
    report = take(log, disk)
    log.scheduler.run_all()
    assert list(report.result().skipped) == [0]
    assert report.result().topics == 1


def test_topics_are_deleted_after_a_snapshot() -> None:
    """A topic that was there when it began is in it."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=OPTIONS)
    log.create_topic("late")
    log.store([b"one"], topic_id=1)
    report = take(log, disk)
    deleted = log.engine.delete_topic(1, text="")
    log.scheduler.run_all()
    deleted.result()
    report.result()
    assert values_in(LogDriver(disk, TARGET, OPTIONS), 1) == [b"one"]


def test_it_gets_its_turn_between_two_merges() -> None:
    """Under load there is always something to merge; it does not wait until nothing is left."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=MERGING)
    topic = log.engine.topic(0)
    for number in range(1, 13):
        log.store([bytes(200)], batch_id=number)
        topic.partition.roll()
        log.scheduler.run_all()
    log.engine.upkeep.visit(topic)
    report = take(log, disk)
    log.scheduler.run_all()
    assert report.result().topics == 1
    assert verify(TARGET, storage=disk).segments == 9  # four of twelve are one
    log.engine.upkeep.visit(topic)
    log.scheduler.run_all()
    assert len(topic.partition.segment_list) < 5


def test_a_folder_is_read_once_for_all_its_segments() -> None:
    """A copy takes time by the number of segments, and not by its square."""
    disk = MemoryStorage()
    counting = FaultyStorage(disk)
    log = LogDriver(counting, options=LogOptions(segment_size=250, compaction=None))
    for number in range(1, 9):
        log.store([bytes(200)], batch_id=number)
    assert len(log.engine.topic(0).partition.segment_list) > 4
    before = counting.calls["list_dir"]
    report = take(log, disk)
    log.scheduler.run_all()
    assert report.result().topics == 1
    assert counting.calls["list_dir"] - before < 4


def test_two_snapshots_are_not_made_at_once() -> None:
    """The second is refused until the first is done."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=OPTIONS)
    take(log, disk)
    with pytest.raises(ConfigError, match="a snapshot is being made"):
        take(log, disk)


@pytest.mark.parametrize("target", ["/", "/copies/.."])
def test_a_snapshot_without_a_name_is_refused(target: str) -> None:
    """And holds up neither the next one nor a deletion."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=OPTIONS)
    with pytest.raises(ConfigError, match="name of a folder"):
        log.engine.snapshots.take(Path(target), disk, no_links)
    assert log.engine.snapshots.under_way is None
    report = take(log, disk)
    log.scheduler.run_all()
    assert report.result().topics == 1


def test_a_snapshot_that_cannot_begin_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever kept it from beginning."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=OPTIONS)

    def refuse(*_arguments: object) -> None:
        raise ValueError("it cannot begin")

    with monkeypatch.context() as patched:
        patched.setattr(log.engine.snapshots, "_make", refuse)
        with pytest.raises(ValueError, match="it cannot begin"):
            take(log, disk)
    report = take(log, disk)
    log.scheduler.run_all()
    assert report.result().topics == 1


@pytest.mark.parametrize("name", ["one", "one.partial"])
def test_nothing_is_replaced_by_a_snapshot(name: str) -> None:
    """A folder that is there stays as it is."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=OPTIONS)
    disk.make_dir(TARGET.parent)
    disk.make_dir(TARGET.with_name(name))
    report = take(log, disk)
    log.scheduler.run_all()
    assert isinstance(report.error, ConfigError)
    assert disk.list_dir(TARGET.parent) == [name]


# Of a running server -----------------------------------------------------------------------------


def ask(*arguments: object) -> Result:
    """Run ``lance-server snapshot``."""
    return CliRunner().invoke(offline, ["snapshot", *map(str, arguments)])


@contextmanager
def writing(address: tuple[str, int]) -> Iterator[list[int]]:
    """Store batches one after the other meanwhile; yields those that were acknowledged."""
    acked: list[int] = []
    stopping = threading.Event()

    def work() -> None:
        with RawClient(address) as client:
            number = 0
            while not stopping.is_set():
                number += 1
                try:
                    client.store([b"%d " % number + bytes(number % 900)], batch_id=number)
                except OSError:
                    return
                acked.append(number)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield acked
    finally:
        stopping.set()
        thread.join()


def has(acked: list[int], count: int) -> bool:
    """Whether so many batches were acknowledged."""
    return len(acked) >= count


def numbers_in(data_dir: Path) -> list[int]:
    """Return which batches a data directory has, after looking at every byte of it."""
    assert verify(data_dir).findings == []
    with running(data_dir) as server, RawClient(server.address) as client:
        assert server.report.findings == []
        return [int(value.split()[0]) for _, value in decode_records(client.read_all())]


@pytest.mark.parametrize("durability", ["auto", "fsync", "wal", "os"])
def test_a_snapshot_under_load_has_all_that_was_acknowledged(
    tmp_path: Path, durability: str
) -> None:
    """Batches arrive, segments are closed and merged meanwhile."""
    options: dict[str, Any] = {"durability": durability, "segment_size": 4096, **SERVED}
    with (
        running(tmp_path / "data", upkeep_interval=0.01, **options) as server,
        writing(server.address) as acked,
    ):
        for number in range(3):
            eventually(partial(has, acked, 40 * (number + 1)))
            known = len(acked)
            result = ask(tmp_path / f"copy-{number}", "--data-dir", tmp_path / "data")
            assert result.exit_code == 0, result.output
            found = numbers_in(tmp_path / f"copy-{number}")
            assert found == list(range(1, len(found) + 1))
            assert known <= len(found) <= len(acked) + 1


def test_a_server_that_is_killed_meanwhile_leaves_no_snapshot_of_that_name(tmp_path: Path) -> None:
    """What it leaves is called otherwise; the data directory is as after any kill."""
    options = ("--segment-size", "2KiB", "--http", "127.0.0.1:0", "--admin")
    data, target = tmp_path / "data", tmp_path / "copy"
    with ServerProcess.running(data, *options) as server, RawClient(server.address) as client:
        for number in range(1, 200):
            client.send(client.batch([b"%d " % number + bytes(900)], batch_id=number))
        for number in range(1, 200):
            assert client.acked() == number
        asking = threading.Thread(target=ask, args=(target, "--data-dir", data))
        asking.start()
        eventually(lambda: (tmp_path / "copy.partial").exists() or target.exists())
        server.end(signal.SIGKILL)
        asking.join()
    if target.exists():  # it was quicker
        assert numbers_in(target) == list(range(1, 200))
    else:
        assert (tmp_path / "copy.partial").exists()
    with running(data) as again, RawClient(again.address) as client:
        assert len(decode_records(client.read_all())) == 199


def test_files_that_never_change_are_shared(tmp_path: Path) -> None:
    """A snapshot of much data takes little room; what the log drops stays in it."""
    with running(tmp_path / "data", segment_size=1024, **SERVED) as server:
        with RawClient(server.address) as client:
            for number in range(1, 9):
                client.store([bytes(900)], batch_id=number)
        result = ask(tmp_path / "copy", "--http", server.http_url.removeprefix("http://"), "--json")
        assert json.loads(result.output)["linked_files"] >= 14
    shared = (tmp_path / "copy").glob("segments/0/*.lnc")
    assert sum(path.stat().st_nlink == 2 for path in shared) >= 7


def test_a_snapshot_inside_of_the_data_directory_is_refused(tmp_path: Path) -> None:
    """It would be part of the next one."""
    with running(tmp_path, **SERVED):
        result = ask(tmp_path / "copy", "--data-dir", tmp_path)
    assert (result.exit_code, "outside of the data directory" in result.output) == (1, True)


def test_a_server_without_administration_is_told(tmp_path: Path) -> None:
    """And how it is started with it."""
    with running(tmp_path / "data"):
        result = ask(tmp_path / "copy", "--data-dir", tmp_path / "data")
    assert (result.exit_code, "--admin" in result.output) == (1, True)


def test_a_data_directory_without_a_server_is_told(tmp_path: Path) -> None:
    """It is copied as a folder."""
    with running(tmp_path / "data"):
        pass
    result = ask(tmp_path / "copy", "--data-dir", tmp_path / "data")
    assert (result.exit_code, "no server uses" in result.output) == (3, True)
