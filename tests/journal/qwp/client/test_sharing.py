"""Threads share a sender; processes do not."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.journal.qwp.conftest import quick
from tests.platforms.systems import needs_posix

from lance_sdk.errors import ForkedError
from lance_sdk.journal.qwp import QwpSender, timestamp_nanos
from lance_server.listeners.qwp.testing import Endpoint

KILLED = """
import sys
from lance_sdk.journal.qwp import QwpSender, timestamp_nanos
sender = QwpSender.from_conf(sys.argv[1]).open()
number = 0
while True:
    sender.row("t", symbols={"s": f"s{number}"}, columns={"v": number}, at=timestamp_nanos(number))
    sender.flush()
    print(number, flush=True)
    number += 1
"""


def test_threads_may_share_a_sender(qwp: Endpoint, sf: Path) -> None:
    """No row is lost or mixed up, and each thread's rows keep their order."""
    with QwpSender(quick(f"ws::addr={qwp.addr};sf_dir={sf};auto_flush_rows=50;")) as sender:

        def work(thread: int) -> None:
            for number in range(300):
                sender.row(
                    "t",
                    symbols={"s": f"{thread} {number % 20}"},
                    columns={"thread": thread, "v": number},
                    at=timestamp_nanos(number),
                )

        threads = [threading.Thread(target=work, args=(each,)) for each in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    rows = qwp.rows("t")
    assert len(rows) == 1200
    for thread in range(4):
        own = [row for row in rows if row["thread"] == thread]
        assert [row["v"] for row in own] == [*range(300)]
        assert all(row["s"] == f"{thread} {row['v'] % 20}" for row in own)


@needs_posix("no process is forked there")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_is_told_to_open_its_own(qwp: Endpoint, sf: Path) -> None:
    """It has neither the lock nor the threads."""
    with QwpSender(quick(f"ws::addr={qwp.addr};sf_dir={sf};")) as sender:
        child = os.fork()
        if child == 0:
            try:
                sender.row("t", columns={"v": 1})
                sender.flush()
            except ForkedError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        sender.row("t", columns={"v": 2})
    assert qwp.values("t") == [2]


@pytest.mark.parametrize("after", [1, 17, 40])
def test_what_was_flushed_survives_sigkill(qwp: Endpoint, sf: Path, after: int) -> None:
    """While it sends: the next sender delivers the rest, with the right symbols."""
    conf = f"ws::addr={qwp.addr};sf_dir={sf};sf_max_segment_bytes=1024;auto_flush=off;"
    command = [sys.executable, "-c", KILLED, conf]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(after):
            flushed = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        flushed = max([flushed, *map(int, process.stdout.read().split())])
    with QwpSender(quick(conf)) as sender:
        assert sender.wait(timeout=10)
    values = qwp.values("t")
    assert [*dict.fromkeys(values)] == [*range(max(values) + 1)]
    assert max(values) in {flushed, flushed + 1}
    assert qwp.values("t", "s") == [f"s{number}" for number in values]
