"""A server inside a program: starting, stopping, forgetting to stop."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import lance_server
from lance_server import EmbeddedServer, running
from lance_server.errors import ConfigError, DataDirBusyError, ListenError
from lance_server.testing import RawClient

pytest_plugins = ["lance_server.pytest_plugin"]


def test_it_says_where_it_is(tmp_path: Path) -> None:
    """Address, URL and data directory."""
    with running(tmp_path) as server:
        host, port = server.address
        assert (host, server.data_dir) == ("127.0.0.1", tmp_path)
        assert server.url == f"lance://127.0.0.1:{port}"


def test_without_a_data_directory_nothing_is_left() -> None:
    """A temporary folder, removed at the end."""
    with running() as server:
        folder = server.data_dir
        assert folder.is_dir()
    assert not folder.exists()


def test_what_was_stored_is_there_the_next_time(tmp_path: Path) -> None:
    """Two runs on one data directory."""
    with running(tmp_path) as server, RawClient(server.address) as client:
        client.store([b"kept"], batch_id=1)
    with running(tmp_path) as server, RawClient(server.address) as client:
        assert server.report.clean
        assert client.fetch(0).record_count == 1


def test_a_second_server_on_the_same_data_is_refused(tmp_path: Path) -> None:
    """Even within one process; the message names the holder."""
    second = running(tmp_path)
    with running(tmp_path), pytest.raises(DataDirBusyError, match="in use by process"):
        second.__enter__()


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    """And the data directory is free again afterwards."""
    with running(tmp_path / "one") as server:
        port = server.address[1]
        with (
            pytest.raises(ListenError, match=f"127.0.0.1:{port}"),
            running(tmp_path / "two", port=port),
        ):
            pass
    with running(tmp_path / "two"):
        pass


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_an_address_that_cannot_be_one_is_told(tmp_path: Path, host: str) -> None:
    """As one that is taken is."""
    with (
        pytest.raises(ListenError, match="not a host name"),
        running(tmp_path, host=host),
    ):
        pytest.fail("it listens")


def test_wrong_options_are_refused_before_anything_is_started(tmp_path: Path) -> None:
    """The names of options are checked, and their values."""
    with pytest.raises(ConfigError, match="dialect"), running(tmp_path, dialect="klingon"):
        pass
    with pytest.raises(TypeError, match="segmentsize"), running(tmp_path, segmentsize=1):
        pass


def test_stopping_twice_is_fine(tmp_path: Path) -> None:
    """Once by hand, once at the end of the block."""
    before = set(threading.enumerate())
    with running(tmp_path) as server:
        server.stop()
    assert "lance-server" not in {thread.name for thread in set(threading.enumerate()) - before}


def test_no_thread_is_left_behind(tmp_path: Path) -> None:
    """Workers end with their server."""
    before = set(threading.enumerate())
    with running(tmp_path) as server, RawClient(server.address) as client:
        client.store([b"one"], batch_id=1)
    assert set(threading.enumerate()) == before


def test_the_fixture_is_a_running_server(lance_server: EmbeddedServer) -> None:
    """`pytest_plugins = ["lance_server.pytest_plugin"]` is all it takes."""
    with RawClient(lance_server.address) as client:
        client.store([b"one"], batch_id=1)


FORGETFUL = """
import sys
from lance_server import running
from lance_server.testing import RawClient
forgotten = running(sys.argv[1])
server = forgotten.__enter__()
client = RawClient(server.address)
client.store([b"kept"], batch_id=1)
print("stored", flush=True)
"""


def test_forgetting_to_stop_does_not_hang_the_interpreter(tmp_path: Path) -> None:
    """At exit the server is stopped, cleanly when it can be."""
    outcome = subprocess.run(
        [sys.executable, "-c", FORGETFUL, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (outcome.returncode, outcome.stdout) == (0, "stored\n")
    with running(tmp_path) as server:
        assert server.report.clean


def test_a_start_that_is_refused_leaves_no_thread(tmp_path: Path) -> None:
    """Of the workers that every server begins with."""

    def workers() -> list[str]:
        names = sorted(thread.name for thread in threading.enumerate())
        return [name for name in names if name.startswith(("lance-flush", "lance-meta"))]

    with running(tmp_path):
        before = workers()
        with pytest.raises(DataDirBusyError), running(tmp_path):
            pass
        assert workers() == before


def test_importing_it_starts_nothing() -> None:
    """No thread, and none of what only the command needs."""
    script = (
        "import lance_server, sys, threading; "
        "assert threading.active_count() == 1; assert 'click' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


def test_every_public_name_can_be_had() -> None:
    """Each is where it says it is."""
    assert all(getattr(lance_server, name).__name__ == name for name in lance_server.__all__)
