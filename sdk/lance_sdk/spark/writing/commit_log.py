"""The commit log of a sink that writes once: staged frames, a frozen manifest, and what was done.

Tasks stage frames in files; nothing they do is visible. When all are done, the driver writes a
manifest that names the files, and from then on it is settled what the batch is: each frame in it
has an id and a time, and a repetition sends these files, whatever the tasks that ran again have
staged. A server that states a duplicate window stores such a frame once (AMB-25); of another one
it is looked what it has already.
"""

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from struct import Struct
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from crc32c import crc32c

from lance_sdk import Client
from lance_sdk._io import platform
from lance_sdk.errors import ConfigError
from lance_sdk.spark.errors import CheckpointError, SinkError
from lance_sdk.spark.options import Options
from lance_sdk.spark.rows.encoding import Frame
from lance_sdk.spark.writing.dedup import batches_since, ends_of, missing, send_missing
from lance_sdk.spark.writing.sending import FrameSender
from lance_spec.bodies import DedupWindow
from lance_spec.limits import BATCH_COUNTER_BITS, MAX_PAYLOAD

VERSION: Final = 1
_MANIFEST: Final = "manifest.json"
_DONE: Final = "done.json"
_LOCK: Final = "commit.lock"
_HEAD: Final = Struct("<HIII")
"""Length of the topic's name, number of records, length of the payload, CRC32C of both."""
_SHARE_OF_WINDOW: Final = 0.9
"""Of the server's window: the age up to which a repetition is safe."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A file that one task has staged.

    Attributes:
        name: its name in the batch's folder.
        partition: the task's number.
        frames: how many frames are in it.
        records: how many records those hold.
        bytes: of the records.
        query: whose file it is.
        topics: those that frames in it go to.
    """

    name: str
    partition: int
    frames: int
    records: int
    bytes: int
    query: str = ""
    topics: tuple[str, ...] = ()


def local_path(path: str) -> str:
    """Return a commit log's path on this machine.

    Raises:
        ConfigError: it is on another file system.
    """
    if "://" in path and not path.startswith("file://"):
        raise ConfigError(
            f"ledgerPath={path!r}: a commit log is renamed and synced, which needs a mounted "
            "folder that driver and tasks share; say ledgerPath=/a/shared/folder"
        )
    if path.startswith("file:"):
        return unquote(urlsplit(path).path)
    return str(Path(path).absolute())


class CommitLog:
    """The commit log of one query: two queries may share a folder, and number their batches alike.

    Args:
        folder: where it is; made when something is staged.
        query: whose it is.
        clock_ns: wall clock in nanoseconds since the Unix epoch.
    """

    def __init__(self, folder: str, query: str, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._folder = Path(folder, query)
        self._query = query
        self._clock_ns = clock_ns

    def __repr__(self) -> str:
        return f"<CommitLog {self._folder}>"

    def stage(self, frames: Iterable[Frame], batch: int, partition: int, attempt: int) -> Staged:
        """Put frames into a new file, durably.

        Raises:
            SinkError: the file system does not take them; nothing of them is left there.
        """
        home = self._home(batch)
        name = f"part-{partition:05d}-{attempt}-{secrets.token_hex(4)}.frames"
        count = records = size = 0
        topics: set[str] = set()
        with _written(home / name) as write:
            for frame in frames:
                write(_encode(frame))
                topics.add(frame.topic)
                count, records = count + 1, records + frame.count
                size += len(frame.payload)
        return Staged(name, partition, count, records, size, self._query, tuple(sorted(topics)))

    def commit(self, options: Options, staged: Sequence[Staged], batch: int) -> None:
        """Send a batch; does nothing when it was sent already.

        Raises:
            SinkError: it may be too late for the server's duplicate window, or another driver is
                at it.
            DeliveryError: not everything was acknowledged.
        """
        with self._alone():
            self._commit(options, staged, batch)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other drivers out; the lock of one that is killed goes with it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / _LOCK).open("wb") as file:
            try:
                platform.lock(file.fileno())
            except BlockingIOError:
                raise SinkError(
                    f"{self._folder}: another driver commits a batch of this query; let only one "
                    "query use a checkpoint, or a txnId, at a time"
                ) from None
            yield

    def _commit(self, options: Options, staged: Sequence[Staged], batch: int) -> None:
        home = self._home(batch)
        if (home / _DONE).exists():
            return
        manifest = self._frozen(home, staged, batch)
        if manifest["files"]:
            with Client(options.url(), **options.client_options()) as client:
                window = client.cluster_status().dedup_window
            if window is None or not window.entries:
                self._send_looking(options, manifest, home)
            else:
                self._check_age(manifest, window, home)
                done = self._check_count(options, manifest, window, home)
                self._mark_tried(options, home, manifest)
                _send(options, manifest, home, done)
        _replace(home / _DONE, {"v": VERSION, "batch": batch})
        self._sweep(home, batch)

    def abort(self, staged: Sequence[Staged], batch: int) -> None:
        """Remove what was staged, unless it is frozen."""
        home = self._home(batch)
        if (home / _MANIFEST).exists():
            return
        for each in staged:
            (home / each.name).unlink(missing_ok=True)

    def _home(self, batch: int) -> Path:
        return self._folder / f"batch-{batch}"

    def _frozen(self, home: Path, staged: Sequence[Staged], batch: int) -> dict[str, Any]:
        """Return the manifest; make it, durably, when there is none."""
        path = home / _MANIFEST
        if path.exists():
            return _load(path)
        chosen = sorted((each for each in staged if each.frames), key=attrgetter("partition"))
        manifest = {
            "v": VERSION,
            "batch": batch,
            "nonce": secrets.randbelow(2**24 - 1) + 1,
            "created_ns": self._clock_ns(),
            "tried": False,
            "files": [asdict(each) for each in chosen],
        }
        _replace(path, manifest)
        return manifest

    def _mark_tried(self, options: Options, home: Path, manifest: dict[str, Any]) -> None:
        """Note, before the first frame is sent, that this began, and where topics ended then."""
        if not manifest["tried"]:
            manifest["tried"] = True
            manifest["window_ends"] = ends_of(options, _topics(manifest, home))
            _replace(home / _MANIFEST, manifest)

    def _send_looking(self, options: Options, manifest: dict[str, Any], home: Path) -> None:
        """Send what the server has not, as far as looking tells (SPK-01)."""
        places = None
        if "ends" in manifest:
            places = missing(options, manifest["ends"], _frames(manifest, home))
        elif manifest["tried"]:
            raise SinkError(
                f"{home} was begun with a server that states a duplicate window and "
                f"{options.servers} states none; go on with the server it was begun with"
            )
        else:
            manifest["ends"] = ends_of(options, _topics(manifest, home))
            _replace(home / _MANIFEST, manifest)
        send_missing(options, _frames(manifest, home), places)

    def _check_age(self, manifest: Mapping[str, Any], window: DedupWindow, home: Path) -> None:
        age = (self._clock_ns() - int(manifest["created_ns"])) / 1e9
        if manifest["tried"] and age > _SHARE_OF_WINDOW * window.max_age_secs:
            raise SinkError(
                f"{home} was begun {age:.0f} s ago and the server remembers batches for "
                f"{window.max_age_secs} s: look whether its records are in the topic, then create "
                f"{home / _DONE} to count them as written, or remove {home} to write them again"
            )

    def _check_count(
        self, options: Options, manifest: Mapping[str, Any], window: DedupWindow, home: Path
    ) -> set[str]:
        """Look whether other batches have pushed ours out of the server's window.

        Returns:
            The topics that have all of their frames, and would store them again.

        Raises:
            SinkError: a topic has some of them, and the server may not remember which.
        """
        done = set()
        for topic, end in manifest.get("window_ends", {}).items():
            ours = (frame for frame in _frames(manifest, home) if frame.topic == topic)
            since = batches_since(options, topic, end, ours)
            if since.arrived + since.others <= _SHARE_OF_WINDOW * window.entries:
                continue
            if not since.complete:
                raise SinkError(
                    f"{home} was begun, and topic {topic!r} got up to "
                    f"{since.arrived + since.others} batches since, of which the server remembers "
                    f"{window.entries}: look whether its records are in the topic, then create "
                    f"{home / _DONE} to count them as written, or remove {home} to write them again"
                )
            done.add(topic)
        return done

    def _sweep(self, home: Path, batch: int) -> None:
        """Remove what is of no use any more: staged files, and batches before this one."""
        for path in home.glob("*.frames"):
            path.unlink(missing_ok=True)
        for path in self._folder.glob("batch-*"):
            number = path.name.removeprefix("batch-")
            if number.isdigit() and int(number) < batch:
                shutil.rmtree(path, ignore_errors=True)


def _encode(frame: Frame) -> bytes:
    topic = frame.topic.encode()
    crc = crc32c(frame.payload, crc32c(topic))
    head = _HEAD.pack(len(topic), frame.count, len(frame.payload), crc)
    return b"".join((head, topic, frame.payload))


def read_staged(path: Path) -> Iterator[Frame]:
    """Yield the frames of a staged file.

    Raises:
        CheckpointError: it is damaged.
    """
    with path.open("rb") as file:
        while head := file.read(_HEAD.size):
            if len(head) < _HEAD.size:
                raise _damaged(path, file.tell())
            name_length, count, length, crc = _HEAD.unpack(head)
            topic, payload = file.read(name_length), file.read(min(length, MAX_PAYLOAD + 1))
            if len(payload) != length or crc32c(payload, crc32c(topic)) != crc:
                raise _damaged(path, file.tell())
            yield Frame(topic.decode(), count, payload)


def _damaged(path: Path, offset: int) -> CheckpointError:
    return CheckpointError(
        f"{path}: the staged frame that ends at byte {offset} is damaged; restore the commit log"
    )


def _send(options: Options, manifest: Mapping[str, Any], home: Path, done: Collection[str]) -> None:
    """Send every frame under its own id, in the order of the manifest; to topics not done yet."""
    total = sum(int(file["frames"]) for file in manifest["files"])
    nonce, moment = int(manifest["nonce"]), int(manifest["created_ns"])
    senders: dict[str, FrameSender] = {}
    with ExitStack() as stack:
        for number, frame in enumerate(_frames(manifest, home), start=1):
            if frame.topic in done:
                continue
            if frame.topic not in senders:
                sender = FrameSender(options, frame.topic, nonce=nonce, frames=total)
                senders[frame.topic] = stack.enter_context(sender)
            batch_id = nonce << BATCH_COUNTER_BITS | number
            senders[frame.topic].send_frame(frame, batch_id=batch_id, timestamp_ns=moment)
        for sender in senders.values():
            sender.finish()


def _frames(manifest: Mapping[str, Any], home: Path) -> Iterator[Frame]:
    for file in manifest["files"]:
        yield from read_staged(home / str(file["name"]))


def _topics(manifest: Mapping[str, Any], home: Path) -> list[str]:
    """Return the topics of a batch; files that the first release staged are read for it."""
    found: set[str] = set()
    for file in manifest["files"]:
        staged = file.get("topics") or (
            each.topic for each in read_staged(home / str(file["name"]))
        )
        found.update(staged)
    return sorted(found)


def _load(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_bytes())
        version = body["v"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error!r}; restore the commit log") from None
    if version != VERSION:
        raise CheckpointError(f"{path} has version {version!r} and this package reads {VERSION}")
    return dict(body)


def _replace(path: Path, body: Mapping[str, Any]) -> None:
    """Write a small file so that there is the old one or the new one, durably."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    with _written(fresh) as write:
        write(json.dumps(body, sort_keys=True).encode())
    with _explained(path):
        fresh.replace(path)
        platform.sync_folder(path.parent)


@contextmanager
def _written(path: Path) -> Iterator[Callable[[bytes], None]]:
    """Yield what writes to a new file, which is durable at the end, or not there."""
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = platform.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)

    def write(data: bytes) -> None:
        with _explained(path):
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]

    try:
        yield write
        with _explained(path):
            platform.sync(fd)
            platform.sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
    finally:
        os.close(fd)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say of an error of the file system where it happened, and what to do."""
    try:
        yield
    except OSError as error:
        raise SinkError(
            f"{path} cannot be written: {error.strerror or error}; make room there, or say "
            "another ledgerPath, and start the query again"
        ) from error
