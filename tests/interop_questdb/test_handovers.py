"""A slot passes between our sender and the published clients in any order, through kills.

``LANCE_HANDOVERS`` says how many hand-overs there are (72 unless it is given). The Go client
takes part where ``LANCE_QWP_GO`` names it, see `test_go`.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from lance_server.listeners.qwp.testing import endpoint

from .handovers import Client, Slot, Writers, draw, symbol_of
from .test_go import MISSING, program

__all__ = ["program"]

TURNS: Final = 12
CLIENTS: Final[dict[str, list[Client]]] = {
    "ours and Python": ["ours", "python"],
    "ours and Go": ["ours", "go"],
    "all three": ["ours", "python", "go"],
}
HANDOVERS: Final = int(os.environ.get("LANCE_HANDOVERS", "72"))
SLOTS: Final = max(1, HANDOVERS // (TURNS * len(CLIENTS)))


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    """Return the Python clients."""
    with Writers() as running:
        yield running


@pytest.mark.parametrize("seed", range(SLOTS))
@pytest.mark.parametrize("who", CLIENTS)
def test_no_order_of_turns_loses_a_row(
    who: str, seed: int, writers: Writers, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each row whose flush returned arrives at least once, with its own symbol."""
    clients = CLIENTS[who]
    if "go" in clients and MISSING:
        pytest.skip(MISSING)
    go = request.getfixturevalue("program") if "go" in clients else None
    dice = random.Random(f"{who} {seed}")
    (tmp_path / "sf").mkdir()
    with endpoint(tmp_path / "data") as qwp:
        slot = Slot(qwp, tmp_path / "sf", writers, go)
        for number in range(TURNS):
            slot.take(draw(dice, clients, 100 * number))
        slot.drain()
        rows = qwp.rows("t")
    assert slot.log.stored <= {row["v"] for row in rows}, slot.log
    assert all(row["s"] == symbol_of(row["v"]) for row in rows)
