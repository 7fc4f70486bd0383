"""A consumer that is killed with SIGKILL goes on after its last commit: nothing is skipped."""

import signal
from pathlib import Path
from typing import Any

from lance_sdk.testing import FakeServer
from lance_spec.records import encode_records

PROGRAM = """
    import sys
    from lance_sdk import Consumer

    url, folder, done = sys.argv[1:]
    options = {"offsets": f"file:{folder}", "consumer": "worker", "commit_interval": 0}
    with Consumer(url, poll_interval=0.005, **options) as consumer, open(done, "ab", 0) as out:
        for record in consumer:
            out.write(record.value + b"\\n")  # the work, done when this returns
            print(flush=True)
"""
VALUES = [b"%05d" % number for number in range(400)]


def test_a_killed_consumer_skips_nothing(server: FakeServer, tmp_path: Path, start: Any) -> None:
    """What it had done after its last commit is done again, and in order."""
    server.topics.append(1, encode_records(VALUES))
    done = tmp_path / "done"
    for records in (60, 90):
        worker = start(PROGRAM, server.url(), str(tmp_path / "offsets"), str(done))
        assert worker.stdout is not None
        for _ in range(records):
            assert worker.stdout.readline(), worker.communicate()[1]
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
    worked = done.read_bytes().split()
    places = [VALUES.index(value) for value in worked]
    restarts = [place for place, before in zip(places[1:], places, strict=False) if place <= before]
    assert len(restarts) <= 1
    assert min(restarts, default=1) > 0, "the second run began at the beginning again"
    assert sorted(set(worked)) == VALUES[: max(places) + 1]
