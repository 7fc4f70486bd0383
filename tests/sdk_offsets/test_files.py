"""The lock file store: one consumer at a time, atomic replacement, the published layout."""

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.platforms.systems import needs_posix

from lance_sdk._io import at_fork
from lance_sdk.errors import ConfigError, ForkedError
from lance_sdk.offsets import (
    Commit,
    FileStore,
    Fingerprint,
    OffsetStoreError,
    StoreCorrupt,
    StoreLocked,
    StoreUnavailable,
    TopicIdentity,
    consumer_id,
    files,
)

# What the published Rust client calls the files of the consumer "my-consumer" in topic 7.
RUST_NAME = "topic-7-consumer-18044035401257023742"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the consumer ``my-consumer``, which is there already."""
    made = tmp_path / "my-consumer"
    made.mkdir()
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    """Return a store whose folder is the test's own."""
    store = FileStore(tmp_path)
    yield store
    store.close()


def commit(topic: TopicIdentity, offset: int, *, marked: bool = True) -> Commit:
    """Return a commit of ``my-consumer``, with a fingerprint where there can be one."""
    mark = Fingerprint(0, offset, "ab" * 16) if marked else None
    return Commit(consumer="my-consumer", topic=topic, offset=offset, fingerprint=mark)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("my-consumer", 18044035401257023742),
        ("worker-1", 16750551406947868958),
        ("test", 14402189752926126668),
        ("a", 8186225505942432243),
    ],
)
def test_consumer_ids_are_the_published_ones(name: str, number: int) -> None:
    """A name becomes the number that the published Rust client makes of it."""
    assert consumer_id(name) == number


def test_published_layout_is_written(store: FileStore, folder: Path, orders: TopicIdentity) -> None:
    """The published Rust client finds the offset where it looks for it, in its form."""
    store.save(commit(orders, 1234))
    assert (folder / f"{RUST_NAME}.offset").read_bytes() == b"1234\n"


def test_published_layout_is_read(store: FileStore, folder: Path, orders: TopicIdentity) -> None:
    """An offset that the published Rust client wrote is where this consumer goes on."""
    (folder / f"{RUST_NAME}.offset").write_bytes(b"77\n")
    found = store.claim("my-consumer", orders)
    assert (found.offset, found.topic, found.fingerprint) == (77, TopicIdentity(7), None)


def test_other_published_name_is_read_and_kept(
    store: FileStore, folder: Path, orders: TopicIdentity
) -> None:
    """A file named as the design document has it is read, and written again under its name."""
    path = folder / f"{RUST_NAME.replace('-', '_')}.offset"
    path.write_bytes(b"77\n")
    assert store.claim("my-consumer", orders).offset == 77
    store.save(commit(orders, 99))
    assert path.read_bytes() == b"99\n"


def test_own_number_for_the_consumer(tmp_path: Path, folder: Path, orders: TopicIdentity) -> None:
    """Where another program uses a number of its own, this one can too."""
    (folder / "topic-7-consumer-5.offset").write_bytes(b"77\n")
    store = FileStore(tmp_path, consumer_id=5)
    assert store.claim("my-consumer", orders).offset == 77
    store.close()


def test_impossible_number_is_refused(tmp_path: Path) -> None:
    """A consumer's number has 64 bits."""
    with pytest.raises(ConfigError, match="consumer_id="):
        FileStore(tmp_path, consumer_id=2**64)


def test_offset_moved_by_another_program_counts(
    store: FileStore, folder: Path, orders: TopicIdentity
) -> None:
    """Where another program moved the offset, it goes on there and the fingerprint is void."""
    store.save(commit(orders, 1234))
    (folder / f"{RUST_NAME}.offset").write_bytes(b"600\n")
    found = store.claim("my-consumer", orders)
    assert found == commit(orders, 600, marked=False)


def test_crash_between_the_two_files(store: FileStore, folder: Path, orders: TopicIdentity) -> None:
    """An offset file that is newer than its commit file is believed, without a fingerprint."""
    store.save(commit(orders, 100))
    old = (folder / f"{RUST_NAME}.commit").read_bytes()
    store.save(commit(orders, 200))
    (folder / f"{RUST_NAME}.commit").write_bytes(old)
    assert store.claim("my-consumer", orders) == commit(orders, 200, marked=False)


def test_unfinished_files_are_ignored(
    store: FileStore, folder: Path, orders: TopicIdentity
) -> None:
    """What a crash left half written is not read."""
    store.save(commit(orders, 100))
    for suffix in ("offset", "commit"):
        (folder / f"{RUST_NAME}.{suffix}.tmp").write_bytes(b"\0garbage")
    assert store.commits() == [commit(orders, 100)]


def test_strange_files_are_left_alone(
    store: FileStore, folder: Path, orders: TopicIdentity
) -> None:
    """Files of others in the folder are neither listed nor touched."""
    store.save(commit(orders, 100))
    (folder / "topic-notes.txt").write_text("mine")
    (folder.parent / "README").write_text("mine")
    assert len(store.commits()) == 1


def test_holder_is_named(store: FileStore, tmp_path: Path, orders: TopicIdentity) -> None:
    """Whoever is refused learns which process to end."""
    store.claim("my-consumer", orders)
    with pytest.raises(StoreLocked, match=f"in use by process {os.getpid()} ") as caught:
        FileStore(tmp_path).claim("my-consumer", orders)
    assert caught.value.holder == os.getpid()


def test_locked_offset_cannot_be_saved_by_others(
    store: FileStore, tmp_path: Path, orders: TopicIdentity
) -> None:
    """While it is claimed, nobody else moves the offset."""
    store.claim("my-consumer", orders)
    with pytest.raises(StoreLocked):
        FileStore(tmp_path).save(commit(orders, 1))
    with pytest.raises(StoreLocked):
        FileStore(tmp_path).forget("my-consumer", orders)


def test_unclaimed_save_locks_only_while_it_writes(
    store: FileStore, tmp_path: Path, orders: TopicIdentity
) -> None:
    """A save without a claim leaves the offset free."""
    store.save(commit(orders, 1))
    other = FileStore(tmp_path)
    assert other.claim("my-consumer", orders).offset == 1
    other.close()


_HOLDER = """
import sys, time
from lance_sdk.offsets import Commit, FileStore, TopicIdentity
topic = TopicIdentity(id=7, name="orders", created_at=1_700_000_000, epoch=2)
store = FileStore(sys.argv[1])
found = store.claim("my-consumer", topic)
offset = 0 if found is None else found.offset
while True:
    print(offset, flush=True)
    offset += 1
    store.save(Commit(consumer="my-consumer", topic=topic, offset=offset))
"""


def test_killed_consumer_leaves_a_whole_commit(tmp_path: Path, orders: TopicIdentity) -> None:
    """Killed while it saves, over and over: the last confirmed commit is there, and is free."""
    last = 0
    for _ in range(5):
        command = [sys.executable, "-c", _HOLDER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            confirmed = [int(next(process.stdout)) for _ in range(20)]
            process.send_signal(signal.SIGKILL)
            confirmed += map(int, process.stdout)
        assert confirmed[0] >= last
        store = FileStore(tmp_path)
        last = store.claim("my-consumer", orders).offset
        store.close()
        assert confirmed[-1] <= last <= confirmed[-1] + 1


@needs_posix("no process is forked there")
def test_forked_child_does_not_hold_the_lock(
    store: FileStore, tmp_path: Path, orders: TopicIdentity
) -> None:
    """A child that outlives its parent's consumer does not keep the offset locked."""
    store.claim("my-consumer", orders)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # only reports: an assertion here would run the rest of the tests twice
        os.close(write)
        try:
            store.claim("my-consumer", orders)
        except ForkedError:
            os.read(read, 1)
            os._exit(0)
        os._exit(1)
    store.release("my-consumer", orders)
    other = FileStore(tmp_path)
    other.claim("my-consumer", orders)
    other.close()
    os.close(write)
    os.close(read)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("content", [b"", b"-1\n", b"1.5", b"9" * 40, b"1\n2\n", b"\xff"])
def test_damaged_offset_is_refused(
    store: FileStore, folder: Path, orders: TopicIdentity, content: bytes
) -> None:
    """An offset file that holds no offset stops the consumer instead of starting it anywhere."""
    path = folder / f"{RUST_NAME}.offset"
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match=r"expected .*, got .*; repair it, or remove it"):
        store.claim("my-consumer", orders)


def test_damaged_commit_names_the_field(
    store: FileStore, folder: Path, orders: TopicIdentity
) -> None:
    """A commit file with a wrong field says which one."""
    store.save(commit(orders, 100))
    path = folder / f"{RUST_NAME}.commit"
    path.write_text(path.read_text().replace('"generation": 0', '"generation": "x"'))
    with pytest.raises(StoreCorrupt, match="generation: expected a number, got 'x'"):
        store.claim("my-consumer", orders)


def test_commit_of_a_later_version_is_refused(
    store: FileStore, folder: Path, orders: TopicIdentity
) -> None:
    """A file of a later version is not guessed at."""
    store.save(commit(orders, 100))
    path = folder / f"{RUST_NAME}.commit"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(StoreCorrupt, match="version 2 and this program reads 1"):
        store.claim("my-consumer", orders)


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each example writes again
)
@given(offset=st.binary(max_size=80), document=st.binary(max_size=400))
@example(offset=b"1\n", document=b"[" * 100_000)
@example(offset=b"1\n", document=b'{"version": ' + b"9" * 5000 + b"}")
@example(offset=b"1\n", document=b'{"version": 1, "offset": 1, "consumer": "\\ud800"}')
def test_no_file_content_crashes(
    store: FileStore, folder: Path, orders: TopicIdentity, offset: bytes, document: bytes
) -> None:
    """Whatever the files hold, a claim returns a commit or says what is wrong with them."""
    (folder / f"{RUST_NAME}.offset").write_bytes(offset)
    (folder / f"{RUST_NAME}.commit").write_bytes(document)
    try:
        store.claim("my-consumer", orders)
    except OffsetStoreError:
        pass
    finally:
        store.release("my-consumer", orders)


def test_folder_that_is_a_file(tmp_path: Path, orders: TopicIdentity) -> None:
    """A folder that cannot be made is named."""
    (tmp_path / "offsets").write_text("no folder")
    with pytest.raises(StoreUnavailable, match=r"offsets.*Not a directory"):
        FileStore(tmp_path / "offsets").claim("my-consumer", orders)


def test_missing_folder_has_no_commits(tmp_path: Path) -> None:
    """Looking creates nothing."""
    assert FileStore(tmp_path / "offsets").commits() == []
    assert not (tmp_path / "offsets").exists()


def test_full_disk_keeps_the_old_commit(
    store: FileStore, orders: TopicIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that the disk refuses leaves the one before it, and says why."""
    store.save(commit(orders, 100))

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.platform, "sync", full)
    with pytest.raises(StoreUnavailable, match="No space left on device"):
        store.save(commit(orders, 200))
    assert store.commits() == [commit(orders, 100)]


def test_new_folders_are_durable(
    tmp_path: Path, orders: TopicIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is created for a commit is synced into the one above it."""
    synced: list[Path] = []
    sync = files.platform.sync_folder

    def noted(folder: Path) -> None:
        synced.append(folder)
        sync(folder)

    monkeypatch.setattr(files.platform, "sync_folder", noted)
    FileStore(tmp_path / "a" / "b").save(commit(orders, 100))
    above = [tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "my-consumer"]
    assert synced == above


def test_same_name_other_number_is_found(store: FileStore, orders: TopicIdentity) -> None:
    """A topic created again under its name has another file, and is noticed all the same."""
    store.save(commit(orders, 100))
    again = dataclasses.replace(orders, id=9)
    assert store.claim("my-consumer", again).topic == orders


def test_a_claim_that_ctrl_c_cut_short_is_none(
    tmp_path: Path, orders: TopicIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same program may claim again."""
    store = FileStore(tmp_path)

    def interrupt(_store: FileStore) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(at_fork, "register", interrupt)
        with pytest.raises(KeyboardInterrupt):
            store.claim("app", orders)
    store.claim("app", orders)
    store.close()
