"""The catalog: topic ids and names that were ever given away, and partitioned topics.

See AMB-30, AMB-34 and AMB-59. A partitioned topic is there as soon as its description
is, and gone as soon as that is gone. The topics of one that is being created or deleted are
`creating` or `deleting` meanwhile: their folders go at the next start.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from lance_server.log.metadata.checksummed_file import load_document, save_document
from lance_server.log.metadata.partition_description import PartitionedTopic
from lance_server.runtime.sync import new_lock
from lance_server.storage.contract import StorageBackend, UndecidedError
from lance_spec.bodies import take_int
from lance_spec.errors import DecodeError

_log = logging.getLogger(__name__)
FILE_NAME: Final = "catalog.json"
DELETED_PREFIX: Final = ".deleted-"
_MAX_RETIRED_NAMES: Final = 10_000


class TopicIdAllocator:
    """Hands out topic ids and epochs that were never used before.

    Changes are made and saved by one worker thread at a time.

    Attributes:
        partitioned: the descriptions of partitioned topics, by name; replaced, never changed.
        creating: topics of a partitioned topic that is not whole yet.
        deleting: topics of partitioned topics that are deleted, whose folders may be there.
    """

    def __init__(self, storage: StorageBackend, folder: Path) -> None:
        self._storage = storage
        self._path = folder / FILE_NAME
        self._lock = new_lock()
        self._next_id = 1
        self._epoch_floor = 0
        self._retired: dict[str, int] = {}
        self.partitioned: Mapping[str, PartitionedTopic] = {}
        self.creating: tuple[int, ...] = ()
        self.deleting: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"<TopicIdAllocator next_id={self._next_id} retired names={len(self._retired)}>"

    @property
    def next_id(self) -> int:
        """The id that the next topic gets."""
        return self._next_id

    @property
    def epoch_floor(self) -> int:
        """No name that is not among the retired ones had a higher epoch."""
        return self._epoch_floor

    @property
    def retired(self) -> Mapping[str, int]:
        """The last epoch of names that are free again, oldest first."""
        return self._retired

    @property
    def has_partitioned(self) -> bool:
        """Whether something stands in it of partitioned topics."""
        return bool(self.partitioned or self.creating or self.deleting)

    def load(self) -> str | None:
        """Read the file; return what was wrong with one of its copies.

        Raises:
            DataDirError: neither copy can be used.
            DecodeError: a field is missing.
        """
        document = load_document(self._storage, self._path)
        if document is None:
            return None
        body = document.body
        self._next_id = take_int(body, "next_id", FILE_NAME, 2**32)
        self._epoch_floor = take_int(body, "epoch_floor", FILE_NAME)
        retired = body.get("retired_names")
        if not isinstance(retired, dict):
            raise DecodeError(FILE_NAME, "retired_names", 0, "an object", repr(retired)[:80])
        self._retired = {name: take_int(retired, name, FILE_NAME) for name in retired}
        found = body.get("partitioned", {})  # the first release has none
        if not isinstance(found, dict):
            raise DecodeError(FILE_NAME, "partitioned", 0, "an object", repr(found)[:80])
        self.partitioned = {name: PartitionedTopic.from_body(name, found[name]) for name in found}
        self.creating, self.deleting = _ids(body, "creating"), _ids(body, "deleting")
        return document.problem

    def reserve_above(self, used: Iterator[int]) -> None:
        """Never hand out an id up to those in use."""
        self._next_id = max([self._next_id, *(topic_id + 1 for topic_id in used)])

    def save(self) -> None:
        """Write it, durably."""
        with self._lock:
            self._save()

    def claim(self, name: str) -> tuple[int, int]:
        """Return a new id and the epoch of a new topic, after both are durable.

        An id is spent even if the topic is never finished.
        """
        with self._lock:
            topic_id, epoch = self._next_id, self._epoch_of(name) + 1
            self._next_id += 1
            self._save()
        return topic_id, epoch

    def retire(self, name: str, epoch: int) -> None:
        """Remember the epoch of a topic that is deleted, durably."""
        with self._lock:
            self._remember(name, epoch)
            self._save()

    # Partitioned topics ------------------------------------------------------------------------

    def begin(self, names: Sequence[str]) -> list[tuple[int, int]]:
        """Return new ids and epochs of topics that become partitions, after both are durable."""
        with self._lock, self._restoring(also_undecided=False):
            claimed = [
                (self._next_id + place, self._epoch_of(name) + 1)
                for place, name in enumerate(names)
            ]
            self._next_id += len(names)
            self.creating = tuple(topic_id for topic_id, _ in claimed)
            self._save()
        return claimed

    def commit(self, described: PartitionedTopic) -> None:
        """Have a partitioned topic be there with the topics that were begun, durably.

        Raises:
            UndecidedError: the next start may find it whole.
            OSError: it finds what there was before.
        """
        with self._lock, self._restoring():
            self.partitioned = {**self.partitioned, described.name: described}
            self.creating = ()
            self._save()

    def give_up(self) -> None:
        """Forget the topics that were begun, durably: their folders are gone."""
        with self._lock:
            self.creating = ()
            self._save()

    def change(self, described: PartitionedTopic) -> None:
        """Replace a description, durably."""
        with self._lock, self._restoring():
            self.partitioned = {**self.partitioned, described.name: described}
            self._save()

    def drop(self, name: str, epochs: Mapping[str, int]) -> None:
        """Have a partitioned topic be gone, durably.

        Args:
            name: of the partitioned topic.
            epochs: of its topics, by name.

        Raises:
            UndecidedError: the next start may find it; here it is gone.
            OSError: it is there as before.
        """
        with self._lock, self._restoring(also_undecided=False):
            gone = self.partitioned[name]
            rest = {each: self.partitioned[each] for each in self.partitioned if each != name}
            self.partitioned = rest
            self.deleting = (*self.deleting, *gone.topic_ids)
            for each, epoch in epochs.items():
                self._remember(each, epoch)
            self._save()

    def dropped(self, topic_ids: Sequence[int]) -> None:
        """Forget deleted topics, durably: their folders are gone."""
        with self._lock:
            self.deleting = tuple(each for each in self.deleting if each not in topic_ids)
            self._save()

    def delete_unfinished(self, keep: Sequence[int]) -> None:
        """Take topics whose creation a stop cut short as deleted, but for some."""
        with self._lock:
            rest = (each for each in self.creating if each not in keep)
            self.creating, self.deleting = (), (*self.deleting, *rest)

    @contextmanager
    def _restoring(self, *, also_undecided: bool = True) -> Iterator[None]:
        """Leave descriptions as they were when the disk refuses."""
        before = self.partitioned, self.creating, self.deleting
        try:
            yield
        except OSError as error:
            if also_undecided or not isinstance(error, UndecidedError):
                self.partitioned, self.creating, self.deleting = before
            raise

    def _remember(self, name: str, epoch: int) -> None:
        self._retired.pop(name, None)
        self._retired[name] = epoch
        if len(self._retired) > _MAX_RETIRED_NAMES:
            oldest = next(iter(self._retired))
            self._epoch_floor = max(self._epoch_floor, self._retired.pop(oldest))

    def _epoch_of(self, name: str) -> int:
        return max(self._retired.get(name, 0), self._epoch_floor)

    def _save(self) -> None:
        body: dict[str, Any] = {
            "next_id": self._next_id,
            "epoch_floor": self._epoch_floor,
            "retired_names": self._retired,
        }
        if self.partitioned:
            described = self.partitioned
            body["partitioned"] = {name: described[name].to_body() for name in described}
        body |= {"creating": list(self.creating)} if self.creating else {}
        body |= {"deleting": list(self.deleting)} if self.deleting else {}
        save_document(self._storage, self._path, body)


def _ids(body: Mapping[str, Any], name: str) -> tuple[int, ...]:
    found = body.get(name, [])
    if not isinstance(found, list) or not all(type(each) is int for each in found):
        raise DecodeError(FILE_NAME, name, 0, "a list of numbers", repr(found)[:80])
    return tuple(found)
