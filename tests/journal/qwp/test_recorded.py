"""Slots that the published clients wrote, recorded by ``tests/interop_questdb/test_recording.py``.

``questdb`` 6.0.0 and the Go client at afc74c3: closed or killed without a server, or closed while
a server had stopped to answer.
"""

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from lance_sdk.journal import SlotKind, inspect
from lance_sdk.journal.qwp import QwpSender, timestamp_nanos
from lance_sdk.journal.tools import verify
from lance_server.listeners.qwp.testing import Endpoint

from .conftest import quick

ARCHIVES = sorted((Path(__file__).parent / "slots").glob("*.tar.xz"))


@dataclass(frozen=True)
class Recorded:
    """A slot and what was observed while it was written.

    Attributes:
        slot: the folder.
        waiting: rows that the client had stored and no server had acknowledged.
    """

    slot: Path
    waiting: list[int]

    def conf(self, addr: str, *more: str) -> str:
        """Return a connect string for the slot."""
        folder, name = self.slot.parent, self.slot.name
        parts = (f"addr={addr}", f"sf_dir={folder}", f"sender_id={name}", "auto_flush=off", *more)
        return "ws::" + "".join(f"{each};" for each in parts)


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Recorded:
    """Unpack each of them."""
    folder = tmp_path / "recorded"
    with tarfile.open(request.param) as archive:
        if hasattr(tarfile, "data_filter"):  # from Python 3.11.4 on
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(folder)
    facts = json.loads((folder / "rows.json").read_text())
    arrived = set(facts["arrived"])
    return Recorded(folder / "slot", [each for each in facts["stored"] if each not in arrived])


def test_both_clients_are_there_in_every_state() -> None:
    """So that none is lost unnoticed."""
    states = ("closed", "half-acknowledged", "killed")
    expected = [f"{client}-{state}.tar.xz" for client in ("go", "python") for state in states]
    assert [path.name for path in ARCHIVES] == expected


def test_nothing_is_wrong_with_it(recorded: Recorded) -> None:
    """What waits, and only that, is read, down to the symbols; nothing of it is ours."""
    found = verify(recorded.slot)
    assert found.clean, found
    assert found.checked == found.report.frames == len(recorded.waiting)
    assert found.report.foreign == found.report.on_disk


def test_it_is_drained_exactly(recorded: Recorded, qwp: Endpoint) -> None:
    """Each row that waits arrives once, in order, with its own symbol, and nothing else does."""
    with QwpSender(quick(recorded.conf(qwp.addr))) as sender:
        assert sender.wait(timeout=20)
    assert qwp.values("t") == recorded.waiting
    assert qwp.values("t", "s") == [f"s{number % 5}" for number in recorded.waiting]
    assert inspect(recorded.slot, SlotKind.QWP).on_disk == 0


@pytest.mark.parametrize("frames", ["full", "delta"])
def test_it_is_continued_exactly(recorded: Recorded, qwp: Endpoint, frames: str) -> None:
    """Our sender writes on without a server; the next one sends all of it, in order."""
    offline = ("initial_connect_retry=async", "close_flush_timeout_millis=0", f"sf_frames={frames}")
    more = range(1000, 1020)
    with QwpSender(quick(recorded.conf("127.0.0.1:1", *offline))) as sender:
        for number in more:
            symbols = {"s": f"s{number % 5}"}
            sender.row("t", symbols=symbols, columns={"v": number}, at=timestamp_nanos(number))
            sender.flush()
    with QwpSender(quick(recorded.conf(qwp.addr))) as sender:
        assert sender.wait(timeout=20)
        assert sender.problems == ()
    expected = [*recorded.waiting, *more]
    assert qwp.values("t") == expected
    assert qwp.values("t", "s") == [f"s{number % 5}" for number in expected]
