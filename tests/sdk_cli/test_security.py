"""Tokens and TLS on the command line."""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from click.testing import Result

from lance_sdk.cli._settings import Settings
from lance_sdk.cli._target import client_options
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.enums import Command
from lance_spec.frames import Frame

Call = Callable[..., Result]
VARIABLES = ("TOKEN", "TLS_CA", "TLS_CERT", "TLS_KEY", "TLS_SERVER_NAME")


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the developer has set does not decide a test."""
    for name in VARIABLES:
        monkeypatch.delenv(f"LANCE_{name}", raising=False)


@pytest.fixture
def authority() -> trustme.CA:
    """A certificate authority."""
    return trustme.CA()


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[FakeServer]:
    """A server that speaks TLS as log.example."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("log.example").configure_cert(context)
    with FakeServer(tls=context) as server:
        yield server


def test_a_token_is_shown_to_the_server(lwp: Call) -> None:
    """On every connection, before anything else is asked."""
    shown: list[bytes] = []

    def take(peer: FakePeer, frame: Frame) -> bool:
        if frame.command is not Command.AUTHENTICATE:
            return False
        shown.append(bytes(frame.payload))
        peer.control(Command.AUTHENTICATE_RESPONSE, b"\x01Authenticated")
        return True

    with FakeServer() as server:
        server.on_control = take
        url = f"lance://127.0.0.1:{server.port}"
        assert lwp("topics", "list", "--url", url, "--token", "s3cret").exit_code == 0
    assert set(shown) == {b"s3cret"}


def test_a_token_can_stand_in_a_file(tmp_path: Path, lwp: Call) -> None:
    """So that no list of processes shows it; an empty file is refused."""
    file = tmp_path / "token"
    file.write_text("")
    result = lwp("ping", "--url", "lance://h", "--token", f"@{file}")
    assert result.exit_code == 2
    assert f"there is no token in {file}" in result.stderr


def test_an_option_comes_before_url_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the URL, then the environment."""
    monkeypatch.setenv("LANCE_TOKEN", "of the environment")
    bare, full = "lance://h", "lance://of-the-url@h"
    assert client_options(Settings(token="of the line"), full)["token"] == "of the line"
    assert "token" not in client_options(Settings(), full)
    assert client_options(Settings(), bare)["token"] == "of the environment"


def test_certificates_of_the_environment_are_for_tls_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A URL without TLS is not refused for them."""
    monkeypatch.setenv("LANCE_TLS_CA", "ca.pem")
    assert "tls_ca" not in client_options(Settings(), "lance://h")
    assert client_options(Settings(), "lances://h")["tls_ca"] == "ca.pem"
    assert "tls_ca" not in client_options(Settings(), "lances://h?tls_ca=other.pem")


def test_a_token_does_not_show_in_a_repr() -> None:
    """Reprs end up in logs."""
    assert "s3cret" not in repr(Settings(token="s3cret"))


def test_certificates_to_trust_are_a_file(
    secure: FakeServer, authority: trustme.CA, tmp_path: Path, lwp: Call
) -> None:
    """With the name that the server's certificate bears."""
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    url = f"lances://127.0.0.1:{secure.port}"
    trusting = ["--tls-ca", str(file), "--tls-server-name", "log.example"]
    assert lwp("topics", "list", "--url", url, *trusting, "-q").exit_code == 0
    result = lwp("topics", "list", "--url", url, *trusting[:2])
    assert result.exit_code == 3
    assert "tls" in result.stderr
