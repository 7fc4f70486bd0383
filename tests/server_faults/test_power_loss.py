"""Loss of power, from a record of the server's writes and syncs: what was acknowledged is there."""

import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.server_faults.disk_image import RecordingStorage, SimulatedDisk, read_changes
from tests.server_faults.preload import Control
from tests.server_faults.recording import (
    LONG,
    History,
    Outcome,
    assert_nothing_is_damaged,
    create_topics,
    judge_all,
    load,
    meet,
)

from lance_server import running
from lance_server.storage.backend_selection import DURABILITIES
from lance_server.storage.uring.backend import UringStorage
from lance_server.storage.wal import WalStorage
from lance_server.testing import ServerProcess

SEED = int(os.environ.get("LANCE_FAULT_SEED", "1"))
IMAGES = 400 if LONG else 5
TOPICS = 3
OPTIONS = ("--segment-size", "64KiB", "--upkeep-interval", "0.1", "--storage", "pwritev2")


@pytest.fixture
def images(tmp_path: Path) -> Iterator[Path]:
    """Return a folder for disk images, in memory where there is such a folder."""
    memory = Path("/dev/shm")
    folder = memory if os.access(memory, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(prefix="lance-images-", dir=folder) as name:
        yield Path(name)


def judge_images(folder: Path, record: Path, histories: list[History], *, lossy: bool) -> None:
    """Start a server on what a loss of power leaves at moments of a life, and judge what it has."""
    random, changes = Random(SEED), list(read_changes(record))
    moments = sorted(random.sample(range(1, len(changes)), IMAGES))
    disk = SimulatedDisk()
    for begin, end in itertools.pairwise([0, *moments]):
        disk.apply(changes[begin:end])
        image = folder / f"image-{end}"
        disk.write_image(image, random)
        judge_image(image, histories, end, lossy=lossy)
        shutil.rmtree(image)
    assert disk.durable_syncs > 0
    assert sum(len(each.acked(moments[-1])) for each in histories) > 10


def judge_image(image: Path, histories: list[History], until: int, *, lossy: bool) -> None:
    """Start a server on what is left after so many changes, and judge what it has."""
    with running(image, durability="fsync") as server:
        there = server.stats()["topics"]
        known = [each for each in histories if str(each.topic_id) in there]
        assert all(each in known or each.created > until for each in histories)
        judge_all(server.address, known, until=until, lossy=lossy)
        if not lossy:
            assert_nothing_is_damaged(server.report)


def write_first_loss(image: Path, record: Path, histories: list[History]) -> int:
    """Write what was synced when the first batch was acknowledged that was not yet synced.

    Returns:
        After how many changes that was.
    """
    changes, disk, done = list(read_changes(record)), SimulatedDisk(), 0
    acked = [
        (each.facts[number].at, each.sent[number]) for each in histories for number in each.acked()
    ]
    for at, values in sorted(acked):
        disk.apply(changes[done:at])
        done = at
        disk.write_image(image, Random(SEED), likelihood=0.0)
        if not any(values[0] in path.read_bytes() for path in image.rglob("*.lnc")):
            return at
        shutil.rmtree(image)
    pytest.fail("every batch was synced before it was acknowledged")


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_loss_of_power_takes_nothing_that_was_acknowledged(
    tmp_path: Path, library: Path, images: Path, durability: str
) -> None:
    """Two lives, the first one ends with SIGKILL: the power goes at moments of both.

    In ``os`` mode it may take what was acknowledged; what is left is what was sent, in order.
    """
    data, record = tmp_path / "data", tmp_path / "record"
    data.mkdir()
    record.touch()
    control = Control(tmp_path / "control", data, record)
    options = (*OPTIONS, "--durability", durability)
    histories: list[History] = []
    for end in (signal.SIGKILL, signal.SIGTERM):
        with ServerProcess.running(
            data, *options, environment=control.environment(library)
        ) as server:
            if not histories:
                histories = create_topics(server.address, TOPICS, lambda: control.events)
            with load(server.address, histories, lambda: control.events) as producers:
                meet(producers, 15, Outcome.ACKED)
                for each in producers:
                    each.want(1000, Outcome.ACKED)
                server.end(end)
    judge_images(images, record, histories, lossy=durability == "os")
    if durability == "os":  # it would be found out if it promised more
        moment = write_first_loss(images / "first", record, histories)
        with pytest.raises(AssertionError, match="are lost"):
            judge_image(images / "first", histories, moment, lossy=False)


@pytest.mark.parametrize("with_log", [False, True], ids=["fsync", "wal"])
def test_a_loss_of_power_under_io_uring_takes_nothing_that_was_acknowledged(
    tmp_path: Path, images: Path, with_log: bool
) -> None:
    """Its writes pass the library by; they are recorded below the write-ahead log."""
    try:
        inner = UringStorage()
    except OSError as error:
        pytest.skip(f"io_uring is not available here: {error.strerror}")
    data = tmp_path / "data"
    data.mkdir()
    recording = RecordingStorage(inner, data, tmp_path / "record")
    storage = WalStorage(recording, data) if with_log else recording
    with running(data, storage=storage, segment_size=64 * 1024, upkeep_interval=0.1) as server:
        histories = create_topics(server.address, TOPICS, lambda: recording.events)
        with load(server.address, histories, lambda: recording.events) as producers:
            meet(producers, 40, Outcome.ACKED)
    judge_images(images, tmp_path / "record", histories, lossy=False)
