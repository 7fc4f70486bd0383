"""Slots: each client drains what the other wrote, wherever the other was stopped."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from questdb import QuestDBError, TimestampNanos

from lance_sdk.journal import SlotKind, inspect
from lance_sdk.journal.qwp import QwpSender, timestamp_nanos
from lance_server.listeners.qwp.testing import Endpoint
from lance_server.testing import eventually

from .conftest import published

UNUSED = "127.0.0.1:1"
OFFLINE = "initial_connect_retry=async;close_flush_timeout_millis=0;auto_flush=off;"

WRITER = """
import sys, warnings
warnings.simplefilter("ignore")
if sys.argv[1] == "theirs":
    from questdb.ingress import Sender, TimestampNanos as nanos
else:
    from lance_sdk.journal.qwp import QwpSender as Sender, timestamp_nanos as nanos
sender = Sender.from_conf(sys.argv[2])
getattr(sender, "establish", None) and sender.establish() or getattr(sender, "open", int)()
number = 0
while True:
    sender.row(
        "t",
        symbols={"s": f"s{number % 50}"},
        columns={"v": number, "pad": "x" * 30_000},
        at=nanos(number),
    )
    sender.flush()
    print(number, flush=True)
    number += 1
"""


def fill_theirs(conf: str, rows: range, acked: int | None = None) -> None:
    """Have the published sender write rows, one frame each, and await an acknowledgement."""
    with published(conf) as sender:
        for number in rows:
            sender.row(
                "t",
                symbols={"s": f"s{number % 5}"},
                columns={"v": number},
                at=TimestampNanos(number),
            )
            sender.flush()
        if acked is not None:
            eventually(lambda: sender.acked_fsn() == acked)


def fill_ours(conf: str, rows: range, acked: int | None = None) -> None:
    """Have our sender write rows, one frame each, and await an acknowledgement."""
    with QwpSender.from_conf(conf) as sender:
        for number in rows:
            sender.row(
                "t",
                symbols={"s": f"s{number % 5}"},
                columns={"v": number},
                at=timestamp_nanos(number),
            )
            sender.flush()
        if acked is not None:
            eventually(lambda: sender.stats().settled_fsn >= acked)


def drain_theirs(qwp: Endpoint, sf: Path, more: str = "") -> None:
    """Have the published sender send what a slot holds."""
    conf = f"ws::addr={qwp.addr};sf_dir={sf};auto_flush=off;{more}"
    with published(conf) as sender:
        sender.row("end", columns={"v": 1}, at=TimestampNanos(1))
        assert sender.await_acked_fsn(sender.flush_and_get_fsn(), 20_000)


def drain_ours(qwp: Endpoint, sf: Path, more: str = "") -> None:
    """Have our sender send what a slot holds."""
    with QwpSender.from_conf(f"ws::addr={qwp.addr};sf_dir={sf};{more}") as sender:
        assert sender.wait(timeout=20)


def check(qwp: Endpoint, rows: range) -> None:
    """Check that rows arrived once, in order, with their symbols."""
    assert qwp.values("t") == [*rows]
    assert qwp.values("t", "s") == [f"s{number % 5}" for number in rows]


SMALL = "sf_max_segment_bytes=4096;"


@pytest.mark.parametrize("more", ["", SMALL], ids=["one segment", "many segments"])
def test_they_drain_what_we_wrote(qwp: Endpoint, sf: Path, more: str) -> None:
    """A slot of ours is one of theirs."""
    fill_ours(f"ws::addr={UNUSED};sf_dir={sf};{OFFLINE}{more}", range(120))
    drain_theirs(qwp, sf, more)
    check(qwp, range(120))


@pytest.mark.parametrize("more", ["", SMALL], ids=["one segment", "many segments"])
def test_we_drain_what_they_wrote(qwp: Endpoint, sf: Path, more: str) -> None:
    """A slot of theirs is one of ours."""
    fill_theirs(f"ws::addr={UNUSED};sf_dir={sf};{OFFLINE}{more}", range(120))
    drain_ours(qwp, sf, more)
    check(qwp, range(120))


@pytest.mark.parametrize("more", ["", SMALL], ids=["one segment", "many segments"])
@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_what_was_acknowledged_is_not_sent_again(
    qwp: Endpoint, sf: Path, writer: str, more: str
) -> None:
    """The other client goes on after the watermark, and knows the symbols from before it."""
    qwp.when(message=60, stall=True)
    conf = f"ws::addr={qwp.addr};sf_dir={sf};auto_flush=off;close_flush_timeout_millis=100;{more}"
    if writer == "ours":
        fill_ours(conf, range(100), acked=59)
    else:
        with pytest.raises(QuestDBError, match="before all published frames were acknowledged"):
            fill_theirs(conf, range(100), acked=59)
    assert inspect(sf / "default", SlotKind.QWP).first_fsn == 60
    (drain_theirs if writer == "ours" else drain_ours)(qwp, sf, more)
    values = qwp.values("t")
    if writer == "ours":
        # This client keeps the watermark in another form and makes ours blank (SF-03): it sends
        # what is left of the oldest segment again, which QWP allows (SF-34).
        assert values[:60] == [*range(60)]
        assert values[60:] == [*range(values[60], 100)]
        return
    check(qwp, range(100))


@pytest.mark.parametrize("writer", ["ours", "theirs"])
@pytest.mark.parametrize("round_", range(3))
def test_a_slot_whose_writer_was_killed_is_drained(
    qwp: Endpoint, sf: Path, writer: str, round_: int
) -> None:
    """Every row whose flush had returned when SIGKILL came arrives at the other client."""
    conf = f"ws::addr={UNUSED};sf_dir={sf};{OFFLINE}"
    command = [sys.executable, "-c", WRITER, writer, conf]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(random.Random(round_).randrange(20, 60)):
            written = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        written = max([written, *map(int, process.stdout.read().split())])
    (drain_theirs if writer == "ours" else drain_ours)(qwp, sf)
    values = qwp.values("t")
    assert values == [*range(len(values))]
    assert len(values) in {written + 1, written + 2}
    assert qwp.values("t", "s") == [f"s{number % 50}" for number in values]


def test_we_and_they_take_turns(qwp: Endpoint, sf: Path) -> None:
    """One slot, one dictionary, four sessions without a server, and then one with."""
    conf = f"ws::addr={UNUSED};sf_dir={sf};{OFFLINE}"
    for turn, fill in enumerate([fill_ours, fill_theirs, fill_ours, fill_theirs]):
        fill(conf, range(10 * turn, 10 * turn + 10))
    drain_ours(qwp, sf)
    check(qwp, range(40))


def test_turns_with_a_server_leave_nothing_behind(qwp: Endpoint, sf: Path) -> None:
    """A slot that one client has drained and closed is a slot that the other goes on with."""
    conf = f"ws::addr={qwp.addr};sf_dir={sf};auto_flush=off;"
    for turn, fill in enumerate([fill_ours, fill_theirs, fill_theirs, fill_ours, fill_ours]):
        fill(conf, range(10 * turn, 10 * turn + 10))
        check(qwp, range(10 * turn + 10))


def test_they_adopt_an_orphan_of_ours(qwp: Endpoint, sf: Path) -> None:
    """Their background drainer takes our slot for what it is."""
    fill_ours(f"ws::addr={UNUSED};sf_dir={sf};sender_id=gone;{OFFLINE}", range(30))
    conf = f"ws::addr={qwp.addr};sf_dir={sf};drain_orphans=on;auto_flush=off;"
    with published(conf) as sender:
        sender.row("end", columns={"v": 1}, at=TimestampNanos(1))
        sender.flush()
        wait_for(qwp, 30)
    check(qwp, range(30))


def test_we_adopt_an_orphan_of_theirs(qwp: Endpoint, sf: Path) -> None:
    """Our background drainer takes their slot for what it is."""
    fill_theirs(f"ws::addr={UNUSED};sf_dir={sf};sender_id=gone;{OFFLINE}", range(30))
    with QwpSender.from_conf(f"ws::addr={qwp.addr};sf_dir={sf};drain_orphans=on;"):
        wait_for(qwp, 30)
    check(qwp, range(30))


def wait_for(qwp: Endpoint, rows: int) -> None:
    """Wait until so many rows are there."""
    eventually(lambda: len(qwp.rows("t")) >= rows)
