"""Servers that cannot be reached, or do not let the client in."""
# ruff: noqa: D103 - the table says what each program gets wrong

import http.server
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import trustme
from tests.sdk.mistakes.registry import mistake, wrong

from lance_sdk import Client
from lance_sdk.testing import FakeServer
from lance_server import running
from lance_server.security.tokens import AuthConfig

TOKENS: Final = AuthConfig(tokens=("a-secret-token",))


def opened(url: str, **options: Any) -> None:
    """Connect."""
    with Client(url, **options) as client:
        client.list_topics()


wrong("connect-refused", lambda: opened("lance://127.0.0.1:1"))
wrong("connect-unknown-host", lambda: opened("lance://no-such-host.invalid"))


@mistake
def connect_silent(_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        opened(f"lance://127.0.0.1:{silent.getsockname()[1]}", connect_timeout=1.0)


class _Http(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        """Write nothing to the test's output."""


@contextmanager
def http_server() -> Iterator[int]:
    """Serve HTTP; return the port."""
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Http)
    thread = threading.Thread(target=web.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield web.server_port
    finally:
        web.shutdown()
        thread.join()
        web.server_close()


@mistake
def connect_http(_folder: Path) -> None:
    with http_server() as port:
        opened(f"lance://127.0.0.1:{port}")


@mistake
def connect_tls_to_http(_folder: Path) -> None:
    with http_server() as port:
        opened(f"lances://127.0.0.1:{port}")


@mistake
def connect_other_protocol(_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"220 mail.example.org ESMTP ready for whatever comes next, hello\r\n")
                peer.recv(100)

        thread = threading.Thread(target=greet)
        thread.start()
        try:
            opened(f"lance://127.0.0.1:{server.getsockname()[1]}")
        finally:
            thread.join()


@contextmanager
def tls_server(name: str = "localhost", **settings: Any) -> Iterator[tuple[int, trustme.CA]]:
    """Run a server with TLS; return its port and the authority of its certificate."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    if settings.get("mutual"):
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    with FakeServer(tls=context) as server:
        yield server.port, authority


def _pem(authority: trustme.CA, folder: Path) -> Path:
    path = folder / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


@mistake
def connect_plain_to_tls(_folder: Path) -> None:
    with tls_server() as (port, _):
        opened(f"lance://localhost:{port}")


@mistake
def connect_tls_to_plain(_folder: Path) -> None:
    with FakeServer() as server:
        opened(f"lances://127.0.0.1:{server.port}")


@mistake
def connect_untrusted(_folder: Path) -> None:
    with tls_server() as (port, _):
        opened(f"lances://localhost:{port}")


@mistake
def connect_other_name(folder: Path) -> None:
    with tls_server("example.org") as (port, authority):
        opened(f"lances://localhost:{port}", tls_ca=_pem(authority, folder))


@mistake
def connect_without_certificate(folder: Path) -> None:
    with tls_server(mutual=True) as (port, authority):
        opened(f"lances://localhost:{port}", tls_ca=_pem(authority, folder))


@mistake
def connect_missing_ca(_folder: Path) -> None:
    with tls_server() as (port, _):
        opened(f"lances://localhost:{port}", tls_ca="missing.pem")


@mistake
def token_missing(folder: Path) -> None:
    with running(folder / "data", auth=TOKENS) as server:
        opened(server.url)


@mistake
def token_wrong(folder: Path) -> None:
    with running(folder / "data", auth=TOKENS) as server:
        opened(server.url, token="guess")


@mistake
def token_function_fails(_folder: Path) -> None:
    def token() -> str:
        raise RuntimeError("vault is sealed")

    with FakeServer() as server:
        opened(server.url(), token=token)
