"""Nodes as processes, and what they say."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

from lance_server.testing import RawClient
from lance_server.testing.process import ServerProcess, eventually
from lance_spec.enums import Command
from lance_spec.messages import lwp

UNSAFE = ("--engine-unsafe",)


def lwp_cluster(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``lwp cluster``."""
    command = [sys.executable, "-m", "lance_sdk.cli", "cluster", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=100, env=environment
    )


def cloned(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Run ``lance-server clone``."""
    command = [sys.executable, "-m", "lance_server", "clone", str(folder), "--from", source]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def created(url: str) -> str:
    """Create a cluster in a new topic and return its address."""
    done = lwp_cluster("init", url, "--replicas", "1", *UNSAFE)
    assert done.returncode == 0, done.stderr
    return url


class Nodes:
    """Nodes of one cluster.

    Attributes:
        running: those that run, by number.
    """

    def __init__(self, folder: Path, url: str, stack: ExitStack) -> None:
        self.folder = folder
        self.url = url
        self.running: dict[int, ServerProcess] = {}
        self._stack = stack

    def start(
        self, number: int, *options: str, environment: Mapping[str, str] | None = None
    ) -> ServerProcess:
        """Start a node and wait until it is ready."""
        data_dir, told = self.folder / f"node{number}", [*self.options(number), *options]
        node = self._stack.enter_context(
            ServerProcess.running(data_dir, *told, environment=environment)
        )
        self.running[number] = node
        eventually(lambda: reasons(node) == [])
        return node

    def options(self, number: int) -> list[str]:
        """Return what a node is told."""
        return [
            *("--cluster", self.url, "--node-id", str(number), "--http", "127.0.0.1:0"),
            *("--cluster-timeout", "20", "--ack-timeout", "2", *UNSAFE),
        ]

    def client(self, number: int) -> RawClient:
        """Connect to a node."""
        return RawClient(self.running[number].address)

    def stop(self, number: int) -> None:
        """Stop a node cleanly."""
        code, _, problems = self.running.pop(number).end(signal.SIGTERM)
        assert code == 0, problems

    def files(self, number: int) -> dict[str, bytes]:
        """Return what a stopped node has of its topics."""
        root = self.folder / f"node{number}" / "segments"
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }


def reasons(node: ServerProcess) -> list[str]:
    """Return why a node is not ready."""
    assert node.http is not None, "it was asked for"
    connection = HTTPConnection(*node.http, timeout=60)
    try:
        connection.request("GET", "/health/ready")
        found = json.loads(connection.getresponse().read())["reasons"]
    finally:
        connection.close()
    assert isinstance(found, list)
    return found


def end_of(client: RawClient) -> int:
    """Return how far a node has applied the default topic."""
    end = client.ask_json(Command.GET_TOPIC, lwp.GetTopic(0).encode())["end_offset"]
    assert isinstance(end, int)
    return end
