"""What can be done with a data directory while no server is using it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from struct import pack

import pytest

from lance_server import running
from lance_server.config.settings import Address
from lance_server.errors import ConfigError
from lance_server.log.log_manager import LogOptions
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.segments.sidecar import HEADER_SIZE
from lance_server.offline.dumping import dump, find_topic
from lance_server.offline.importing import import_topic, published_topics
from lance_server.offline.sync_scheduler import opened
from lance_server.offline.verifying import verify
from lance_server.runtime.directory_lock import DataDirLock
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import LogDriver, ask_http
from lance_spec.disk.redo_entries import END, Entry
from lance_spec.records import encode_records

OPTIONS = LogOptions(segment_size=300)


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run ``lance-server`` and return what it said."""
    return subprocess.run(
        [sys.executable, "-m", "lance_server", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Return a data directory with ten batches of the topic ``orders`` in several segments."""
    folder = tmp_path / "data"
    log = LogDriver(PwritevStorage(), folder, OPTIONS)
    topic = log.create_topic("orders")
    for number in range(10):
        log.store([b"%d" % number + bytes(60)], batch_id=number + 1, topic_id=topic.id)
    log.engine.upkeep.visit(topic)
    log.scheduler.run_all()
    log.close()
    return folder


def state_of(folder: Path) -> dict[str, bytes]:
    """Return every file and what is in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def first(folder: Path, pattern: str) -> Path:
    """Return the first file of a pattern among the topics' files."""
    return min((folder / "segments" / "1").glob(pattern))


def flip(path: Path, place: int) -> None:
    """Change one bit of a file."""
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.write_bytes(raw)


def test_a_sound_directory_has_no_findings(data_dir: Path) -> None:
    """All figures are told, and nothing is found."""
    found = verify(data_dir)
    assert (found.topics, found.batches, found.records, found.findings) == (2, 10, 10, [])


@pytest.mark.parametrize(
    ("pattern", "place", "kind"),
    [
        ("*.lnc", 9, "damage"),
        ("*.batches", 20, "damage"),
        ("*.batches", HEADER_SIZE + 9, "void entry"),
        ("*.sparse.idx", 3, "stale index"),
        ("*.secondary.idx", 3, "stale index"),
        ("metadata.json", 30, "damage"),
    ],
)
def test_a_flipped_bit_is_found_where_it_is(
    data_dir: Path, pattern: str, place: int, kind: str
) -> None:
    """Damage is named with its file."""
    path = first(data_dir, pattern)
    flip(path, place)
    kinds = {
        (finding.kind, finding.path.name.split(".")[0]) for finding in verify(data_dir).findings
    }
    assert any(found == kind for found, _ in kinds)
    assert any(path.name.startswith(name.partition("-")[0]) for _, name in kinds)


def test_bytes_without_an_entry_are_a_torn_tail(data_dir: Path) -> None:
    """With their place and length."""
    path = first(data_dir, "*.lnc")
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"torn")
    (finding,) = verify(data_dir).findings
    assert (finding.kind, finding.offset, finding.length) == ("torn tail", size, 4)


def test_a_segment_that_was_never_made_is_no_finding(data_dir: Path) -> None:
    """Its files stay where the disk refuses to make it and then to remove them."""
    for suffix in (".lnc", ".batches"):
        (data_dir / "segments" / "1" / f"99_1700000000000000000{suffix}").touch()
    assert verify(data_dir).findings == []


def test_a_topic_whose_creation_was_never_finished_is_no_finding(data_dir: Path) -> None:
    """A start removes its folder; one with records is another matter."""
    folder = data_dir / "segments" / "9"
    folder.mkdir()
    assert verify(data_dir).findings == []
    (folder / "0_1700000000000000000.lnc").write_bytes(b"records")
    assert "lost file" in {finding.kind for finding in verify(data_dir).findings}


def test_a_segment_that_lost_its_content_is_a_finding(data_dir: Path) -> None:
    """The topic's file knows that there was one."""
    path = first(data_dir, "*.lnc")
    path.write_bytes(b"")
    first(data_dir, "*.batches").write_bytes(b"")
    assert path.name.partition("-")[0] in {
        finding.path.name.partition(".")[0] for finding in verify(data_dir).findings
    }


def test_verifying_changes_nothing(data_dir: Path) -> None:
    """Not a byte, whatever is found."""
    flip(first(data_dir, "*.lnc"), 9)
    before = state_of(data_dir)
    assert run("verify", data_dir).returncode == 1
    assert state_of(data_dir) == before


def test_verify_prints_findings_and_figures(data_dir: Path) -> None:
    """In words, and as one JSON object."""
    assert "no findings" in run("verify", data_dir).stdout
    flip(first(data_dir, "*.lnc"), 9)
    told = json.loads(run("verify", data_dir, "--json").stdout)
    assert told["batches"] == 9
    assert [finding["kind"] for finding in told["findings"]] == ["damage"]


def test_a_folder_that_is_no_data_directory_is_refused(tmp_path: Path) -> None:
    """Nothing is created there."""
    done = run("verify", tmp_path)
    assert (done.returncode, list(tmp_path.iterdir())) == (3, [])
    assert "is not a data directory" in done.stderr


def test_a_directory_in_use_is_not_repaired(data_dir: Path) -> None:
    """The holder is named."""
    with DataDirLock(data_dir):
        done = run("repair", data_dir)
    assert done.returncode == 2
    assert f"in use by process {os.getpid()}" in done.stderr


def test_repair_cuts_a_torn_tail_and_keeps_a_copy(data_dir: Path) -> None:
    """Afterwards nothing is found any more."""
    (data_dir / "clean.json").unlink()
    (data_dir / "clean.json.bak").unlink()
    closed = max((data_dir / "segments" / "1").glob("*.lnc"))
    opened_name = closed.with_name(closed.name.partition("-")[0] + ".lnc")
    closed.rename(opened_name)
    opened_name.write_bytes(opened_name.read_bytes() + b"torn")
    assert "torn tail" in run("repair", data_dir).stdout
    assert verify(data_dir).findings == []
    (copy,) = (data_dir / "quarantine" / "1").iterdir()
    assert copy.read_bytes() == b"torn"


@pytest.fixture
def crashed(data_dir: Path) -> Path:
    """Return a data directory whose last bytes are in the write-ahead log alone."""
    path = first(data_dir, "*.lnc")
    whole = path.read_bytes()
    entry = Entry(1, str(path.relative_to(data_dir)), 40, whole[40:])
    path.write_bytes(whole[:40])
    (data_dir / "wal").mkdir()
    (data_dir / "wal" / "0.wal").write_bytes(entry.encode() + END)
    return data_dir


def test_verify_tells_what_the_write_ahead_log_alone_has(crashed: Path) -> None:
    """It is found before whatever is missing for it, and nothing is changed."""
    before = state_of(crashed)
    told = run("verify", crashed)
    assert "unrepeated write" in told.stdout
    assert "'repair' puts it there" in told.stdout
    assert (told.returncode, state_of(crashed)) == (1, before)


def test_repair_repeats_the_write_ahead_log_first(crashed: Path) -> None:
    """Nothing is cut away that it has."""
    assert run("repair", crashed).returncode == 0
    assert not verify(crashed).findings
    assert not (crashed / "wal").exists()


def test_dump_wants_the_write_ahead_log_repeated(crashed: Path) -> None:
    """It would print less than there is."""
    told = run("dump", crashed, "orders")
    assert told.returncode == 3
    assert "lance-server repair" in told.stderr


def test_dump_prints_records_with_their_offsets(data_dir: Path) -> None:
    """One JSON object a line, from any offset on."""
    lines = [json.loads(line) for line in run("dump", data_dir, "orders").stdout.splitlines()]
    assert [line["value"][0] for line in lines] == list("0123456789")
    assert lines[1]["offset"] == 66
    rest = run("dump", data_dir, "1", "--from", lines[7]["offset"].__str__())
    assert [json.loads(line)["value"][0] for line in rest.stdout.splitlines()] == list("789")


def test_dump_goes_on_behind_damage(data_dir: Path) -> None:
    """What cannot be read is told in its place."""
    flip(first(data_dir, "*.lnc"), 9)
    done = run("dump", data_dir, "orders")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert len(lines) == 10
    assert [line["offset"] for line in lines if "problem" in line] == [0]


def test_dump_is_quiet_where_its_reader_leaves(tmp_path: Path) -> None:
    """As before ``| head``: exit code 0, and no word; the pipe is too small for the rest."""
    log = LogDriver(PwritevStorage(), tmp_path)
    log.store([bytes(100)] * 10_000)
    log.close()
    command = [sys.executable, "-m", "lance_server", "dump", str(tmp_path), "default"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_values_that_are_no_text_are_base64(tmp_path: Path) -> None:
    """Every value can be printed."""
    log = LogDriver(PwritevStorage(), tmp_path)
    log.store([b"\xff\x00"])
    log.close()
    (found,) = dump(find_topic(tmp_path, "default"))
    assert found.as_json() == {"offset": 0, "type": 1, "value_base64": "/wA="}


def test_an_unknown_topic_is_refused_with_those_there_are(data_dir: Path) -> None:
    """So that the right one can be chosen."""
    done = run("dump", data_dir, "order")
    assert done.returncode == 2
    assert "default, orders" in done.stderr


def test_reindex_writes_indexes_anew(data_dir: Path) -> None:
    """Stale and missing ones alike."""
    flip(first(data_dir, "*.sparse.idx"), 3)
    first(data_dir, "*.secondary.idx").unlink()
    assert run("reindex", data_dir).returncode == 0
    assert verify(data_dir).findings == []
    assert first(data_dir, "*.secondary.idx").stat().st_size == 16


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """Return a data directory as the published server writes it."""
    source = tmp_path / "published"
    folder = source / "segments" / "events"
    folder.mkdir(parents=True)
    body = {"id": 7, "name": "events", "created_at": 1, "retention": {"max_bytes": 0}}
    (folder / "metadata.json").write_text(json.dumps(body))
    (folder / "0_1700000000000000000-1700000001000000000.lnc").write_bytes(
        encode_records([b"first", b"second"])
    )
    (folder / "2_1700000002000000000.lnc").write_bytes(encode_records([b"third"]))
    (folder / "0_1700000000000000000-1700000001000000000.idx").write_bytes(bytes(24))
    return source


def test_a_published_directory_is_taken_over(published: Path, tmp_path: Path) -> None:
    """Names, records and their order are kept."""
    done = run("import", published, tmp_path / "new", "--json")
    assert done.returncode == 0, done.stderr
    (topic,) = json.loads(done.stdout)["topics"]
    assert (topic["name"], topic["records"], topic["opaque_bytes"]) == ("events", 3, 0)
    values = [each.value for each in dump(find_topic(tmp_path / "new", "events"))]
    assert values == [b"first", b"second", b"third"]
    assert verify(tmp_path / "new").findings == []


def test_the_original_is_only_read(published: Path, tmp_path: Path) -> None:
    """An import can be repeated."""
    before = state_of(published)
    run("import", published, tmp_path / "new")
    assert state_of(published) == before


def test_what_is_no_record_is_kept_as_it_is(published: Path, tmp_path: Path) -> None:
    """Lines of text, which the published server stores and cuts when it recovers."""
    path = min((published / "segments" / "events").glob("2_*.lnc"))
    path.write_bytes(encode_records([b"good"]) + b"Hello, LANCE!" * 3)
    with opened(tmp_path / "new") as (engine, scheduler):
        (folder,) = published_topics(published)
        found = import_topic(engine, scheduler, folder)
    assert (found.records, found.opaque) == (3, 39)
    *_, last = dump(find_topic(tmp_path / "new", "events"))
    assert (last.value, last.problem) == (b"Hello, LANCE!" * 3, "39 bytes that are not records")


def test_a_record_of_any_size_is_taken_over_whole(published: Path, tmp_path: Path) -> None:
    """One that is longer than what is read at a time, and one that is over every limit."""
    path = min((published / "segments" / "events").glob("2_*.lnc"))
    large = os.urandom(3 << 20)
    path.write_bytes(encode_records([large]) + pack("<BL", 1, (16 << 20) + 1) + b"rest")
    with opened(tmp_path / "new") as (engine, scheduler):
        found = import_topic(engine, scheduler, published_topics(published)[0])
    assert (found.records, found.opaque) == (3, 9)


def test_times_of_segments_are_kept_in_whatever_unit_they_are(
    published: Path, tmp_path: Path
) -> None:
    """Retention by age goes by them; seconds and microseconds were written, too."""
    path = min((published / "segments" / "events").glob("2_*.lnc"))
    path.rename(path.with_name("2_1700000002.lnc"))
    with opened(tmp_path / "new") as (engine, scheduler):
        import_topic(engine, scheduler, published_topics(published)[0])
        topic = engine.topic_named("events")
        assert topic is not None
        assert topic.partition.segment_list[-1].last_ns == 1_700_000_002_000_000_000


@pytest.mark.parametrize("unnamed", [False, True])
def test_a_folder_that_says_no_name_is_no_topic(
    published: Path, tmp_path: Path, unnamed: bool
) -> None:
    """That of topic 0 has no ``metadata.json``; it is left out and named, or taken when asked."""
    folder = published / "segments" / "0"
    folder.mkdir()
    (folder / "0_1700000000000000000.lnc").write_bytes(encode_records([b"nobody's"]))
    done = run("import", published, tmp_path / "new", "--json", *["--unnamed"][: int(unnamed)])
    told = json.loads(done.stdout)
    assert {topic["name"] for topic in told["topics"]} == (
        {"events", "0"} if unnamed else {"events"}
    )
    assert told["left_out"] == ([] if unnamed else ["0"])


def test_an_import_on_top_of_a_topic_is_refused(published: Path, tmp_path: Path) -> None:
    """Nothing is mixed."""
    with opened(tmp_path / "new") as (engine, scheduler):
        scheduler.settle(engine.create_topic("events", Retention()))
        with pytest.raises(ConfigError, match="already exists"):
            import_topic(engine, scheduler, published_topics(published)[0])


def test_a_folder_without_segments_is_no_published_directory(tmp_path: Path) -> None:
    """It is refused before anything is created."""
    done = run("import", tmp_path, tmp_path / "new")
    assert done.returncode == 2
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("dry_run", [True, False])
def test_retention_drops_what_need_not_be_kept(data_dir: Path, dry_run: bool) -> None:
    """A dry run tells the same and changes nothing."""
    with opened(data_dir) as (engine, _):
        topic = engine.topic_named("orders")
        assert topic is not None
        topic.file.set_retention(Retention(max_bytes=100))
    before = len(list((data_dir / "segments" / "1").glob("*.lnc")))
    options = ["--dry-run"] if dry_run else []
    told = json.loads(run("retention", data_dir, "--json", *options).stdout)
    after = len(list((data_dir / "segments" / "1").glob("*.lnc")))
    assert len(told["dropped"]) == before - 1
    assert after == (before if dry_run else 1)
    assert verify(data_dir).findings == []


def test_limits_are_tried_out_at_a_running_server(data_dir: Path) -> None:
    """It tells what they would drop, and keeps all of it."""
    before = len(list((data_dir / "segments" / "1").glob("*.lnc")))
    with running(data_dir, http=Address("127.0.0.1", 0)) as server:
        http = str(server.http_url).removeprefix("http://")
        asked = ("retention", "--http", http, "--dry-run", "--json")
        assert json.loads(run(*asked).stdout)["dropped"] == []
        limits = ("--topic", "orders", "--max-bytes", "100")
        told = json.loads(run(*asked, *limits).stdout)["dropped"]
        assert [row["topic"] for row in told] == ["orders"] * (before - 1)
    assert len(list((data_dir / "segments" / "1").glob("*.lnc"))) == before


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("topic=nothing", "there is no topic named 'nothing'"),
        ("max_age=1", "'max_age' is not topic, max_age_secs or max_bytes"),
        ("max_bytes=-1", "max_bytes is a number, not '-1'"),
    ],
)
def test_a_question_about_retention_that_means_nothing_is_told(
    tmp_path: Path, query: str, words: str
) -> None:
    """It names what is wrong."""
    with running(tmp_path, http=Address("127.0.0.1", 0)) as server:
        answer = ask_http(server, f"/retention.json?{query}")
    assert answer.status == 400
    assert words in answer.text


def test_limits_are_only_tried_out(data_dir: Path) -> None:
    """Nothing is dropped by limits that a topic does not have."""
    done = run("retention", data_dir, "--max-bytes", "100")
    assert done.returncode == 2
    assert "add --dry-run" in done.stderr
