"""Everything breaks, and everything arrives: in order, once, with the reference server."""

import errno
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

import pytest
from tests.platforms.systems import needs_posix
from tests.restarted import RestartedServer

from lance_sdk import Consumer
from lance_sdk.journal import (
    Durability,
    JournalConfig,
    JournalFailed,
    JournalFull,
    Level,
    StoreAndForwardSender,
    files,
    inspect,
)
from lance_sdk.testing import FakePeer, FakeServer
from lance_server.embedded import EmbeddedServer, running
from lance_spec.frames import Frame

from .network import FAULTS, Fault, Network

ROUNDS: Final = int(os.environ.get("LANCE_SIGKILL_ROUNDS", "20"))
"""500 in the long profile."""
NOWHERE: Final = "lance://127.0.0.1:1/readings"
QUICK: Final[dict[str, Any]] = {
    "backoff_base": 0.001,
    "backoff_cap": 0.01,
    "keepalive_interval": 0.1,
    "idle_timeout": 0.3,
    "request_timeout": 0.5,
    "connect_timeout": 0.5,
    "on_missing_topic": "create",
}


@pytest.fixture(scope="module")
def reference() -> Iterator[EmbeddedServer]:
    """Return the reference server."""
    with running() as server:
        yield server


def stored(server: EmbeddedServer, topic: str) -> list[bytes]:
    """Return the values of a topic's records."""
    with Consumer(f"{server.url}/{topic}", stop_at_end=True) as consumer:
        return [record.value for record in consumer]


@pytest.mark.parametrize("dialect", ["specified", "deployed"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_network_that_breaks_costs_nothing(
    reference: EmbeddedServer, tmp_path: Path, fault: Fault, dialect: str
) -> None:
    """Cut anywhere, in either direction, again and again: each record arrives once, in order."""
    rng = random.Random(f"{fault}{dialect}")
    topic = f"{fault}-{dialect}"
    times = 3 if fault == "stall" else 12
    with Network(reference.address[1], fault, times, rng) as network:
        url = f"lance://127.0.0.1:{network.port}/{topic}"
        with StoreAndForwardSender(url, tmp_path / "slot", dialect=dialect, **QUICK) as sender:
            for number in range(60):
                sender.send(b"%d" % number)
                if number % 10 == 9:
                    assert sender.wait(Level.ACKED, 30.0)
        assert network.failed >= 1
    assert stored(reference, topic) == [b"%d" % number for number in range(60)]


def test_a_slot_replays_to_any_dialect(reference: EmbeddedServer, tmp_path: Path) -> None:
    """Half of it over one dialect, all of it again over the other: stored once (AMB-25)."""
    with StoreAndForwardSender(NOWHERE, tmp_path / "slot", close_timeout=0) as sender:
        sender.send_many([b"%d" % number for number in range(1000)])
    copy(tmp_path / "slot", tmp_path / "copy")
    for slot, dialect in (("slot", "deployed"), ("copy", "specified")):
        options: dict[str, Any] = {**QUICK, "dialect": dialect}
        with StoreAndForwardSender(reference.url, tmp_path / slot, **options) as sender:
            assert sender.wait(Level.ACKED, 30.0)
    assert stored(reference, "readings") == [b"%d" % number for number in range(1000)]


def test_compressed_or_not_a_frame_is_the_same(reference: EmbeddedServer, tmp_path: Path) -> None:
    """What the server compares are the records (AMB-20, AMB-25)."""
    values = [b"well compressible %d" % (number % 3) for number in range(2000)]
    with StoreAndForwardSender(f"{NOWHERE[:-8]}lz4", tmp_path / "a", close_timeout=0) as sender:
        sender.send_many(values)
    copy(tmp_path / "a", tmp_path / "b")
    for slot, compression in (("a", "auto"), ("b", "none")):
        options: dict[str, Any] = {**QUICK, "compression": compression}
        with StoreAndForwardSender(reference.url, tmp_path / slot, **options) as sender:
            assert sender.wait(Level.ACKED, 30.0)
    assert stored(reference, "lz4") == values


def copy(slot: Path, to: Path) -> None:
    """Copy a slot, as a backup does."""
    to.mkdir()
    for each in slot.iterdir():
        (to / each.name).write_bytes(each.read_bytes())


_HELPER: Final = """
import os, sys
from lance_sdk.journal import StoreAndForwardSender, JournalConfig, Durability
url, slot = sys.argv[1:3]
config = JournalConfig(segment_bytes=4096, durability=Durability(sys.argv[3]))
for line in sys.stdin:
    if pid := os.fork():
        os.waitpid(pid, 0)
        os.write(1, b"ended\\n")
        continue
    sender = StoreAndForwardSender(
        url, slot, journal=config, on_missing_topic="create", backoff_base=0.001
    ).open()
    os.write(1, b"pid %d\\n" % os.getpid())  # one system call: a kill does not cut it
    while True:
        fsn = sender.published_fsn + 1
        assert sender.send(b"%d" % fsn) == fsn
        os.write(1, b"stored %d\\n" % fsn)
"""


def read(pipe: IO[str], word: str) -> str:
    """Return the rest of the next line, which begins with a word."""
    line = pipe.readline()
    assert line.startswith(word), line
    return line.removeprefix(word).strip()


@pytest.mark.parametrize("durability", ["memory", "append"])
def test_killed_at_any_point_nothing_is_lost_and_nothing_doubled(
    reference: EmbeddedServer, tmp_path: Path, durability: str
) -> None:
    """SIGKILL after a random number of records, many times over one slot."""
    rng, topic, last = random.Random(7), f"killed-{durability}", -1
    arguments = [f"{reference.url}/{topic}", str(tmp_path / "slot"), durability]
    with subprocess.Popen(
        [sys.executable, "-c", _HELPER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as helper:
        assert helper.stdin is not None
        assert helper.stdout is not None
        for _ in range(max(1, ROUNDS // 2)):
            helper.stdin.write("go\n")
            helper.stdin.flush()
            pid = int(read(helper.stdout, "pid"))
            for _ in range(rng.randrange(1, 60)):
                last = int(read(helper.stdout, "stored"))
            os.kill(pid, signal.SIGKILL)
            while not (line := helper.stdout.readline()).startswith("ended"):
                last = int(line.split()[1])
        helper.stdin.close()
    with StoreAndForwardSender(f"{reference.url}/{topic}", tmp_path / "slot", **QUICK) as sender:
        assert sender.published_fsn >= last
        assert sender.wait(Level.ACKED, 60.0)
        count = sender.published_fsn + 1
    assert stored(reference, topic) == [b"%d" % number for number in range(count)]


def test_a_killed_server_costs_nothing(tmp_path: Path) -> None:
    """It comes back with what it has acknowledged; the rest is sent again, once."""
    with RestartedServer(tmp_path / "data") as server:
        url = f"{server.url}/readings"
        with StoreAndForwardSender(url, tmp_path / "slot", **QUICK) as sender:
            for _ in range(3):
                for _ in range(50):
                    sender.send(b"%d" % (sender.published_fsn + 1))
                sender.wait(Level.ACKED, 0.01)
                server.kill()
            assert sender.wait(Level.ACKED, 60.0)
        with Consumer(url, stop_at_end=True) as consumer:
            values = [record.value for record in consumer]
    assert values == [b"%d" % number for number in range(150)]


def silent(peer: FakePeer, frame: Frame) -> bool:
    """Take a frame and say nothing."""
    del peer, frame
    return True


@pytest.mark.parametrize("durability", list(Durability))
def test_the_disk_goes_on_while_the_network_hangs(
    server: FakeServer, tmp_path: Path, durability: Durability
) -> None:
    """Segments are reserved, synced and rotated with a server that never answers."""
    server.on_control = silent
    config = JournalConfig(segment_bytes=8192, durability=durability, sync_interval=0.01)
    with StoreAndForwardSender(
        server.url("readings"), tmp_path / "slot", journal=config, close_timeout=0
    ) as sender:
        for _ in range(100):
            sender.send(bytes(1000), timeout=10.0)
        assert sender.wait(Level.SYNCED, 10.0)
        assert sender.stats().journal.segments > 10
        assert sender.acked_fsn == -1


def test_the_network_goes_on_while_the_disk_hangs(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sync that takes for ever delays no acknowledgement."""
    release = threading.Event()
    config = JournalConfig(durability=Durability.PERIODIC, sync_interval=0.001)
    sender = StoreAndForwardSender(server.url("readings"), tmp_path / "slot", journal=config)
    sender.open()
    monkeypatch.setattr(files._RealFile, "sync", lambda _: release.wait(30.0))
    try:
        for number in range(20):
            sender.send(b"%d" % number)
        assert sender.wait(Level.ACKED, 10.0)
    finally:
        release.set()
        sender.close()
    assert len(server.records()) == 20


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_volume_that_refuses_is_backpressure(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Full, broken or forbidden: storing waits and says why; what is there is delivered."""
    config = JournalConfig(segment_bytes=4096, append_timeout=0.05)
    options: dict[str, Any] = {"journal": config, **QUICK}
    with StoreAndForwardSender(server.url("readings"), tmp_path / "slot", **options) as sender:
        refuse = OSError(code, os.strerror(code), "segment")

        def create(*_: object) -> None:
            raise refuse

        with monkeypatch.context() as patch:
            patch.setattr(files.RealFiles, "create", create)
            while (caught := refused(sender)).reason == "reserving":
                pass  # the thread that asks the disk had no turn yet
            assert caught.reason == "disk"
            assert os.strerror(code) in str(caught)
            assert sender.wait(Level.ACKED, 10.0)
        sender.send(bytes(900), timeout=10.0)
        assert sender.wait(Level.ACKED, 10.0)
    assert len(server.records()) == sender.published_fsn + 1


def refused(sender: StoreAndForwardSender) -> JournalFull:
    """Fill the journal until it takes no more, and return what it says."""
    with pytest.raises(JournalFull) as caught:
        fill(sender)
    return caught.value


def fill(sender: StoreAndForwardSender) -> None:
    """Send until there is no room."""
    for _ in range(100):
        sender.send(bytes(900))


def test_a_disk_that_forgets_ends_the_promise_but_not_the_delivery(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed sync is told at once; frames that were stored are still sent."""
    config = JournalConfig(durability=Durability.APPEND)
    sender = StoreAndForwardSender(
        server.url("readings"), tmp_path / "slot", journal=config, **QUICK
    ).open()
    sender.send(b"safe")

    def broken(_: object) -> None:
        raise OSError(errno.EIO, "Input/output error", "segment")

    monkeypatch.setattr(files._RealFile, "sync", broken)
    with pytest.raises(JournalFailed, match="Input/output"):
        sender.send(b"doubtful")
    assert sender.wait(Level.ACKED, 10.0)
    report = sender.close()
    assert isinstance(report.error, JournalFailed)
    assert server.records() == [b"safe", b"doubtful"]


_FORKED: Final = """
import os, sys
from lance_sdk.errors import ForkedError
from lance_sdk.journal import StoreAndForwardSender
sender = StoreAndForwardSender("lance://127.0.0.1:1/readings", sys.argv[1], close_timeout=0).open()
sender.send(b"parent")
if not (pid := os.fork()):
    try:
        sender.send(b"child")
    except ForkedError as error:
        os.write(1, str(error).encode())
    sender.close()
    os.write(1, b" closed")
    os._exit(0)
os.waitpid(pid, 0)
sender.send(b"parent again")
sender.close()
"""


@needs_posix("no process is forked there")
def test_a_forked_child_has_no_part_in_the_slot(tmp_path: Path) -> None:
    """It is told so, and the parent goes on."""
    slot = str(tmp_path / "slot")
    done = subprocess.run(
        [sys.executable, "-c", _FORKED, slot],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "before os.fork()" in done.stdout
    assert done.stdout.endswith("closed")
    assert inspect(slot).frames == 2


def test_two_processes_on_one_slot(tmp_path: Path) -> None:
    """The second one is told which process has it."""
    program = (
        "import sys; from lance_sdk.journal import StoreAndForwardSender as S;"
        "S('lance://127.0.0.1:1/readings', sys.argv[1]).open()"
    )
    slot = str(tmp_path / "slot")
    with StoreAndForwardSender(NOWHERE, slot, close_timeout=0):
        done = subprocess.run(
            [sys.executable, "-c", program, slot],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert f"holder=pid={os.getpid()}" in done.stderr
