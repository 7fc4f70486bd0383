"""How far a streaming query is: what it keeps in Spark's checkpoint, version 2 (AMB-30).

Version 1 is laid out alike; its rows have in their column ``value`` what is stored, with key and
time before the payload (``recordFormat=stored``). A query that began with it goes on with it.

A checkpoint says of each topic where a micro-batch begins and ends, which topic that is, what the
last records before the end are recognised by, and into which splits the batch is cut. The
beginning stands inside the end because Spark itself does not keep where a query began: a first
batch that failed would begin somewhere else when it is repeated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from lance_sdk.offsets.contract import Fingerprint, TopicIdentity
from lance_sdk.spark.errors import CheckpointError

VERSION: Final = 2
STORED_VERSION: Final = 1
LAG: Final = "lag"
"""The field with a topic's lag, where Spark asks for the ends of topics."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a split of a micro-batch ends.

    Attributes:
        end: byte offset after its last record.
        crc: CRC32C of its records as they were when the batch was planned, where it was read.
    """

    end: int
    crc: int | None = None


@dataclass(frozen=True, slots=True)
class TopicCheckpoint:
    """How far a query is in one topic.

    Attributes:
        topic: which topic it is.
        start: byte offset at which the micro-batch begins.
        offset: byte offset after its last record; a record's boundary, always.
        fingerprint: of the records before ``offset``, where there are some.
        cuts: the splits between ``start`` and ``offset``.
        rest: fields of a later version, kept as they are.
        records: how many the micro-batch has, where it has just been planned; it is not kept.
    """

    topic: TopicIdentity
    start: int
    offset: int
    fingerprint: Fingerprint | None = None
    cuts: tuple[Cut, ...] = ()
    rest: Mapping[str, Any] = field(default_factory=dict)
    records: int = field(default=0, compare=False)

    def moved(
        self,
        offset: int,
        fingerprint: Fingerprint | None,
        cuts: tuple[Cut, ...],
        records: int,
    ) -> "TopicCheckpoint":
        """Return the checkpoint of the next micro-batch, which begins where this one ends."""
        return replace(
            self,
            start=self.offset,
            offset=offset,
            fingerprint=fingerprint,
            cuts=cuts,
            records=records,
        )

    def resting(self) -> "TopicCheckpoint":
        """Return the checkpoint of a next micro-batch that takes nothing from this topic."""
        return replace(self, start=self.offset, cuts=(), records=0)

    def to_json(self) -> dict[str, Any]:
        """Return what stands in the checkpoint."""
        body: dict[str, Any] = dict(self.rest)
        body |= {"id": self.topic.id, "created_at": self.topic.created_at}
        body |= {"epoch": self.topic.epoch, "from": self.start, "offset": self.offset}
        body = {name: value for name, value in body.items() if value is not None}
        if (known := self.fingerprint) is not None:
            body["fp"] = {
                "start": known.start,
                "length": known.length,
                "digest": known.digest,
            }
        if self.cuts:
            body["cuts"] = [
                {"end": cut.end} if cut.crc is None else {"end": cut.end, "crc": cut.crc}
                for cut in self.cuts
            ]
        return body


_KNOWN: Final = frozenset({"id", "created_at", "epoch", "from", "offset", "fp", "cuts"})


def encode_checkpoint(
    checkpoints: Mapping[str, TopicCheckpoint], version: int = VERSION
) -> dict[str, Any]:
    """Return a streaming offset as Spark keeps it."""
    return {
        "v": version,
        "topics": {name: checkpoints[name].to_json() for name in sorted(checkpoints)},
    }


def decode_checkpoint(offset: Any) -> dict[str, TopicCheckpoint]:
    """Read a streaming offset.

    Raises:
        CheckpointError: it is none, or of a later version.
    """
    version_of(offset)
    topics = offset.get("topics")
    if not isinstance(topics, dict):
        raise CheckpointError("the checkpoint has no field 'topics'; it is not an lwp checkpoint")
    return {name: _decode(name, body) for name, body in topics.items()}


def version_of(offset: Any) -> int:
    """Return the version of a streaming offset.

    Raises:
        CheckpointError: it has none that this package reads.
    """
    version = offset.get("v") if isinstance(offset, Mapping) else None
    if isinstance(version, bool) or version not in (STORED_VERSION, VERSION):
        raise CheckpointError(
            f"the checkpoint has version {version!r} and this package reads up to {VERSION}; use "
            "the version of lance-sdk that wrote it, or another checkpointLocation"
        )
    return int(version)


def _decode(name: str, body: Any) -> TopicCheckpoint:
    try:
        known = body.get("fp")
        found = TopicCheckpoint(
            TopicIdentity(
                _number(body["id"]), name, _maybe(body, "created_at"), _maybe(body, "epoch")
            ),
            _number(body["from"]),
            _number(body["offset"]),
            None if known is None else _fingerprint(known),
            tuple(Cut(_number(cut["end"]), _maybe(cut, "crc")) for cut in body.get("cuts", ())),
            {key: value for key, value in body.items() if key not in _KNOWN},
        )
        _check_order(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"the checkpoint cannot be read: topic {name!r}: {error!r}; restore it from a backup"
        ) from None
    return found


def _fingerprint(body: Mapping[str, Any]) -> Fingerprint:
    return Fingerprint(_number(body["start"]), _number(body["length"]), str(body["digest"]))


def _check_order(checkpoint: TopicCheckpoint) -> None:
    """Refuse splits that overlap, go back, or do not end where the micro-batch does."""
    ends = [cut.end for cut in checkpoint.cuts]
    edges = [checkpoint.start, *ends, checkpoint.offset]
    if edges != sorted(edges) or (ends and ends[-1] != checkpoint.offset):
        raise ValueError(f"splits from {checkpoint.start} to {checkpoint.offset} end at {ends}")


def _maybe(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    return None if value is None else _number(value)


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{value!r} is not an offset")
    return value
