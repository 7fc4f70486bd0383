"""All faults at once on one data directory, for as long as LANCE_FAULT_SECONDS says."""

import json
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from tests.server_faults.disk_image import SimulatedDisk, read_changes
from tests.server_faults.preload import Control, in_memory
from tests.server_faults.recording import (
    SECONDS,
    History,
    Outcome,
    Producer,
    create_topics,
    judge_all,
    load,
    meet,
)
from tests.server_faults.test_failing_calls import IMPATIENT, OPTIONS, random_script
from tests.server_faults.test_full_disk import Ballast

from lance_server import running
from lance_server.offline.verifying import verify
from lance_server.storage.backend_selection import DURABILITIES
from lance_server.testing import RawClient, ServerProcess
from lance_spec.enums import Command
from lance_spec.messages.lwp import DeleteTopic

SEED = int(os.environ.get("LANCE_FAULT_SEED", "1"))
RECORD = os.environ.get("LANCE_FAULT_RECORD")
"""Where to write down what happened, for the page about durability."""
LIVES = 2
"""As many as there are at least."""
TOPICS = 3
SIZE = 256 * 1024 * 1024
MUCH = 2_000
"""Batches after which the topics are deleted and others are created."""


class Machine:
    """A data directory on a disk of its own, and everything that happens to it.

    Args:
        disk: the file system.
        folder: where records are kept.
        library: what fails the server's calls.
        random: decides what happens.

    Attributes:
        happened: how often what happened.
        histories: what clients know.
    """

    def __init__(self, disk: Path, folder: Path, library: Path, random: Random) -> None:
        self.data = disk / "data"
        self._image = disk / "image"
        self._record = folder / "record"
        self._random = random
        self._ballast = Ballast(disk)
        self._simulated = SimulatedDisk()
        self.histories: list[History] = []
        self.happened: Counter[str] = Counter()
        self.data.mkdir()
        self._record.touch()
        self._control = Control(folder / "control", self.data, self._record)
        self._environment = self._control.environment(library)

    def live(self) -> None:
        """Start a server, do things to it, and end it."""
        random = self._random
        durability = random.choice(DURABILITIES)
        options = (*OPTIONS, *IMPATIENT, "--durability", durability)
        if random.random() < 0.4:
            self._start_with_faults(options)
        self._control.set_rules()
        self._ballast.free()
        before = {each.topic_id: set(each.facts) for each in self.histories}
        with ServerProcess.running(self.data, *options, environment=self._environment) as server:
            self._judge(server)
            with load(server.address, self.histories) as producers:
                meet(producers, 2, Outcome.ACKED)
                for _ in range(random.randint(1, 4)):
                    random.choice([self._fill, self._fail, self._fail])(producers)
                end = random.choice([self._kill, self._kill, self._stop, self._lose_power])
                self.happened[end.__name__] += 1
                end(server, producers)
        if durability == "os":
            for each in self.histories:
                each.volatile |= set(each.facts) - before.get(each.topic_id, set())
        self._repeat_changes()
        if end == self._lose_power:
            self._write_image()

    def _start_with_faults(self, options: Sequence[str]) -> None:
        """It serves, or says why not; the next start shows what is left."""
        self._control.set_rules(*random_script(self._random))
        with (
            suppress(AssertionError),
            ServerProcess.running(self.data, *options, environment=self._environment) as server,
        ):
            server.end(self._random.choice([signal.SIGKILL, signal.SIGTERM]))
        self.happened["fault at a start"] += any(self._control.hits())
        self._repeat_changes()  # a kill may have cut its last entry short

    def _judge(self, server: ServerProcess) -> None:
        """Look at everything; begin with new topics when there is much of it."""
        judge_all(server.address, self.histories, keep=True)
        if sum(len(each.sent) for each in self.histories) > MUCH:
            with RawClient(server.address) as client:
                for each in self.histories:
                    answer = client.ask_json(
                        Command.DELETE_TOPIC, DeleteTopic(each.topic_id).encode()
                    )
                    assert answer == {"deleted": each.topic_id}
            self.histories = []
        if not self.histories:
            self.histories = create_topics(server.address, TOPICS)

    def _fill(self, producers: list[Producer]) -> None:
        """Fill the disk, and free it."""
        self.happened["full disk"] += 1
        self._ballast.fill()
        meet(producers, 2, Outcome.REFUSED, Outcome.UNKNOWN)
        self._ballast.free()
        meet(producers, 2, Outcome.ACKED)

    def _fail(self, producers: list[Producer]) -> None:
        """Have calls fail while batches arrive, as far as they happen to be made."""
        self._control.set_rules(*random_script(self._random))
        meet(producers, self._random.choice([1, 5, 10]), *Outcome)
        self.happened["fault under load"] += any(self._control.hits())
        self._control.set_rules()
        meet(producers, 2, Outcome.ACKED)

    def _kill(self, server: ServerProcess, producers: list[Producer]) -> None:
        for each in producers:
            each.want(10**6, Outcome.ACKED)
        if self._random.random() < 0.5:  # with a fault, or a full disk
            self._control.set_rules(*random_script(self._random))
            self._random.choice([self._ballast.fill, self._ballast.free])()
        server.end(signal.SIGKILL)

    def _stop(self, server: ServerProcess, producers: list[Producer]) -> None:
        for each in producers:
            each.want(10**6, Outcome.ACKED)
        server.end(signal.SIGTERM)

    def _lose_power(self, server: ServerProcess, producers: list[Producer]) -> None:
        self._kill(server, producers)

    def _repeat_changes(self) -> None:
        self._simulated.apply(list(read_changes(self._record)))
        os.truncate(self._record, 0)

    def _write_image(self) -> None:
        """Leave what a loss of power leaves."""
        self._ballast.free()
        self._simulated.write_image(self._image, self._random)
        shutil.rmtree(self.data)
        self._image.rename(self.data)
        self._simulated.load(self.data)
        for each in self.histories:
            each.lose_power()

    def end(self) -> None:
        """Judge what is left at the end, without any fault."""
        self._control.set_rules()
        self._ballast.free()
        with running(self.data) as server:
            judge_all(server.address, self.histories, keep=True)
        assert verify(self.data).findings == []


@pytest.mark.timeout(SECONDS + 300)
def test_all_faults_at_once_lose_nothing(tmp_path: Path, library: Path) -> None:
    """Full disks, failing calls, kills and losses of power, two and three in a row."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    with in_memory(SIZE, mounted) as disk:
        machine = Machine(disk, tmp_path, library, Random(SEED))
        lives, until = 0, time.monotonic() + SECONDS
        while lives < LIVES or time.monotonic() < until:
            machine.live()
            lives += 1
        machine.end()
    if RECORD:
        found = {"seconds": SECONDS, "lives": lives, "happened": dict(machine.happened)}
        Path(RECORD).write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
