"""Calls of a server that fail, or are late, at every kind of step: nothing is lost."""

import errno
import os
import signal
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.server_faults.preload import CHANGES, Call, Control, Rule, When
from tests.server_faults.recording import (
    LONG,
    History,
    Outcome,
    Producer,
    assert_nothing_is_damaged,
    create_topics,
    judge_all,
    load,
    meet,
)

from lance_server import running
from lance_server.storage.backend_selection import DURABILITIES
from lance_server.testing import ServerProcess
from lance_server.testing.process import eventually

SEED = int(os.environ.get("LANCE_FAULT_SEED", "1"))
ROUNDS = 50
TOPICS = 3
ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.EFBIG)
PATHS = ("", ".lnc", ".batches", "/wal/", "metadata.json")
OPTIONS = ("--segment-size", "64KiB", "--upkeep-interval", "0.1", "--storage", "pwritev2")
IMPATIENT = ("--breaker-failures", "1000000")
"""What a fault leaves is met at once, and not when the disk is tried again after half a minute."""
COMMIT = (Call.SYNC, Call.DURABLE_WRITE)
SCRIPTS: Final = {
    "a sync fails, twice": [Rule(COMMIT, count=2)],
    "a sync fails after it was done": [Rule(COMMIT, when=When.AFTER, count=2)],
    "a write is cut short, then fails": [
        Rule((Call.WRITE, *COMMIT), ".lnc", when=When.SHORT, count=2),
        Rule((Call.WRITE, *COMMIT), ".lnc", skip=2, count=2),
    ],
    "a new segment cannot be made": [Rule((Call.CREATE,), ".lnc", count=3)],
    "its folder cannot be synced": [Rule((Call.SYNC_DIR,), count=2)],
    "a rename fails after it was done": [Rule((Call.RENAME,), when=When.AFTER, count=2)],
    "a sync fails, and what was written cannot be cut": [
        Rule(COMMIT, count=1),
        Rule((Call.TRUNCATE,), count=3),
    ],
    "syncs are late": [Rule(COMMIT, error=0, delay=0.03, count=10)],
}


def random_script(random: Random) -> list[Rule]:
    """Return one to three faults, some calls apart."""
    return [
        Rule(
            tuple(random.sample(CHANGES, random.randint(1, 4))),
            random.choice(PATHS),
            random.choice(ERRORS),
            random.choice(list(When)),
            skip=random.choice([0, 0, 1, 2, 5, 20]),
            count=random.choice([1, 1, 2, 5]),
            delay=random.choice([0.0, 0.0, 0.02]),
        )
        for _ in range(random.randint(1, 3))
    ]


def meet_fault(control: Control, producers: list[Producer], script: list[Rule]) -> None:
    """Have a running server meet a fault under load, and go on without it."""
    control.set_rules(*script)
    for each in producers:
        each.want(10**6, Outcome.ACKED)
    eventually(lambda: any(control.hits()))
    control.set_rules()
    meet(producers, 3, Outcome.ACKED)


def start_with_faults(data: Path, control: Control, library: Path, random: Random) -> int:
    """Start a server of which some calls fail, and end it; return how many failed.

    It serves, or it says why not and ends: the caller looks at what is left.
    """
    control.set_rules(*random_script(random))
    with (
        suppress(AssertionError),
        ServerProcess.running(data, *OPTIONS, environment=control.environment(library)) as server,
    ):
        server.end(random.choice([signal.SIGKILL, signal.SIGTERM]))
    return sum(control.hits())


def kill_under_load(server: ServerProcess, producers: list[Producer]) -> None:
    """Send SIGKILL while each producer has batches under way."""
    for each in producers:
        each.want(10**6, Outcome.ACKED)
    server.end(signal.SIGKILL)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_failing_calls_lose_nothing(tmp_path: Path, library: Path, durability: str) -> None:
    """One fault after the other; after each the server goes on by itself, with every topic."""
    data = tmp_path / "data"
    control = Control(tmp_path / "control", data)
    options = (*OPTIONS, *IMPATIENT, "--durability", durability)
    environment = control.environment(library)
    with ServerProcess.running(data, *options, environment=environment) as server:
        histories = create_topics(server.address, TOPICS)
        with load(server.address, histories) as producers:
            meet(producers, 3, Outcome.ACKED)
            for script in SCRIPTS.values():
                meet_fault(control, producers, script)
            judge_all(server.address, histories, keep=True)
            kill_under_load(server, producers)
    start_with_faults(data, control, library, Random(f"{SEED} {durability}"))
    with running(data) as again:
        judge_all(again.address, histories)
        assert_nothing_is_damaged(again.report)


@pytest.mark.skipif(not LONG, reason="LANCE_FAULT_SECONDS is not set: part of the long profile")
@pytest.mark.parametrize("durability", DURABILITIES)
def test_faults_at_starts_lose_nothing(tmp_path: Path, library: Path, durability: str) -> None:
    """Killed under load, again and again, with one or two starts on a failing disk after it."""
    random = Random(f"{SEED} {durability}")
    data = tmp_path / "data"
    control = Control(tmp_path / "control", data)
    histories, failed = list[History](), 0
    for _ in range(ROUNDS):
        with ServerProcess.running(data, *OPTIONS, "--durability", durability) as server:
            histories = histories or create_topics(server.address, TOPICS)
            judge_all(server.address, histories, keep=True)
            with load(server.address, histories) as producers:
                meet(producers, 10, Outcome.ACKED)
                kill_under_load(server, producers)
        for _ in range(random.randint(1, 2)):
            failed += start_with_faults(data, control, library, random)
    assert failed > ROUNDS / 2
    with running(data) as again:
        judge_all(again.address, histories)
        assert_nothing_is_damaged(again.report)
