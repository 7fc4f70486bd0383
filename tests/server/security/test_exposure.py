"""What others may do to a server by its names, its files, its log and its HTTP port."""

import json
import logging
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lance_server import running
from lance_server.config.settings import Address
from lance_server.errors import DataDirError, ListenError
from lance_server.network.peer_log import MOST_LINES, WINDOW_SECONDS, PeerLogFilter
from lance_server.runtime.directory_lock import DataDirLock
from lance_server.testing import RawClient, SessionPeer, ask_http
from lance_spec.enums import Command, ErrorCode
from lance_spec.errors import EncodeError
from lance_spec.messages.lwp import CommitOffset, CreateTopic
from lance_spec.names import check_topic_name

TRIP = "/admin/circuit/trip"
DELETE = "/admin/offsets/delete"


@pytest.mark.parametrize("character", "\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u2028\u2029\x85")
def test_a_name_that_misleads_is_refused(character: str) -> None:
    """Controls of direction and separators of lines (AMB-24)."""
    with pytest.raises(EncodeError, match="bidirectional"):
        check_topic_name(f"a{character}b")
    peer = SessionPeer()
    name = f"a{character}b".encode()
    error = peer.error(Command.CREATE_TOPIC, CreateTopic(name).encode())
    assert error.code is ErrorCode.INVALID_TOPIC_NAME


@pytest.mark.parametrize("name", ["bestellungen-größe", "注文", "הזמנות", "طلبات", "👩\u200d🚀"])
def test_a_name_in_any_script_is_taken(name: str) -> None:
    """Also one that is written from right to left."""
    assert check_topic_name(name)


def test_a_new_data_directory_is_closed_to_others(tmp_path: Path) -> None:
    """Mode 0750, and so are the folders above it that are made."""
    with DataDirLock(tmp_path / "above" / "data"):
        for made in (tmp_path / "above", tmp_path / "above" / "data"):
            assert not stat.S_IMODE(made.stat().st_mode) & 0o027


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """Its target would be emptied and written to."""
    target = tmp_path / "target"
    target.write_text("precious")
    data = tmp_path / "data"
    data.mkdir()
    (data / "lock").symlink_to(target)
    with pytest.raises(DataDirError, match="symbolic link"):
        DataDirLock(data)
    assert target.read_text() == "precious"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:80"}, 200),
        ({"Host": "[::1]:80"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost.evil.example"}, 403),
        ({"Host": "[nonsense"}, 403),
        ({"Host": "127.0.0.1:80", "Origin": "http://127.0.0.1:80"}, 200),
        ({"Host": "127.0.0.1:80", "Origin": "http://evil.example"}, 403),
        ({"Host": "127.0.0.1:80", "Origin": "null"}, 403),
    ],
)
def test_changes_are_taken_under_an_own_name_only(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    """A name that a stranger made to point here is not the server's (DNS rebinding)."""
    with running(tmp_path, http=Address("127.0.0.1", 0), admin=True) as server:
        assert ask_http(server, TRIP, "POST", {}, **headers).status == status


def test_lines_that_peers_cause_are_limited_and_counted() -> None:
    """The first of each kind in a window; the next line says how many were left out."""
    now = 0.0
    lines = PeerLogFilter(clock=lambda: now)

    def line(message: str) -> logging.LogRecord:
        return logging.LogRecord("x", logging.INFO, "x", 1, message, (), None)

    assert [lines.filter(line("gone")) for _ in range(MOST_LINES + 5)].count(True) == MOST_LINES
    assert lines.filter(line("other"))
    assert lines.left_out == 5
    now = WINDOW_SECONDS
    record = line("gone")
    assert lines.filter(record)
    assert record.getMessage() == "gone (5 more like this were left out)"


@pytest.mark.parametrize(
    "module",
    [
        "lwp.connection",
        "listeners.fluvio.connection",
        "listeners.rustlog.connection",
        "listeners.rustlog.listener",
        "listeners.qwp.listener",
    ],
)
def test_every_listener_limits_its_lines(module: str) -> None:
    """Each has one filter for all."""
    __import__(f"lance_server.{module}")
    logger = logging.getLogger(f"lance_server.{module}")
    assert [type(each) for each in logger.filters] == [PeerLogFilter]


def test_commits_are_listed_and_deleted(tmp_path: Path) -> None:
    """Over HTTP, the deletion from this machine; it stays deleted after a restart."""
    with running(tmp_path, http=Address("127.0.0.1", 0), admin=True) as server:
        with RawClient(server.address) as client:
            client.ask(Command.COMMIT_OFFSET, CommitOffset(0, 7, 0).encode())
        (found,) = json.loads(ask_http(server, "/offsets.json").text)["offsets"]
        assert (found["topic_id"], found["consumer_id"], found["offset"]) == (0, 7, 0)
        named = {"topic_id": 0, "consumer_id": 7}
        assert ask_http(server, DELETE, "POST", named).status == 200
        assert ask_http(server, DELETE, "POST", named).status == 404
    with running(tmp_path, http=Address("127.0.0.1", 0)) as server:
        assert json.loads(ask_http(server, "/offsets.json").text) == {"offsets": []}


@pytest.mark.parametrize("body", [{}, [], {"topic_id": "0", "consumer_id": 1}])
def test_a_deletion_names_topic_and_consumer(tmp_path: Path, body: object) -> None:
    """Both by number."""
    with running(tmp_path, http=Address("127.0.0.1", 0), admin=True) as server:
        assert ask_http(server, DELETE, "POST", body).status == 400


def test_a_dump_whose_reader_leaves_is_quiet(tmp_path: Path) -> None:
    """As ``lance-server dump | head`` does."""
    with running(tmp_path) as server, RawClient(server.address) as client:
        client.send(client.batch([b"x" * 1000] * 2000, batch_id=1))
        client.receive()
    command = [sys.executable, "-m", "lance_server", "dump", str(tmp_path), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as dump:
        assert dump.stdout is not None
        assert dump.stderr is not None
        assert dump.stdout.read(10)
        dump.stdout.close()
        assert dump.stderr.read() == b""


def test_a_stop_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """When it begins, and when everything is stored."""
    with caplog.at_level(logging.INFO, "lance_server"), running(tmp_path):
        pass
    said = [record.getMessage() for record in caplog.records]
    assert "stopped: everything is stored" in said


@pytest.mark.parametrize("taken", ["listen", "http"])
def test_a_start_that_cannot_listen_leaves_no_data_directory(tmp_path: Path, taken: str) -> None:
    """Whichever address is taken."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        options = {"port": port} if taken == "listen" else {"http": Address("127.0.0.1", port)}
        with pytest.raises(ListenError), running(tmp_path / "data", **options):
            pass
    assert not (tmp_path / "data").exists()


def test_an_address_that_is_given_twice_leaves_no_data_directory(tmp_path: Path) -> None:
    """It cannot be listened on the second time."""
    with socket.create_server(("127.0.0.77", 0)) as probe:  # nobody else uses this address
        address = Address("127.0.0.77", probe.getsockname()[1])
    with (
        pytest.raises(ListenError, match=f"cannot listen on {address}"),
        running(tmp_path / "data", host=address.host, port=address.port, http=address),
    ):
        pass
    assert not (tmp_path / "data").exists()
