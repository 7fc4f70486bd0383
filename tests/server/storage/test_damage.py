"""Files that were cut or changed while the server was down (AMB-39)."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lance_server.log.log_manager import LogOptions
from lance_server.log.metadata.topic_file import TopicFile
from lance_server.log.segments.segment_files import DATA_SUFFIX, SIDECAR_SUFFIX
from lance_server.log.segments.sidecar import decode_header
from lance_server.lwp.refusals import Refusal
from lance_server.testing import LogDriver, MemoryStorage
from lance_spec.records import encode_records

BATCHES = [[b"batch %d" % number, b"x" * number] for number in range(5)]
DATA = [encode_records(values) for values in BATCHES]
OPTIONS = LogOptions(segment_size=60)


def stored(options: LogOptions, *, clean: bool) -> MemoryStorage:
    """Return a disk with a log of five batches, each acknowledged on its own."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=options)
    for number, values in enumerate(BATCHES, start=1):
        log.store(values, batch_id=number)
    if clean:
        log.close()
    return disk.copy()


def offsets() -> dict[int, bytes]:
    """Return the batches by the offset they were stored at."""
    found, place = {}, 0
    for data in DATA:
        found[place] = data
        place += len(data)
    return found


def newest(disk: MemoryStorage, suffix: str) -> Path:
    """Return the file of the newest segment."""
    names = [path for path in disk.files() if path.suffix == suffix]
    return max(names, key=lambda path: int(path.name.split("_")[0]))


def readable(log: LogDriver) -> set[int]:
    """Return the offsets at which exactly the batch that was stored there is read."""
    whole = set()
    for offset, data in offsets().items():
        with suppress(Refusal):
            fetched = log.fetch(offset, len(data))
            if fetched.buffer:
                assert fetched.buffer == data, f"offset {offset} reads as something else"
                whole.add(offset)
    return whole


def assert_only_one_place_suffers(disk: MemoryStorage, lost: set[int], what: str) -> None:
    """Start on a damaged disk: it serves the rest, reports, and takes new batches."""
    log = LogDriver(disk, options=OPTIONS)
    expected = set(offsets()) - lost
    found = readable(log)
    assert found >= expected, f"{what}: batches at {sorted(expected - found)} are lost, too"
    missing = set(offsets()) - found
    reading = log.read_all()
    told = log.engine.report.findings or reading.damage
    assert told or not missing, f"{what}: nobody says that batches are missing"
    end = max(offset + len(data) for offset, data in offsets().items() if offset in expected)
    assert log.store([b"new"]) >= end


def batches_behind(offset: int) -> set[int]:
    """Return the batches that reach beyond an offset."""
    return {start for start, data in offsets().items() if start + len(data) > offset}


def base_of(disk: MemoryStorage, path: Path) -> tuple[int, list[int]]:
    """Return where a segment begins, and the offsets of its batches."""
    names = sorted(
        (each for each in disk.files() if each.suffix == DATA_SUFFIX),
        key=lambda each: int(each.name.split("_")[0]),
    )
    base = 0
    for each in names:
        size = len(disk.peek(each))
        if each == path:
            return base, [start for start in offsets() if base <= start < base + size]
        base += size
    raise AssertionError(f"{path} is not a segment")


def cuts(disk: MemoryStorage, suffix: str) -> Iterator[tuple[int, MemoryStorage, Path]]:
    """Yield a disk for every length that the newest file may be cut to."""
    path = newest(disk, suffix)
    content = disk.peek(path)
    for length in range(len(content)):
        cut = disk.copy()
        cut.poke(path, content[:length])
        yield length, cut, path


@pytest.mark.parametrize("clean", [True, False])
def test_a_cut_data_file_costs_what_was_cut(clean: bool) -> None:
    """Cut anywhere, the newest data file loses the batches after the cut and no other."""
    disk = stored(OPTIONS, clean=clean)
    base, _ = base_of(disk, newest(disk, DATA_SUFFIX))
    for length, cut, _ in cuts(disk, DATA_SUFFIX):
        lost = batches_behind(base + length)
        assert_only_one_place_suffers(cut, lost, f"data file cut to {length} bytes")


@pytest.mark.parametrize("clean", [True, False])
def test_a_cut_sidecar_costs_the_batches_it_no_longer_vouches_for(clean: bool) -> None:
    """Cut anywhere, the newest sidecar loses the batches whose entries are gone."""
    disk = stored(OPTIONS, clean=clean)
    _, inside = base_of(disk, newest(disk, DATA_SUFFIX))
    for length, cut, _ in cuts(disk, SIDECAR_SUFFIX):
        kept = max(0, length - 64) // 64
        assert_only_one_place_suffers(cut, set(inside[kept:]), f"sidecar cut to {length} bytes")


@pytest.mark.parametrize("clean", [True, False])
def test_a_flipped_bit_in_data_costs_its_batch(clean: bool) -> None:
    """A changed byte anywhere in any data file makes its batch unreadable, and only that."""
    disk = stored(OPTIONS, clean=clean)
    for path in (each for each in disk.files() if each.suffix == DATA_SUFFIX):
        base, _ = base_of(disk, path)
        content = disk.peek(path)
        for place in range(len(content)):
            flipped = disk.copy()
            flipped.poke(path, flip(content, place, place % 8))
            hit = max(start for start in offsets() if start <= base + place)
            assert_only_one_place_suffers(flipped, {hit}, f"{path.name} byte {place}")


@pytest.mark.parametrize("clean", [True, False])
def test_a_flipped_bit_in_a_sidecar_costs_its_batch_at_most(clean: bool) -> None:
    """A changed byte in a sidecar voids one entry; a changed header costs nothing."""
    disk = stored(OPTIONS, clean=clean)
    for path in (each for each in disk.files() if each.suffix == SIDECAR_SUFFIX):
        data_path = next(
            each
            for each in disk.files()
            if each.suffix == DATA_SUFFIX and each.name.startswith(path.stem)
        )
        _, inside = base_of(disk, data_path)
        content = disk.peek(path)
        for place in range(len(content)):
            flipped = disk.copy()
            flipped.poke(path, flip(content, place, place % 8))
            lost = set() if place < 64 else {inside[(place - 64) // 64]}
            assert_only_one_place_suffers(flipped, lost, f"{path.name} byte {place}")


def test_a_flipped_bit_in_a_document_costs_nothing() -> None:
    """Every JSON file is kept twice: a changed byte in one copy is repaired and reported."""
    disk = stored(OPTIONS, clean=True)
    documents = [path for path in disk.files() if ".json" in path.name]
    assert {path.name for path in documents} >= {"metadata.json", "metadata.json.bak"}
    for path in documents:
        content = disk.peek(path)
        for place in range(len(content)):
            flipped = disk.copy()
            flipped.poke(path, flip(content, place, place % 8))
            assert_only_one_place_suffers(flipped, set(), f"{path.name} byte {place}")


def flip(content: bytes, place: int, bit: int) -> bytes:
    """Return the content with one bit changed."""
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed)


def test_damage_names_file_and_offset() -> None:
    """The report says which file, where, and how many bytes."""
    disk = stored(LogOptions(), clean=True)
    path = newest(disk, DATA_SUFFIX)
    disk.poke(path, disk.peek(path)[:-1])
    log = LogDriver(disk)
    (finding,) = log.engine.report.findings
    last = max(offsets())
    assert (finding.path, finding.offset, finding.length) == (path, last, len(DATA[-1]))


def test_damage_answers_with_the_next_readable_offset() -> None:
    """Fetch in a damaged range is an error whose details lead behind it."""
    disk = stored(LogOptions(), clean=True)
    path = newest(disk, DATA_SUFFIX)
    places = sorted(offsets())
    disk.poke(path, flip(disk.peek(path), places[3] + 6, 0))
    log = LogDriver(disk)
    assert log.read_all().damage == [(places[3], places[4])]


def test_a_torn_tail_is_kept_in_quarantine() -> None:
    """What a crash tore is copied before it is cut away."""
    disk = stored(LogOptions(), clean=False)
    path = newest(disk, DATA_SUFFIX)
    disk.poke(path, disk.peek(path) + b"torn")
    LogDriver(disk)
    copies = [each for each in disk.files() if "quarantine" in each.parts]
    assert [disk.peek(each) for each in copies] == [b"torn"]


def test_damage_stays_damage_after_another_start() -> None:
    """A damaged range does not turn into a gap or into data at the next start."""
    disk = stored(LogOptions(), clean=True)
    path = newest(disk, DATA_SUFFIX)
    places = sorted(offsets())
    disk.poke(path, flip(disk.peek(path), places[3] + 6, 0))
    first = LogDriver(disk)
    first.store([b"new"])
    first.close()
    assert LogDriver(disk).read_all().damage == [(places[3], places[4])]


def test_an_open_segment_before_another_was_durable() -> None:
    """What lies before the base of a later segment is damage, never a torn tail: nothing is cut."""
    disk = stored(OPTIONS, clean=True)
    oldest = min(
        (each for each in disk.files() if each.suffix == DATA_SUFFIX),
        key=lambda each: int(each.name.split("_")[0]),
    )
    _, inside = base_of(disk, oldest)
    disk.poke(oldest, disk.peek(oldest)[:-1])
    reopened = oldest.with_name(oldest.name.split("-")[0] + DATA_SUFFIX)
    disk.rename(oldest, reopened)
    disk.sync_dir(oldest.parent)
    log = LogDriver(disk, options=OPTIONS)
    assert {finding.kind for finding in log.engine.report.findings} == {"damage"}
    assert readable(log) == set(offsets()) - {inside[-1]}
    assert log.read_all().damage[0][0] == inside[-1]


def test_a_lost_segment_reads_as_damage() -> None:
    """A segment whose files are gone leaves its range unreadable, and nothing moves."""
    disk = stored(OPTIONS, clean=True)
    names = sorted(
        (each for each in disk.files() if each.suffix in {DATA_SUFFIX, SIDECAR_SUFFIX}),
        key=lambda each: int(each.name.split("_")[0]),
    )
    base, inside = base_of(disk, names[3] if names[3].suffix == DATA_SUFFIX else names[2])
    for path in names[2:4]:
        disk.remove(path)
    disk.sync_dir(names[0].parent)
    log = LogDriver(disk.copy(), options=OPTIONS)
    assert {finding.kind for finding in log.engine.report.findings} == {"lost segment", "damage"}
    assert readable(log) == set(offsets()) - set(inside)
    assert log.read_all().damage[0][0] == base


def test_both_copies_of_a_topics_file_damaged_make_the_topic_unavailable() -> None:
    """The other topics are served; requests for this one say why it is not."""
    disk = stored(OPTIONS, clean=True)
    for path in [path for path in disk.files() if path.name.startswith("metadata.json")]:
        disk.poke(path, b"{")
    log = LogDriver(disk)
    with pytest.raises(Refusal, match="cannot be served"):
        log.end()
    assert log.create_topic("another").id == 1


def test_a_base_inside_a_segment_that_is_there_is_stale() -> None:
    """Release 0.1.0 left such bases after a full disk; the records stay readable, none is cut."""
    disk = stored(LogOptions(segment_size=10_000), clean=True)
    folder = newest(disk, DATA_SUFFIX).parent
    loaded = TopicFile.load(disk, folder)
    assert loaded is not None
    file, _ = loaded
    inside = sorted(offsets())[2]
    file.add_base(f"{2 * len(BATCHES[0])}_{9**18}", inside)
    for _ in range(2):  # the second start must not find it again
        log = LogDriver(disk, options=OPTIONS)
        assert readable(log) == set(offsets())
        assert log.engine.report.findings == []
        log.close()
        disk = disk.copy()


def segment_keys(disk: MemoryStorage, topic_id: int = 0) -> list[str]:
    """Return what the files of a topic's segments begin with, oldest first."""
    names = [
        path.name
        for path in disk.files()
        if path.suffix == SIDECAR_SUFFIX and path.parent.name == str(topic_id)
    ]
    return sorted(
        (name.removesuffix(SIDECAR_SUFFIX) for name in names),
        key=lambda key: int(key.split("_")[0]),
    )


def file_of(disk: MemoryStorage, key: str, suffix: str, topic_id: int = 0) -> Path:
    """Return the file of a segment."""
    (found,) = (
        path
        for path in disk.files()
        if path.suffix == suffix
        and path.parent.name == str(topic_id)
        and path.name.removesuffix(suffix).split("-")[0] == key
    )
    return found


def copied_over(disk: MemoryStorage, source: Path, target: Path) -> None:
    """Put a file's content in the place of another's."""
    disk.poke(target, disk.peek(source))


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "suffixes", [(SIDECAR_SUFFIX,), (DATA_SUFFIX,), (DATA_SUFFIX, SIDECAR_SUFFIX)]
)
def test_a_segment_file_copied_over_another_costs_that_segment(
    clean: bool, suffixes: tuple[str, ...]
) -> None:
    """The server starts, and only the range of the segment that was written over is unreadable."""
    disk = stored(OPTIONS, clean=clean)
    keys = segment_keys(disk)
    for source in keys:
        for target in (each for each in keys if each != source):
            copied = disk.copy()
            for suffix in suffixes:
                copied_over(
                    copied, file_of(copied, source, suffix), file_of(copied, target, suffix)
                )
            _, lost = base_of(disk, file_of(disk, target, DATA_SUFFIX))
            what = f"{suffixes} of {source} over {target}"
            assert_only_one_place_suffers(copied, set(lost), what)
            assert_a_second_start_finds_nothing_new(copied, what)


def assert_a_second_start_finds_nothing_new(disk: MemoryStorage, what: str) -> None:
    """Start twice: the second start reports no more than the damage that stays."""
    log = LogDriver(disk, options=OPTIONS)
    readings = log.read_all()
    log.close()
    again = LogDriver(disk, options=OPTIONS)
    assert {finding.kind for finding in again.engine.report.findings} <= {"damage"}, what
    assert again.read_all().pieces == readings.pieces, what


def test_a_segment_of_another_topic_is_never_served() -> None:
    """Both files of a segment copied into another topic: its range is damage, not other bytes."""
    disk = stored(OPTIONS, clean=True)
    inside = {key: base_of(disk, file_of(disk, key, DATA_SUFFIX))[1] for key in segment_keys(disk)}
    log = LogDriver(disk, options=OPTIONS)
    topic = log.create_topic("other")
    other = [[b"OTHER %d" % number, b"y" * number] for number in range(5)]
    for number, values in enumerate(other, start=1):
        log.store(values, batch_id=number, topic_id=topic.id)
    log.close()
    for source, target in zip(segment_keys(disk, topic.id), segment_keys(disk), strict=True):
        copied = disk.copy()
        for suffix in (DATA_SUFFIX, SIDECAR_SUFFIX):
            copied_over(
                copied, file_of(disk, source, suffix, topic.id), file_of(disk, target, suffix)
            )
        assert_only_one_place_suffers(copied, set(inside[target]), target)


@pytest.mark.parametrize("clean", [True, False])
def test_a_header_that_disagrees_with_the_topics_file_is_repaired(clean: bool) -> None:
    """A valid header with another base moves nothing: the topic's file knows where it begins."""
    disk = stored(OPTIONS, clean=clean)
    for key in segment_keys(disk):
        path = file_of(disk, key, SIDECAR_SUFFIX)
        header = decode_header(disk.peek(path))
        for base in (header.base_offset + 1, 0 if header.base_offset else 10**6):
            moved = disk.copy()
            wrong = replace(header, base_offset=base).with_crc().encode()
            moved.poke(path, wrong + disk.peek(path)[len(wrong) :])
            assert_only_one_place_suffers(moved, set(), f"{path.name} says base {base}")
