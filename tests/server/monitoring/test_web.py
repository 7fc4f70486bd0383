"""The HTTP port: health and the status page (design section 10.6)."""

import http.client
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lance_server import EmbeddedServer, running
from lance_server.config.settings import Address
from lance_server.errors import ListenError
from lance_server.security.tokens import AuthConfig
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import FaultyStorage, RawClient, ServerProcess, ask_http, eventually
from lance_spec.codec.siphash import consumer_id
from lance_spec.enums import Command
from lance_spec.messages.lwp import CommitOffset, Fetch

ANYWHERE = Address("127.0.0.1", 0)
CHROMIUM = shutil.which("chromium")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server with an HTTP port that takes changes, and some data."""
    with running(tmp_path, http=ANYWHERE, admin=True, node_id=3) as running_server:
        with RawClient(running_server.address) as client:
            orders = client.create_topic("orders")
            client.create_topic("<script>alert(1)<script>")
            client.store([b"one", b"two"], batch_id=1, topic_id=orders)
            client.ask(Command.COMMIT_OFFSET, CommitOffset(orders, 77, 8).encode())
            client.fetch(0, topic_id=orders)
        eventually(lambda: running_server.stats()["connections_open"] == 0)
        yield running_server


def read(server: EmbeddedServer, path: str) -> str:
    """Return what is found at a path."""
    response = ask_http(server, path)
    assert response.status == 200
    return response.text


# Health -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/health/startup", "/health"])
def test_a_healthy_server_says_so(server: EmbeddedServer, path: str) -> None:
    """200, for every probe."""
    assert read(server, path)


def test_a_server_whose_disk_failed_is_alive_and_not_ready(tmp_path: Path) -> None:
    """A restart would not help, and traffic would not either."""
    disk = FaultyStorage(PwritevStorage())
    with running(tmp_path, storage=disk, http=ANYWHERE) as server:
        with RawClient(server.address) as client:
            client.store([b"one"], batch_id=1)
            disk.fail = {"sync": 5}
            client.send(client.batch([b"two"], batch_id=2))
            client.error()
        eventually(lambda: ask_http(server, "/health/ready").status == 503)
        assert "the disk failed repeatedly" in ask_http(server, "/health/ready").text
        disk.fail = {}
        assert ask_http(server, "/health/live").status == 200


def test_a_server_whose_data_directory_is_gone_is_not_ready(tmp_path: Path) -> None:
    """Readiness names the folder."""
    folder = tmp_path / "data"
    with ServerProcess.running(folder, "--http", "127.0.0.1:0") as process:
        with RawClient(process.address) as client:
            client.store([b"one"], batch_id=1)
            folder.rename(tmp_path / "elsewhere")  # in one step, since the server may be writing
            client.send(client.batch([b"two"], batch_id=2))
            client.error()
        assert process.http is not None
        connection = http.client.HTTPConnection(*process.http, timeout=10)
        connection.request("GET", "/health/ready")
        response = connection.getresponse()
        assert response.status == 503
        assert str(folder) in json.loads(response.read())["reasons"][0]
        connection.close()


# The status page --------------------------------------------------------------------------------


class Page(HTMLParser):
    """The rows of a page's tables, by section, and its text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self.words: list[str] = []
        self._section = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where in the page this is."""
        if tag == "section":
            self._section = dict(attrs)["id"] or ""
            self.rows[self._section] = []
        elif tag == "tr" and self._section:
            self.rows[self._section].append([])
        elif tag in ("td", "th"):
            self.rows[self._section][-1].append("")

    def handle_data(self, data: str) -> None:
        """Add text to the cell it is in."""
        self.words.append(data)
        if self._section and self.rows[self._section] and self.rows[self._section][-1]:
            self.rows[self._section][-1][-1] += data


def check_page(page: Page) -> None:
    """Find in a page what the server was given."""
    _, default, orders, evil = page.rows["topics"]
    assert default[0] == "default"
    assert orders[:5] == ["orders", "1", "2", "0", "16"]
    assert evil[0] == "<script>alert(1)<script>"
    assert page.rows["consumers"][1][:4] == ["orders", "77", "8", "8 B"]
    assert "Nobody is connected." in page.words
    assert "ready" in page.words


def test_the_page_shows_topics_and_lag(server: EmbeddedServer) -> None:
    """As text, whatever the names are."""
    check_page(Page(read(server, "/")))


def test_consumers_show_by_the_names_that_the_server_was_told(tmp_path: Path) -> None:
    """On the page and in the metrics; of the others there is the number."""
    names = ("billing", "search")
    with running(tmp_path, http=ANYWHERE, consumer_names=names) as server:
        with RawClient(server.address) as client:
            client.store([b"one"], batch_id=1)
            for number in (consumer_id("billing"), 77):
                client.ask(Command.COMMIT_OFFSET, CommitOffset(0, number, 0).encode())
        page, metrics = Page(read(server, "/")), read(server, "/metrics")
    assert {row[1] for row in page.rows["consumers"][1:]} == {"billing", "77"}
    assert 'consumer="billing"' in metrics


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_the_page_works_in_a_real_browser(server: EmbeddedServer, tmp_path: Path) -> None:
    """Its tables are in the document; nothing of it is blocked or loaded from elsewhere."""
    assert CHROMIUM is not None
    assert server.http_url is not None
    outcome = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=3000",
            "--dump-dom",
            server.http_url,
        ],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    check_page(Page(outcome.stdout))
    assert "CONSOLE" not in outcome.stderr


def test_the_page_lists_who_is_connected(server: EmbeddedServer) -> None:
    """With dialect and what waits."""
    with RawClient(server.address) as client:
        client.store([b"one"], batch_id=5)
        (_, row) = Page(read(server, "/")).rows["connections"]
        host, port = client.socket.getsockname()
    assert row[0] == f"{host}:{port}"
    assert row[2] == "specified"


def test_the_page_allows_no_other_script(server: EmbeddedServer) -> None:
    """Only the one in it, by its hash."""
    policy = ask_http(server, "/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy


def test_the_same_can_be_had_as_json(server: EmbeddedServer) -> None:
    """For scripts."""
    status = json.loads(read(server, "/status.json"))
    assert (status["node_id"], status["topic_count"]) == (3, 3)
    assert status["topics"][1]["end_offset"] == 16


# Who may ask ------------------------------------------------------------------------------------


def test_what_is_not_there_is_told(server: EmbeddedServer) -> None:
    """With what is."""
    response = ask_http(server, "/metric")
    assert response.status == 404
    assert "/metrics" in response.text
    assert ask_http(server, "/", "DELETE").status == 405


def test_reading_needs_a_token_where_the_log_does(tmp_path: Path) -> None:
    """As Bearer, or as the password of a browser; health is open."""
    auth = AuthConfig(tokens=("a-secret-token",))
    with running(tmp_path, http=ANYWHERE, auth=auth) as server:
        for path in ("/", "/metrics", "/status.json"):
            assert ask_http(server, path).status == 401
            assert ask_http(server, path, Authorization="Bearer wrong-token").status == 401
            assert ask_http(server, path, Authorization="Basic !!!").status == 401
            assert ask_http(server, path, Authorization="Bearer a-secret-token").status == 200
            basic = "Basic OmEtc2VjcmV0LXRva2Vu"
            assert ask_http(server, path, Authorization=basic).status == 200
        assert ask_http(server, "/health/ready").status == 200


def test_the_circuit_is_switched_by_request(server: EmbeddedServer) -> None:
    """Trip and reset; batches are refused in between (design section 26.4)."""
    assert ask_http(server, "/admin/circuit/trip", "POST", {}).status == 200
    assert ask_http(server, "/health/ready").status == 503
    with RawClient(server.address) as client:
        client.send(client.batch([b"one"], batch_id=9))
        assert "the disk failed repeatedly" in client.error().message
        assert ask_http(server, "/admin/circuit/reset", "POST", {}).status == 200
        client.store([b"one"], batch_id=9)


def test_a_page_in_a_browser_cannot_send_changes(server: EmbeddedServer) -> None:
    """A form has another content type, and JSON across sites is asked for first."""
    path = "/admin/circuit/trip"
    assert ask_http(server, path).status == 405
    assert ask_http(server, path, "POST", {}, content_type="text/plain").status == 405
    assert ask_http(server, path, "OPTIONS").status == 405
    assert ask_http(server, "/health/ready").status == 200


def test_changes_are_off_unless_asked_for(tmp_path: Path) -> None:
    """And need a token where tokens are."""
    with running(tmp_path / "off", http=ANYWHERE) as server:
        assert ask_http(server, "/admin/circuit/trip", "POST", {}).status == 403
    auth = AuthConfig(tokens=("a-secret-token",), write_only=True)
    with running(tmp_path / "on", http=ANYWHERE, admin=True, auth=auth) as server:
        assert ask_http(server, "/admin/circuit/trip", "POST", {}).status == 401


# Rude peers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "junk", [b"\x16\x03\x01" * 100, b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nA: " + b"x" * 100_000]
)
def test_what_is_no_http_is_closed(server: EmbeddedServer, junk: bytes) -> None:
    """And the next request is answered."""
    assert server.http_url is not None
    host, _, port = server.http_url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as rude:
        rude.sendall(junk)
        while rude.recv(65536):
            pass
    assert ask_http(server, "/health/live").status == 200


def test_connections_that_say_nothing_do_not_keep_probes_out(server: EmbeddedServer) -> None:
    """The oldest makes room."""
    assert server.http_url is not None
    host, _, port = server.http_url.removeprefix("http://").partition(":")
    silent = [socket.create_connection((host, int(port)), timeout=10) for _ in range(80)]
    assert ask_http(server, "/health/live").status == 200
    for each in silent:
        each.close()


def test_a_large_body_is_refused(server: EmbeddedServer) -> None:
    """Nothing here needs one."""
    assert ask_http(server, "/health/live", "POST", "x" * 100_000).status == 413


def test_a_head_has_no_body(server: EmbeddedServer) -> None:
    """Load balancers ask so."""
    assert ask_http(server, "/health/live", "HEAD").status == 200


def test_an_http_port_in_use_stops_the_start(tmp_path: Path) -> None:
    """And gives back what was opened before."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(ListenError), running(tmp_path, http=busy):
            pass
    with running(tmp_path) as server, RawClient(server.address) as client:
        assert client.ask(Command.FETCH, Fetch(0, 0, 10).encode())
