"""`lance-server verify --against`: a directory and a running server have the same bytes."""

import json
import shutil
from pathlib import Path

import pytest
from tests.server.offline.test_offline import first, flip, run

from lance_server.embedded import EmbeddedServer, running
from lance_server.errors import ConfigError, PeerError
from lance_server.log.log_manager import LogOptions
from lance_server.offline.comparing import Comparison, compare
from lance_server.offline.peer import ServerPeer
from lance_server.security.tokens import AuthConfig
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import LogDriver

OPTIONS = LogOptions(segment_size=300)


def fill(folder: Path, topics: int, batches: int, filler: bytes = bytes(60)) -> Path:
    """Make a data directory with topics and batches in several segments."""
    log = LogDriver(PwritevStorage(), folder, OPTIONS)
    for number in range(topics):
        topic = log.create_topic(f"orders{number}")
        for batch in range(batches):
            log.store([b"%d" % batch + filler], batch_id=batch + 1, topic_id=topic.id)
    log.scheduler.run_all()
    log.close()
    return folder


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Return a data directory with two topics."""
    return fill(tmp_path / "data", 2, 10)


def url_of(server: EmbeddedServer) -> str:
    """Return where a server is reached."""
    return "lance://{}:{}".format(*server.address)


def against(data_dir: Path, served: Path) -> Comparison:
    """Compare a directory with another one that is served."""
    with running(data_dir=served) as server, ServerPeer(url_of(server)) as peer:
        return compare(data_dir, peer)


def copy_of(folder: Path) -> Path:
    """Return a copy of a data directory."""
    return Path(shutil.copytree(folder, folder.with_name("copy")))


def kinds(found: Comparison) -> set[str]:
    """Return what kinds of findings there are."""
    return {finding.kind for finding in found.findings}


def test_equal_directories_have_no_findings(data_dir: Path) -> None:
    """Every byte is compared, and counted."""
    with running(data_dir=copy_of(data_dir)) as server:
        done = run("verify", data_dir, "--json", "--against", url_of(server))
    told = json.loads(done.stdout)
    assert (done.returncode, told["findings"]) == (0, [])
    assert told["bytes_compared"] == told["bytes"] > 0
    assert (told["bytes_only_here"], told["bytes_only_there"]) == (0, 0)


def test_another_byte_is_found_where_it_stands(tmp_path: Path) -> None:
    """Though every checksum of both sides is right."""
    one = fill(tmp_path / "one", 1, 3, b"x" * 30 + b"a" + b"x" * 9)
    two = fill(tmp_path / "two", 1, 3, b"x" * 30 + b"b" + b"x" * 9)
    with running(data_dir=two) as server:
        done = run("verify", one, "--json", "--against", url_of(server))
    finding = json.loads(done.stdout)["findings"][0]
    assert done.returncode == 1
    assert (finding["kind"], finding["offset"]) == ("difference", 5 + 1 + 30)


def test_what_the_server_cannot_read_is_a_finding(data_dir: Path) -> None:
    """Its disk damaged a batch; the others are compared."""
    served = copy_of(data_dir)
    flip(first(served, "*.lnc"), 9)
    found = against(data_dir, served)
    assert kinds(found) == {"missing"}
    assert found.compared > 0


def test_what_only_one_side_has_behind_its_end_is_told(tmp_path: Path) -> None:
    """A server is written to meanwhile, and a node may be behind another."""
    short, long = fill(tmp_path / "short", 1, 3), fill(tmp_path / "long", 1, 5)
    found = against(short, long)
    assert (found.findings, found.only_there) == ([], 2 * found.compared // 3)
    found = against(long, short)
    assert (found.findings, found.only_here) == ([], 2 * found.compared // 3)


def test_a_topic_that_one_side_lacks_is_a_finding(tmp_path: Path) -> None:
    """On either side."""
    less, more = fill(tmp_path / "less", 1, 1), fill(tmp_path / "more", 2, 1)
    for one, two in ((less, more), (more, less)):
        assert kinds(against(one, two)) == {"other topic"}


def test_a_byte_that_a_topic_lost_at_its_end_is_found(data_dir: Path) -> None:
    """The sidecar vouches for it, and the file is too short."""
    served = copy_of(data_dir)
    path = first(data_dir, "*.lnc")
    path.write_bytes(path.read_bytes()[:-1])
    assert kinds(against(data_dir, served)) == {"difference"}


def test_a_token_is_shown_to_the_server(data_dir: Path, tmp_path: Path) -> None:
    """Without it nothing is told."""
    tokens = tmp_path / "tokens"
    tokens.write_text("secret-token\n")
    served = copy_of(data_dir)
    with running(data_dir=served, auth=AuthConfig(token_file=tokens)) as server:
        url = url_of(server)
        with ServerPeer(url, "secret-token") as peer:
            assert compare(data_dir, peer).findings == []
        with pytest.raises(PeerError, match="token"):
            ServerPeer(url, "other-token")
        with ServerPeer(url) as peer, pytest.raises(PeerError, match="refused"):
            peer.topics()


@pytest.mark.parametrize("url", ["http://a", "lance://", "lance://a/topic", "lance://a:x", "a:1"])
def test_a_url_that_names_no_server_is_refused(url: str) -> None:
    """The message tells what to write."""
    with pytest.raises(ConfigError):
        ServerPeer(url)


def test_a_server_that_does_not_answer_has_its_own_exit_code(data_dir: Path) -> None:
    """Nothing was compared, so nothing is judged."""
    with running() as server:
        url = url_of(server)
    done = run("verify", data_dir, "--against", url)
    assert done.returncode == 4
    assert "does not answer" in done.stderr
