"""Store-and-forward senders that nobody closes deliver, or tell what they leave behind."""

from pathlib import Path
from typing import Any

import pytest

from lance_sdk.testing import FakeServer

TOLD = """
    import sys
    from lance_sdk import Hooks
    from lance_sdk._io import at_exit
    from lance_sdk.journal import AsyncStoreAndForwardSender, StoreAndForwardSender
    class Told(Hooks):
        def on_close(self, event):
            print("closed:", event.delivered, event.unsent)
    url, path, budget = sys.argv[1], sys.argv[2] or None, float(sys.argv[3])
    at_exit.EXIT_BUDGET = budget
    options = dict(hooks=Told(), on_missing_topic="create", close_timeout=budget)
"""
KEPT = """
    sender = StoreAndForwardSender(url, path, **options).open()
    for _ in range(10):
        sender.send(b"x")
"""
DROPPED = f"""{KEPT}
    del sender
"""
ASYNC = """
    async def main():
        sender = await AsyncStoreAndForwardSender(url, path, **options).open()
        for _ in range(10):
            await sender.send(b"x")
"""
PROGRAMS = {
    "kept": KEPT,
    "dropped": DROPPED,
    "asyncio": f"{ASYNC}\n    import asyncio; asyncio.run(main())",
    "trio": f"{ASYNC}\n    import trio; trio.run(main)",
}
WAYS = pytest.mark.parametrize("way", sorted(PROGRAMS))


@WAYS
def test_a_forgotten_sender_delivers(
    run: Any, server: FakeServer, tmp_path: Path, way: str
) -> None:
    """Kept or dropped, sync or async: every record arrives, and the hook says so.

    A frame whose acknowledgement came after the end of the loop is sent again, under its id.
    """
    done = run(TOLD + PROGRAMS[way], server.url(), str(tmp_path / "a" / "slot"), "10")
    assert done.returncode == 0, done.stderr
    assert set(server.records()) == {b"x"}
    frames = {(each.batch_id, each.payload): each.record_count for each in server.ingested}
    assert sum(frames.values()) == 10
    assert "closed: 10 0" in done.stdout
    assert "DeliveryWarning" not in done.stderr


@WAYS
def test_frames_in_memory_that_are_lost_are_told(run: Any, server: FakeServer, way: str) -> None:
    """By default, with the count, which the hook has, too."""
    server.on_ingest = lambda _peer, _frame: True
    done = run(TOLD + PROGRAMS[way], server.url(), "", "0.2")
    assert done.returncode == 0, done.stderr
    assert "DeliveryWarning: 10 frames were not delivered" in done.stderr
    assert "closed: 0 10" in done.stdout


@WAYS
def test_frames_that_stay_in_a_slot_are_told(
    run: Any, server: FakeServer, tmp_path: Path, way: str
) -> None:
    """With the folder that has them."""
    server.on_ingest = lambda _peer, _frame: True
    done = run(TOLD + PROGRAMS[way], server.url(), str(tmp_path / "slot"), "0.2")
    assert done.returncode == 0, done.stderr
    assert "DeliveryWarning: 10 frames were not delivered" in done.stderr
    assert f"they stay in {tmp_path / 'slot'}" in done.stderr


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancelled_block_tells_which_frames_are_lost(
    run: Any, server: FakeServer, backend: str
) -> None:
    """The scope ends, and the warning has the count."""
    server.on_ingest = lambda _peer, _frame: True
    program = f"""
    import anyio
    from lance_sdk.journal._sending import aio_sender
    aio_sender.EXIT_BUDGET = budget
    async def main():
        with anyio.CancelScope() as scope:
            async with AsyncStoreAndForwardSender(url, **options) as sender:
                await sender.send_many([b"x"] * 10)
                scope.cancel()
                await anyio.sleep_forever()
        print("went on")
    anyio.run(main, backend="{backend}")
    """
    done = run(TOLD + program, server.url(), "", "0.2")
    assert done.returncode == 0, done.stderr
    assert "went on" in done.stdout
    assert "DeliveryWarning: 1 frames were not delivered when an exception ended" in done.stderr


def test_a_dropped_sender_lets_go_of_its_slot(run: Any, server: FakeServer, tmp_path: Path) -> None:
    """Another sender of the same process gets it, and delivers what is there."""
    program = f"""{DROPPED}
    from lance_sdk.journal import Level, SlotLocked
    while True:
        try:
            sender = StoreAndForwardSender(url, path, **options).open()
            break
        except SlotLocked:
            pass
    print("took it over:", sender.close(10).clean)
    """
    done = run(TOLD + program, server.url(), str(tmp_path / "slot"), "10")
    assert done.returncode == 0, done.stderr
    assert "took it over: True" in done.stdout
    assert server.records() == [b"x"] * 10
