"""Producing: records into batches, batches into requests."""

import zlib
from collections.abc import Iterable, Sequence
from typing import Final

from lance_sdk._foreign import Address
from lance_sdk.errors import LanceError, RemoteProtocolError
from lance_sdk.fluvio._asks import Ask, Pause, Steps
from lance_sdk.fluvio._patience import Patience, is_passing
from lance_sdk.fluvio._topics import leaders
from lance_sdk.fluvio.errors import check
from lance_sdk.fluvio.types import FluvioSettings, StoredRecords
from lance_spec.fluvio_batches import FluvioRecord, pack_batches
from lance_spec.messages.fluvio import (
    Batch,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
    RecordSet,
)

_LONGEST_MS: Final = 0x7FFFFFFF
"""The longest wait that a request can tell."""


def partition_of(key: bytes | None, count: int, turn: int) -> int:
    """Return where a record goes: all of one key to one place, those without in turn."""
    return turn % count if key is None else zlib.crc32(key) % count


def batches_of(records: Iterable[FluvioRecord], settings: FluvioSettings) -> list[Batch]:
    """Return records as batches of the size that the settings ask for."""
    found: list[Batch] = []
    some: list[FluvioRecord] = []
    size = 0
    for record in records:
        some.append(record)
        size += len(record.value) + len(record.key or b"")
        if size >= settings.batch_bytes:
            found += pack_batches(some, 0, settings.packing)
            some, size = [], 0
    found += pack_batches(some, 0, settings.packing)
    return found


def deliver(
    topic: str,
    partition: int,
    records: Sequence[FluvioRecord],
    known: list[Address],
    *,
    settings: FluvioSettings,
    patience: Patience,
) -> Steps[list[StoredRecords]]:
    """Store records of one partition, in one request, which may be sent again.

    Args:
        topic: name of the topic.
        partition: number of the partition.
        records: the records.
        known: who leads the partitions; what is found out anew goes in here.
        settings: how to pack, and whether to send again.
        patience: how long to go on after a failure.

    Raises:
        FluvioRefused: the server did not take all of them.
        TransportError: the network failed for too long.
    """
    batches = batches_of(records, settings)
    stale = False
    while True:
        try:
            if stale:
                known[:] = yield from leaders(topic)
                stale = False
            return (yield from _produce(topic, partition, batches, known[partition], settings))
        except LanceError as error:
            if not is_passing(error, again=settings.delivery == "at_least_once"):
                raise
            yield Pause(patience.after(error))
            stale = True


def _produce(
    topic: str, partition: int, batches: list[Batch], at: Address, settings: FluvioSettings
) -> Steps[list[StoredRecords]]:
    asked = ProduceRequest(
        transactional_id=None,
        isolation=-1 if settings.read_committed else 1,
        timeout_ms=int(min(settings.timeout * 1000, _LONGEST_MS)),
        topics=[ProduceTopic(name=topic, partitions=_entries(partition, batches))],
    )
    response = yield Ask(0, asked, at, changes=True)
    answered = [each for found in response.topics for each in found.partitions]
    if len(answered) != len(batches):
        raise RemoteProtocolError(
            f"the Fluvio spu answers {len(answered)} of {len(batches)} batches"
        )
    stored: list[StoredRecords] = []
    for batch, each in zip(batches, answered, strict=True):
        check(f"produce to {topic!r} partition {partition}", each.outcome)
        stored.append(StoredRecords(partition, each.base_offset, batch.last_offset_delta + 1))
    return stored


def _entries(partition: int, batches: list[Batch]) -> list[ProducePartition]:
    return [
        ProducePartition(partition=partition, records=RecordSet(batches=[each])) for each in batches
    ]
