"""Nodes that get a newer release, one after the other, while clients write."""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cluster.nodes import UNSAFE, Nodes, lwp_cluster

from lance_sdk import Consumer, Producer
from lance_server.testing import free_port
from lance_server.testing.process import eventually
from lance_spec.enums import Command

NEWER = """
from lance_server.cluster.applying import settings

settings.APPLY_VERSION = 2
"""
"""What makes this release one that knows the next version of the rules, which are the same."""


@pytest.fixture
def nodes(tmp_path: Path, cluster: str) -> Iterator[Nodes]:
    """Two nodes of this release."""
    with ExitStack() as stack:
        found = Nodes(tmp_path, cluster, stack)
        yield found


@pytest.fixture
def newer(tmp_path: Path) -> dict[str, str]:
    """The environment of a newer release."""
    folder = tmp_path / "newer"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(NEWER)
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def version_of(nodes: Nodes, number: int) -> int:
    """Return the version of the rules that a node applies by."""
    with nodes.client(number) as client:
        found = client.ask_json(Command.GET_CLUSTER_STATUS)["apply_version"]
    assert isinstance(found, int)
    return found


class Load:
    """A client that writes until it is told to stop."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self.sent: list[bytes] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with Producer(self._url, create_topic=True) as producer:
            while not self._stop.is_set():
                self.sent.append(b"record %d" % len(self.sent))
                producer.send(self.sent[-1]).result(90)

    def stop(self) -> list[bytes]:
        """Return what was sent, all of which is acknowledged."""
        self._stop.set()
        self._thread.join()
        return self.sent


def test_the_rules_change_once_all_nodes_know_them(nodes: Nodes, newer: dict[str, str]) -> None:
    """Nothing is lost meanwhile; an older release does not start any more, and says why."""
    listen = {number: f"127.0.0.1:{free_port()}" for number in (1, 2)}
    for number in (1, 2):
        nodes.start(number, "--listen", listen[number])
    url = f"lance://{listen[1]},{listen[2]}/orders"
    load = Load(url)
    try:
        eventually(lambda: len(load.sent) > 20)
        early = lwp_cluster("apply-version", nodes.url, "2", *UNSAFE, environment=newer)
        assert early.returncode == 5
        assert "nodes cannot apply by version 2: 1, 2; upgrade" in early.stderr
        for number in (1, 2):
            nodes.stop(number)
            nodes.start(number, "--listen", listen[number], environment=newer)
            assert version_of(nodes, number) == 1
        eventually(
            lambda: (
                lwp_cluster("apply-version", nodes.url, "2", *UNSAFE, environment=newer).returncode
                == 0
            )
        )
        for number in (1, 2):
            eventually(lambda number=number: version_of(nodes, number) == 2)
        seen = len(load.sent)
        eventually(lambda: len(load.sent) > seen + 20)
    finally:
        sent = load.stop()
    for number in (1, 2):
        with Consumer(
            f"lance://{listen[number]}/orders", start="beginning", stop_at_end=True
        ) as consumer:
            found = [bytes(record.value) for record in consumer]
        assert found == sent[: len(found)]
        assert len(found) >= len(sent) - 1
    for number in (1, 2):
        nodes.stop(number)
    assert nodes.files(1) == nodes.files(2) != {}
    with pytest.raises(AssertionError, match="upgrade this node"):
        nodes.start(1, "--listen", listen[1])
