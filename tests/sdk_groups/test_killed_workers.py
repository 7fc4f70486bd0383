"""Real processes, killed with SIGKILL while they work: nothing is skipped."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lance_sdk import Consumer
from lance_sdk.groups import Coordinator
from lance_sdk.groups._coordinator.service import GroupService

WORKER = Path(__file__).with_name("worker.py")
RECORDS = 600
LEFT_BY_OTHERS = 20
"""Batches that each of the first workers may read, of some ninety."""
NO_END = 1_000_000


class Worker:
    """A worker process."""

    def __init__(self, arguments: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, WORKER, *arguments], stdout=subprocess.PIPE, text=True
        )

    def wait_for(self, beginning: str) -> None:
        """Wait for a line of its output."""
        assert self.process.stdout is not None
        assert any(line.startswith(beginning) for line in self.process.stdout)

    def kill(self) -> None:
        """Kill it as the kernel does when memory is short."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def workers() -> Iterator[Callable[..., Worker]]:
    """Return what starts workers, which are killed in the end."""
    started: list[Worker] = []

    def start(*arguments: Any) -> Worker:
        started.append(Worker([str(argument) for argument in arguments]))
        return started[-1]

    yield start
    for worker in started:
        with worker.process as process:  # closes its pipe, also of one that ended by itself
            process.kill()


class Commits:
    """Counts the commits that a coordinator has answered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._changed = threading.Condition()
        self._count = 0
        commit = GroupService._commit

        async def counted(service: GroupService, *arguments: Any) -> Any:
            answer = await commit(service, *arguments)
            with self._changed:
                self._count += 1
                self._changed.notify_all()
            return answer

        monkeypatch.setattr(GroupService, "_commit", counted)

    def wait_for_more(self, count: int) -> None:
        """Wait until there were so many more."""
        with self._changed:
            wanted = self._count + count
            assert self._changed.wait_for(lambda: self._count >= wanted, timeout=60)


def lines(path: Path, what: str) -> list[tuple[str, int]]:
    """Return the lines of one kind that a worker wrote; one cut off at a page is not there yet."""
    text = path.read_text() if path.exists() else ""
    split = (line.split() for line in text.splitlines(keepends=True) if line.endswith("\n"))
    return [(topic, int(offset)) for kind, topic, offset in split if kind == what]


def test_killed_workers_lose_nothing(
    workers: Callable[..., Worker],
    topics: Any,
    server: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Workers killed one after the other: every record is read, again only behind a commit."""
    for name in topics.names:
        topics.append(name, RECORDS - 10, first=10)
    commits = Commits(monkeypatch)
    store = f"file:{tmp_path}/offsets"
    with Coordinator("127.0.0.1:0", store=store, heartbeat_interval=0.1) as coordinator:
        outputs = []
        for number in range(4):
            outputs.append(tmp_path / f"{number}.txt")
            name = f"w{number}"
            batches = LEFT_BY_OTHERS if number < 3 else NO_END
            worker = workers(server.url, coordinator.url, name, outputs[-1], batches, *topics.names)
            worker.wait_for("assigned")
            commits.wait_for_more(6)
            if number < 3:
                worker.kill()
        written = every_offset(server, topics.names)
        while set(lines(outputs[-1], "read")) | read_by(outputs[:-1]) < written:
            commits.wait_for_more(1)
    assert read_by(outputs) == written
    for number, output in enumerate(outputs):
        committed = dict(sorted(lines(output, "done")))
        repeated = read_by([output]) & read_by(outputs[number + 1 :])
        assert all(offset >= committed.get(topic, 0) for topic, offset in repeated)


def read_by(outputs: list[Path]) -> set[tuple[str, int]]:
    """Return the records that these workers have read."""
    return {record for output in outputs for record in lines(output, "read")}


def every_offset(server: Any, names: list[str]) -> set[tuple[str, int]]:
    """Return every record that there is."""
    found = set()
    for name in names:
        with Consumer(f"{server.url}/{name}", stop_at_end=True) as consumer:
            found |= {(name, record.offset) for record in consumer}
    return found
