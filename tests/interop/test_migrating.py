"""The programs in other clients on the page about moving from them, run as they stand there."""

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.docs.snippets import migrating, printed

READY = "Server is ready"


@pytest.fixture
def nats_address(tmp_path: Path) -> Iterator[str]:
    """HOST:PORT of a NATS server with JetStream."""
    if find_spec("nats") is None or shutil.which("nats-server") is None:
        pytest.skip("needs the package nats-py and the program nats-server")
    ports = tmp_path / "ports"
    ports.mkdir()
    settings = {"listen": "127.0.0.1:-1", "ports_file_dir": str(ports)}
    config = tmp_path / "nats.conf"
    config.write_text(json.dumps({**settings, "jetstream": {"store_dir": str(tmp_path)}}))
    with subprocess.Popen(
        ["nats-server", "-c", str(config)], stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr
        assert any(READY in line for line in server.stderr)
        (told,) = ports.glob("*.ports")
        yield json.loads(told.read_text())["nats"][0].removeprefix("nats://")
        server.send_signal(signal.SIGTERM)
        server.stderr.read()


def test_the_program_in_lnc_client(address: str, tmp_path: Path) -> None:
    """It stores a record in our server and reads it back."""
    pytest.importorskip("lnc_client", reason="needs lnc-client: tox run -e interop")
    host, port = address.split(":")
    program = migrating("lnc_client").replace("localhost:1992", address)
    program = program.replace('"localhost", 1992', f'"{host}", {port}')
    assert printed(program, tmp_path) == "[b'metric 1']"


def test_the_program_in_nats_py(nats_address: str, tmp_path: Path) -> None:
    """It stores a record in JetStream and reads it back."""
    program = migrating("nats").replace("localhost:4222", nats_address)
    assert printed(program, tmp_path) == "b'event 1'"
