"""Real files and real processes: killed at random, locked out of each other, forked."""

import os
import random
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.platforms.systems import needs_posix

from lance_sdk.errors import ForkedError
from lance_sdk.journal import Durability, Journal, JournalConfig, SlotLocked
from lance_sdk.journal.files import RealFiles

ROUNDS = 20

PRODUCER = """
import sys
from lance_sdk.journal import Durability, Journal, JournalConfig

path, durability, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
config = JournalConfig(segment_bytes=65536, max_total_bytes=1 << 22, punch_holes=True,
                       durability=Durability(durability), sync_interval=0.01)
journal = Journal.open(path, config)
print("problems", *journal.problems, file=sys.stderr)
out = sys.stdout
out.write(f"open {journal.next_fsn}\\n")
while True:
    fsn = journal.next_fsn
    assert journal.append(b"%d " % fsn * (1 + fsn * 31 % size)) == fsn
    if fsn % 10 == 9:
        journal.flush()
    if fsn % 50 == 49:
        for sent, _ in journal.read_from(journal.acked_fsn + 1):
            pass
        journal.ack(sent - 20)
    out.write(f"{fsn} {journal.acked_fsn}\\n")
    out.flush()
"""
"""Appends for ever; says after each frame which one it was and what is acknowledged."""


def payload(fsn: int, size: int) -> bytes:
    """What the producer stores under a number."""
    return b"%d " % fsn * (1 + fsn * 31 % size)


def killed_after(lines: int, path: Path, durability: Durability, size: int) -> tuple[int, int]:
    """Run the producer, kill it after so many lines; return its last frame and acknowledgement."""
    command = [sys.executable, "-c", PRODUCER, str(path), durability.value, str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        assert first.startswith(b"open"), process.stderr.read().decode()
        fsn, acked = int(first.split()[1]) - 1, -1
        for _ in range(lines):
            line = process.stdout.readline()
            assert line, process.stderr.read().decode()
            fsn, acked = map(int, line.split())
        process.send_signal(signal.SIGKILL)
        for line in process.stdout.read().splitlines(keepends=True):
            if line.endswith(b"\n"):
                fsn, acked = map(int, line.split())
    return fsn, acked


@pytest.mark.parametrize("durability", Durability)
def test_a_killed_process_loses_nothing_it_stored(tmp_path: Path, durability: Durability) -> None:
    """SIGKILL at random, twenty times on one slot: each stored frame is there, in order, once."""
    rng, size = random.Random(f"kill {durability.value}"), 200
    path, config = tmp_path / "slot", JournalConfig(segment_bytes=65536, max_total_bytes=1 << 22)
    for turn in range(ROUNDS):
        stored, acked = killed_after(rng.randrange(120), path, durability, size)
        with Journal.open(path, config) as journal:
            frames = list(journal.read_from(journal.acked_fsn + 1))
            assert journal.acked_fsn >= acked
            assert journal.next_fsn > stored
            # Numbers go on without a gap; at most the frame in flight came on top.
            assert [fsn for fsn, _ in frames] == list(
                range(journal.acked_fsn + 1, journal.next_fsn)
            )
            assert all(data == payload(fsn, size) for fsn, data in frames)
            assert all(each.kind == "torn_tail" for each in journal.problems), turn
            if turn % 4 == 3 and frames:  # so that the slot does not fill up
                journal.ack(frames[-1][0])


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds a slot until the block ends."""
    code = "import sys; from lance_sdk.journal import Journal; journal = Journal.open(sys.argv[1])"
    code += "; print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"open\n"
        yield process
        if not process.stdin.closed:
            process.stdin.close()


def test_a_slot_belongs_to_one_process(tmp_path: Path) -> None:
    """The second is refused, and told the first one's process id."""
    with holder(tmp_path / "slot") as process:
        with pytest.raises(
            SlotLocked, match=rf"already in use .*holder=pid={process.pid}"
        ) as caught:
            Journal.open(tmp_path / "slot")
        assert caught.value.holder == process.pid


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    """The kernel releases it, whatever .lock.pid still says."""
    with holder(tmp_path / "slot") as process:
        process.kill()
        process.wait(30)
        Journal.open(tmp_path / "slot").close()


def test_a_slot_belongs_to_one_object(tmp_path: Path) -> None:
    """Also within a process: flock belongs to the open file."""
    with Journal.open(tmp_path / "slot"), pytest.raises(SlotLocked, match=str(os.getpid())):
        Journal.open(tmp_path / "slot")
    Journal.open(tmp_path / "slot").close()


def test_a_holder_that_left_no_pid_is_unknown(tmp_path: Path) -> None:
    """SF client section 5.1: an empty or missing pid file is harmless."""
    with Journal.open(tmp_path / "slot"):
        (tmp_path / "slot" / ".lock.pid").write_bytes(b"")
        with pytest.raises(SlotLocked, match="holder=unknown"):
            Journal.open(tmp_path / "slot")


def test_the_pid_file_holds_a_number_and_a_line_feed(tmp_path: Path) -> None:
    """As other clients read it; the lock file itself is empty."""
    with Journal.open(tmp_path / "slot"):
        assert (tmp_path / "slot" / ".lock.pid").read_text() == f"{os.getpid()}\n"
        assert (tmp_path / "slot" / ".lock").read_bytes() == b""


@needs_posix("no process is forked there")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_is_refused_and_the_parent_goes_on(tmp_path: Path) -> None:
    """The child has neither threads nor lock; what it does cannot reach the parent's slot."""
    config = JournalConfig(segment_bytes=4096)
    with Journal.open(tmp_path / "slot", config) as journal:
        journal.append(b"parent")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                journal.append(b"child")
            except ForkedError:
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with pytest.raises(SlotLocked):
            Journal.open(tmp_path / "slot")
        assert journal.append(b"still here") == 1
        assert [data for _, data in journal.read_from(0)] == [b"parent", b"still here"]


@needs_posix("no process is forked there")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_journal_in_memory_is_refused_in_a_forked_child() -> None:
    """Its lock may be held there by a thread that does not exist."""
    with Journal.open(None) as journal:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                journal.append(b"child")
            except ForkedError:
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


LIMITED = """
import resource, sys
from lance_sdk.journal import Journal, JournalConfig, JournalFull

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
journal = Journal.open(sys.argv[1], JournalConfig(segment_bytes=1 << 16))
stored = journal.append(b"fits")
journal.close()
try:
    Journal.open(sys.argv[1] + "-2", JournalConfig(segment_bytes=1 << 20))
except JournalFull as error:
    print(error.reason, stored)
"""


def test_a_file_that_may_not_grow_is_an_error_and_not_a_signal(tmp_path: Path) -> None:
    """RLIMIT_FSIZE: blocks are reserved before anything is stored, so no store can fail."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 0
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "slot")]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b"disk 0\n"
    assert not list((tmp_path / "slot-2").glob("*.sfl"))


def test_the_parents_of_a_slot_are_created_durably(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first start on a fresh machine needs no other step (SF-29)."""
    synced: list[Path] = []
    sync = RealFiles.sync_folder
    monkeypatch.setattr(
        RealFiles, "sync_folder", lambda files, at: [synced.append(at), sync(files, at)]
    )
    Journal.open(tmp_path / "a" / "b" / "slot").close()
    assert synced[:3] == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]


def descriptors() -> int:
    """Return how many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_journal_of_many_segments_keeps_few_files_open(tmp_path: Path) -> None:
    """Sealed segments are closed, so the number of descriptors does not follow the backlog."""
    config = JournalConfig(segment_bytes=4096, max_total_bytes=1 << 22)
    with Journal.open(tmp_path / "slot", config) as journal:
        before = descriptors()
        for _ in range(600):
            journal.append(bytes(3000))
        journal.sync()
        assert journal.stats().segments >= 600
        assert descriptors() <= before + 8
        assert sum(1 for _ in journal.read_from(0)) == 600
        assert descriptors() <= before + 8
