"""Producing: records into batches, batches into requests."""

from collections.abc import Iterable
from typing import Final

from lance_sdk.errors import LanceError, RemoteProtocolError
from lance_sdk.fluvio._asks import Ask, Pause, Steps
from lance_sdk.fluvio._retries import Retries, is_passing
from lance_sdk.fluvio._send_buffer import SendBuffer
from lance_sdk.fluvio._topics import Leaders, leaders
from lance_sdk.fluvio.errors import FluvioRefused, check
from lance_sdk.fluvio.types import FluvioSettings, StoredRecords
from lance_spec.fluvio.batches import FluvioRecord, pack_batches
from lance_spec.messages.fluvio import (
    Batch,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
    RecordSet,
)

_LONGEST_MS: Final = 0x7FFFFFFF
"""The longest wait that a request can tell."""


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
    send_buffer: SendBuffer, known: Leaders, settings: FluvioSettings, retries: Retries
) -> Steps[list[StoredRecords]]:
    """Store what waits, one request a partition; those that fail for now do not hold up others.

    Args:
        send_buffer: the records. Those of a partition at fault are gone from it after an error.
        known: who leads the partitions; what is found out goes in here.
        settings: how to pack, and whether to send again.
        retries: how long to go on while nothing can be stored.

    Raises:
        FluvioRefused: the server did not take all of them.
        TransportError: the network failed for too long.
    """
    stored: list[StoredRecords] = []
    while waiting := send_buffer.partitions:
        failed: list[tuple[int, LanceError]] = []
        for partition in waiting:
            error = yield from _try(send_buffer, known, partition, settings, stored)
            if error is not None:
                failed.append((partition, error))
        if failed:
            if len(failed) < len(waiting):
                retries.progressed()
            yield from _look_again(send_buffer, known, retries, *failed[0])
    return stored


def _try(
    send_buffer: SendBuffer,
    known: Leaders,
    partition: int,
    settings: FluvioSettings,
    stored: list[StoredRecords],
) -> Steps[LanceError | None]:
    """Send what waits for one partition; return why some of it waits still, if it may pass."""
    records = send_buffer.take(partition)
    again = settings.delivery == "at_least_once"
    try:
        left, refused = yield from _produce(known, partition, records, settings, stored)
    except LanceError as error:
        if not is_passing(error, again=again):
            raise
        send_buffer.put_back(partition, records)
        return error
    except GeneratorExit:  # the caller was cancelled; nobody knows whether they were stored
        if again:
            send_buffer.put_back(partition, records)
        raise
    if left:
        send_buffer.put_back(partition, left)
    return refused


def _look_again(
    send_buffer: SendBuffer, known: Leaders, retries: Retries, partition: int, error: LanceError
) -> Steps[None]:
    """Wait, and find out who leads the partitions now; give up a partition in the end."""
    while True:
        try:
            yield Pause(retries.after(error))
            known.learn((yield from leaders(known.topic)))
        except LanceError as again:
            if again is error or not is_passing(again, again=True):
                send_buffer.take(partition)
                raise
            error = again
        else:
            return


def _produce(
    known: Leaders,
    partition: int,
    records: list[FluvioRecord],
    settings: FluvioSettings,
    stored: list[StoredRecords],
) -> Steps[tuple[list[FluvioRecord], FluvioRefused | None]]:
    """Send records in one request; return those that a leader did not take for now, and why."""
    batches = batches_of(records, settings)
    asked = ProduceRequest(
        transactional_id=None,
        isolation=-1 if settings.read_committed else 1,
        timeout_ms=int(min(settings.timeout * 1000, _LONGEST_MS)),
        topics=[ProduceTopic(name=known.topic, partitions=_entries(partition, batches))],
    )
    what = f"produce to {known.topic!r} partition {partition}"
    response = yield Ask(0, asked, what, known.at(partition), changes=True)
    answered = [each for found in response.topics for each in found.partitions]
    if len(answered) != len(batches):
        raise RemoteProtocolError(
            f"{what}: the SPU answers {len(answered)} of {len(batches)} batches"
        )
    left: list[FluvioRecord] = []
    why: FluvioRefused | None = None
    place = 0
    for batch, each in zip(batches, answered, strict=True):
        count = batch.last_offset_delta + 1
        try:
            check(what, each.outcome)
        except FluvioRefused as refused:
            if not is_passing(refused, again=True):
                raise
            left += records[place : place + count]
            why = why or refused
        else:
            stored.append(StoredRecords(partition, each.base_offset, count))
        place += count
    return left, why


def _entries(partition: int, batches: list[Batch]) -> list[ProducePartition]:
    return [
        ProducePartition(partition=partition, records=RecordSet(batches=[each])) for each in batches
    ]
