"""A live server's random history, stopped at every step, read by files, by itself and by streams.

A client appends, deletes and creates, sets retention; the server closes, merges and drops, is
killed in the middle of any of that, and starts again at the same address, where the client goes
on. While a step is held up, a batch query reads the data directory and one reads from the server,
and streaming queries that are started again each time go on, of which one changes between the
server and its files.
"""

import contextlib
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.spark.files.histories import Era, Follower, Rows

from lance_sdk import Client, Producer
from lance_sdk.config import RetryPolicy
from lance_sdk.errors import LanceError, TopicDeleted, TopicNotFound
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.logs import server_log
from lance_sdk.spark.options import Options
from lance_sdk.spark.streaming.checkpoint import TopicCheckpoint
from lance_server.config.settings import Address, ServerConfig
from lance_server.embedded import EmbeddedServer
from lance_server.errors import LanceServerError
from lance_server.log.flusher import FlushPolicy
from lance_server.log.log_options import LogOptions
from lance_server.log.segments.compaction import CompactionPolicy
from lance_server.storage.pwritev import PwritevStorage
from lance_server.storage.wal import WalStorage
from lance_server.storage.wrapper import WrapperStorage
from lance_server.testing import free_port
from lance_spec.enums import ErrorCode

HISTORIES = max(2, int(os.environ.get("LANCE_SPARK_HISTORIES", "8")) // 2)
STEPS = 24
COLUMNS = ("offset", "value")
SERVER_THREAD = "lance-server"
PATIENCE = 60.0
PATIENT: Any = {
    "backoff_base": 0.02,
    "backoff_cap": 0.1,
    "close_timeout": 5 * PATIENCE,
    "request_timeout": PATIENCE,
}
"""How a client waits for a server that is started anew."""
POLICY = CompactionPolicy(min_segments=3, max_segments=5, small=1000)

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallSegments(ServerConfig):
    """A server that closes a segment after some records, and merges at once."""

    @property
    def log_options(self) -> LogOptions:
        """What concerns the log."""
        return LogOptions(segment_size=400, compaction=POLICY, flush=FlushPolicy(lone_bytes=0))


class KilledError(OSError):
    """The process that writes is not there any more."""


class Stepped(WrapperStorage):
    """A disk that waits for a look after every step that changes it, until its server is killed.

    Args:
        look: looks at a step; only at files, where the server cannot answer: as it starts, and in
            its own thread.
    """

    def __init__(self, look: Callable[[bool], None]) -> None:
        super().__init__(PwritevStorage())
        self._look = look
        self._turn = threading.RLock()
        self.served = self.killed = False

    def _step(self, change: Callable[[], Any]) -> Any:
        if not self.served or threading.current_thread().name == SERVER_THREAD:
            return self._changed(change, answers=False)
        with self._turn:
            return self._changed(change, answers=True)

    def _changed(self, change: Callable[[], Any], *, answers: bool) -> Any:
        if self.killed:
            raise KilledError("killed")
        found = change()
        self._look(answers)
        return found

    def write(self, fd: int, data: Any, offset: int) -> None:
        """Write, then wait."""
        self._step(lambda: self.inner.write(fd, data, offset))

    def commit(self, writes: Any) -> list[OSError | None]:
        """Commit, then wait."""
        found: list[OSError | None] = self._step(lambda: self.inner.commit(writes))
        return found

    def truncate(self, fd: int, size: int) -> None:
        """Truncate, then wait."""
        self._step(lambda: self.inner.truncate(fd, size))

    def rename(self, source: Path, target: Path) -> None:
        """Rename, then wait."""
        self._step(lambda: self.inner.rename(source, target))

    def remove(self, path: Path) -> None:
        """Remove, then wait."""
        self._step(lambda: self.inner.remove(path))


class LiveHistory:
    """A server that lives at random under a client, and what a reader may find at each step."""

    def __init__(self, data: Path, seed: int, reader: Any) -> None:
        self.data = data
        self.random = Random(seed)
        self.reader = reader
        self.looks = self.kills = self.sent = 0
        self.eras = [Era(-1)]
        self._has_wal = seed % 2 == 1
        self._kill_in = self.random.randrange(5, 40)
        self._steps: queue.SimpleQueue[threading.Event | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._port = free_port()
        self._is_away = False
        if self._has_wal:
            data.mkdir()
        self.server = self._start()
        self.followers = (
            Follower(self, waits=0.5),
            Follower(self, waits=0.5, failOnDataLoss="false"),
            Follower(self, waits=0.3, changes="yes"),
        )
        self._client = ThreadPoolExecutor(1, thread_name_prefix="client")

    @property
    def era(self) -> Era:
        """The topic that there is now, or was created last."""
        return self.eras[-1]

    # What happens ------------------------------------------------------------------------------

    def live(self) -> None:
        """Have the client and the server do something, and look at every step of it."""
        self._do(self._create)
        often = (self._append,) * 6 + (self._tend,) * 3 + (self._drop,) * 2
        for _ in range(STEPS):
            self._do(self.random.choice((*often, self._create_again)))
        self._do(self._append)

    def end(self) -> None:
        """Stop the server."""
        self.disk.killed = True
        self._stop()
        self._client.shutdown(wait=False)

    def _do(self, operation: Callable[[], None]) -> None:
        """Run an operation of the client's beside the looks at its steps."""
        seed = self.random.random()
        done = self._client.submit(self._prepared, operation, seed)
        done.add_done_callback(lambda _: self._steps.put(None))
        while (step := self._steps.get(timeout=PATIENCE)) is not None:
            try:
                self._look_while_held()
            finally:
                step.set()
            self._restart_if_killed()
        if self._failure is not None:
            raise self._failure
        done.result()
        self._look_while_held()
        self._restart_if_killed()

    def _prepared(self, operation: Callable[[], None], seed: float) -> None:
        self._choice = Random(seed)  # the judge has its own, or they would take turns at random
        operation()

    def _append(self) -> None:
        """Send a batch; it is sent again, under its id, to the server that is started anew."""
        era, offset = self.era, self.era.sent[-1][0] + 5 + 30 if self.era.sent else 0
        values = [b"%06d" % (self.sent + n) * 5 for n in range(self._choice.randrange(1, 6))]
        for value in values:
            era.sent.append((offset, value))
            offset += 5 + len(value)
        self.sent += len(values)
        retry = RetryPolicy(also=frozenset({ErrorCode.STORAGE_ERROR}))  # what is killed says it
        with Producer(
            f"{self._url}/orders",
            dialect="specified",
            retry=retry,
            delivery_timeout=5 * PATIENCE,
            **PATIENT,
        ) as producer:
            producer.send_many(values)
        self._again(self._rebase)
        era.acked = len(era.sent)

    def _rebase(self, client: Client) -> None:
        """Note where the last batch is: after a kill it may lie behind a torn tail (AMB-29)."""
        sent = self.era.sent
        begin = (client.get_topic("orders").end_offset or 0) - 35 * (len(sent) - self.era.acked)
        for place in range(self.era.acked, len(sent)):
            sent[place] = begin + 35 * (place - self.era.acked), sent[place][1]

    def _tend(self) -> None:
        """Have the server close, merge and index what is due."""
        self._until_settled()

    def _drop(self) -> None:
        """Let retention drop all but the newest bytes."""
        keep = self._choice.choice((300, 900))
        for limit in (keep, 0):
            self._again(lambda client, limit=limit: client.set_retention("orders", max_bytes=limit))
            self._until_settled()

    def _create(self) -> None:
        """Create the topic; after a kill it may be there already."""

        def create(client: Client) -> None:
            self.era.topic = client.create_topic("orders", exist_ok=True).id

        self._again(create)

    def _create_again(self) -> None:
        """Delete the topic, and create one of the same name."""
        self.era.deleted = True

        def delete(client: Client) -> None:
            with contextlib.suppress(TopicNotFound, TopicDeleted):
                client.delete_topic("orders")

        self._again(delete)
        self.eras.append(Era(-1))
        self._create()

    def _again(self, ask: Callable[[Client], object]) -> None:
        """Ask the server; again where it was killed meanwhile.

        A process that is killed answers nothing more; this one does for a moment, from a memory
        that differs from its disk: a topic whose deletion failed there is still served.
        """
        while True:
            was_away, kills = self._is_away, self.kills
            try:
                with Client(self._url, dialect="specified", **PATIENT) as client:
                    ask(client)
            except LanceError:
                if not was_away and kills == self.kills:
                    raise
            if not was_away and kills == self.kills:
                return

    def _until_settled(self) -> None:
        """Visit the topic, and wait until nothing is done to its files any more."""
        while True:
            server, done = self.server, threading.Event()
            with contextlib.suppress(RuntimeError):  # its loop has ended
                server._loop.call_soon_threadsafe(self._visit, server, done)
            while not done.wait(0.01):
                if server is not self.server:
                    break
            else:
                return

    def _visit(self, server: EmbeddedServer, done: threading.Event) -> None:
        engine = server._running.engine
        topic = engine.find(self.era.topic)
        if topic is None:
            done.set()
            return
        engine.upkeep.visit(topic)
        engine.upkeep.alone(topic, lambda: list).wake(done.set)

    # The server --------------------------------------------------------------------------------

    @property
    def _url(self) -> str:
        return f"lance://127.0.0.1:{self._port}"

    def _start(self) -> EmbeddedServer:
        self.disk = Stepped(self._look)
        config = SmallSegments(
            data_dir=self.data,
            listen=Address("127.0.0.1", self._port),
            dialect="specified",
            upkeep_interval=3600.0,
            drain_timeout=0.2,
        )
        storage = WalStorage(self.disk, self.data, 4096, 8192) if self._has_wal else self.disk
        server = EmbeddedServer(config, storage)
        self.disk.served = True
        return server

    def _restart_if_killed(self) -> None:
        if self.disk.killed:
            self._stop()
            self.server = self._start()
            self._is_away = False

    def _stop(self) -> None:
        with contextlib.suppress(LanceServerError, OSError):
            self.server.stop()

    # Looking -----------------------------------------------------------------------------------

    def _look(self, answers: bool) -> None:
        """Hold a step up until it was looked at; in the server's own thread look at files."""
        if not answers:
            try:
                self._read_all(path=str(self.data))
            except BaseException as error:
                self._failure = error
                raise
            return
        held = threading.Event()
        self._steps.put(held)
        assert held.wait(PATIENCE)

    def _look_while_held(self) -> None:
        self.looks += 1
        self.note_begin()
        self._read_all(path=str(self.data))
        servers = f"127.0.0.1:{self._port}"
        looks = (
            lambda: self._read_all(servers=servers),
            lambda: self._read_all(servers=servers, minPartitions="3"),
            *(follower.go_on for follower in self.followers),
        )
        self.random.choice(looks)()
        self._kill_in -= 1
        if not self._kill_in:
            self._kill_in = self.random.randrange(5, 40)
            self.kills += 1
            self._is_away = self.disk.killed = True

    def note_begin(self) -> None:
        """Note where the topic begins by what the server has in memory."""
        found = self.server._running.engine.find(self.era.topic)
        if found is not None:
            self.era.begin = found.file.log_start.offset

    def _read_all(self, **where: str) -> None:
        acked = self.era.acked  # of what is acknowledged meanwhile nothing is said
        try:
            found = self.rows(self.reader.splits(topic="orders", **where))
        except (TopicNotFound, TopicDeleted, DataLost):  # the last as it is deleted meanwhile
            assert self.era.deleted or self.era.topic < 0
            return
        era = next((each for each in self.eras if found and each.has(found[0])), self.era)
        if era is self.era and not era.deleted:
            era.check(found, acked)
        else:  # as long as it is there at all
            assert found == era.sent[-len(found) :]

    def options(self, **said: str) -> Options:
        """Return the options of a streaming query, from the server unless it changes."""
        from_files = said.pop("changes", None) and self.random.random() < 0.5
        where = {"path": str(self.data)} if from_files else {"servers": f"127.0.0.1:{self._port}"}
        asked = {"topicsPattern": "orders", "pollInterval": "0s", "startingOffsets": "earliest"}
        return Options.parse({**where, **asked, **said})

    def lags(self, planned: TopicCheckpoint | None) -> bool:
        """Whether the server ends before what its files had already, or has not the topic yet."""
        if planned is None:
            return False
        if planned.topic.id not in {era.topic for era in self.eras}:
            return True  # it is being created: its files are there first
        topic = self.server._running.engine.find(self.era.topic)
        if topic is None or planned.topic.id != self.era.topic:
            return False
        return topic.partition.end_offset < planned.offset

    def rows(self, splits: Any) -> Rows:
        """Read splits as tasks would."""
        return [(row["offset"], row["value"]) for row in self.reader.rows(splits, *COLUMNS)]


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut topics of some hundred bytes as those of many megabytes are cut."""
    monkeypatch.setattr(server_log, "_SMALLEST_SPLIT", 64)
    monkeypatch.setattr(server_log, "_LEAST_LEAP", 128)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_every_step_of_a_live_server_reads_right(reader: Any, tmp_path: Path, seed: int) -> None:
    """By files, from the server, and by streams that are started again at every point."""
    history = LiveHistory(tmp_path / "data", seed, reader)
    try:
        history.live()
        lenient = history.followers[1]
        while not lenient.has_all():
            lenient.go_on()
    finally:
        history.end()
    assert history.kills
