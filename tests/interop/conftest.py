"""A server in a process of its own, and the published clients that talk to it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.restarted import RestartedServer

BUILT = "LANCE_INTEROP_RUST"
"""Environment variable: the folder that ``build_rust.py`` built into."""
DEADLINE = 60.0


class RustClient:
    """The published Rust client: asked for one thing at a time, see ``rust/src/main.rs``."""

    def __init__(self, driver: Path, address: str) -> None:
        self._command = [str(driver), address]

    def __call__(self, *arguments: object, lines: Sequence[str] = ()) -> Any:
        """Return what it answers."""
        done = self._run(arguments, lines)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def complaint(self, *arguments: object, lines: Sequence[str] = ()) -> str:
        """Return what it says about something that must fail."""
        done = self._run(arguments, lines)
        assert done.returncode == 1, done.stdout
        return done.stderr.strip()

    @contextmanager
    def running(self, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
        """Start it for a ``with`` block, with pipes."""
        command = [*self._command, *map(str, arguments)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def _run(
        self, arguments: Sequence[object], lines: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *map(str, arguments)],
            check=False,
            capture_output=True,
            input="".join(f"{line}\n" for line in lines),
            text=True,
            timeout=DEADLINE,
        )


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """Run ``lance-server`` for a ``with`` block; yields HOST:PORT."""
    port = folder / "port"
    command = [sys.executable, "-m", "lance_server", "--listen", "127.0.0.1:0", *options]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--data-dir", str(folder / "data"), "--port-file", str(port)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout
    ready = process.stdout.readline()
    assert ready.startswith("lance-server ready"), (folder / "log").read_text()
    yield f"127.0.0.1:{port.read_text().strip()}"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, (folder / "log").read_text()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server with the settings that it has by itself listens."""
    with serving(tmp_path_factory.mktemp("server")) as place:
        yield place


@pytest.fixture
def lenient_address(tmp_path: Path) -> Iterator[str]:
    """Where a server listens that allows ``_`` in names; the published one of today does not."""
    with serving(tmp_path, "--any-topic-names") as place:
        yield place


_names = count(1)


@pytest.fixture
def name() -> str:
    """The name of a topic that nobody has used, in letters that every client allows."""
    return f"interop-{next(_names)}"


@pytest.fixture(scope="session")
def rust_folder() -> Path:
    """What ``build_rust.py`` built into."""
    folder = os.environ.get(BUILT)
    if not folder:
        pytest.skip("the Rust client is not built; run: tox run -e interop")
    if shutil.which("cargo") is None:
        pytest.skip("the Rust client is not built: there is no cargo on this machine")
    return Path(folder)


@pytest.fixture(scope="session")
def driver(rust_folder: Path) -> Path:
    """The program around the published Rust client."""
    return rust_folder / "debug" / "lance-interop-driver"


@pytest.fixture
def restarted(tmp_path: Path) -> Iterator[RestartedServer]:
    """A server that can be killed, and is there again at the same port."""
    with RestartedServer(tmp_path / "data", "--rustlog", "127.0.0.1:0") as server:
        yield server


@pytest.fixture
def rust(driver: Path, address: str) -> RustClient:
    """The published Rust client, with the server's address."""
    return RustClient(driver, address)
