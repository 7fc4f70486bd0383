"""Writing once by way of a commit log, whatever fails."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.restarted import RestartedServer

from lance_sdk import Client, Producer
from lance_sdk.errors import DeliveryError
from lance_sdk.spark.errors import CheckpointError, SinkError
from lance_sdk.spark.options import Options
from lance_sdk.spark.rows.encoding import Frame
from lance_sdk.spark.writing import sinks
from lance_sdk.spark.writing.commit_log import CommitLog
from lance_sdk.spark.writing.sending import FrameSender
from lance_server import running
from lance_server.embedded import EmbeddedServer
from lance_spec.records import encode_records

At = Mapping[str, str]
VALUES = [b"%06d" % number for number in range(1000)]
PARTS = [VALUES[:400], VALUES[400:]]


class Fault(Exception):  # noqa: N818 - it is made, not met
    """What a test makes go wrong."""


def batches(values: list[bytes]) -> Iterator[pa.RecordBatch]:
    """Yield rows as Spark hands them to a task."""
    for first in range(0, len(values), 300):
        yield pa.RecordBatch.from_pydict({"value": values[first : first + 300]})


def options(at: At, **more: str) -> Options:
    """Return the options of a query that writes to the topic ``copy``."""
    return Options.parse(
        {**at, "topic": "copy", "createTopic": "true", "batchBytes": "500", **more}
    )


class Query:
    """A streaming query with two tasks that writes once, as Spark drives it."""

    def __init__(self, at: At, folder: Path, **more: str) -> None:
        said = options(at, semantics="exactly-once", ledgerPath=str(folder), **more)
        self.sink = sinks.stream_sink(said, ["value"], overwrite=False)

    def tasks(self, batch: int, *, parts: list[list[bytes]] = PARTS, first: int = 0) -> list[Any]:
        """Run the tasks of a micro-batch."""
        return [
            self.sink.write(batches(part), sinks.Task(number, first + number, "query", batch))
            for number, part in enumerate(parts)
        ]

    def run(self, batch: int, **how: Any) -> None:
        """Run a micro-batch to its end."""
        self.sink.commit(self.tasks(batch, **how), batch)


@pytest.fixture
def query(at: At, tmp_path: Path) -> Query:
    """A query with its commit log."""
    return Query(at, tmp_path / "ledger")


def test_micro_batches_arrive_in_order(reader: Any, at: At, query: Query) -> None:
    """The driver appends: tasks in the order of their numbers."""
    query.run(0)
    query.run(1)
    assert reader.values(**at, topic="copy") == VALUES * 2


def test_nothing_is_visible_before_the_commit(server: EmbeddedServer, query: Query) -> None:
    """Tasks only stage."""
    query.tasks(0)
    with Client(server.url) as client:
        assert client.list_topics() == []


def test_a_batch_that_was_committed_is_not_sent_again(reader: Any, at: At, query: Query) -> None:
    """Spark repeats a batch whose commit it has not noted."""
    query.run(0)
    query.run(0, first=10)
    assert reader.values(**at, topic="copy") == VALUES


def test_two_queries_may_share_a_commit_log(reader: Any, at: At, query: Query) -> None:
    """Their batches have the same numbers; neither is taken for the other's."""
    query.run(0)
    other = query.sink.write(batches(VALUES), sinks.Task(0, 0, "other", 0))
    query.sink.commit([other], 0)
    assert reader.values(**at, topic="copy") == VALUES * 2


def failing_at(monkeypatch: pytest.MonkeyPatch, frame: int) -> None:
    """Make the sending of one frame fail, once."""
    send, sent = FrameSender.send_frame, iter(range(10_000))

    def maybe(self: FrameSender, frame_: Frame, **identity: int) -> None:
        if next(sent) == frame:
            self.finish()
            raise Fault
        send(self, frame_, **identity)

    monkeypatch.setattr(FrameSender, "send_frame", maybe)


@pytest.mark.parametrize("frame", [0, 1, 9, 22])
def test_a_commit_that_failed_half_way_goes_on(
    reader: Any, at: At, query: Query, monkeypatch: pytest.MonkeyPatch, frame: int
) -> None:
    """What the server has is not stored twice (AMB-25)."""
    failing_at(monkeypatch, frame)
    with pytest.raises(Fault):
        query.run(0)
    query.run(0, first=10)
    assert reader.values(**at, topic="copy") == VALUES


def test_rows_in_another_order_change_nothing(
    reader: Any, at: At, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest decides: tasks that run again may shuffle, and their files are not used."""
    failing_at(monkeypatch, 9)
    with pytest.raises(Fault):
        query.run(0)
    query.run(0, parts=[VALUES[::-1]], first=10)
    assert reader.values(**at, topic="copy") == VALUES


def test_a_lost_acknowledgement_changes_nothing(
    reader: Any, at: At, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is stored, and the driver does not know."""
    finish = FrameSender.finish

    def lose(self: FrameSender) -> None:
        finish(self)
        raise Fault

    with monkeypatch.context() as patch:
        patch.setattr(FrameSender, "finish", lose)
        with pytest.raises(Fault):
            query.run(0)
    query.run(0, first=10)
    assert reader.values(**at, topic="copy") == VALUES


def test_a_task_that_died_leaves_nothing_behind(reader: Any, at: At, query: Query) -> None:
    """Its half-written file is in no manifest."""

    def dying() -> Iterator[pa.RecordBatch]:
        yield from batches(VALUES[:300])
        raise Fault

    with pytest.raises(Fault):
        query.sink.write(dying(), sinks.Task(0, 0, "query", 0))
    query.run(0, first=1)
    assert reader.values(**at, topic="copy") == VALUES


def test_an_abort_before_the_manifest_removes_the_files(query: Query, tmp_path: Path) -> None:
    """Nothing was sent."""
    query.sink.abort(query.tasks(0), 0)
    assert list((tmp_path / "ledger").rglob("*.frames")) == []


def test_an_abort_after_the_manifest_keeps_the_files(
    reader: Any, at: At, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark calls abort after a commit that failed, when part of it was sent."""
    failing_at(monkeypatch, 9)
    told = query.tasks(0)
    with pytest.raises(Fault):
        query.sink.commit(told, 0)
    query.sink.abort(told, 0)
    query.run(0, first=10)
    assert reader.values(**at, topic="copy") == VALUES


def test_older_batches_are_swept_away(query: Query, tmp_path: Path) -> None:
    """A commit log stays small."""
    for batch in range(4):
        query.run(batch)
    left = sorted(path.name for path in (tmp_path / "ledger" / "query").glob("batch-*"))
    assert left == ["batch-3"]
    assert list((tmp_path / "ledger").rglob("*.frames")) == []


DRIVER = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from test_once import Query, failing_at
from lance_sdk.spark.writing.sending import FrameSender
send, sent = FrameSender.send_frame, iter(range(10_000))
def die(self, frame, **identity):
    if next(sent) == 9:
        self.finish()
        os.kill(os.getpid(), signal.SIGKILL)
    send(self, frame, **identity)
FrameSender.send_frame = die
from pathlib import Path
Query({at!r}, Path({folder!r})).run(0)
"""


def test_a_driver_that_is_killed_is_taken_over(
    reader: Any, at: At, query: Query, tmp_path: Path
) -> None:
    """SIGKILL in the middle of a commit; another driver finishes it."""
    script = DRIVER.format(
        tests=str(Path(__file__).parent), at=dict(at), folder=str(tmp_path / "ledger")
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert 0 < len(reader.values(**at, topic="copy")) < len(VALUES)
    query.run(0, parts=[VALUES[::-1]], first=10)
    assert reader.values(**at, topic="copy") == VALUES


def test_a_server_that_is_killed_stores_everything_once(
    reader: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL in the middle of a commit; the sender goes on when the server is back."""
    with RestartedServer(tmp_path / "killed") as process:
        at = {"servers": process.address, "dialect": "specified"}
        send, sent = FrameSender.send_frame, iter(range(10_000))

        def kill_once(self: FrameSender, frame: Frame, **identity: int) -> None:
            send(self, frame, **identity)
            if next(sent) == 9:
                process.kill()

        monkeypatch.setattr(FrameSender, "send_frame", kill_once)
        Query(at, tmp_path / "ledger").run(0)
        assert reader.values(**at, topic="copy") == VALUES


@pytest.fixture(params=["specified", "deployed"])
def forgetful(request: Any, tmp_path: Path) -> Iterator[At]:
    """A server that states no duplicate window."""
    with running(tmp_path / "forgetful", dedup_entries=0, dialect=request.param) as server:
        yield {"servers": "{}:{}".format(*server.address), "dialect": request.param}


@pytest.mark.parametrize("frame", [0, 1, 9, 22])
def test_without_a_window_what_arrived_is_looked_for(
    reader: Any, forgetful: At, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frame: int
) -> None:
    """Only the rest is sent, though others have written in between."""
    query = Query(forgetful, tmp_path / "ledger")
    url = f"lance://{forgetful['servers']}/copy"
    with Producer(url, create_topic=True, dialect=forgetful["dialect"]) as producer:
        producer.send(b"before")
        failing_at(monkeypatch, frame)
        with pytest.raises(Fault):
            query.run(0)
        producer.send(b"between").result(30)
        query.run(0, parts=[VALUES[::-1]], first=10)
    found = reader.values(**forgetful, topic="copy")
    assert [value for value in found if value not in {b"before", b"between"}] == VALUES


def test_without_a_window_a_killed_server_stores_everything_once(
    reader: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost connection ends the commit; nothing is sent again without a look."""
    with RestartedServer(tmp_path / "killed", "--dedup-entries", "0") as process:
        at = {"servers": process.address, "dialect": "specified"}
        put, sent = FrameSender.send_frame, iter(range(10_000))

        def kill_once(self: FrameSender, frame: Frame, **identity: int) -> None:
            put(self, frame, **identity)
            if next(sent) == 9:
                process.kill()

        monkeypatch.setattr(FrameSender, "send_frame", kill_once)
        query = Query(at, tmp_path / "ledger")
        with contextlib.suppress(DeliveryError):  # it may have been acknowledged just in time
            query.run(0)
        query.run(0, first=10)
        assert reader.values(**at, topic="copy") == VALUES


def test_a_batch_that_was_begun_under_a_window_ends_under_one(
    query: Query, forgetful: At, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server would have to be looked at from a place that nobody noted."""
    failing_at(monkeypatch, 9)
    with pytest.raises(Fault):
        query.run(0)
    with pytest.raises(SinkError, match="the server it was begun with"):
        Query(forgetful, tmp_path / "ledger").run(0)


def test_a_repetition_that_comes_too_late_is_refused(
    at: At, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the window the server would store the frames again; the message says what to do."""
    said, now = options(at), [10**18]
    commit_log = CommitLog(str(tmp_path / "ledger"), "query", clock_ns=lambda: now[0])
    staged = commit_log.stage([Frame("copy", 1, encode_records([b"x"]))], 0, 0, 0)
    failing_at(monkeypatch, 0)
    with pytest.raises(Fault):
        commit_log.commit(said, [staged], 0)
    now[0] += 7 * 24 * 3600 * 10**9
    with pytest.raises(SinkError, match=r"begun 604800 s ago.*done\.json to count them as written"):
        commit_log.commit(said, [staged], 0)


@pytest.mark.parametrize("others", [10, 200])
def test_a_repetition_looks_whether_others_pushed_it_out_of_the_window(
    reader: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """The window has a length, too: what it may have forgotten is not sent again."""
    with running(tmp_path / "data", dedup_entries=100) as server:
        said = options({"servers": "{}:{}".format(*server.address), "dialect": "specified"})
        commit_log = CommitLog(str(tmp_path / "ledger"), "query")
        frames = [Frame("copy", 1, encode_records([b"%d" % n])) for n in range(20)]
        staged = commit_log.stage(frames, 0, 0, 0)
        with Client(server.url) as client:
            client.create_topic("copy")
        with monkeypatch.context() as patch:
            failing_at(patch, 10)
            with pytest.raises(Fault):
                commit_log.commit(said, [staged], 0)
        with Producer(f"{server.url}/copy", dialect="specified") as producer:
            for _ in range(others):
                producer.send(b"other")
                producer.flush()
        if others > 100:
            with pytest.raises(SinkError, match=r"remembers 100: .*done\.json to count them"):
                commit_log.commit(said, [staged], 0)
        else:
            commit_log.commit(said, [staged], 0)
        at = {"servers": said.servers or "", "dialect": "specified"}
        found = [each for each in reader.values(**at, topic="copy") if each != b"other"]
    assert len(found) == len(set(found))
    assert others > 100 or len(found) == 20


def test_a_damaged_file_is_not_sent(query: Query, tmp_path: Path) -> None:
    """Its frames carry checksums."""
    told = query.tasks(0)
    path = next((tmp_path / "ledger").rglob("part-00000-*.frames"))
    raw = bytearray(path.read_bytes())
    raw[100] ^= 1
    path.write_bytes(raw)
    with pytest.raises(CheckpointError, match="is damaged"):
        query.sink.commit(told, 0)


def test_a_manifest_of_a_later_version_is_refused(query: Query, tmp_path: Path) -> None:
    """Rather than misread."""
    home = tmp_path / "ledger" / "query" / "batch-0"
    told = query.tasks(0)
    (home / "manifest.json").write_text('{"v": 2}')
    with pytest.raises(CheckpointError, match="version 2"):
        query.sink.commit(told, 0)


def test_tasks_that_do_not_know_their_batch_are_refused(query: Query) -> None:
    """Spark tells by properties that it does not document."""
    with pytest.raises(SinkError, match=r"streaming\.sql\.batchId"):
        query.sink.write(batches(VALUES), sinks.Task())


def test_a_batch_write_may_be_repeated_under_its_name(reader: Any, at: At, tmp_path: Path) -> None:
    """With txnId."""
    said = {"semantics": "exactly-once", "ledgerPath": str(tmp_path / "ledger"), "txnId": "may"}
    for _ in range(2):
        sink = sinks.batch_sink(options(at, **said), ["value"], overwrite=False)
        sink.commit([sink.write(batches(VALUES), sinks.Task())], 0)
    assert reader.values(**at, topic="copy") == VALUES
