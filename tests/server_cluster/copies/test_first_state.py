"""A cluster begins with the data directory of a single server."""

import errno
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.server_cluster.nodes.test_nodes import NONCE, end_of, has_begun, until

from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.commands import cluster as command
from lance_server.cluster.copies import first_state
from lance_server.cluster.member import ClusterMember
from lance_server.cluster.memory import MemoryLog, forget_log, named_log
from lance_server.config.settings import Address, ServerConfig
from lance_server.embedded import EmbeddedServer
from lance_server.errors import DataDirError, UncleanStopError
from lance_server.listeners.shared_offsets import RUSTLOG_GROUPS, consumer_number
from lance_server.log.metadata.checksummed_file import save_document
from lance_server.log.metadata.topic_file import TopicFile
from lance_server.log.segments.segment_files import SIDECAR_SUFFIX
from lance_server.offline import sync_scheduler
from lance_server.offline.commands import offline
from lance_server.offline.verifying import verify
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import RawClient, ask_http
from lance_spec.checksum import Buffer
from lance_spec.enums import Command
from lance_spec.messages import lwp

SHARDS = 2
NAME = "first-state"
URL = f"memory://{NAME}"
CONSUMER, GROUP = 7, "readers"
NO_OTHER = frozenset({0})
"""What ``--shards`` says where a node hosts only shard 0; then topic 1 is left to others."""
ANY = Address("127.0.0.1", 0)
VERSION_PLACE = 8
"""Where in a sidecar the version of its format stands."""
RETENTION = {"max_age_secs": 86_400, "max_bytes": 2**40}


def config(folder: Path) -> ServerConfig:
    """Return how servers and nodes are set up."""
    return ServerConfig(
        data_dir=folder,
        node_id=1,
        http=ANY,
        admin=True,
        segment_size=1500,
        segment_age_secs=0,
    )


def store(client: RawClient, topic_id: int, first: int, count: int) -> None:
    """Store batches."""
    for number in range(first, first + count):
        value = b"%d/%05d" % (topic_id, number) + b"." * 300
        client.store([value], batch_id=NONCE + number, topic_id=topic_id)


def drop_oldest(client: RawClient, topic_id: int) -> None:
    """Let retention drop the oldest segments of a topic."""
    small = lwp.SetRetention(topic_id, 0, 4000).encode()
    client.ask(Command.SET_RETENTION, small)
    until(lambda: told(client, topic_id)["start_offset"] > 0)
    client.ask(Command.SET_RETENTION, lwp.SetRetention(topic_id, **RETENTION).encode())


def told(client: RawClient, topic_id: int) -> dict[str, Any]:
    """Return what a server tells of a topic."""
    return client.ask_json(Command.GET_TOPIC, lwp.GetTopic(topic_id).encode())


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a server that was stopped: dropped and closed segments, commits, topics."""
    folder = tmp_path_factory.mktemp("single") / "data"
    server = EmbeddedServer(config(folder))
    with RawClient(server.address) as client:
        orders, gone, bills = (client.create_topic(each) for each in ("orders", "gone", "bills"))
        store(client, 0, 1, 3)
        store(client, orders, 1, 20)
        store(client, bills, 1, 30)
        drop_oldest(client, bills)
        client.ask(Command.DELETE_TOPIC, lwp.DeleteTopic(gone).encode())
        client.ask(Command.COMMIT_OFFSET, lwp.CommitOffset(orders, CONSUMER, 640).encode())
    server.stop()
    groups = folder / "segments" / str(orders) / RUSTLOG_GROUPS
    save_document(PwritevStorage(), groups, {"offsets": {GROUP: 5}})
    return folder


@pytest.fixture
def data_dir(original: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(original, tmp_path / "node1")


@pytest.fixture
def log() -> Iterator[MemoryLog]:
    """The log of a cluster that is not made yet."""
    yield named_log(NAME, shards=SHARDS)
    forget_log(NAME)


def init(data_dir: Path) -> Result:
    """Run ``lwp cluster init --from-data-dir``."""
    options = ["init", URL, "--shards", str(SHARDS), "--segment-size", "1500"]
    return CliRunner().invoke(command, [*options, "--from-data-dir", str(data_dir)])


def begun(data_dir: Path) -> Result:
    """Run it, and expect success."""
    result = init(data_dir)
    assert result.exit_code == 0, result.output
    return result


@contextmanager
def running(server: EmbeddedServer) -> Iterator[EmbeddedServer]:
    """Stop a server or a node at the end."""
    try:
        yield server
    finally:
        server.stop()


def files(data_dir: Path, left_out: str | None = None) -> dict[str, bytes]:
    """Return what a directory has of its topics, but for files with something in their names."""
    found = (path for path in sorted(data_dir.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(data_dir)): path.read_bytes()
        for path in found
        if "segments" in path.parts and (left_out is None or left_out not in path.name)
    }


def stored(data_dir: Path) -> dict[str, bytes]:
    """Return the same without indexes and their drafts, which a server makes when it has time."""
    return files(data_dir, left_out=".idx")


class Facts:
    """What a server or a node has.

    Attributes:
        topics: what it tells of each, by id.
        data: of each, all bytes from its beginning on.
        commits: what consumers have committed.
    """

    def __init__(self, server: EmbeddedServer) -> None:
        with RawClient(server.address) as client:
            listed = client.ask_json(Command.LIST_TOPICS)["topics"]
            assert isinstance(listed, list)
            ids = [0, *sorted(each["id"] for each in listed if each["id"])]
            self.topics = {key: told(client, key) for key in ids}
            self.data = {
                key: client.read_all(topic_id=key, start=self.topics[key]["start_offset"])
                for key in ids
            }
        self.commits = json.loads(ask_http(server, "/offsets.json").text)["offsets"]

    @classmethod
    def of_single(cls, folder: Path) -> "Facts":
        """Return what a single server has that starts on a directory."""
        with running(EmbeddedServer(config(folder))) as server:
            return cls(server)


def start(
    data_dir: Path, log: MemoryLog, number: int = 1, shards: frozenset[int] | None = None
) -> EmbeddedServer:
    """Start a node."""
    settings = ServerConfig(data_dir=data_dir, node_id=number, http=ANY, admin=True)
    member = ClusterMember(log, offer_copies=True, shards=shards)
    node = EmbeddedServer(settings, cluster=member)
    until(lambda: has_begun(node))
    return node


def cloned(node: EmbeddedServer, folder: Path) -> Path:
    """Clone a node."""
    assert node.http_url is not None, "it was asked for"
    address = node.http_url.removeprefix("http://")
    done = CliRunner().invoke(offline, ["clone", str(folder), "--from", address])
    assert done.exit_code == 0, done.output
    return folder


def test_everything_is_there_at_the_beginning(
    original: Path, data_dir: Path, log: MemoryLog, tmp_path: Path
) -> None:
    """Records, offsets, ids, retention and commits; also those of groups of other protocols."""
    single = Facts.of_single(shutil.copytree(original, tmp_path / "single"))
    begun(data_dir)
    with running(start(data_dir, log)) as node:
        found = Facts(node)
    assert found.topics == single.topics
    assert found.data == single.data
    assert found.topics[3]["start_offset"] > 0
    commits = {each["consumer_id"]: each["offset"] for each in found.commits}
    assert commits == {CONSUMER: 640, consumer_number("rustlog", GROUP): 5}
    assert single.commits == [each for each in found.commits if each["consumer_id"] == CONSUMER]


def test_batches_of_before_are_recognised(data_dir: Path, log: MemoryLog) -> None:
    """Also those that retention dropped; what is new goes on at the end."""
    begun(data_dir)
    with running(start(data_dir, log)) as node, RawClient(node.address) as client:
        ends = {key: end_of(client, key) for key in (0, 1, 3)}
        for key in ends:
            store(client, key, 1, 3)
        assert {key: end_of(client, key) for key in ends} == ends
        store(client, 1, 21, 1)
        assert end_of(client, 1) > ends[1]


def test_ids_and_epochs_go_on(original: Path, data_dir: Path, log: MemoryLog) -> None:
    """A topic that was deleted comes back as a new one, as at the single server."""
    begun(data_dir)
    with running(start(data_dir, log)) as node, RawClient(node.address) as client:
        found = told(client, client.create_topic("gone"))
    folder = shutil.copytree(original, data_dir.with_name("single"))
    with running(EmbeddedServer(config(folder))) as server, RawClient(server.address) as client:
        expected = told(client, client.create_topic("gone"))
    assert (found["id"], found["topic_epoch"]) == (expected["id"], expected["topic_epoch"])


def test_other_nodes_begin_with_a_clone(data_dir: Path, log: MemoryLog) -> None:
    """Then all files are equal, those of before and of after."""
    begun(data_dir)
    other = data_dir.with_name("node2")
    with running(start(data_dir, log)) as one, RawClient(one.address) as first:
        cloned(one, other)
        with running(start(other, log, 2)) as two, RawClient(two.address) as second:
            store(first, 1, 21, 10)
            store(second, 3, 31, 10)
            until(lambda: end_of(first, 3) == end_of(second, 3))
            until(lambda: end_of(first, 1) == end_of(second, 1))
    assert files(other) == files(data_dir) != {}
    assert verify(other).findings == []


def test_a_node_comes_back(data_dir: Path, log: MemoryLog) -> None:
    """At a mark of its own, also after retention dropped what the cluster began with."""
    begun(data_dir)
    with running(start(data_dir, log)) as node, RawClient(node.address) as client:
        store(client, 3, 31, 20)
        drop_oldest(client, 3)
        expected = client.read_all(topic_id=3, start=told(client, 3)["start_offset"])
    with running(start(data_dir, log)) as node, RawClient(node.address) as client:
        assert client.read_all(topic_id=3, start=told(client, 3)["start_offset"]) == expected


def test_offsets_that_a_crash_retired_stay_retired(data_dir: Path, log: MemoryLog) -> None:
    """Within a topic and at its end; the node comes back with them."""
    reserve(data_dir, 1, 100)
    with running(EmbeddedServer(config(data_dir))) as server, RawClient(server.address) as client:
        store(client, 1, 21, 2)
    end = reserve(data_dir, 1, 50)
    begun(data_dir)
    for number in (23, 24):
        with running(start(data_dir, log)) as node, RawClient(node.address) as client:
            assert end_of(client, 1) == end
            store(client, 1, number, 1)
            end = end_of(client, 1)


def reserve(data_dir: Path, topic_id: int, size: int) -> int:
    """Retire offsets at the end of a topic, as a crash does, and return its new end."""
    with running(EmbeddedServer(config(data_dir))) as server, RawClient(server.address) as client:
        end = end_of(client, topic_id) + size
    loaded = TopicFile.load(PwritevStorage(), data_dir / "segments" / str(topic_id))
    assert loaded is not None, "it is a topic"
    loaded[0].reserve(end)
    return end


def test_an_empty_node_asks_for_a_clone(data_dir: Path, log: MemoryLog) -> None:
    """The log has not got what the cluster began with."""
    begun(data_dir)
    settings = ServerConfig(data_dir=data_dir.with_name("node2"), node_id=2, http=ANY)
    node = EmbeddedServer(settings, cluster=ClusterMember(log))
    try:
        until(lambda: "lance-server clone DIR" in ask_http(node, "/health/ready").text)
    finally:
        with suppress(UncleanStopError):
            node.stop()


def test_the_first_node_keeps_what_no_other_has(
    original: Path, data_dir: Path, log: MemoryLog, tmp_path: Path
) -> None:
    """Although it was started as a host of fewer shards by mistake."""
    single = Facts.of_single(shutil.copytree(original, tmp_path / "single"))
    begun(data_dir)
    start(data_dir, log, shards=NO_OTHER).stop()
    with running(start(data_dir, log)) as node:
        assert Facts(node).data == single.data


def test_a_clone_leaves_the_shards_that_two_others_have(data_dir: Path, log: MemoryLog) -> None:
    """So the nodes may host some shards each; what one has not got, it has from a host."""
    begun(data_dir)
    two, three = (data_dir.with_name(name) for name in ("node2", "node3"))
    with running(start(data_dir, log)) as one:
        expected = Facts(one).data[1]
        for folder in (two, three):
            cloned(one, folder)
        with running(start(two, log, 2)), running(start(three, log, 3, NO_OTHER)) as node:
            until(lambda: not (three / "segments" / "1").exists())
            with RawClient(node.address) as client:
                assert client.read_all(topic_id=1) == expected
    assert {each.name for each in (three / "segments").iterdir()} == {"0", "3"}


def test_a_command_that_is_repeated_changes_nothing(data_dir: Path, log: MemoryLog) -> None:
    """It says the same again."""
    begun(data_dir)
    before = files(data_dir)
    assert "exists already" in begun(data_dir).output
    assert files(data_dir) == before
    assert [log.end(shard) for shard in range(SHARDS)] == [1] * SHARDS


def renew(log: MemoryLog, shards: int = SHARDS) -> MemoryLog:
    """Lose the log, and return the one that is there instead."""
    forget_log(NAME)
    other = named_log(NAME, shards=shards)
    other._identity = f"after {log.identity()}"
    return other


class TestFromNode:
    """A cluster whose log is lost goes on in another one, with what a node has."""

    def test_everything_is_there_and_goes_on(self, data_dir: Path, log: MemoryLog) -> None:
        """Batches of before are recognised; other nodes begin with a clone, with equal files."""
        begun(data_dir)
        with running(start(data_dir, log)) as node, RawClient(node.address) as client:
            new = client.create_topic("new")
            for topic_id in (1, 3, new):
                store(client, topic_id, 31, 12)
            drop_oldest(client, 3)
            client.ask(Command.DELETE_TOPIC, lwp.DeleteTopic(1).encode())
            client.ask(Command.COMMIT_OFFSET, lwp.CommitOffset(3, CONSUMER, 960).encode())
            before = Facts(node)
        other = renew(log)
        assert "those of the cluster before" in begun(data_dir).output
        with running(start(data_dir, other)) as node, RawClient(node.address) as client:
            found = Facts(node)
            assert (found.topics, found.data) == (before.topics, before.data)
            assert offsets(found) == offsets(before)
            store(client, 3, 31, 12)
            assert end_of(client, 3) == before.topics[3]["end_offset"]
            store(client, 3, 50, 5)
            assert client.create_topic("later") > new
            two = cloned(node, data_dir.with_name("node2"))
            with running(start(two, other, 2)) as second, RawClient(second.address) as asked:
                until(lambda: end_of(asked, 3) == end_of(client, 3))
        assert files(two) == files(data_dir) != {}
        assert verify(data_dir).findings == []

    def test_what_is_after_the_last_mark_is_cut_away(self, data_dir: Path, log: MemoryLog) -> None:
        """Of a node that was killed; so the files are as the marks say."""
        begun(data_dir)
        killed = data_dir.with_name("killed")
        with running(start(data_dir, log)) as node, RawClient(node.address) as client:
            store(client, 1, 31, 12)
            shutil.copytree(data_dir, killed)
            whole = client.read_all(topic_id=1)
        other = renew(log)
        begun(killed)
        with running(start(killed, other)) as node:
            kept = Facts(node).data[1]
        assert whole.startswith(kept)
        assert verify(killed).findings == []

    @pytest.mark.parametrize("saved", range(SHARDS))
    def test_it_may_be_interrupted_between_two_marks(
        self, data_dir: Path, log: MemoryLog, saved: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Repeated, it goes on; no node starts on the directory meanwhile."""
        begun(data_dir)
        with running(start(data_dir, log)) as node, RawClient(node.address) as client:
            store(client, 3, 31, 12)
            before = Facts(node)
        other, left = renew(log), iter(range(saved))
        save = first_state.save_mark

        def failing(*arguments: Any) -> None:
            if next(left, None) is None:
                raise OSError(errno.EIO, "the disk failed")
            save(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(first_state, "save_mark", failing)
            assert "the disk failed" in init(data_dir).output
        with pytest.raises(DataDirError, match="came from the log"):
            start(data_dir, other)
        begun(data_dir)
        with running(start(data_dir, other)) as node:
            assert Facts(node).data == before.data

    def test_a_damaged_one_is_refused(self, data_dir: Path, log: MemoryLog) -> None:
        """Another node has the same files."""
        begun(data_dir)
        other = renew(log)
        damaged = min((data_dir / "segments" / "1").glob("*.lnc"))
        raw = bytearray(damaged.read_bytes())
        raw[7] ^= 1
        damaged.write_bytes(raw)
        result = init(data_dir)
        assert result.exit_code != 0
        assert "name the directory of another node" in result.output
        assert other.end(0) == 0


def offsets(found: Facts) -> list[tuple[Any, ...]]:
    """Return the commits without their times."""
    return sorted((each["topic_id"], each["consumer_id"], each["offset"]) for each in found.commits)


class TestRefusals:
    """Nothing is written then."""

    def refused(self, data_dir: Path, words: str) -> None:
        """Expect that nothing changes."""
        before = stored(data_dir)
        result = init(data_dir)
        assert result.exit_code != 0
        assert words in result.output
        assert stored(data_dir) == before

    def test_a_server_that_runs(self, data_dir: Path, log: MemoryLog) -> None:
        """Its process is named."""
        with running(EmbeddedServer(config(data_dir))):
            self.refused(data_dir, "is in use by process")
        assert log.end(0) == 0

    def test_damage(self, data_dir: Path, log: MemoryLog) -> None:
        """The remedy is repair."""
        damaged = min((data_dir / "segments" / "1").glob("*.lnc"))
        raw = bytearray(damaged.read_bytes())
        raw[7] ^= 1
        damaged.write_bytes(raw)
        self.refused(data_dir, "lance-server repair")
        assert log.end(0) == 0

    def test_a_newer_format(self, data_dir: Path, log: MemoryLog) -> None:
        """It is not taken for one that this release knows."""
        sidecar = min((data_dir / "segments" / "1").glob(f"*{SIDECAR_SUFFIX}"))
        raw = bytearray(sidecar.read_bytes())
        raw[VERSION_PLACE] += 1
        sidecar.write_bytes(raw)
        self.refused(data_dir, "is not as a clean stop leaves it")
        assert log.end(0) == 0

    def test_a_cluster_that_exists(self, data_dir: Path, log: MemoryLog) -> None:
        """It began with nothing, or with other data."""
        done = CliRunner().invoke(command, ["init", URL, "--shards", str(SHARDS)])
        assert done.exit_code == 0, done.output
        result = init(data_dir)
        assert result.exit_code != 0
        assert "did not begin with what" in result.output
        assert "cluster" not in [each.name for each in data_dir.iterdir()]
        assert [log.end(shard) for shard in range(SHARDS)] == [1] * SHARDS

    def test_the_directory_of_a_node_of_the_cluster(self, tmp_path: Path, log: MemoryLog) -> None:
        """The cluster has all of it."""
        done = CliRunner().invoke(command, ["init", URL, "--shards", str(SHARDS)])
        assert done.exit_code == 0, done.output
        with running(start(tmp_path / "node", log)) as node, RawClient(node.address) as client:
            store(client, 0, 1, 3)
        self.refused(tmp_path / "node", "there is nothing to do")

    def test_the_directory_of_a_node_with_other_shards(
        self, data_dir: Path, log: MemoryLog
    ) -> None:
        """Topics keep their shards."""
        begun(data_dir)
        renew(log, shards=SHARDS + 1)
        options = ["init", URL, "--shards", str(SHARDS + 1), "--from-data-dir", str(data_dir)]
        result = CliRunner().invoke(command, options)
        assert result.exit_code != 0
        assert "a node with the shards [0, 1], and the cluster is to have 3" in result.output

    def test_a_folder_without_data(self, tmp_path: Path, log: MemoryLog) -> None:
        """A wrong path."""
        self.refused(tmp_path, "is not a data directory")
        assert log.end(0) == 0

    def test_a_name_with_a_digest(self, log: MemoryLog) -> None:
        """Only the command itself writes digests."""
        result = CliRunner().invoke(command, ["init", URL, "--cluster-id", "c@1"])
        assert "cannot be the name of a cluster" in result.output
        assert log.end(0) == 0


class Dying(PwritevStorage):
    """The disk of a process that ends after some changes; what was written stays."""

    left = 0

    def sync(self, fd: int) -> None:
        """Do nothing."""

    def sync_dir(self, path: Path) -> None:
        """Do nothing."""

    def change(self) -> None:
        """Count a change, or end."""
        type(self).left -= 1
        if self.left < 0:
            raise OSError(errno.EIO, "the process ends here")

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file."""
        if create:
            self.change()
        return super().open(path, create=create)

    def make_dir(self, path: Path) -> None:
        """Make a folder."""
        self.change()
        super().make_dir(path)

    def write(self, fd: int, data: Buffer, offset: int) -> None:
        """Write."""
        self.change()
        super().write(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        """Cut."""
        self.change()
        super().truncate(fd, size)

    def rename(self, source: Path, target: Path) -> None:
        """Move."""
        self.change()
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        """Remove."""
        self.change()
        super().remove(path)


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> type[Dying]:
    """The disk that the command uses."""
    for module in (first_state, sync_scheduler):
        monkeypatch.setattr(module, "PwritevStorage", Dying)
    return Dying


def test_a_command_that_dies_anywhere_can_be_repeated(tmp_path: Path, dying: type[Dying]) -> None:
    """After each change to the disk: then all of it is there."""
    original, folder = tmp_path / "original", tmp_path / "node1"
    with running(EmbeddedServer(config(original))) as server, RawClient(server.address) as client:
        store(client, client.create_topic("orders"), 1, 4)
    found, is_whole = list[dict[str, bytes]](), False
    while not is_whole:
        shutil.copytree(original, folder)
        log = named_log(NAME, shards=SHARDS)
        dying.left = len(found)
        is_whole = init(folder).exit_code == 0
        dying.left = sys.maxsize
        begun(folder)
        Replica.open(Dying(), folder, log.identity(), SHARDS, log.earliest).release()
        found.append(files(folder))
        shutil.rmtree(folder)
        forget_log(NAME)
    assert len(found) > 20
    assert all(each == found[-1] for each in found)
