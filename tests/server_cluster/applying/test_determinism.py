"""The files of a node are a function of the log: not of grouping, marks, crashes or anything."""

import ast
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulation.cluster.logs import Author, Replay, contents

import lance_server.cluster.applying

PACKAGE = Path(lance_server.cluster.applying.__file__).parent
FORBIDDEN_MODULES = frozenset(
    (
        *("asyncio", "datetime", "getpass", "locale", "logging", "multiprocessing", "os"),
        *("platform", "random", "secrets", "socket", "subprocess", "sys", "tempfile"),
        *("threading", "time", "uuid"),
    )
)
FORBIDDEN_NAMES = frozenset(("hash", "id", "open", "input", "globals", "vars"))
LOCAL = ("lance_server.config", "lance_server.runtime", "lance_server.lwp", "lance_server.testing")


def the_log(seed: int, length: int) -> Author:
    """A log of a seed."""
    author = Author(Random(seed))
    author.go_on(length)
    return author


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 120), st.integers(0, 2**32))
def test_nodes_are_equal_byte_for_byte(seed: int, length: int, other: int) -> None:
    """Two nodes with other groups, marks and crashes have the same files and the same results."""
    author = the_log(seed, length)
    calm = Replay(author.entries, Random(other), crashes=0)
    calm.run()
    hasty = Replay(author.entries, Random(other + 1), crashes=0.9)
    hasty.run()
    assert contents(hasty.disk) == contents(calm.disk)
    for replay in (calm, hasty):
        for position, applied in replay.results.items():
            assert set(applied) == {author.applied[position]}


def test_replays_do_crash_in_the_middle() -> None:
    """The crashes of the test above are real: most nodes start more than once."""
    author = the_log(1, 120)
    starts = []
    for seed in range(20):
        replay = Replay(author.entries, Random(seed), crashes=0.9)
        replay.run()
        starts.append(replay.starts)
    assert sum(each > 2 for each in starts) > 5


def test_the_logs_hold_every_result() -> None:
    """What is compared happens: every result that a record can have is among the logs."""
    seen = {
        (type(record).__name__, applied.result.status.name)
        for seed in range(30)
        for author in (the_log(seed, 150),)
        for record, applied in zip(author.entries, author.applied, strict=True)
    }
    names = {status for _, status in seen}
    assert names == {
        *("DONE", "STORED", "DUPLICATE", "NO_TOPIC", "EXISTS", "FULL", "STALE", "DAMAGED"),
        "IGNORED",
    }


def modules() -> list[Path]:
    """The modules of the applying package."""
    return sorted(PACKAGE.glob("*.py"))


def breaches(source: str) -> list[str]:
    """Return what a module reaches for beside the log."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        found += [
            f"imports {name}"
            for name in names
            if name.split(".")[0] in FORBIDDEN_MODULES or name.startswith(LOCAL)
        ]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found += [f"calls {name}" for name in FORBIDDEN_NAMES if name == node.func.id]
        if isinstance(node, ast.For | ast.comprehension):
            found += ["walks a set"] * isinstance(node.iter, ast.Set | ast.SetComp)
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.stem)
def test_applying_asks_nothing_but_the_log(path: Path) -> None:
    """No clock, random source, environment, thread, local setting or hash order is within reach."""
    assert breaches(path.read_text()) == []


@pytest.mark.parametrize(
    ("source", "breach"),
    [
        ("import time", "imports time"),
        ("from random import Random", "imports random"),
        ("from lance_server.config.settings import ServerConfig", "imports lance_server.config"),
        ("key = hash('a')", "calls hash"),
        ("for each in {1, 2}: print(each)", "walks a set"),
    ],
)
def test_the_lint_finds_a_breach(source: str, breach: str) -> None:
    """A module that asks for something else is found."""
    (found,) = breaches(source)
    assert found.startswith(breach)
