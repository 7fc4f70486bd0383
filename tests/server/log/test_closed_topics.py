"""Topics that the disk does not let be written to: read, deleted, and opened again (AMB-39)."""

import errno
import json
from itertools import pairwise
from pathlib import Path

import pytest

from lance_server.errors import DataDirError
from lance_server.log.log_manager import LogOptions
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.reading.reader import Range
from lance_server.log.segments.segment_files import DATA_SUFFIX, SIDECAR_SUFFIX
from lance_server.lwp.refusals import Refusal
from lance_server.testing import FaultyStorage, LogDriver, MemoryStorage, SessionPeer
from lance_spec.enums import Command, ErrorCode
from lance_spec.messages.lwp import SetRetention
from lance_spec.records import encode_records

OPTIONS = LogOptions(segment_size=60)
VALUES = [[b"batch %d" % number, b"x" * number] for number in range(5)]
DATA = [encode_records(values) for values in VALUES]
FOLDER = Path("/data/segments/1")
STEPS = ("open", "list_dir", "read_into", "write", "sync", "create", "rename", "remove", "sync_dir")


def two_topics(*, clean: bool) -> MemoryStorage:
    """Return a disk with five batches in topic 1 and one in topic 0."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=OPTIONS)
    topic = log.create_topic("suffers")
    for number, values in enumerate(VALUES, start=1):
        log.store(values, batch_id=number, topic_id=topic.id)
    log.store([b"elsewhere"], batch_id=1)
    commit(log)
    if clean:
        log.close()
    else:
        log.engine.release()
    return disk


def commit(log: LogDriver) -> None:
    """Commit an offset of consumer 7 to topic 1."""
    committed = log.engine.topic(1).consumers.commit(7, len(DATA[0]))
    log.scheduler.run_all()
    committed.result()


def cut_tail(disk: MemoryStorage) -> None:
    """Leave bytes after the last batch that a crash tore."""
    path = max(
        (each for each in disk.files() if each.suffix == DATA_SUFFIX and each.parent == FOLDER),
        key=lambda each: int(each.name.split("_")[0]),
    )
    disk.poke(path, disk.peek(path) + b"torn")


def refusal_of_append(log: LogDriver, topic_id: int = 1) -> Refusal:
    """Append to a topic that takes nothing, and return why."""
    outcome = log.append([b"new"], batch_id=99, topic_id=topic_id)
    log.scheduler.run_all()
    assert isinstance(outcome.error, Refusal)
    return outcome.error


# At a start ------------------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_one_topics_error_at_a_start_stops_no_other_topic(step: str, clean: bool) -> None:
    """Whatever the disk refuses about topic 1: topic 0 is served, and topic 1 when it gives way."""
    disk = two_topics(clean=clean)
    if not clean:
        cut_tail(disk)
    faulty = FaultyStorage(disk)
    faulty.within, faulty.fail = FOLDER, {step: errno.EIO}
    log = LogDriver(faulty, options=OPTIONS)
    assert log.read_all().data == encode_records([b"elsewhere"])
    assert log.store([b"more"], batch_id=2) > 0
    faulty.fail = {}
    log.reopen_topics()
    assert log.engine.problems == {}
    assert log.read_all(1).data == b"".join(DATA)
    assert log.engine.topic(1).consumers.committed(7) == len(DATA[0])
    assert log.store([b"new"], batch_id=99, topic_id=1) >= sum(map(len, DATA))


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("step", ["write", "create", "sync"])
def test_a_topic_that_cannot_be_settled_is_read(step: str, clean: bool) -> None:
    """What is known to be durable is served; what is asked to be stored is refused for now."""
    disk = two_topics(clean=clean)
    if not clean:
        cut_tail(disk)
    for name in ("metadata.json.bak", "consumers.log"):  # so that a clean start writes, too
        disk.poke(FOLDER / name, disk.peek(FOLDER / name) + b"x")
    faulty = FaultyStorage(disk)
    faulty.within, faulty.fail = FOLDER, {step: errno.ENOSPC}
    log = LogDriver(faulty, options=OPTIONS)
    assert set(log.engine.problems) == {1}
    found = log.read_all(1)
    assert found.damage == []
    assert b"".join(DATA).startswith(found.data)
    assert len(found.data) >= sum(map(len, DATA[:-1]))
    refused = refusal_of_append(log)
    assert refused.code is ErrorCode.BACKPRESSURE
    assert refused.message.startswith("Nothing was stored")
    assert "No space left" in refused.message
    assert "No space left" in log.engine.problems[1]
    with pytest.raises(Refusal, match="No space left"):
        log.engine.topic(1).consumers.commit(7, 0)


@pytest.mark.parametrize("suffixes", [(DATA_SUFFIX,), (DATA_SUFFIX, SIDECAR_SUFFIX)])
def test_files_of_a_segment_that_was_never_made_keep_nothing_from_being_read(
    suffixes: tuple[str, ...],
) -> None:
    """The disk refused to make them whole, and then to remove them, and now refuses all changes."""
    disk = two_topics(clean=True)
    for suffix in suffixes:
        disk.close(disk.open(FOLDER / f"6_1700000000000000000{suffix}", create=True))
    faulty = FaultyStorage(disk)
    faulty.within, faulty.fail = FOLDER, {"write": errno.EROFS, "remove": errno.EROFS}
    log = LogDriver(faulty, options=OPTIONS)
    assert set(log.engine.problems) == {1}
    assert log.read_all(1).data == b"".join(DATA)


def test_a_topic_of_which_nothing_can_be_read_says_why() -> None:
    """Requests for it are refused with the disk's reason until it is there again."""
    faulty = FaultyStorage(two_topics(clean=True))
    faulty.within, faulty.fail = FOLDER, {"open": errno.EIO}
    log = LogDriver(faulty, options=OPTIONS)
    with pytest.raises(Refusal, match="Input/output error") as caught:
        log.end(1)
    assert caught.value.code is ErrorCode.STORAGE_ERROR


def test_commits_that_cannot_be_read_are_not_taken_for_absent() -> None:
    """A consumer that asks where it was is refused for now; it does not begin again."""
    faulty = FaultyStorage(two_topics(clean=True))
    faulty.within, faulty.fail = FOLDER / "consumers.log", {"open": errno.EIO}
    log = LogDriver(faulty, options=OPTIONS)
    with pytest.raises(Refusal, match="Input/output error"):
        log.engine.topic(1).consumers.committed(7)
    assert log.read_all(1).data == b"".join(DATA)
    faulty.fail = {}
    log.reopen_topics()
    assert log.engine.topic(1).consumers.committed(7) == len(DATA[0])


@pytest.mark.parametrize("method", ["truncate", "sync"])
def test_attempts_that_fail_keep_one_copy_of_what_is_cut_away(method: str) -> None:
    """However often a torn tail cannot be cut: no further copies, and no further findings."""
    disk = two_topics(clean=False)
    cut_tail(disk)
    faulty = FaultyStorage(disk)
    faulty.within, faulty.fail = FOLDER, {method: errno.EIO}
    log = LogDriver(faulty, options=OPTIONS)
    for _ in range(10):
        log.scheduler.pass_time(8.0)
        log.scheduler.run_all()
    copies = [path for path in disk.files() if "quarantine" in path.parts]
    assert [disk.peek(path) for path in copies] == [b"torn"]
    assert len(log.engine.report.findings) <= 2
    faulty.fail = {}
    log.reopen_topics()
    assert log.read_all(1).data == b"".join(DATA)
    assert [path for path in disk.files() if "quarantine" in path.parts] == copies


def test_attempts_to_keep_a_copy_that_fail_leave_nothing_of_it() -> None:
    """What is freed on a full disk is not taken by pieces of copies."""
    disk = two_topics(clean=False)
    cut_tail(disk)
    faulty = FaultyStorage(disk)
    faulty.within, faulty.fail = Path("/data/quarantine"), {"sync": errno.ENOSPC}
    log = LogDriver(faulty, options=OPTIONS)
    for _ in range(10):
        log.scheduler.pass_time(8.0)
        log.scheduler.run_all()
    assert [path for path in disk.files() if "quarantine" in path.parts] == []


def test_a_name_that_was_given_away_meanwhile_is_not_taken_back() -> None:
    """Two topics never have one name: the one that came late stays out, and says why."""
    faulty = FaultyStorage(two_topics(clean=True))
    faulty.within, faulty.fail = FOLDER, {"open": errno.EIO}
    log = LogDriver(faulty, options=OPTIONS)
    created = log.create_topic("suffers")
    faulty.fail = {}
    log.reopen_topics()
    found = log.engine.topic_named("suffers")
    assert found is not None
    assert found.id == created.id
    with pytest.raises(Refusal, match="name"):
        log.end(1)


def test_attempts_are_repeated_after_pauses_that_grow() -> None:
    """A disk that stays bad is asked less and less often, at least every 8 s."""
    faulty = FaultyStorage(two_topics(clean=True))
    faulty.within, faulty.fail = FOLDER, {"open": errno.EIO}
    log = LogDriver(faulty, options=OPTIONS)
    asked = []
    for _ in range(4 * 60):
        before = faulty.calls["open"]
        log.scheduler.pass_time(0.25)
        log.scheduler.run_all()
        if faulty.calls["open"] > before:
            asked.append(log.scheduler.now)
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert asked[0] == 0.25
    assert pauses[:5] == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert set(pauses[5:]) == {8.0}


@pytest.mark.parametrize("copies", [1, 2])
def test_metadata_that_cannot_be_read_is_taken_from_its_other_copy(copies: int) -> None:
    """An error of the disk about one copy is as good as damage to it; about both it is told."""

    class OneCopy(FaultyStorage):
        def _fails(self, method: str, path: Path) -> bool:
            names = ("metadata.json", "metadata.json.bak")[:copies]
            return path.name in names and super()._fails(method, path)

    faulty = OneCopy(two_topics(clean=True))
    faulty.within, faulty.fail = FOLDER, {"open": errno.EIO}
    log = LogDriver(faulty, options=OPTIONS)
    if copies == 1:
        assert log.read_all(1).data == b"".join(DATA)
    else:
        with pytest.raises(Refusal, match="cannot be read"):
            log.end(1)


def test_a_stop_tries_once_more_and_leaves_no_clean_mark_otherwise() -> None:
    """Stopping is never kept up by a topic that is closed; the next start checks the log."""
    disk = two_topics(clean=False)
    faulty = FaultyStorage(disk)
    faulty.within, faulty.fail = FOLDER, {"write": errno.EIO}
    log = LogDriver(faulty, options=OPTIONS)
    stopped = log.engine.close()
    log.scheduler.run_all()
    assert isinstance(stopped.error, OSError)
    assert not any(path.name == "clean.json" for path in disk.files())
    log.engine.release()
    log = LogDriver(faulty, options=OPTIONS)
    faulty.fail = {}
    log.close()
    assert LogDriver(disk, options=OPTIONS).read_all(1).data == b"".join(DATA)


def test_where_the_catalog_cannot_be_read_nothing_is_served() -> None:
    """Ids that were given away are not known: a start without them would give them twice."""
    disk = two_topics(clean=True)
    for name in ("catalog.json", "catalog.json.bak"):
        disk.poke(FOLDER.parent / name, b"{")
    with pytest.raises(DataDirError, match=r"catalog\.json"):
        LogDriver(disk, options=OPTIONS)


# While it runs ---------------------------------------------------------------------------------


def closed_while_running() -> tuple[LogDriver, FaultyStorage, MemoryStorage]:
    """Return a log whose topic 1 has a failed write that could not be undone."""
    disk = MemoryStorage()
    faulty = FaultyStorage(disk)
    log = LogDriver(faulty)
    topic = log.create_topic("suffers", Retention())
    log.store([b"before"], batch_id=1, topic_id=topic.id)
    faulty.within, faulty.fail = FOLDER, {"sync": errno.EIO, "truncate": errno.EIO}
    outcome = log.append([b"unknown"], batch_id=2, topic_id=topic.id)
    log.scheduler.run_all()
    assert isinstance(outcome.error, Refusal)
    assert "not known" in outcome.error.message
    return log, faulty, disk


def test_what_cannot_be_undone_closes_the_topic_for_writing_only() -> None:
    """It is read on, it refuses without asking the disk, and the other topics take batches."""
    log, faulty, _ = closed_while_running()
    asked = dict(faulty.calls)
    refused = refusal_of_append(log)
    assert refused.code is ErrorCode.BACKPRESSURE
    assert faulty.calls == asked
    assert log.read_all(1).data == encode_records([b"before"])
    log.store([b"elsewhere"], batch_id=1)
    assert "Input/output error" in log.engine.problems[1]


def test_it_opens_again_when_the_disk_lets_it_be_decided() -> None:
    """What was answered as unknown is absent for ever after, and batches are stored again."""
    log, faulty, disk = closed_while_running()
    faulty.fail = {}
    log.reopen_topics()
    log.store([b"after"], batch_id=3, topic_id=1)
    expected = encode_records([b"before", b"after"])
    assert log.read_all(1).data == expected
    assert LogDriver(disk.copy()).read_all(1).data == expected


def test_a_closed_topic_can_be_deleted() -> None:
    """Also while an attempt to open it again waits for its turn."""
    log, faulty, disk = closed_while_running()
    faulty.fail = {"truncate": errno.EIO}
    log.scheduler.pass_time(8.0)
    deleted = log.engine.delete_topic(1, text="gone")
    log.scheduler.run_all()
    deleted.result()
    assert log.engine.problems == {}
    log.reopen_topics()
    assert not any(path.parent == FOLDER for path in disk.files())
    assert len(disk._open) == 0


def test_a_closed_topic_whose_deletion_fails_is_brought_back() -> None:
    """It is as it was: read at once, and written to when the disk lets it be settled."""
    log, faulty, disk = closed_while_running()
    faulty.fail = {"truncate": errno.EIO, "rename": errno.EIO}
    deleted = log.engine.delete_topic(1, text="gone")
    log.scheduler.run_all()
    assert isinstance(deleted.error, Refusal)
    assert log.read_all(1).data.startswith(encode_records([b"before"]))
    faulty.fail = {}
    log.reopen_topics()
    log.store([b"after"], batch_id=3, topic_id=1)
    assert log.read_all(1).data.endswith(encode_records([b"after"]))
    assert log.read_all(1).data == LogDriver(disk.copy()).read_all(1).data


def test_a_closed_topic_that_cannot_be_decided_leaves_no_clean_mark() -> None:
    """The next start decides; what was answered as unknown may be there."""
    log, _, disk = closed_while_running()
    stopped = log.engine.close()
    log.scheduler.run_all()
    assert isinstance(stopped.error, OSError)
    log.engine.release()
    again = LogDriver(disk.copy())
    assert not again.engine.report.clean
    assert again.read_all(1).data.startswith(encode_records([b"before"]))


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_after_a_failed_sync_what_shares_a_page_is_written_again(number: int) -> None:
    """The system may hold for written what it lost; where there was no room nothing is lost."""
    disk = MemoryStorage()
    writes: list[tuple[str, int, bytes]] = []

    class Watched(FaultyStorage):
        def write(self, fd: int, data: object, offset: int) -> None:
            writes.append((self._paths[fd].suffix, offset, bytes(data)))  # type: ignore[call-overload]
            super().write(fd, data, offset)  # type: ignore[arg-type]

        def truncate(self, fd: int, size: int) -> None:
            super().truncate(fd, size)
            self.fail = {}

    faulty = Watched(disk)
    log = LogDriver(faulty)
    log.store([b"kept"], batch_id=1)
    writes.clear()
    faulty.fail = {"sync": number}
    log.append([b"refused"], batch_id=2)
    log.scheduler.run_all()
    again = {suffix: data for suffix, offset, data in writes[2:] if offset == 0}
    if number == errno.ENOSPC:
        assert DATA_SUFFIX not in again
    else:
        assert again[DATA_SUFFIX] == encode_records([b"kept"])
        assert len(again[SIDECAR_SUFFIX]) == 128


def test_a_read_that_a_deletion_overtakes_is_told_so() -> None:
    """The files are gone under it: the topic was deleted, no disk failed."""
    disk = FaultyStorage(MemoryStorage())
    log = LogDriver(disk)
    topic = log.create_topic("short")
    log.store([b"one"], topic_id=topic.id)
    log.close()
    log = LogDriver(disk)
    topic = log.engine.topic(1)
    reading = topic.partition.reading(Range(0, 100))
    finding = topic.partition.finding_time(0)
    deleted = log.engine.delete_topic(1, text="gone")
    log.scheduler.run_all()
    deleted.result()
    for work in (reading, finding):
        with pytest.raises(Refusal) as caught:
            work()
        assert caught.value.code is ErrorCode.TOPIC_DELETED


def test_limits_of_which_it_is_open_whether_they_changed_are_told_so() -> None:
    """One copy of the metadata is written, the other fails; asking again decides."""

    class SecondCopyFails(FaultyStorage):
        def _fails(self, method: str, path: Path) -> bool:
            return path.name == "metadata.json.bak.tmp" and super()._fails(method, path)

    peer = SessionPeer(disk=SecondCopyFails(MemoryStorage()))
    peer.disk.fail = {"create": errno.EIO}
    request = SetRetention(0, 0, 5000).encode()
    error = peer.error(Command.SET_RETENTION, request)
    assert error.code is ErrorCode.STORAGE_ERROR
    assert "Whether it was done is not known" in error.message
    peer.disk.fail = {}
    body = json.loads(bytes(peer.ask(Command.SET_RETENTION, request).payload))
    assert body == {"topic_id": 0, "max_age_secs": 0, "max_bytes": 5000}
