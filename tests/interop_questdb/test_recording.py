"""Slots as the published clients leave them, recorded as material for the tests of the journal.

``LANCE_RECORD_SLOTS`` names the folder that takes them; without it nothing is recorded.
"""

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Final

import pytest

from lance_server.listeners.qwp.testing import Endpoint

from .handovers import Client, Slot, Turn, Writers
from .test_go import program
from .test_handovers import writers

__all__ = ["program", "writers"]

FOLDER: Final = os.environ.get("LANCE_RECORD_SLOTS", "")
WAYS: Final = {
    "closed": (40, False, None),
    "killed": (60, False, 50),
    "half-acknowledged": (60, True, None),
}
"""Rows to write, whether there is a server, which stops to answer after 30 frames, and the row
after which the client is killed."""


@pytest.mark.skipif(not FOLDER, reason="LANCE_RECORD_SLOTS names no folder")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", ["python", "go"])
def test_a_slot_is_recorded(
    qwp: Endpoint, sf: Path, writers: Writers, program: Path, *, client: Client, way: str
) -> None:
    """With the rows that it took, and those that arrived meanwhile."""
    rows, online, kill = WAYS[way]
    slot = Slot(qwp, sf, writers, program)
    slot.take(Turn(client, range(rows), online, 30, small=way != "closed", kill=kill))
    assert online or slot.log.told == []  # with a server that stalls it says so
    assert len(slot.log.stored) >= (kill or rows)
    facts = {"stored": sorted(slot.log.stored), "arrived": sorted(qwp.values("t"))}
    with tarfile.open(Path(FOLDER) / f"{client}-{way}.tar.xz", "w:xz") as archive:
        archive.add(sf / "default", "slot", filter=_anonymous)
        content = json.dumps(facts).encode()
        entry = tarfile.TarInfo("rows.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who recorded it, and when."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry
