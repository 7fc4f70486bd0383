"""Whatever a server does wrong, and in whatever order: every row arrives, in order.

The long profile is ``LANCE_QWP_SEEDS=2000``.
"""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from lance_server.listeners.qwp import Rule
from lance_server.listeners.qwp.testing import endpoint

from .test_faults import delivered, send

SEEDS = int(os.environ.get("LANCE_QWP_SEEDS", "12"))
ROWS = 25
REFUSALS = ("WRITE_ERROR", "INTERNAL_ERROR", "DICTIONARY_GAP", "NOT_WRITABLE")
CODES = (1000, 1001, 1005, 1011, 1012, 1013, 4000)


def misdeed(rng: random.Random) -> dict[str, Any]:
    """Return something that a server may do wrong."""
    on_connect: list[dict[str, Any]] = [
        {"status": rng.choice((404, 500, 503))},
        {"status": 421, "role": rng.choice(("REPLICA", "PRIMARY_CATCHUP"))},
        {"version": "2"},
    ]
    on_message: list[dict[str, Any]] = [
        {"close": rng.choice(CODES), "store": rng.random() < 0.5},
        {"reset": True, "store": rng.random() < 0.5},
        {"reject": rng.choice(REFUSALS)},
        {"send": rng.randbytes(rng.randrange(40)).hex(), "store": True},
        {"delay": 0.01},
        {"stall": True},
    ]
    if rng.random() < 0.3:
        return {"on": "connect", **rng.choice(on_connect)}
    return {"message": rng.randrange(8), **rng.choice(on_message)}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_rows_survive_any_server(tmp_path: Path, seed: int) -> None:
    """A dozen misdeeds in a row lose nothing, whatever is in flight."""
    rng = random.Random(seed)
    rules = [Rule(**misdeed(rng)) for _ in range(12)]
    sf = tmp_path / "sf"
    sf.mkdir()
    durable, window = rng.choice(("on", "off")), rng.choice((1, 2, 64))
    with endpoint(tmp_path / "data", *rules) as qwp:
        conf = (
            f"ws::addr={qwp.addr};sf_dir={sf};request_durable_ack={durable};"
            f"on_write_error=retriable;on_internal_error=retriable;max_in_flight={window};initial_connect_retry=sync;sf_max_segment_bytes=1024;"
        )
        send(conf, ROWS, patience=0.1)
        delivered(qwp, ROWS)
