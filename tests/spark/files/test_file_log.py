"""Reading segment files without a server, whole ones, damaged ones, and ones being written."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lance_sdk import Client, Producer
from lance_sdk.errors import ConfigError, MisalignedOffset, OpaqueRecords, TopicNotFound
from lance_sdk.spark.errors import DataDamaged, DataLost
from lance_sdk.spark.files import file_log, segments
from lance_sdk.spark.files.file_splits import FileSplit
from lance_sdk.spark.files.segments import ENTRY, topic_files
from lance_sdk.spark.files.storage import entries
from lance_sdk.spark.files.topic_folder import load_metadata
from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.options import Options
from lance_sdk.spark.pipelines.audit import audit_one, targets
from lance_server import running
from lance_server.embedded import EmbeddedServer
from lance_spec.messages.engine import SidecarEntry
from lance_spec.records import encode_records

Fill = Callable[..., list[bytes]]


@pytest.fixture
def data(server: EmbeddedServer) -> str:
    """The server's data directory."""
    return str(server.data_dir)


def fill(produce: Fill) -> list[bytes]:
    """Produce twice, so that the first segment is full and closed."""
    return produce("orders", 2000) + produce("orders", 2000, first=2000)


def test_an_entry_is_laid_out_as_the_grammar_says() -> None:
    """The array's row and the generated message are the same bytes."""
    entry = SidecarEntry(1, 2, 3, 4, 5, 6, 7, 8, 9, 11)
    row = np.frombuffer(entry.encode(), ENTRY)[0]
    assert row.tolist() == (1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 11)


def test_files_say_what_the_server_says(
    reader: Any, produce: Fill, data: str, at: Mapping[str, str]
) -> None:
    """Record for record, offsets too, while the server goes on running."""
    fill(produce)
    names = ("topic", "offset", "type", "key", "value")  # only files say when a record was stored
    by_server = reader.rows(reader.splits(**at, topic="orders"), *names)
    by_files = reader.rows(reader.splits(path=data, topic="orders"), *names)
    assert by_files == by_server


def test_every_segment_is_a_split_of_its_own(
    disk: Any, reader: Any, produce: Fill, data: str
) -> None:
    """A segment's start is a boundary that needs no index."""
    fill(produce)
    splits = reader.splits(path=data)
    assert len(splits) == len(disk.segments_of(data)) >= 2


def test_a_large_segment_is_cut_at_batches(
    disk: Any, reader: Any, produce: Fill, data: str
) -> None:
    """At entries of the sidecar: known, not guessed."""
    values = produce("orders", 1000)
    splits = reader.splits(path=data, maxPartitionBytes="8KiB")
    assert len(splits) > len(disk.segments_of(data))
    assert [row["value"] for row in reader.rows(splits)] == values


@pytest.mark.parametrize("inside", ["", "segments", "folder"])
def test_a_path_is_a_data_directory_or_a_topic(
    disk: Any, reader: Any, produce: Fill, data: str, inside: str
) -> None:
    """Any level will do, and a URI too."""
    values = produce("orders", 10)
    path = str(disk.folder_of(data)) if inside == "folder" else f"{data}/{inside}"
    assert reader.values(path=path) == values
    assert reader.values(path=f"file://{path}") == values


def test_a_path_without_segments_is_refused(reader: Any, tmp_path: Path) -> None:
    """With what was looked for."""
    with pytest.raises(ConfigError, match=r"no segments \(\*\.lnc\)"):
        reader.splits(path=str(tmp_path))
    with pytest.raises(ConfigError, match="there is nothing"):
        reader.splits(path=str(tmp_path / "nowhere"))


def test_a_topic_that_is_not_in_the_files_is_refused(reader: Any, produce: Fill, data: str) -> None:
    """As at a server, with what there is."""
    produce("orders", 1)
    with pytest.raises(TopicNotFound, match=r"no topic 'other' in .*; there are: orders\."):
        reader.splits(path=data, topic="other")


def test_what_only_files_know(disk: Any, reader: Any, produce: Fill, data: str) -> None:
    """The segment, the time the server stored the batch, and that its checksum fits."""
    produce("orders", 10)
    rows = reader.rows(reader.splits(path=data), "segment", "ts_ns", "crc_ok")
    assert {row["segment"] for row in rows} == {path.name for path in disk.segments_of(data)}
    assert all(row["crc_ok"] and row["ts_ns"] > 1_700_000_000 * 10**9 for row in rows)


def test_a_range_by_offsets(reader: Any, produce: Fill, data: str) -> None:
    """Also where it begins and ends inside a batch."""
    values = produce("orders", 2000)
    begin, end = '{"orders": 450}', '{"orders": 85500}'
    found = reader.values(path=data, startingOffsets=begin, endingOffsets=end)
    assert found == values[10:1900]


def test_a_start_inside_a_record_is_refused(reader: Any, produce: Fill, data: str) -> None:
    """What follows would be garbage."""
    produce("orders", 10)
    with pytest.raises(MisalignedOffset, match="offset 46 lies inside a record"):
        reader.values(path=data, startingOffsets='{"orders": 46}')


def test_a_range_by_time(reader: Any, produce: Fill, data: str) -> None:
    """By the times in the sidecars; whole batches."""
    produce("orders", 10)
    times = reader.rows(reader.splits(path=data), "ts_ns")
    behind = max(row["ts_ns"] for row in times) // 10**6 + 1
    assert reader.values(path=data, startingTimestamp=str(behind)) == []
    assert len(reader.values(path=data, endingTimestamp=str(behind))) == 10


def test_a_changed_byte_is_an_error_that_names_file_and_offset(
    disk: Any, reader: Any, produce: Fill, data: str
) -> None:
    """Never a wrong value."""
    fill(produce)
    damaged = disk.segments_of(data)[0]
    disk.spoil(damaged, 2100)
    with pytest.raises(DataDamaged, match=rf"{damaged.name}: the \d+ bytes from offset \d+"):
        reader.values(path=data)


def test_damage_is_left_out_on_request(disk: Any, reader: Any, produce: Fill, data: str) -> None:
    """One batch of it, no more."""
    values = fill(produce)
    disk.spoil(disk.segments_of(data)[0], 2100)
    found = reader.values(path=data, onDamage="skip")
    assert 0 < len(values) - len(found) <= 2048 // 45
    assert set(found) < set(values)


def test_damage_is_shown_on_request(disk: Any, reader: Any, produce: Fill, data: str) -> None:
    """The column crc_ok marks the records of the batch, if they still are records."""
    values = fill(produce)
    disk.spoil(disk.segments_of(data)[0], 2100)
    rows = reader.rows(reader.splits(path=data), "crc_ok", "value")
    wrong = [row for row in rows if not row["crc_ok"]]
    assert len(rows) == len(values)
    assert 0 < len(wrong) <= 2048 // 45
    changed = [row for row, value in zip(rows, values, strict=True) if row["value"] != value]
    assert len(changed) == 1
    assert changed[0] in wrong


@pytest.fixture
def stopped(produce: Fill, server: EmbeddedServer) -> tuple[str, list[bytes]]:
    """The data directory of a server that is gone, and what is in it."""
    values = fill(produce)
    server.stop()
    return str(server.data_dir), values


CUTS = ("everything", "almost everything", "inside a batch", "between batches", "one byte")


def cut(path: Path, how: str) -> int:
    """Cut a segment file somewhere; return how many bytes are left."""
    with next(path.parent.glob(f"{path.name.partition('-')[0].removesuffix('.lnc')}.batches")).open(
        "rb"
    ) as file:
        second = SidecarEntry.decode(file.read()[128:192]).relative_offset
    places = (0, 1, second + 7, second, path.stat().st_size - 1)
    os.truncate(path, places[CUTS.index(how)])
    return path.stat().st_size


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("number", [0, -1], ids=["first", "last"])
def test_a_segment_that_was_cut_is_damage(
    disk: Any, reader: Any, stopped: tuple[str, list[bytes]], how: str, number: int
) -> None:
    """Anywhere, between two batches as well; what is left is read on request."""
    data, values = stopped
    whole = disk.segments_of(data)[number].stat().st_size
    left = cut(disk.segments_of(data)[number], how)
    with pytest.raises(DataDamaged, match=r"\.lnc: the \d+ bytes from offset \d+"):
        reader.values(path=data, topic="orders")
    found = reader.values(path=data, topic="orders", onDamage="skip")
    assert set(found) < set(values)
    assert (whole - left) // 45 <= len(values) - len(found) <= (whole - left + 2048) // 45 + 1
    assert any(audit_one(target).findings for target in targets(data))


@pytest.mark.parametrize("left", [64, 65, 128, -64, -1])
def test_a_sidecar_that_was_cut_is_damage(
    disk: Any, reader: Any, stopped: tuple[str, list[bytes]], left: int
) -> None:
    """No record of a closed segment is left out because nobody knows its batch."""
    data, values = stopped
    sidecar = next(disk.folder_of(data).glob("0_*.batches"))
    size = sidecar.stat().st_size
    os.truncate(sidecar, left if left > 0 else size + left)
    with pytest.raises(DataDamaged, match=r"batches: it knows no batch for bytes \d+ to \d+ of 0_"):
        reader.values(path=data, topic="orders")
    found = reader.values(path=data, topic="orders", onDamage="skip")
    assert 0 < len(found) < len(values)


def test_a_segment_that_is_being_merged_is_read_whole(
    disk: Any, reader: Any, stopped: tuple[str, list[bytes]]
) -> None:
    """A server gives the data file its name first, then the sidecar."""
    data, values = stopped
    splits = reader.splits(path=data, topic="orders")
    sidecar = next(disk.folder_of(data).glob("0_*.batches"))
    whole = sidecar.read_bytes()
    sidecar.write_bytes(whole[:128])
    kept = FileSplit._moved

    def settle(split: FileSplit) -> list[FileSplit]:
        sidecar.write_bytes(whole)
        return kept(split)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileSplit, "_moved", settle)
        assert [row["value"] for row in reader.rows(splits, "value")] == values


def test_an_open_segment_that_was_cut_is_damage(
    disk: Any, reader: Any, produce: Fill, data: str
) -> None:
    """As far as it was durable before."""
    produce("orders", 100)
    produce("orders", 100, first=100)
    open_segment = disk.segments_of(data)[-1]
    assert "-" not in open_segment.name
    copied = Path(data).parent / "copy"
    shutil.copytree(open_segment.parent, copied)
    os.truncate(copied / open_segment.name, 0)
    with pytest.raises(DataDamaged, match="do not match their checksum"):
        reader.values(path=str(copied))


def test_a_void_entry_is_damage(disk: Any, reader: Any, produce: Fill, data: str) -> None:
    """Its batch cannot be told from what a crash tore."""
    fill(produce)
    sidecar = next(iter(sorted(disk.folder_of(data).glob("0_*.batches"))))
    disk.spoil(sidecar, 64 + 64 + 8)
    with pytest.raises(DataDamaged, match="1 entries are void"):
        reader.values(path=data)


@pytest.mark.parametrize("place", [(0, 2**32 - 1), (2**64 - 5, 10), (2**63, 1)])
def test_an_entry_may_say_anything(
    disk: Any, reader: Any, produce: Fill, data: str, place: tuple[int, int]
) -> None:
    """A valid checksum makes no claim sensible: nothing is read that is not there."""
    fill(produce)
    sidecar = next(disk.folder_of(data).glob("0_*.batches"))
    raw = sidecar.read_bytes()
    entry = SidecarEntry.decode(raw[64:128])
    entry.relative_offset, entry.stored_length = place
    sidecar.write_bytes(raw[:64] + entry.with_crc().encode() + raw[128:])
    with pytest.raises(DataDamaged):
        reader.values(path=data)
    assert any(audit_one(target).findings for target in targets(data))


def test_a_torn_tail_of_an_open_segment_is_not_read(
    disk: Any, reader: Any, produce: Fill, data: str
) -> None:
    """What is not durable yet is not there."""
    values = produce("orders", 100)
    open_segment = disk.segments_of(data)[-1]
    assert "-" not in open_segment.name
    with open_segment.open("ab") as file:
        file.write(encode_records([b"torn"] * 3)[:-2])
    assert reader.values(path=data) == values


def test_an_entry_without_its_data_ends_an_open_segment(
    disk: Any, reader: Any, produce: Fill, data: str
) -> None:
    """Entry and data are written in any order; one without the other is void (AMB-14)."""
    values = produce("orders", 100)
    sidecar = max(disk.folder_of(data).glob("*.batches"))
    raw = sidecar.read_bytes()
    last = SidecarEntry.decode(raw[-64:])
    last.relative_offset += last.stored_length
    sidecar.write_bytes(raw + last.with_crc().encode())
    assert reader.values(path=data) == values


def test_a_segment_that_is_closed_meanwhile_is_found(reader: Any, produce: Fill, data: str) -> None:
    """The server renames it when it is full."""
    values = produce("orders", 100)
    splits = reader.splits(path=data)
    produce("orders", 4000, first=100)
    assert [row["value"] for row in reader.rows(splits)] == values


def test_a_segment_that_is_dropped_meanwhile_is_missed(
    disk: Any, reader: Any, produce: Fill, data: str
) -> None:
    """Retention may remove it."""
    fill(produce)
    splits = reader.splits(path=data)
    disk.segments_of(data)[0].unlink()
    with pytest.raises(DataLost, match="is gone"):
        reader.rows(splits)


def test_a_topic_that_is_deleted_meanwhile_is_told(
    disk: Any, produce: Fill, server: EmbeddedServer
) -> None:
    """By name; a query over others goes on without it."""
    produce("orders", 10)
    produce("other", 10)
    log = open_log(Options.parse({"path": str(server.data_dir)}))
    view = log.look()[0]
    server.stop()
    shutil.rmtree(disk.folder_of(str(server.data_dir)))
    with pytest.raises(TopicNotFound, match="'orders' was deleted while it was read"):
        log.at(view, datetime.now(UTC))
    assert [each.name for each in log.look()] == ["other"]


@pytest.mark.parametrize("sidecar", [None, b"", b"LANC"])
def test_a_segment_that_is_being_made_holds_nothing_yet(
    disk: Any, reader: Any, produce: Fill, data: str, sidecar: bytes | None
) -> None:
    """A server makes the data file first, then its sidecar."""
    values = produce("orders", 10)
    folder = disk.folder_of(data)
    (folder / "10_9000000000000000000.lnc").touch()
    if sidecar is not None:
        (folder / "10_9000000000000000000.batches").write_bytes(sidecar)
    assert reader.values(path=data, topic="orders") == values


def test_a_sidecar_that_is_made_during_the_listing_is_found(
    disk: Any, produce: Fill, data: str
) -> None:
    """A listing may lack what came while it was taken."""
    produce("orders", 10)
    folder = disk.folder_of(data)
    listed = [entry for entry in entries(str(folder)) if not entry.name.endswith(".batches")]
    loaded = load_metadata(str(folder))
    assert loaded is not None
    (segment,) = segments._topic_files(str(folder), loaded[1], listed, None).segments
    assert segment.sidecar is not None


@pytest.mark.parametrize("column", ["timestamp", "time_source"])
def test_the_servers_time_is_read_whichever_column_asks_for_it(
    reader: Any, produce: Fill, data: str, column: str
) -> None:
    """Of a record without a time of its own it is the only one."""
    produce("orders", 3)
    alone = reader.rows(reader.splits(path=data), column)
    together = reader.rows(reader.splits(path=data), column, "ts_ns")
    assert [row[column] for row in alone] == [row[column] for row in together]
    assert None not in [row[column] for row in alone]


def files_of(disk: Any, data: str) -> list[str]:
    """Return the names of the topic's files that hold its records."""
    names = (path.name for path in disk.folder_of(data).iterdir())
    return sorted(name for name in names if name.endswith((".lnc", ".batches")))


@pytest.mark.parametrize("number", range(4))
def test_a_file_that_was_removed_is_damage(
    disk: Any, reader: Any, stopped: tuple[str, list[bytes]], number: int
) -> None:
    """Whichever it is, reader and audit say so: the metadata knows each segment."""
    data, values = stopped
    names = files_of(disk, data)
    (disk.folder_of(data) / names[number]).unlink()
    with pytest.raises(
        DataDamaged, match=names[number].partition("-")[0].removesuffix(".lnc")[:12]
    ):
        reader.values(path=data, topic="orders")
    found = reader.values(path=data, topic="orders", onDamage="skip")
    assert set(found) < set(values)
    assert any(audit_one(target).findings for target in targets(data))


def test_a_file_that_the_metadata_does_not_know_is_damage(
    disk: Any, reader: Any, stopped: tuple[str, list[bytes]]
) -> None:
    """A copy of a segment under another name would be read twice."""
    data, values = stopped
    folder = disk.folder_of(data)
    for path in list(folder.glob("0_*")):
        shutil.copy(path, folder / path.name.replace("0_1", "0_2", 1).replace("-1", "-2", 1))
    with pytest.raises(DataDamaged, match="does not know"):
        reader.values(path=data, topic="orders")
    assert reader.values(path=data, topic="orders", onDamage="skip") == values


def test_damaged_metadata_is_read_from_its_second_copy(
    disk: Any, reader: Any, stopped: tuple[str, list[bytes]]
) -> None:
    """As a server does; without any copy it is damage."""
    data, values = stopped
    folder = disk.folder_of(data)
    disk.spoil(folder / "metadata.json", 40)
    assert reader.values(path=data, topic="orders") == values
    disk.spoil(folder / "metadata.json.bak", 40)
    with pytest.raises(DataDamaged, match="checksum"):
        reader.values(path=str(folder))


def test_a_topic_without_records_is_a_topic(reader: Any, server: EmbeddedServer, data: str) -> None:
    """Of no rows; the default topic is none before it is used (AMB-34)."""
    with Client(server.url) as client:
        client.create_topic("empty")
    assert reader.splits(path=data, topic="empty") == []
    assert [view.name for view in open_log(Options.parse({"path": data})).look()] == ["empty"]


@pytest.mark.parametrize("folder", ["wal", "segments"])
def test_a_directory_that_a_server_has_just_begun_has_no_topic(tmp_path: Path, folder: str) -> None:
    """Whichever folder it makes first."""
    (tmp_path / folder).mkdir()
    assert open_log(Options.parse({"path": str(tmp_path)})).look() == []


def test_a_topic_whose_records_are_all_gone_begins_where_they_ended(
    disk: Any, produce: Fill, data: str, server: EmbeddedServer
) -> None:
    """So that a query that has read them does not take it for one that was cut."""
    produce("orders", 10)
    folder = disk.folder_of(data)
    server.stop()
    for path in [*folder.glob("*.lnc"), *folder.glob("*.batches")]:
        path.unlink()
    disk.change_log(folder, start_offset=450, start_record=10, bases={})
    (view,) = open_log(Options.parse({"path": data})).look()
    assert (view.start, view.end) == (450, 450)


def test_opaque_batches_are_an_error_or_left_out(disk: Any, reader: Any, tmp_path: Path) -> None:
    """Only a lenient dialect stores what is not records (AMB-27)."""
    with running(tmp_path / "data", dialect="deployed") as server:
        url = f"{server.url}/orders"
        with Producer(url, dialect="deployed", create_topic=True) as producer:
            producer.send_many([b"fine"] * 3)
    folder = disk.folder_of(str(tmp_path / "data"))
    sidecar = next(folder.glob("*.batches"))
    raw = sidecar.read_bytes()
    entry = SidecarEntry.decode(raw[64:128])
    entry.flags = 1
    sidecar.write_bytes(raw[:64] + entry.with_crc().encode() + raw[128:])
    with pytest.raises(OpaqueRecords, match="onOpaque=skip"):
        reader.values(path=str(folder))
    assert reader.values(path=str(folder), onOpaque="skip") == []


def published(folder: Path, *counts: int) -> list[bytes]:
    """Write segments as a published server does: records, a name, and nothing else."""
    folder.mkdir(parents=True)
    values = [b"%06d" % number for number in range(sum(counts))]
    begin = 0
    for number, count in enumerate(counts):
        last = number == len(counts) - 1
        end = "" if last else f"-{number + 1}00"
        content = encode_records(values[begin : begin + count])
        (folder / f"{begin}_{number + 1}0{end}.lnc").write_bytes(content)
        begin += count
    return values


def test_a_published_servers_segments_are_read(reader: Any, tmp_path: Path) -> None:
    """The folder's name is the topic's; offsets add up over the files."""
    values = published(tmp_path / "orders", 10, 20, 5)
    rows = reader.rows(reader.splits(path=str(tmp_path)))
    assert [row["value"] for row in rows] == values
    assert [row["offset"] for row in rows] == [11 * number for number in range(35)]
    assert {row["topic"] for row in rows} == {"orders"}


def test_a_published_segment_is_cut_where_its_index_says(reader: Any, tmp_path: Path) -> None:
    """And nowhere else: without an index it is one split."""
    values = published(tmp_path / "orders", 100)
    whole = reader.splits(path=str(tmp_path), maxPartitionBytes="110")
    index = b"".join(bytes(16) + (11 * n).to_bytes(8, "little") for n in range(0, 100, 10))
    (tmp_path / "orders" / "0_10.idx").write_bytes(index)
    parts = reader.splits(path=str(tmp_path), maxPartitionBytes="110")
    assert (len(whole), len(parts)) == (1, 10)
    assert [row["value"] for row in reader.rows(parts)] == values


def test_an_index_that_lies_is_caught(reader: Any, tmp_path: Path) -> None:
    """A reader that begins at a boundary must arrive exactly at the next."""
    published(tmp_path / "orders", 100)
    index = bytes(16) + (500).to_bytes(8, "little")
    (tmp_path / "orders" / "0_10.idx").write_bytes(index)
    with pytest.raises(DataDamaged, match="no record at byte"):
        reader.rows(reader.splits(path=str(tmp_path), maxPartitionBytes="600"))


def test_a_partial_record_at_the_end_is_being_written(reader: Any, tmp_path: Path) -> None:
    """Of the last segment; anywhere else it is damage."""
    values = published(tmp_path / "orders", 10, 5)
    files = sorted((tmp_path / "orders").glob("*.lnc"))
    with files[1].open("ab") as file:
        file.write(b"\1\2")
    assert reader.values(path=str(tmp_path)) == values
    with files[0].open("ab") as file:
        file.write(b"\1\2")
    with pytest.raises(DataDamaged, match="no record at byte 110"):
        reader.values(path=str(tmp_path))


def test_identity_comes_from_the_metadata(disk: Any, produce: Fill, data: str) -> None:
    """Name, number, creation and epoch (AMB-30)."""
    produce("orders", 1)
    identity = topic_files(str(disk.folder_of(data))).identity
    assert (identity.name, identity.epoch) == ("orders", 1)
    assert identity.created_at is not None


def test_a_task_that_reads_files_loads_nothing_that_only_others_need() -> None:
    """Neither what sends nor what speaks with servers: Spark collects all of it after each task."""
    modules = ("producer", "consumer", "journal")
    parts = ("logs.server_log", "writing.sinks", "writing.commit_log")
    names = [
        *(f"lance_sdk.{each}" for each in modules),
        *(f"lance_sdk.spark.{each}" for each in parts),
    ]
    assert all(map(find_spec, names)), "each is a module"
    code = (
        "import sys, lance_sdk.spark.readers, lance_sdk.spark.files.file_splits\n"
        f"print([name for name in {names!r} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_who_only_looks_the_format_up_loads_nothing_that_reads_or_writes() -> None:
    """Spark starts several such Pythons for a query."""
    names = ["pyarrow", "numpy", "lance_sdk.spark.readers", "lance_sdk.spark.writers"]
    assert all(map(find_spec, names)), "each is a module"
    code = (
        "import sys, lance_sdk.spark.source\n"
        f"print([name for name in {names!r} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_a_topic_that_is_not_asked_for_is_not_listed(
    reader: Any, produce: Fill, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of it only the metadata is read."""
    expected = produce("orders", 20)
    produce("others", 20)
    listed: list[str] = []
    look = file_log.topic_files

    def note(folder: str) -> Any:
        found = look(folder)
        listed.append(found.identity.label)
        return found

    monkeypatch.setattr(file_log, "topic_files", note)
    assert reader.values(path=str(server.data_dir), topic="orders") == expected
    assert set(listed) - {"default"} == {"orders"}
