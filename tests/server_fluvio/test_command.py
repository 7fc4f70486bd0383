"""The listeners as part of the command."""

import subprocess
import sys
from pathlib import Path

import pytest

from lance_server.listeners.fluvio.testing import FluvioPeer
from lance_server.testing import ServerProcess

from .test_topics import listed

BOTH = ("--fluvio-sc", "127.0.0.1:0", "--fluvio-spu", "127.0.0.1:0")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--fluvio-sc", "127.0.0.1:0"], "--fluvio-sc and --fluvio-spu need each other"),
        (["--fluvio-spu", "127.0.0.1:0"], "--fluvio-sc and --fluvio-spu need each other"),
        (["--fluvio-sc", "here", "--fluvio-spu", "127.0.0.1:0"], "is not an address"),
        (
            [*BOTH, "--trust-records"],
            "does not go with --trust-records",
        ),
        (
            [*BOTH, "--auth-token-file", "t"],
            "Fluvio's protocol has none",
        ),
        (["--fluvio-spu-public", "host:9005"], "needs --fluvio-sc and --fluvio-spu"),
        (
            [*BOTH, "--fluvio-spu-public", "0.0.0.0:9005"],
            "no client can connect to 0.0.0.0:9005",
        ),
        ([*BOTH, "--fluvio-spu-public", "host:0"], "no client can connect to host:0"),
    ],
)
def test_options_that_cannot_work_are_refused(
    tmp_path: Path, options: list[str], complaint: str
) -> None:
    """The command ends at once, and says why."""
    (tmp_path / "t").write_text("secret-token-of-some-length\n")
    done = subprocess.run(
        [sys.executable, "-m", "lance_server", "--data-dir", str(tmp_path / "data"), *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert complaint in done.stderr


def test_clients_are_told_where_they_reach_the_spu(tmp_path: Path) -> None:
    """An announced address replaces the bound one; the ready line tells where both listen."""
    public = ("--fluvio-spu-public", "logs.example:19005")
    with ServerProcess.running(tmp_path / "data", *BOTH, *public) as server:
        assert list(server.others) == ["fluvio-spu", "fluvio-sc"]
        with FluvioPeer(server.others["fluvio-sc"]) as sc:
            (spu,) = listed(sc, "SPU")
        with FluvioPeer(server.others["fluvio-spu"]) as peer:
            assert peer.ask(18, 2, bytes(6)), "it listens where it was told to"
    (ingress,) = spu.public_endpoint.ingress
    assert (ingress.hostname, ingress.ip) == ("logs.example", None)
    assert spu.public_endpoint.port == 19005
