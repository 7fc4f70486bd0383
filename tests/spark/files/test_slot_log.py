"""Reading what waits in store-and-forward slots, without taking it."""

import json
from pathlib import Path
from typing import Any

import pytest

from lance_sdk.errors import ConfigError
from lance_sdk.journal import Journal, JournalConfig, SlotKind
from lance_sdk.spark.errors import DataDamaged
from lance_sdk.spark.logs.slot_log import FRAME_SHIFT

VALUES = [b"%04d" % number for number in range(200)]


@pytest.fixture
def slot(disk: Any, tmp_path: Path) -> Any:
    """A slot with records that wait."""
    return disk.fill_slot(tmp_path)


def test_what_waits_is_read(reader: Any, slot: Path) -> None:
    """In order, with topics by their names; the slot stays as it was."""
    before = {path.name: path.read_bytes() for path in slot.iterdir()}
    rows = reader.rows(reader.splits(path=str(slot)), "topic", "value", "offset", "segment")
    assert [row["value"] for row in rows] == VALUES
    assert {(row["topic"], row["segment"]) for row in rows} == {("readings", "edge-1")}
    assert [row["offset"] for row in rows] == sorted({row["offset"] for row in rows})
    assert {path.name: path.read_bytes() for path in slot.iterdir()} == before


@pytest.mark.parametrize("uri", ["{}", "file://{}"])
def test_a_folder_of_slots(reader: Any, slot: Path, uri: str) -> None:
    """All of them, by path or by URI."""
    assert reader.values(path=uri.format(slot.parent)) == VALUES


def test_a_topic_of_a_slot(reader: Any, slot: Path) -> None:
    """As everywhere, by name."""
    assert reader.values(path=str(slot), topic="readings") == VALUES
    assert reader.values(path=str(slot), topic="others") == []


@pytest.mark.parametrize(("first", "last"), [(0, 95), (5, 105), (100, 200), (199, 200), (7, 7)])
def test_a_range_may_begin_and_end_inside_a_frame(
    reader: Any, slot: Path, first: int, last: int
) -> None:
    """By the offsets that rows had."""
    rows = reader.rows(reader.splits(path=str(slot)))
    offsets = [row["offset"] for row in rows] + [rows[-1]["offset"] + 1]
    found = reader.values(
        path=str(slot),
        startingOffsets=json.dumps({slot.name: offsets[first]}),
        endingOffsets=json.dumps({slot.name: offsets[last]}),
    )
    assert found == VALUES[first:last]


def test_a_damaged_frame_is_an_error(reader: Any, slot: Path) -> None:
    """Or is left out, on request."""
    segment = next(slot.glob("*.sfl"))
    raw = bytearray(segment.read_bytes())
    raw[100] ^= 0xFF
    segment.write_bytes(raw)
    with pytest.raises(DataDamaged, match="onDamage=skip"):
        reader.values(path=str(slot))
    assert set(reader.values(path=str(slot), onDamage="skip")) < set(VALUES)


def test_a_qwp_slots_frames_are_records(reader: Any, tmp_path: Path) -> None:
    """Each a QWP message as it will be sent; the topic is the slot's name."""
    config = JournalConfig(kind=SlotKind.QWP)
    with Journal.open(tmp_path / "rows", config) as journal:
        journal.append(b"QWP1 one")
        journal.append(b"QWP1 two")
    rows = reader.rows(reader.splits(path=str(tmp_path / "rows")), "topic", "offset", "value")
    assert [(row["topic"], row["offset"] >> FRAME_SHIFT, row["value"]) for row in rows] == [
        ("rows", 0, b"QWP1 one"),
        ("rows", 1, b"QWP1 two"),
    ]


def test_a_slot_has_no_times(reader: Any, slot: Path) -> None:
    """No server has seen its records."""
    with pytest.raises(ConfigError, match="no time of a server yet"):
        reader.splits(path=str(slot), startingTimestamp="0")
