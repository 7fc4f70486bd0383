"""Data directories whose segments lack what the write-ahead log has, read without a server."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_sdk import Producer
from lance_sdk.spark.errors import DataDamaged
from lance_sdk.spark.files.storage import opened, read_file
from lance_sdk.spark.files.wal import FOLDER, PendingWrite, RepeatedFile, WriteAheadLog, log_of
from lance_sdk.spark.pipelines.audit import audit_one, targets
from lance_server import running
from lance_server.log.log_options import LogOptions
from lance_server.storage.contract import Write
from lance_server.storage.pwritev import PwritevStorage
from lance_server.storage.wal import WalStorage
from lance_server.testing import LogDriver, ManualClock, MemoryStorage

ROOT = Path("/data")
OPTIONS = LogOptions(segment_size=700, segment_age_secs=1)
TOPICS = ("orders", "readings")
SECOND_NS = 1_000_000_000
COLUMNS = ("offset", "value")
Rows = list[tuple[int, bytes]]


class Machine:
    """A server with a write-ahead log on a machine that loses power at random."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = ManualClock()
        self.disk = MemoryStorage()
        self.disk.make_dir(ROOT)
        self.sent: dict[str, Rows] = {name: [] for name in TOPICS}
        self.log = self._start()
        self.ids = {name: self.log.create_topic(name).file.identity.id for name in TOPICS}

    def _start(self) -> LogDriver:
        storage = WalStorage(self.disk, ROOT, size=4096, max_size=8192)
        return LogDriver(storage, ROOT, OPTIONS, self.clock)

    def live(self, steps: int) -> None:
        """Append, close segments and make room in the log at random."""
        for _ in range(steps):
            self.random.choice((self.append, self.append, self.append, self.tend))()
            self.clock.now_ns += SECOND_NS * self.random.randrange(2)

    def append(self) -> None:
        """Write a batch and wait for its acknowledgement."""
        name = self.random.choice(TOPICS)
        topic, sent = self.ids[name], self.sent[name]
        values = [b"%06d" % (len(sent) + n) * 5 for n in range(self.random.randrange(1, 6))]
        offset = self.log.store(values, batch_id=len(sent) + 2**40, topic_id=topic)
        for value in values:
            sent.append((offset, value))
            offset += 5 + len(value)

    def tend(self) -> None:
        """Close, merge and index what is due; and sometimes use a file of the log again."""
        for topic in self.ids.values():
            self.log.engine.upkeep.visit(self.log.engine.topic(topic))
        self.log.scheduler.run_all()

    def lose_power(self, target: Path) -> None:
        """Stop; put what is left of the disk into a folder, and start again from it."""
        self.disk = self.disk.crash(self.random)
        for path in self.disk.files():
            copy = target / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(self.disk.peek(path))
        self.log = self._start()


def rows_of(reader: Any, data: Path, topic: str) -> Rows:
    """Read a topic from a data directory as tasks would."""
    splits = reader.splits(path=str(data), topic=topic)
    return [(row["offset"], row["value"]) for row in reader.rows(splits, *COLUMNS)]


@pytest.fixture
def crashed(tmp_path: Path) -> tuple[Machine, Path]:
    """A data directory as a power loss has left it, whose segments lack acknowledged batches."""
    machine = Machine(3)
    for _ in range(4):
        machine.append()
    machine.lose_power(tmp_path / "data")
    return machine, tmp_path / "data"


@pytest.mark.parametrize("seed", range(12))
def test_what_was_acknowledged_is_read_after_a_power_loss(
    reader: Any, tmp_path: Path, seed: int
) -> None:
    """Also what only the write-ahead log has, in data files and in sidecars."""
    machine = Machine(seed)
    for number in range(6):
        machine.live(12)
        image = tmp_path / f"image-{number}"
        machine.lose_power(image)
        for topic, sent in machine.sent.items():
            assert rows_of(reader, image, topic) == sent


def test_the_audit_sees_segments_as_the_next_start_will(crashed: tuple[Machine, Path]) -> None:
    """What the write-ahead log has is not damage of the segments."""
    machine, data = crashed
    found = [audit_one(target) for target in targets(str(data))]
    assert [finding for report in found for finding in report.findings] == []
    assert sum(report.records for report in found) == sum(
        len(sent) for sent in machine.sent.values()
    )


def test_a_split_is_read_after_the_server_has_repeated_its_log(
    reader: Any, crashed: tuple[Machine, Path]
) -> None:
    """What was planned from the log stands in the segments by then."""
    machine, data = crashed
    splits = {topic: reader.splits(path=str(data), topic=topic) for topic in TOPICS}
    storage = WalStorage(PwritevStorage(), data)
    LogDriver(storage, data, OPTIONS, machine.clock).close()
    for topic, planned in splits.items():
        found = [(row["offset"], row["value"]) for row in reader.rows(planned, *COLUMNS)]
        assert found == machine.sent[topic]


def test_damage_in_the_write_ahead_log_is_told(reader: Any, crashed: tuple[Machine, Path]) -> None:
    """A frame that is not whole before one that is has held acknowledged batches."""
    _, data = crashed
    path = max((data / FOLDER).iterdir(), key=lambda each: each.read_bytes().count(b"LWAL"))
    raw = bytearray(path.read_bytes())
    raw[raw.find(b"LWAL", 1024) + 40] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(DataDamaged, match=r"\.wal: the bytes from 1024 to"):
        reader.splits(path=str(data), topic="orders")


def test_a_directory_is_read_beside_a_server_with_a_write_ahead_log(
    reader: Any, tmp_path: Path
) -> None:
    """It writes to the segments, too, so that the log adds nothing."""
    data = tmp_path / "data"
    values = [b"%04d" % number for number in range(200)]
    with running(data, durability="wal") as server:
        with Producer(f"{server.url}/orders", create_topic=True, batch_bytes=256) as producer:
            producer.send_many(values)
        assert reader.values(path=str(data), topic="orders") == values
        assert all(not log_of(str(data)).lacking(str(path)) for path in data.rglob("*.lnc"))


class Followed:
    """A write-ahead log in a folder, and what its files would be after it was repeated."""

    def __init__(self, data: Path) -> None:
        data.mkdir()
        self.data = data
        self.storage = WalStorage(PwritevStorage(), data, size=1024, max_size=1024)
        self.path = data / "file.lnc"
        self.fd = self.storage.open(self.path, create=True)
        self.end = 0

    def commit(self, data: bytes) -> None:
        """Append to the file by way of the log."""
        assert self.storage.commit([Write(self.fd, data, self.end)]) == [None]
        self.end += len(data)

    def make_room(self) -> None:
        """Use files of the log again, if it is time."""
        if (work := self.storage.pending_work()) is not None:
            work()

    def repeated(self, log: WriteAheadLog, lost: bytes) -> bytes:
        """Return the file as the log makes it, from what a machine that stopped has kept."""
        whole = self.path.read_bytes()
        self.path.write_bytes(lost)
        with log.opened(str(self.path)) as file:
            found = bytes(file.read_at(file.size(), 0))
        self.path.write_bytes(whole)
        return found


@settings(max_examples=40)
@given(steps=st.lists(st.one_of(st.none(), st.binary(min_size=1, max_size=120)), max_size=20))
def test_following_a_log_finds_what_reading_it_at_once_finds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[bytes | None]
) -> None:
    """Whatever was appended since, and however often its files were used again."""
    followed = Followed(tmp_path_factory.mktemp("wal") / "data")
    log = WriteAheadLog(str(followed.data))
    durable = b""
    for step in steps:
        if step is None:
            followed.make_room()
            durable = followed.path.read_bytes()
        else:
            followed.commit(step)
        log.refresh()
        at_once = WriteAheadLog(str(followed.data))
        at_once.refresh()
        assert log.is_current()
        assert followed.repeated(log, durable) == followed.path.read_bytes()
        assert followed.repeated(at_once, durable) == followed.path.read_bytes()


@given(
    content=st.binary(max_size=40),
    runs=st.lists(
        st.builds(PendingWrite, st.integers(0, 60), st.binary(min_size=1, max_size=20)), min_size=1
    ),
    offset=st.integers(0, 90),
    length=st.integers(0, 90),
)
def test_a_repeated_file_reads_like_one_that_was_written_to(
    tmp_path_factory: pytest.TempPathFactory,
    content: bytes,
    runs: list[PendingWrite],
    offset: int,
    length: int,
) -> None:
    """At any place, for any number of bytes, also beyond the end."""
    path = tmp_path_factory.mktemp("file") / "file"
    path.write_bytes(content)
    written = bytearray(content)
    for run in runs:
        written.extend(bytes(max(0, run.end - len(written))))
        written[run.offset : run.end] = run.data
    with opened(str(path)) as file:
        repeated = RepeatedFile(file, runs)
        assert repeated.size() == len(written)
        assert repeated.read_at(length, offset) == bytes(written[offset : offset + length])
    assert read_file(str(path)) == content
