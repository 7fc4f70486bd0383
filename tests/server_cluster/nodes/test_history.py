"""What judges a history of writes finds each kind of loss."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.cluster.history import History, problems

VALUES = [b"a 0", b"a 1", b"b 0"]
ACKED = {"a": VALUES[:2], "b": VALUES[2:]}


def node(folder: Path, values: Sequence[bytes], *, name: str = "0_1.lnc") -> Path:
    """Make the directory of a node with these records."""
    topic = folder / "segments" / "7"
    topic.mkdir(parents=True)
    data = b"".join(b"\x01" + len(each).to_bytes(4, "little") + each for each in values)
    (topic / name).write_bytes(data)
    return folder


def judged(tmp_path: Path, one: Sequence[bytes], two: Sequence[bytes], read: list[bytes]) -> str:
    """Return what is found in the files of two nodes."""
    nodes = [node(tmp_path / "node1", one), node(tmp_path / "node2", two)]
    return "; ".join(problems(History(ACKED, {b"b 1"}, read), nodes, 7))


@pytest.mark.parametrize("values", [VALUES, [*VALUES, b"b 1"], [b"b 0", *VALUES[:2]]])
def test_a_history_that_is_kept_is_clean(tmp_path: Path, values: list[bytes]) -> None:
    """What nobody knows of may be there or not; writers are mixed in any way."""
    assert judged(tmp_path, values, values, values[:2]) == ""


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (VALUES[1:], "b'a 0' of a is lost"),
        ([*VALUES, b"a 0"], "b'a 0' is stored 2 times"),
        ([b"a 1", b"a 0", b"b 0"], "the records of a are not in the order of sending"),
        ([*VALUES, b"c 0"], "b'c 0' was never sent"),
    ],
)
def test_a_history_that_is_not_kept_is_found(
    tmp_path: Path, values: list[bytes], words: str
) -> None:
    """It says which record."""
    assert words in judged(tmp_path, values, values, [])


def test_what_was_read_must_stay(tmp_path: Path) -> None:
    """A reader that saw something else than the log begins with saw what was lost."""
    assert "what was read" in judged(tmp_path, VALUES, VALUES, [b"a 1"])


def test_nodes_must_agree(tmp_path: Path) -> None:
    """Record for record, and file for file."""
    found = judged(tmp_path, VALUES, [*VALUES, b"b 1"], [])
    assert "has another log" in found
    assert "segments/7" not in found
    assert "7/0_1.lnc differs between node1 and node2" in found
