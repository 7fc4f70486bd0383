"""Pipelines, the part that runs in one task: audits, indexes, counts and copies."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lance_sdk import Producer
from lance_sdk.errors import ConfigError
from lance_sdk.spark.files.segments import topic_files
from lance_sdk.spark.java import check_java
from lance_sdk.spark.options import Options
from lance_sdk.spark.pipelines import archive, audit, migrate, reindex, replay, report
from lance_sdk.spark.pipelines.audit import FileReport, audit_one, targets
from lance_sdk.spark.pipelines.migrate import copy, renamed
from lance_sdk.spark.pipelines.reindex import _held, _look_at, _write
from lance_sdk.spark.pipelines.report import Report, count_split, plot
from lance_sdk.spark.pipelines.volume import Volume
from lance_sdk.spark.rows.encoding import Frame
from lance_sdk.spark.writing.sending import FrameSender
from lance_server.embedded import EmbeddedServer
from lance_spec.enums import RecordType
from lance_spec.messages.engine import SidecarEntry
from lance_spec.records import encode_record

Fill = Callable[..., list[bytes]]


@pytest.fixture
def data(server: EmbeddedServer, produce: Fill) -> str:
    """A data directory with 4,000 records, whose server has stopped."""
    produce("orders", 2000)
    produce("orders", 2000, first=2000)
    server.stop()
    return str(server.data_dir)


def audited(path: str) -> list[FileReport]:
    """Audit everything at a path, one after the other."""
    return [audit_one(target) for target in targets(path)]


def findings(path: str) -> list[str]:
    """Return everything that is wrong."""
    return [finding for found in audited(path) for finding in found.findings]


def test_a_sound_log_has_no_findings(disk: Any, data: str) -> None:
    """And every record is counted."""
    reports = audited(data)
    assert [each.findings for each in reports] == [[]] * len(disk.segments_of(data))
    assert sum(each.records for each in reports) == 4000
    assert sum(each.bytes for each in reports) == 4000 * 45


def test_an_audit_changes_nothing(data: str) -> None:
    """It may run while the server does."""
    before = {path: path.read_bytes() for path in Path(data).rglob("*") if path.is_file()}
    audited(data)
    assert {path: path.read_bytes() for path in Path(data).rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("place", [0, 1000, -1])
def test_a_changed_byte_is_found(disk: Any, data: str, place: int) -> None:
    """Wherever it is."""
    disk.spoil(disk.segments_of(data)[0], place)
    (finding,) = findings(data)
    assert "do not match their checksum" in finding


def test_bytes_of_no_batch_are_found(disk: Any, data: str) -> None:
    """After the last one of a closed segment."""
    with disk.segments_of(data)[0].open("ab") as file:
        file.write(b"more")
    (finding,) = findings(data)
    assert "4 bytes from byte" in finding


def test_a_segment_that_was_cut_is_found(disk: Any, data: str) -> None:
    """Its batches reach beyond its end."""
    segment = disk.segments_of(data)[0]
    os.truncate(segment, segment.stat().st_size - 1)
    assert any("the file has" in finding for finding in findings(data))


def test_a_void_entry_is_found(disk: Any, data: str) -> None:
    """With the bytes that no batch vouches for any more."""
    disk.spoil(next(disk.folder_of(data).glob("0_*.batches")), 64 + 64 + 8)
    found = findings(data)
    assert "1 entries of the sidecar are void" in found
    assert any("belong to no batch" in finding for finding in found)


def test_every_damaged_sidecar_is_found(disk: Any, data: str) -> None:
    """The first one ends nothing."""
    spoilt = sorted(disk.folder_of(data).glob("*.batches"))[:2]
    for sidecar in spoilt:
        disk.spoil(sidecar, 0)
    found = findings(data)
    assert [sum(sidecar.name in each for each in found) for sidecar in spoilt] == [1, 1]


def test_a_record_that_is_not_laid_out_as_its_type_says_is_found(
    server: EmbeddedServer, at: Mapping[str, str]
) -> None:
    """A reader refuses it, so that a folder with one is not clean."""
    options = Options.parse({**at, "topic": "orders", "createTopic": "true"})
    good = encode_record(b"\x01\x00kv", RecordType.KEY_VALUE)
    chain = good + encode_record(b"\xff\xffkv", RecordType.KEY_VALUE) + good
    with FrameSender(options, "orders") as sender:
        sender.send_frame(Frame("orders", 3, chain))
        sender.finish()
    server.stop()
    (finding,) = findings(str(server.data_dir))
    assert finding.startswith("the record at byte 9 is not laid out as its type 0x10 says")


def test_findings_of_a_file_are_bounded(disk: Any, data: str) -> None:
    """A file of zeros would have one for each batch."""
    segment = disk.segments_of(data)[0]
    size = segment.stat().st_size
    segment.write_bytes(bytes(size))
    sidecar = next(segment.parent.glob(f"{segment.name.partition('-')[0]}.batches"))
    sidecar_entries = sidecar.stat().st_size // SidecarEntry.SIZE - 1
    assert len(findings(data)) <= min(101, sidecar_entries + 1)


def test_a_segment_that_is_closed_meanwhile_is_audited_under_its_new_name(
    disk: Any, produce: Fill, server: EmbeddedServer
) -> None:
    """A server renames it when it is full: that is not a finding."""
    produce("orders", 100)
    listed = targets(str(server.data_dir))
    produce("orders", 4000, first=100)
    (found,) = [audit_one(target) for target in listed]
    assert (found.clean, found.path) == (True, str(disk.segments_of(str(server.data_dir))[0]))


def test_a_segment_that_is_dropped_meanwhile_is_no_finding(disk: Any, data: str) -> None:
    """Retention may remove it before its turn comes."""
    listed, first = targets(data), disk.segments_of(data)[0]
    first.unlink()
    next(disk.folder_of(data).glob("0_*.batches")).unlink()
    found = [audit_one(target) for target in listed]
    assert [each.path for each in found if each.dropped] == [str(first)]
    assert all(each.clean for each in found)


def test_a_dry_run_of_an_audit_reads_nothing(disk: Any, data: str, tmp_path: Path) -> None:
    """It tells files and bytes, and calls nothing clean that was not read."""
    found = audit(None, data, dry_run=True)  # type: ignore[arg-type]
    assert [each.path for each in found.files] == [path for path, _, _ in targets(data)]
    assert found.totals["bytes"] == 4000 * 45
    assert not found.clean
    slot = audit(None, str(disk.fill_slot(tmp_path)), dry_run=True)  # type: ignore[arg-type]
    assert slot.totals["bytes"] > 200 * 9


def test_a_dry_run_of_a_report_reads_nothing(disk: Any, data: str, tmp_path: Path) -> None:
    """It tells how much it would."""
    found = report(None, {"path": data}, dry_run=True)  # type: ignore[arg-type]
    assert (found.volumes, found.planned) == ([], {"orders": 4000 * 45})
    slot = disk.fill_slot(tmp_path)
    size = sum(path.stat().st_size for path in slot.glob("*.sfl"))
    waiting = report(None, {"path": str(slot)}, dry_run=True)  # type: ignore[arg-type]
    assert waiting.planned == {"edge-1": size}


def test_slots_are_audited(disk: Any, tmp_path: Path) -> None:
    """Every frame's checksum, and what it holds."""
    slot = disk.fill_slot(tmp_path)
    (sound,) = audited(str(slot))
    assert (sound.records, sound.findings) == (200, [])
    disk.spoil(next(slot.glob("*.sfl")), 100)
    assert findings(str(slot)) != []


def test_indexes_are_those_that_the_server_writes(disk: Any, data: str) -> None:
    """Byte for byte."""
    subprocess.run(
        [sys.executable, "-m", "lance_server", "reindex", data],
        check=True,
        timeout=60,
        capture_output=True,
    )
    closed = [s for s in topic_files(str(disk.folder_of(data))).segments if s.name.is_closed]
    assert [_look_at(segment) for segment in closed] == [[]] * len(closed)


def test_missing_and_stale_indexes_are_written(disk: Any, data: str) -> None:
    """A second look finds them right."""
    folder = disk.folder_of(data)
    for path in folder.glob("*.idx"):
        path.unlink()
    closed = [s for s in topic_files(str(folder)).segments if s.name.is_closed]
    assert [len(_write(segment)) for segment in closed] == [2] * len(closed)
    disk.spoil(next(folder.glob("*.sparse.idx")), 0)
    assert sum(len(_write(segment)) for segment in closed) >= 1
    assert [_look_at(segment) for segment in closed] == [[]] * len(closed)
    assert list(folder.glob("*.tmp")) == []


def test_indexes_of_a_running_server_are_left_alone(server: EmbeddedServer) -> None:
    """It writes them itself."""
    with pytest.raises(ConfigError, match="in use by a server"), _held(server.data_dir):
        pass


def test_a_count_is_by_topic_hour_and_type(reader: Any, data: str) -> None:
    """Records and bytes of values."""
    counted = [row for split in reader.splits(path=data) for row in count_split(split)[0]]
    assert {(topic, kind) for topic, _, kind, _, _ in counted} == {("orders", 1)}
    assert sum(records for *_, records, _ in counted) == 4000
    assert sum(size for *_, size in counted) == 4000 * 40


def test_times_after_the_year_2262_are_counted(server: EmbeddedServer) -> None:
    """They have no hour; a record without a time of its own has the server's."""
    with Producer(f"{server.url}/orders", create_topic=True, dialect="specified") as producer:
        for moment in (2**63, 2**63 - 1, None):
            producer.send(b"x", timestamp=moment)
    found = report(None, {"path": str(server.data_dir)})
    assert (found.records, found.null_times) == (3, 1)
    assert [volume.records for volume in found.volumes if volume.hour < 0] == [1]


def test_a_report_is_drawn(tmp_path: Path) -> None:
    """As a picture of the kind that the name says."""
    pytest.importorskip("matplotlib", reason="pip install 'lance-sdk[spark]'")
    hours = [Volume(topic, hour, 1, 5, 5000) for topic in "ab" for hour in (-1, 0, 3600)]
    plot(Report(hours), tmp_path / "volume.svg")
    assert "<svg" in (tmp_path / "volume.svg").read_text()
    with pytest.raises(ConfigError, match="nothing to draw"):
        plot(Report([]), tmp_path / "empty.svg")


def test_topics_are_copied_in_order(
    reader: Any, produce: Fill, server: EmbeddedServer, at: Mapping[str, str]
) -> None:
    """Under the name that was asked for."""
    values = produce("orders", 500)
    target = Options.parse({**at, "createTopic": "true"})
    splits = reader.splits(path=str(server.data_dir), minPartitions="4")
    counts = copy(target, [("orders", "copy")], splits)
    assert counts == {"copy": 500}
    assert reader.values(**at, topic="copy") == values


def test_slots_are_copied_to_their_topics(
    disk: Any, reader: Any, tmp_path: Path, at: Mapping[str, str]
) -> None:
    """Which the frames name."""
    slot = disk.fill_slot(tmp_path)
    target = Options.parse({**at, "createTopic": "true"})
    assert copy(target, [], reader.splits(path=str(slot))) == {"readings": 200}


@pytest.mark.parametrize(("topic", "name"), [("rust-a", "a"), ("orders", "orders"), ("old", "new")])
def test_topics_are_renamed_by_the_first_pair_that_matches(topic: str, name: str) -> None:
    """Whole names only."""
    pairs = [(r"rust-(.*)", r"\1"), ("old", "new"), ("ol", "wrong")]
    assert renamed(topic, pairs, Options.parse({})) == name


@pytest.mark.parametrize("pair", [("(", "x"), ("a", r"\7")])
def test_a_wrong_renaming_is_refused(pair: tuple[str, str]) -> None:
    """With what was written."""
    with pytest.raises(ConfigError, match="rename"):
        renamed("a", [pair], Options.parse({}))


def test_qwp_slots_go_to_qwp_servers(tmp_path: Path) -> None:
    """Their frames are not records of LWP."""
    from lance_sdk.journal import Journal, JournalConfig, SlotKind  # noqa: PLC0415 - only here

    with Journal.open(tmp_path / "rows", JournalConfig(kind=SlotKind.QWP)) as journal:
        journal.append(b"QWP1")
    source = {"path": str(tmp_path / "rows")}
    with pytest.raises(ConfigError, match="lwp sf drain"):
        migrate(None, source, {"servers": "localhost"}, dry_run=True)  # type: ignore[arg-type]


def test_a_dry_run_of_a_migration_needs_no_task(data: str) -> None:
    """It tells topics and bytes."""
    found = migrate(None, {"path": data}, {"servers": "localhost"}, dry_run=True)  # type: ignore[arg-type]
    assert found.topics == {"orders": None}
    assert found.bytes == 4000 * 45


def test_an_empty_log_has_an_empty_report(server: EmbeddedServer) -> None:
    """And needs no task."""
    from lance_sdk import Client  # noqa: PLC0415 - only here

    with Client(server.url) as client:
        client.create_topic("empty")
    servers = "{}:{}".format(*server.address)
    assert report(None, {"servers": servers, "topic": "empty"}).volumes == []  # type: ignore[arg-type]


class Remote:
    """A session that is one of Spark Connect by its module."""


Remote.__module__ = "pyspark.sql.connect.session"


def test_pipelines_say_that_they_do_not_run_on_spark_connect(
    data: str, at: Mapping[str, str], tmp_path: Path
) -> None:
    """Before anything is read or made."""
    spark: Any = Remote()
    target = tmp_path / "archive"
    for pipeline in (
        lambda: archive(spark, {"path": data}, str(target)),
        lambda: replay(spark, str(target), at),
        lambda: audit(spark, data),
        lambda: report(spark, {"path": data}),
        lambda: reindex(spark, data),
        lambda: migrate(spark, {"path": data}, at),
    ):
        with pytest.raises(ConfigError, match="do not run on Spark Connect"):
            pipeline()
    assert not target.exists()


def fake_java(folder: Path, version: str) -> str:
    """Put a java there that says which one it is."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return str(folder)


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21", 21)])
def test_java_17_or_later_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, major: int
) -> None:
    """The one that Spark would start is asked."""
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, version))
    assert check_java() == major


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_292", "nonsense"])
def test_an_old_java_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Before Spark fails in its own words."""
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, version))
    with pytest.raises(ConfigError, match=r"Java 17 or later: install it \(Debian"):
        check_java()


def test_without_java_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in JAVA_HOME nor on the PATH."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="has no bin/java"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="no java on the PATH"):
        check_java()


def test_a_slots_topics_are_renamed(
    disk: Any, reader: Any, tmp_path: Path, at: Mapping[str, str]
) -> None:
    """As those of files: by pattern, or all to the topic that is said."""
    slot = disk.fill_slot(tmp_path)
    splits = reader.splits(path=str(slot))
    target = Options.parse({**at, "createTopic": "true"})
    assert copy(target, [("read(.*)", r"writ\1")], splits) == {"writings": 200}
    joined = Options.parse({**at, "createTopic": "true", "topic": "all"})
    assert copy(joined, [], splits) == {"all": 200}


def test_topics_that_would_get_one_name_are_refused(
    produce: Fill, server: EmbeddedServer, at: Mapping[str, str]
) -> None:
    """Their records would be mixed, and nothing tells them apart afterwards."""
    for topic in ("orders-eu", "orders-us"):
        produce(topic, 1)
    source = {"path": str(server.data_dir)}
    with pytest.raises(ConfigError, match="'orders-eu' and 'orders-us' would both be called 'x'"):
        migrate(None, source, at, rename=[("orders-.*", "x")], dry_run=True)  # type: ignore[arg-type]
    joined = {**at, "topic": "x"}
    assert migrate(None, source, joined, dry_run=True).topics == {"x": None}  # type: ignore[arg-type]


def test_a_folder_inside_of_a_served_directory_is_not_reindexed(
    disk: Any, produce: Fill, server: EmbeddedServer
) -> None:
    """The lock stands in the data directory, above the topic's folder."""
    produce("orders", 10)
    folder = disk.folder_of(str(server.data_dir))
    for path in (folder, folder.parent, server.data_dir):
        with pytest.raises(ConfigError, match="in use by a server"), _held(Path(path)):
            pass
