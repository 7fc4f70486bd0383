"""What a topic's `metadata.json` says of its folder, held against what lies there.

A listing alone is not the truth: a server closes, merges and drops segments while they are
listed, and a file that was removed leaves no trace in it. The metadata names every segment
(AMB-29), those that retention is dropping (AMB-08), and the merge that is under way (AMB-40).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from crc32c import crc32c

from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.spark.errors import DataDamaged
from lance_sdk.spark.files.storage import Entry, read_file
from lance_spec.disk.segment_names import DATA_SUFFIX, SIDECAR_SUFFIX, SegmentName
from lance_spec.errors import DecodeError

METADATA: Final = "metadata.json"
BACKUP: Final = METADATA + ".bak"
_DRAFT: Final = ".tmp"
_CHECKSUM: Final = "checksum"


@dataclass(frozen=True, slots=True)
class Merging:
    """Segments that a merged one is taking the place of.

    Attributes:
        target: name of the merged data file.
        sources: names of the data files that go; the first one has the target's key.
    """

    target: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic's metadata, as far as it says what its folder holds.

    Attributes:
        identity: which topic it is.
        start: byte offset at which the topic begins.
        reached: byte offset up to which it goes at least: what a crash tore before it is retired.
        bases: where each segment begins, by key; None in folders of a published server.
        retiring: keys of the segments that retention is dropping.
        merging: the merge that is under way, if there is one.
    """

    identity: TopicIdentity
    start: int = 0
    reached: int = 0
    bases: Mapping[str, int] | None = None
    retiring: frozenset[str] = frozenset()
    merging: Merging | None = None


def load_metadata(folder: str) -> tuple[bytes, TopicMetadata] | None:
    """Return a topic's metadata with its bytes; None where there is none.

    A copy that is damaged is replaced by the second one, as a server does.

    Raises:
        DataDamaged: no copy can be used.
        OSError: it cannot be read.
    """
    problems = []
    for name in (METADATA, BACKUP):
        path = f"{folder.rstrip('/')}/{name}"
        try:
            raw = read_file(path)
            return raw, _decoded(raw)
        except FileNotFoundError:
            continue
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{path}: {error!r}")
    if problems:
        raise DataDamaged(f"{'; '.join(problems)}; run lance-server repair")
    return None


def _decoded(raw: bytes) -> TopicMetadata:
    body = json.loads(raw)
    stamp = body.pop(_CHECKSUM, None)
    if stamp is not None and stamp != stamp_of(body):
        raise ValueError("its content does not match its checksum")
    identity = TopicIdentity(body["id"], body["name"], body["created_at"], body["topic_epoch"])
    log = body.get("log")
    if log is None:
        return TopicMetadata(identity)
    merging = log.get("merging")
    bases = log.get("bases")
    return TopicMetadata(
        identity,
        int(log.get("start_offset", 0)),
        int(log.get("next_offset", 0)),
        None if bases is None else {key: int(base) for key, base in bases.items()},
        frozenset(log.get("retiring", ())),
        None if merging is None else Merging(merging["target"], tuple(merging["sources"])),
    )


def stamp_of(body: Mapping[str, Any]) -> str:
    """Return the checksum that stands in a document with this content."""
    plain = json.dumps(body, sort_keys=True, ensure_ascii=False, indent=2)
    return f"crc32c:{crc32c(plain.encode()):08x}"


def key_of(name: SegmentName) -> str:
    """Return what data file and sidecar of a segment have in common."""
    return f"{name.start_index}_{name.start_ns}"


@dataclass(slots=True)
class Listing:
    """A topic's folder, sorted by what its metadata says.

    Attributes:
        files: the data files that count, by key.
        names: everything that was listed.
        known: keys of the segments that must be there; None where nothing says.
        problems: how the folder differs from its metadata, in words.
    """

    files: dict[str, tuple[SegmentName, Entry]]
    names: Mapping[str, Entry]
    known: frozenset[str] | None = None
    problems: list[str] = field(default_factory=list)


def sort_listing(metadata: TopicMetadata | None, listed: list[Entry]) -> Listing:
    """Choose the data files that hold the topic now."""
    names = {entry.name: entry for entry in listed if not entry.is_folder}
    if metadata is None or metadata.bases is None:
        return Listing(_by_key(names, frozenset()), names)
    known = set(metadata.bases)
    sources: tuple[str, ...] = ()
    left_out: set[str] = set()
    if metadata.merging is not None:
        merging = metadata.merging
        if _is_placed(merging.target, names):
            left_out.update(set(merging.sources) - {merging.target})
        else:
            left_out.update({merging.target} - set(merging.sources))
            sources = merging.sources
            known.update(_key_of_file(source) for source in sources)
    shown = {name: entry for name, entry in names.items() if name not in left_out}
    found = Listing(_by_key(shown, metadata.retiring), names, frozenset(known))
    found.problems += [
        f"{source} is gone, before the merged segment {metadata.merging.target} took its place"
        for source in sources
        if metadata.merging is not None and source not in names
    ]
    return found


def _is_placed(target: str, names: Mapping[str, Entry]) -> bool:
    """Whether both files of a merged segment have got their names."""
    both = (target, _key_of_file(target) + SIDECAR_SUFFIX)
    return all(name in names and name + _DRAFT not in names for name in both)


def _key_of_file(name: str) -> str:
    return name.partition("-")[0].removesuffix(DATA_SUFFIX)


def _by_key(
    names: Mapping[str, Entry], hidden: frozenset[str]
) -> dict[str, tuple[SegmentName, Entry]]:
    """Return the data files by key; of one that is being renamed, the closed name holds."""
    chosen: dict[str, tuple[SegmentName, Entry]] = {}
    for name, entry in _segments(names):
        key = key_of(name)
        if key not in hidden and (key not in chosen or name.is_closed):
            chosen[key] = name, entry
    return chosen


def _segments(names: Mapping[str, Entry]) -> Iterator[tuple[SegmentName, Entry]]:
    for text in sorted(names):
        try:
            yield SegmentName.parse(text), names[text]
        except DecodeError:
            continue
