"""The commit log's files, and finding in a log what arrived."""

import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_sdk.errors import ConfigError
from lance_sdk.spark.errors import CheckpointError, SinkError
from lance_sdk.spark.options import Options
from lance_sdk.spark.rows.encoding import Frame
from lance_sdk.spark.writing import sinks
from lance_sdk.spark.writing.commit_log import CommitLog, local_path, read_staged
from lance_sdk.spark.writing.dedup import count_arrived
from lance_sdk.spark.writing.sending import FrameSender
from lance_spec.records import decode_records, encode_records

At = Mapping[str, str]


def options(at: At, **more: str) -> Options:
    """Return the options of a query that writes to the topic ``copy``."""
    return Options.parse({**at, "topic": "copy", **more})


@pytest.mark.parametrize("length", [1, 10, 17, 30])
def test_a_file_that_was_cut_is_not_sent(tmp_path: Path, length: int) -> None:
    """Wherever it was cut."""
    commit_log = CommitLog(str(tmp_path), "query")
    staged = commit_log.stage([Frame("copy", 3, encode_records([b"abc"] * 3))], 0, 0, 0)
    path = tmp_path / "query" / "batch-0" / staged.name
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CheckpointError, match="damaged"):
        list(read_staged(path))


@pytest.mark.parametrize(
    "more", [{}, {"txnId": "a"}, {"ledgerPath": "/x"}, {"txnId": "../x", "ledgerPath": "/x"}]
)
def test_writing_a_batch_once_needs_a_name_and_a_commit_log(at: At, more: dict[str, str]) -> None:
    """Of letters and digits: it becomes a folder."""
    said = options(at, semantics="exactly-once", **more)
    with pytest.raises(ConfigError, match="txnId"):
        sinks.batch_sink(said, ["value"], overwrite=False)


def test_a_stream_has_no_txn_id(at: At) -> None:
    """Refused before anything is delivered: its batches would all have one name."""
    said = options(at, semantics="exactly-once", txnId="a", ledgerPath="/x")
    with pytest.raises(ConfigError, match="txnId names a batch write"):
        sinks.stream_sink(said, ["value"], overwrite=False)


def test_a_commit_log_stands_beside_the_checkpoint(at: At, tmp_path: Path) -> None:
    """Unless it is said where."""
    said = options(at, semantics="exactly-once", checkpointLocation=f"file://{tmp_path}/my%20cp")
    sink = sinks.stream_sink(said, ["value"], overwrite=False)
    assert sink == sinks.StagingSink(said, f"{tmp_path}/my cp/lwp-ledger")


def test_a_commit_log_must_be_on_a_mounted_folder() -> None:
    """It is renamed and synced."""
    with pytest.raises(ConfigError, match="mounted folder"):
        local_path("hdfs://somewhere/ledger")


@settings(deadline=None)
@given(st.data())
def test_arrived_frames_are_counted_between_other_records(data: st.DataObject) -> None:
    """However the log is cut when it is read."""
    values = st.lists(st.binary(min_size=1, max_size=4), min_size=1, max_size=4)
    frames = [
        Frame("t", 1, encode_records(each)) for each in data.draw(st.lists(values, max_size=5))
    ]
    arrived = data.draw(st.integers(0, len(frames)))
    log: list[bytes] = []
    for frame in frames[:arrived]:
        log += [encode_records([b"others"])] * data.draw(st.integers(0, 2))
        log.append(frame.payload)
    whole = b"".join(log)
    records = [encode_records([value]) for _, value in decode_records(whole)]
    runs = [b"".join(group) for group in (records[:3], records[3:4], records[4:])]
    assert count_arrived(runs, frames) == arrived


VALUES = [b"%03d" % number for number in range(100)]


def frames() -> Iterator[Frame]:
    """Yield a task's frames, ten records in each."""
    for first in range(0, len(VALUES), 10):
        yield Frame("copy", 10, encode_records(VALUES[first : first + 10]))


def test_two_drivers_do_not_commit_at_once(
    reader: Any, at: At, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs of one query on one checkpoint: the second is told, and may go on afterwards."""
    said = options(at, createTopic="true")
    one, two = (CommitLog(str(tmp_path), "query") for _ in range(2))
    first, second = (each.stage(frames(), 0, 0, number) for number, each in enumerate((one, two)))
    send = FrameSender.send_frame
    refused: list[Any] = []

    def meanwhile(self: FrameSender, frame: Frame, **identity: int) -> None:
        if not refused:
            with pytest.raises(SinkError, match="another driver commits a batch") as error:
                two.commit(said, [second], 0)
            refused.append(error)
        send(self, frame, **identity)

    monkeypatch.setattr(FrameSender, "send_frame", meanwhile)
    one.commit(said, [first], 0)
    two.commit(said, [second], 0)
    assert len(refused) == 1
    assert reader.values(**at, topic="copy") == VALUES


@contextmanager
def room(size: int) -> Iterator[None]:
    """Have files of this process end at so many bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:  # before the test runner writes to its own files
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 50, 300])
def test_a_commit_log_without_room_is_told_and_left_clean(tmp_path: Path, size: int) -> None:
    """The task fails, Spark tries it again, and no half file takes what room there is."""
    told = r"part-00000-.*\.frames cannot be written: .* make room"
    with room(size), pytest.raises(SinkError, match=told):
        CommitLog(str(tmp_path), "query").stage(frames(), 0, 0, 0)
    assert list(tmp_path.rglob("*.frames")) == []


def test_a_manifest_without_room_sends_nothing(reader: Any, at: At, tmp_path: Path) -> None:
    """And the batch is written when there is room again."""
    said, commit_log = options(at, createTopic="true"), CommitLog(str(tmp_path), "query")
    staged = commit_log.stage(frames(), 0, 0, 0)
    with room(10), pytest.raises(SinkError, match=r"manifest.*cannot be written"):
        commit_log.commit(said, [staged], 0)
    commit_log.commit(said, [staged], 0)
    assert reader.values(**at, topic="copy") == VALUES


def test_a_source_that_fails_is_not_blamed_on_the_disk(tmp_path: Path) -> None:
    """Where rows come from may fail with an error of the system, too."""

    def torn() -> Iterator[Frame]:
        yield from frames()
        raise ConnectionResetError("the Java side is gone")

    with pytest.raises(ConnectionResetError, match="Java side"):
        CommitLog(str(tmp_path), "query").stage(torn(), 0, 0, 0)
    assert list(tmp_path.rglob("*.frames")) == []
