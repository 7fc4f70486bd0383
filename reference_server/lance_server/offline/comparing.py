"""Comparing the bytes of a data directory with those that a server hands out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lance_server.log.metadata.topic_file import TopicFile
from lance_server.log.recovery.recovery_report import Finding
from lance_server.log.segments.segment_files import SegmentName
from lance_server.log.segments.sidecar import HEADER_SIZE, decode_header
from lance_server.log.segments.sidecar_scan import read_entries
from lance_server.offline.peer import ServerPeer, TopicRange
from lance_server.offline.verifying import ReadOnlyStorage
from lance_server.storage.contract import opened, read_at
from lance_spec.errors import DecodeError
from lance_spec.limits import DEFAULT_TOPIC_ID

_METADATA = "metadata.json"


@dataclass(slots=True)
class Comparison:
    """What was compared, and what differs.

    Attributes:
        compared: bytes that are in both.
        only_here: bytes of the directory that lie outside of what the server has.
        only_there: bytes of the server that lie after the directory's end, in its topics.
        findings: what differs.
    """

    compared: int = 0
    only_here: int = 0
    only_there: int = 0
    findings: list[Finding] = field(default_factory=list)


class _Run(NamedTuple):
    """Bytes without a gap in a data file.

    Attributes:
        path: the file.
        base: the offset in the topic at which the file begins.
        start: where in the topic they begin.
        end: where in the topic they end.
    """

    path: Path
    base: int
    start: int
    end: int


def compare(
    data_dir: Path, peer: ServerPeer, progress: Callable[[int], object] = lambda _: None
) -> Comparison:
    """Compare all topics as far as both sides have them; nothing is changed.

    Args:
        data_dir: a data directory that no server is using.
        peer: the server.
        progress: called with the bytes that are done.

    Raises:
        DataDirError: a topic's file cannot be used.
        PeerError: the server does not answer as it should.
        OSError: a file cannot be read.
    """
    found, storage = Comparison(), ReadOnlyStorage()
    theirs = peer.topics()
    segments = data_dir / "segments"
    for name in sorted(filter(str.isdecimal, storage.list_dir(segments)), key=int):
        loaded = TopicFile.load(storage, segments / name)
        if loaded is None:  # its creation was never finished
            continue
        file, topic_id = loaded[0], int(name)
        has = theirs.pop(topic_id, None)
        if has is None:
            _note(found, file.folder, topic_id, "the server has no such topic")
        elif topic_id != DEFAULT_TOPIC_ID and has.name != file.identity.name:
            note = f"it is '{file.identity.name}' here, and '{has.name}' at the server"
            _note(found, file.folder, topic_id, note)
        else:
            _TopicComparison(file, has, peer, found, progress).compare()
    for topic_id, has in sorted(theirs.items()):
        note = f"the server has '{has.name}', and the directory has not"
        _note(found, segments / str(topic_id), topic_id, note)
    return found


def _note(found: Comparison, folder: Path, topic_id: int, note: str) -> None:
    found.findings.append(Finding("other topic", topic_id, folder / _METADATA, 0, 0, note))


class _TopicComparison:
    """Compares one topic."""

    def __init__(
        self,
        file: TopicFile,
        has: TopicRange,
        peer: ServerPeer,
        found: Comparison,
        progress: Callable[[int], object],
    ) -> None:
        self._storage = ReadOnlyStorage()
        self._file = file
        self._has = has
        self._peer = peer
        self._found = found
        self._progress = progress

    def compare(self) -> None:
        start, limit = max(self._has.start, self._file.log_start.offset), self._has.end
        end = self._file.log_start.offset
        for run in self._runs():
            if max(start, end) < min(run.start, limit):
                self._compare_gap(run, max(start, end), min(run.start, limit))
            first = max(run.start, start, end)
            last = max(first, min(run.end, limit))
            self._found.only_here += max(0, run.end - max(run.start, end)) - (last - first)
            self._compare_run(run, first, last)
            self._progress(run.end - run.start)
            end = max(end, run.end)
        self._found.only_there += max(0, limit - max(end, start))

    def _runs(self) -> Iterator[_Run]:
        """Yield what sidecars vouch for, by offset."""
        names = [SegmentName.parse(each) for each in self._storage.list_dir(self._file.folder)]
        runs: list[_Run] = []
        for name in names:
            if name is not None and name.key not in self._file.retiring:
                runs += self._runs_of(name)
        return iter(sorted(runs, key=lambda run: (run.start, run.end)))

    def _runs_of(self, name: SegmentName) -> list[_Run]:
        path, sidecar = self._file.folder / name.data, self._file.folder / name.sidecar
        runs: list[_Run] = []
        try:
            with opened(self._storage, sidecar) as fd:
                base = decode_header(read_at(self._storage, fd, HEADER_SIZE, 0)).base_offset
                for entry in read_entries(self._storage, fd):
                    if entry is None:
                        continue
                    start = base + entry.relative_offset
                    end = start + entry.stored_length
                    if runs and runs[-1].end == start:
                        start = runs.pop().start
                    runs.append(_Run(path, base, start, end))
        except (FileNotFoundError, DecodeError) as error:
            self._add("not compared", path, 0, 0, f"its sidecar cannot be used: {error}")
        return runs

    def _compare_run(self, run: _Run, offset: int, end: int) -> None:
        if offset >= end:
            return
        with opened(self._storage, run.path) as fd:
            while offset < end:
                there = self._peer.read(self._file.identity.id, offset, end - offset)
                if not there.data:
                    following = min(there.next_offset, end)
                    note = there.problem or "the server has a gap there"
                    self._add("missing", run.path, offset - run.base, following - offset, note)
                    offset = following
                    continue
                theirs = bytes(there.data)
                size = self._storage.size(fd)
                have = max(0, min(len(theirs), size - (offset - run.base)))
                ours = bytes(read_at(self._storage, fd, have, offset - run.base))
                self._judge(run, offset, ours, theirs)
                offset += len(theirs)

    def _judge(self, run: _Run, offset: int, ours: bytes, theirs: bytes) -> None:
        self._found.compared += len(theirs)
        if ours == theirs:
            return
        pairs = enumerate(zip(ours, theirs, strict=False))
        first = next((place for place, (one, two) in pairs if one != two), len(ours))
        place = offset + first
        note = f"other bytes than the server's from offset {place} on"
        self._add("difference", run.path, place - run.base, len(theirs) - first, note)

    def _compare_gap(self, run: _Run, offset: int, end: int) -> None:
        """See that the server has no bytes either where the directory has none."""
        there = self._peer.read(self._file.identity.id, offset, end - offset)
        if there.data or there.problem:
            note = there.problem or f"the server has bytes from offset {offset} on"
            self._add("gap", run.path, max(0, offset - run.base), end - offset, note)

    def _add(self, kind: str, path: Path, offset: int, length: int, note: str) -> None:
        finding = Finding(kind, self._file.identity.id, path, offset, length, note)
        self._found.findings.append(finding)
