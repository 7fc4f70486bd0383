"""The Go client of QuestDB and our sender, on one slot in turn, with kills.

It is built from the folder named by ``LANCE_QWP_GO``, or from its Go module where
``LANCE_QWP_GO=module``; without the variable these tests are skipped.
"""

import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from lance_sdk.journal import SlotKind, inspect
from lance_sdk.journal.qwp import QwpSender, timestamp_nanos
from lance_server.listeners.qwp.testing import Endpoint
from lance_server.testing import eventually

MODULE = "github.com/questdb/go-questdb-client/v4"
REVISION = "afc74c3"
SOURCE = os.environ.get("LANCE_QWP_GO", "")
OFFLINE = "initial_connect_retry=async;close_flush_timeout_millis=0;auto_flush=off;"
UNUSED = "127.0.0.1:1"

MISSING = ""
if not SOURCE or shutil.which("go") is None:
    MISSING = "LANCE_QWP_GO names no folder of the Go client, or there is no Go"

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a program that writes rows through the Go client."""
    folder = tmp_path_factory.mktemp("go")
    shutil.copy(Path(__file__).parent / "handover" / "main.go", folder)
    commands = [["go", "mod", "init", "spooler"]]
    if SOURCE == "module":
        commands += [["go", "get", f"{MODULE}@{REVISION}"]]
    else:
        commands += [["go", "mod", "edit", f"-replace={MODULE}={SOURCE}"]]
    commands += [["go", "mod", "tidy"], ["go", "build", "-o", "spooler", "."]]
    for command in commands:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "spooler"


def go(program: Path, conf: str, rows: range) -> None:
    """Have the Go client write rows and close."""
    command = [str(program), conf, str(rows.start), str(len(rows))]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def go_killed(program: Path, conf: str, rows: range, after: int) -> int:
    """Have the Go client write rows, kill it after some; return the last one that it stored."""
    command = [str(program), conf, str(rows.start), str(len(rows))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        last = -1
        for _ in range(after):
            last = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        return max([last, *(int(line) for line in process.stdout.read().split())])


def ours(conf: str, rows: range, acked: int | None = None) -> None:
    """Have our sender write rows, await an acknowledgement, and close."""
    with QwpSender.from_conf(conf) as sender:
        for number in rows:
            stamp = timestamp_nanos(number + 1)
            sender.row("t", symbols={"s": f"s{number % 5}"}, columns={"v": number}, at=stamp)
            sender.flush()
        if acked is not None:
            eventually(lambda: sender.stats().settled_fsn >= acked)


def drained(qwp: Endpoint, sf: Path) -> None:
    """Have our sender send what a slot holds."""
    with QwpSender.from_conf(f"ws::addr={qwp.addr};sf_dir={sf};") as sender:
        assert sender.wait(timeout=20)


def right(qwp: Endpoint, rows: set[int]) -> None:
    """Check that every row arrived, each with its own symbol; some may have come twice."""
    values, symbols = qwp.values("t"), qwp.values("t", "s")
    assert set(values) == rows
    assert symbols == [f"s{number % 5}" for number in values]


SMALL = ["", "sf_max_segment_bytes=4096;"]


def theirs(more: str) -> str:
    """Return a key under the name by which the Go client knows it."""
    return more.replace("sf_max_segment_bytes", "sf_max_bytes")


@pytest.mark.parametrize("more", SMALL, ids=["one segment", "many segments"])
def test_go_drains_what_we_wrote(qwp: Endpoint, sf: Path, program: Path, more: str) -> None:
    """Our frames stand alone: symbols arrive, also after a reconnect."""
    ours(f"ws::addr={UNUSED};sf_dir={sf};{OFFLINE}{more}", range(120))
    qwp.when(message=50, close=1011)
    go(program, f"ws::addr={qwp.addr};sf_dir={sf};auto_flush=off;", range(120, 121))
    right(qwp, set(range(121)))


@pytest.mark.parametrize("more", SMALL, ids=["one segment", "many segments"])
def test_we_drain_what_go_wrote(qwp: Endpoint, sf: Path, program: Path, more: str) -> None:
    """Its full dictionaries and its Gorilla timestamps are what they were."""
    go(program, f"ws::addr={UNUSED};sf_dir={sf};{OFFLINE}{theirs(more)}", range(120))
    drained(qwp, sf)
    right(qwp, set(range(120)))


@pytest.mark.parametrize("more", SMALL, ids=["one segment", "many segments"])
def test_what_go_writes_after_it_emptied_our_slot_is_delivered(
    qwp: Endpoint, sf: Path, program: Path, more: str
) -> None:
    """It begins again with number 0, below our files; `inspect` counts it as foreign."""
    ours(f"ws::addr={qwp.addr};sf_dir={sf};{more}", range(200))
    go(program, f"ws::addr={qwp.addr};sf_dir={sf};{theirs(more)}", range(200, 300))
    conf = f"ws::addr={UNUSED};sf_dir={sf};{OFFLINE}{theirs(more)}"
    go(program, conf, range(300, 700))
    report = inspect(sf / "default", SlotKind.QWP)
    assert (report.frames, report.foreign, report.problems) == (400, 400, ())
    drained(qwp, sf)
    right(qwp, set(range(700)))


def test_a_drained_slot_of_ours_is_not_sent_again_by_go(
    qwp: Endpoint, sf: Path, program: Path
) -> None:
    """It leaves no segment."""
    ours(f"ws::addr={qwp.addr};sf_dir={sf};", range(200))
    go(program, f"ws::addr={qwp.addr};sf_dir={sf};", range(200, 201))
    assert qwp.values("t") == [*range(201)]


def test_go_skips_what_our_watermark_covers(qwp: Endpoint, sf: Path, program: Path) -> None:
    """The document's 16 bytes are read by it."""
    qwp.when(message=60, stall=True)
    conf = f"ws::addr={qwp.addr};sf_dir={sf};auto_flush=off;close_flush_timeout_millis=100;"
    ours(conf, range(100), acked=59)
    go(program, f"ws::addr={qwp.addr};sf_dir={sf};", range(100, 101))
    assert qwp.values("t") == [*range(101)]


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_kills_and_hand_overs_loses_no_row(
    qwp: Endpoint, sf: Path, program: Path, seed: int
) -> None:
    """Each turn one of them writes, with or without a server, and is closed or killed."""
    rng, written, start = random.Random(seed), set(), 0
    for _ in range(6):
        address = qwp.addr if rng.random() < 0.5 else UNUSED
        conf = f"ws::addr={address};sf_dir={sf};{OFFLINE}"
        turn = rng.choice(["ours", "go", "go killed"])
        rows = range(start, start + 40)
        if turn == "go killed":
            last = go_killed(program, conf, rows, rng.randrange(1, 30))
            rows = range(start, last + 1)
        else:
            (ours if turn == "ours" else lambda c, r: go(program, c, r))(conf, rows)
        written |= set(rows)
        start += 100
    drained(qwp, sf)
    assert written <= set(qwp.values("t"))
    symbols = qwp.values("t", "s")
    assert symbols == [f"s{number % 5}" for number in qwp.values("t")]


def test_go_goes_on_after_a_refused_row(qwp: Endpoint, sf: Path, program: Path) -> None:
    """It drops the frame, as the document says, and its next rows arrive."""
    qwp.when(message=2, reject="SCHEMA_MISMATCH", text="no such column")
    go(program, f"ws::addr={qwp.addr};sf_dir={sf};auto_flush=off;", range(8))
    assert set(qwp.values("t")) == {0, 1, 3, 4, 5, 6, 7}
