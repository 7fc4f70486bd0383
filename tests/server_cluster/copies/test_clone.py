"""Nodes that are made or mended over the network, with the files of another node that runs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import CliRunner, Result
from tests.server_cluster.nodes.test_nodes import NONCE, Cluster, end_of, until

from lance_server.cluster.copies.clone import clone
from lance_server.cluster.copies.http_source import HttpSource
from lance_server.cluster.copies.offered import COPIES_FOLDER
from lance_server.cluster.member import ClusterMember
from lance_server.cluster.memory import MemoryLog
from lance_server.embedded import EmbeddedServer
from lance_server.errors import DataDirError, PeerError
from lance_server.log.copies import Offer
from lance_server.offline.commands import offline
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import ask_http
from lance_spec.enums import Command

NEW = 9
WRITTEN = 30


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """One node that runs and offers copies, with some closed segments."""
    found = Cluster(tmp_path)
    start(found, 1)
    write(found, 1, WRITTEN)
    yield found
    for number in list(found.nodes):
        found.stop(number)


@pytest.fixture(scope="module")
def offering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One node that runs and offers copies, which no test stops or writes to."""
    found = Cluster(tmp_path_factory.mktemp("offering"))
    start(found, 1)
    yield found
    found.stop(1)


def start(cluster: Cluster, number: int) -> EmbeddedServer:
    """Start a node that offers copies."""
    return cluster.start(number, ClusterMember(cluster.log, trim_log=True, offer_copies=True))


def write(cluster: Cluster, first: int, count: int) -> None:
    """Store batches at node 1."""
    with cluster.client(1) as client:
        for number in range(first, first + count):
            client.store([b"%05d" % number + b"." * 300], batch_id=NONCE + number)


def address_of(cluster: Cluster, number: int = 1) -> str:
    """Return where a node hands out copies."""
    url = cluster.nodes[number].http_url
    assert url is not None, "it was asked for"
    return url.removeprefix("http://")


def folder_of(cluster: Cluster, number: int) -> Path:
    """Return the directory of a node."""
    return cluster.folder / f"node{number}"


def cloned(cluster: Cluster, number: int) -> Result:
    """Run ``lance-server clone``."""
    folder = str(folder_of(cluster, number))
    return CliRunner().invoke(offline, ["clone", folder, "--from", address_of(cluster), "--json"])


def figures(result: Result) -> dict[str, Any]:
    """Return what a clone tells that is whole."""
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert isinstance(found, dict)
    assert found["findings"] == []
    return found


def forget_beginning(cluster: Cluster) -> None:
    """Let the log lose all that node 1 has made durable."""
    with cluster.client(1) as client:
        end = cluster.log.end(0)
        until(lambda: client.ask_json(Command.GET_CLUSTER_STATUS)["peer_states"] != {})
    node = cluster.nodes[1]
    until(lambda: json.loads(ask_http(node, "/status.json").text)["cluster"]["behind"] == 0)
    until(lambda: durable(node) >= end)
    cluster.log.trim(0, end)


def durable(node: EmbeddedServer) -> int:
    """Return up to which position a node survives a crash, as it tells the others."""
    told = json.loads(ask_http(node, "/status.json").text)["cluster"]["peer_states"]
    found = told.get("1", {"durable": {"0": 0}})["durable"]["0"]
    assert isinstance(found, int)
    return found


def assert_same(cluster: Cluster, number: int) -> None:
    """Two nodes have the same files once they have applied the same."""
    with cluster.client(1) as one, cluster.client(number) as other:
        until(lambda: end_of(other) == end_of(one))
    for each in (1, number):
        cluster.stop(each)
    assert cluster.files(number) == cluster.files(1) != {}


def test_a_lost_node_comes_back_though_the_log_has_not_got_its_beginning(cluster: Cluster) -> None:
    """All of it comes from another node, and what follows from the log."""
    forget_beginning(cluster)
    with pytest.raises(DataDirError, match="lance-server clone DIR --from"):
        start(cluster, NEW)
    assert figures(cloned(cluster, NEW))["fetched"] > WRITTEN * 300
    write(cluster, WRITTEN + 1, 5)
    start(cluster, NEW)
    assert_same(cluster, NEW)


def test_a_node_that_was_away_for_too_long_fetches_what_it_lacks(cluster: Cluster) -> None:
    """What it has already stays."""
    start(cluster, 2)
    with cluster.client(1) as one, cluster.client(2) as two:
        until(lambda: end_of(two) == end_of(one))
    cluster.stop(2)
    write(cluster, WRITTEN + 1, WRITTEN)
    forget_beginning(cluster)
    with pytest.raises(DataDirError, match="lance-server clone DIR --from"):
        start(cluster, 2)
    assert figures(cloned(cluster, 2))["kept"] > WRITTEN * 200
    start(cluster, 2)
    assert_same(cluster, 2)


def test_of_a_damaged_segment_only_what_is_damaged_is_fetched(cluster: Cluster) -> None:
    """The disk changed one byte of a closed file, and lost another file."""
    figures(cloned(cluster, NEW))
    damaged, lost, *_ = sorted((folder_of(cluster, NEW) / "segments" / "0").glob("*.lnc"))
    raw = bytearray(damaged.read_bytes())
    raw[7] ^= 1
    damaged.write_bytes(raw)
    size = lost.stat().st_size
    lost.unlink()
    verified = CliRunner().invoke(offline, ["verify", str(folder_of(cluster, NEW))])
    assert verified.exit_code == 1, verified.output
    found = figures(cloned(cluster, NEW))
    assert len(raw) + size <= found["fetched"] < 2 * (len(raw) + size)
    start(cluster, NEW)
    assert_same(cluster, NEW)


class CutShort:
    """A node whose connection ends after some pieces."""

    def __init__(self, source: HttpSource, pieces: int) -> None:
        self._source = source
        self._pieces = pieces

    def take(self) -> Offer:
        """Have a copy made."""
        return self._source.take()

    def piece(self, copy: str, name: str, start: int, size: int, known: int | None) -> bytes | None:
        """Return a piece, or fail."""
        self._pieces -= 1
        if self._pieces < 0:
            raise PeerError("the network is gone")
        return self._source.piece(copy, name, start, size, known)

    def end(self, copy: str) -> None:
        """Say that the copy is needed no more."""
        self._source.end(copy)


def test_a_clone_that_was_cut_short_goes_on(cluster: Cluster) -> None:
    """No node starts on it meanwhile."""
    folder, storage = folder_of(cluster, NEW), PwritevStorage()
    folder.mkdir()
    with HttpSource(address_of(cluster)) as source:
        with pytest.raises(PeerError, match="the network is gone"):
            clone(storage, folder, CutShort(source, 5))
        with pytest.raises(DataDirError, match="is an incomplete clone"):
            start(cluster, NEW)
        source.end(ask_offered(cluster))
        report = clone(storage, folder, source)
    assert report.kept > 0
    assert report.fetched > 0
    start(cluster, NEW)
    assert_same(cluster, NEW)


def ask_offered(cluster: Cluster) -> str:
    """Return the name of the copy that node 1 offers."""
    (name,) = (path.name for path in (folder_of(cluster, 1) / COPIES_FOLDER).iterdir())
    return name


def test_one_copy_is_offered_at_a_time(offering: Cluster) -> None:
    """Until it was not asked for any more for a while."""
    with HttpSource(address_of(offering)) as source:
        source.take()
        with pytest.raises(PeerError, match="hands out a copy already"):
            source.take()


def test_a_copy_is_removed_when_it_has_ended(cluster: Cluster) -> None:
    """It takes no room any more; pieces of it are refused."""
    with HttpSource(address_of(cluster)) as source:
        offer = source.take()
        source.end(offer.id)
        with pytest.raises(PeerError, match="not offered any more"):
            source.piece(offer.id, next(iter(offer.files)), 0, 10, None)
    until(lambda: not (folder_of(cluster, 1) / COPIES_FOLDER).exists())


def test_what_a_process_has_left_is_removed_at_the_next_start(cluster: Cluster) -> None:
    """A node that was killed while it handed out a copy."""
    with HttpSource(address_of(cluster)) as source:
        source.take()
    cluster.stop(1)
    start(cluster, 1)
    assert not (folder_of(cluster, 1) / COPIES_FOLDER).exists()


def test_the_log_keeps_what_follows_a_copy(cluster: Cluster) -> None:
    """Though the nodes make more durable: they tell of no more."""
    start(cluster, 2)
    with HttpSource(address_of(cluster)) as source:
        source.take()
        held = durable(cluster.nodes[1])
        write(cluster, WRITTEN + 1, 10)
        applied = cluster.log.end(0)
        until(lambda: told_applied(cluster) >= applied)
        assert durable(cluster.nodes[1]) <= held + 1
        assert cluster.log.earliest(0) <= held + 1


def told_applied(cluster: Cluster) -> int:
    """Return how far node 1 has told that it has applied."""
    told = json.loads(ask_http(cluster.nodes[1], "/status.json").text)["cluster"]["peer_states"]
    found = told["1"]["applied"]["0"]
    assert isinstance(found, int)
    return found


class TestRefusals:
    """Each says what to do."""

    def test_a_node_that_was_not_told_to_offers_none(self, cluster: Cluster) -> None:
        """The option is named."""
        cluster.stop(1)
        cluster.start(1)
        done = cloned(cluster, NEW)
        assert done.exit_code == 4
        assert "start this node with --offer-copies" in done.output

    def test_the_data_of_a_single_server_stays(self, cluster: Cluster) -> None:
        """It would be lost."""
        kept = folder_of(cluster, NEW) / "segments" / "0" / "kept.lnc"
        kept.parent.mkdir(parents=True)
        kept.write_bytes(b"data")
        done = cloned(cluster, NEW)
        assert done.exit_code == 3
        assert "holds the data of a single server" in done.output
        assert kept.read_bytes() == b"data"

    def test_the_data_of_another_cluster_stays(self, cluster: Cluster) -> None:
        """Its log has another id."""
        figures(cloned(cluster, NEW))
        cluster.stop(1)
        (folder_of(cluster, 1)).rename(cluster.folder / "old")
        first = cluster.log.entries(0, 0, 1)[0].record
        cluster.log = MemoryLog("log-2")
        cluster.log.put(0, first)
        start(cluster, 1)
        done = cloned(cluster, NEW)
        assert done.exit_code == 3
        assert "the node follows the log log-2" in done.output

    def test_a_directory_in_use_is_left_alone(self, offering: Cluster) -> None:
        """The node has to be stopped first."""
        assert "is in use by process" in cloned(offering, 1).output

    def test_a_node_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        """With its address."""
        done = CliRunner().invoke(
            offline, ["clone", str(tmp_path / "new"), "--from", "localhost:1"]
        )
        assert done.exit_code == 4
        assert "localhost:1 does not answer" in done.output

    def test_pages_in_a_browser_get_nothing(self, offering: Cluster) -> None:
        """They send where they are from."""
        answer = ask_http(offering.nodes[1], "/copies", "POST", {}, origin="http://elsewhere")
        assert answer.status == 403

    @pytest.mark.parametrize(
        ("path", "status"),
        [
            ("/copies", 404),
            ("/copies/..", 404),
            ("/copies/abc?file=segments/0/topic.json&from=x", 400),
            ("/copies/abc?file=../lock&from=0&size=10", 404),
        ],
    )
    def test_what_is_no_piece_of_a_copy_is_refused(
        self, offering: Cluster, path: str, status: int
    ) -> None:
        """Whatever is asked for."""
        assert ask_http(offering.nodes[1], path).status == status


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "segments/../x", "segments/0/../../x", "cluster/..", "a/b", ""]
)
def test_no_file_outside_of_the_directory_is_written(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whoever answers."""
    with HttpSource("localhost:1") as source:
        told = json.dumps({"id": "a", "identity": "log-1", "files": [[name, 1]]}).encode()
        monkeypatch.setattr(source, "_ask", lambda *_: Mock(body=told))
        with pytest.raises(PeerError, match="sent no valid copy"):
            source.take()
