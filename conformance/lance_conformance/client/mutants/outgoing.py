"""Clients that are wrong about the bytes that they send."""

import struct
from collections.abc import Sequence

from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import Record
from lance_conformance.client.mutants.registry import golden, mutant
from lance_conformance.server.golden.codec import Wire, prefix

INGEST, KEEPALIVE, CONTROL = 0x04, 0x20, 0x40


@mutant(Specified.encode)
def leaves_out_header_crcs(client: Specified, frame: Wire, /) -> bytes:
    """The header checksum is 0."""
    data = golden(client).encode(frame)
    return data[:8] + bytes(4) + data[12:]


@mutant(Specified.encode)
def leaves_out_payload_crcs(client: Specified, frame: Wire, /) -> bytes:
    """The payload checksum is 0."""
    data = golden(client).encode(frame)
    return data[:36] + bytes(4) + data[40:]


@mutant(Specified.encode)
def stamps_control_frames(client: Specified, frame: Wire, /) -> bytes:
    """Control frames carry the time."""
    stamp = 1_706_918_400 if frame.flags == CONTROL else frame.timestamp
    return golden(client).encode(frame._replace(timestamp=stamp))


@mutant(Specified.encode)
def stamps_keepalives(client: Specified, frame: Wire, /) -> bytes:
    """Keepalives carry the time."""
    stamp = 1_706_918_400 if frame.flags == KEEPALIVE else frame.timestamp
    return golden(client).encode(frame._replace(timestamp=stamp))


@mutant(Specified.encode)
def names_no_topic(client: Specified, frame: Wire, /) -> bytes:
    """The topic in the header is always 0."""
    return golden(client).encode(frame._replace(topic=0))


@mutant(Specified.encode)
def marks_control_as_batch(client: Specified, frame: Wire, /) -> bytes:
    """Control frames have the BatchMode flag, too."""
    flags = frame.flags | INGEST if frame.flags == CONTROL else frame.flags
    return golden(client).encode(frame._replace(flags=flags))


@mutant(Specified.encode)
def marks_batches_as_encrypted(client: Specified, frame: Wire, /) -> bytes:
    """Batches have the Encrypted flag."""
    flags = frame.flags | 0x02 if frame.flags == INGEST else frame.flags
    return golden(client).encode(frame._replace(flags=flags))


@mutant(Specified.head)
def sends_version_2(_client: Specified, flags: int, /) -> bytes:
    """Frames are of version 2."""
    return prefix(flags, version=2)


@mutant(Specified.head)
def fills_reserved_bytes(_client: Specified, flags: int, /) -> bytes:
    """The reserved bytes are not 0."""
    return prefix(flags, reserved=1)


@mutant(Specified.next_batch_id)
def gives_every_batch_id_0(_client: Specified, _last: int, /) -> int:
    """Every batch has id 0."""
    return 0


@mutant(Specified.next_batch_id)
def repeats_batch_ids(_client: Specified, last: int, /) -> int:
    """Only two ids are used in turn."""
    return last % 2 + 1


@mutant(Specified.next_batch_id)
def counts_batch_ids_down(_client: Specified, last: int, /) -> int:
    """Batch ids fall."""
    return last - 1 if last else 1 << 40


@mutant(Specified.ingest)
def leaves_out_the_timestamp(
    client: Specified, batch_id: int, _now: int, topic: int, records: Sequence[Record], /
) -> bytes:
    """The timestamp of a batch is 0."""
    return golden(client).ingest(batch_id, 0, topic, records)


@mutant(Specified.ingest)
def stamps_in_seconds(
    client: Specified, batch_id: int, now: int, topic: int, records: Sequence[Record], /
) -> bytes:
    """The timestamp of a batch is in seconds."""
    return golden(client).ingest(batch_id, now // 10**9, topic, records)


@mutant(Specified.ingest)
def sends_only_the_first_record(
    client: Specified, batch_id: int, now: int, topic: int, records: Sequence[Record], /
) -> bytes:
    """Of the records of a batch only the first leaves."""
    return golden(client).ingest(batch_id, now, topic, records[:1])


@mutant(Specified.count)
def counts_bytes(_client: Specified, records: Sequence[Record], /) -> int:
    """The record count is the number of bytes."""
    return sum(len(record.value) + 5 for record in records)


@mutant(Specified.count, asked=("many/sends-*",))
def counts_in_16_bits(client: Specified, records: Sequence[Record], /) -> int:
    """The record count has 16 bits."""
    return golden(client).count(records) & 0xFFFF


@mutant(Specified.consumer)
def has_one_number_for_all_consumers(_client: Specified, _name: str, /) -> int:
    """Every consumer is number 1."""
    return 1


@mutant(Specified.consumer)
def knows_consumers_by_their_beginning(client: Specified, name: str, /) -> int:
    """Consumers whose names begin alike have one number."""
    return golden(client).consumer(name[:8])


@mutant(Specified.count)
def counts_nothing(_client: Specified, _records: Sequence[Record], /) -> int:
    """The record count is 0."""
    return 0


@mutant(Specified.chain)
def pads_records(client: Specified, records: Sequence[Record], /) -> bytes:
    """Records are padded to multiples of eight bytes."""
    parts = [golden(client).chain([record]) for record in records]
    return b"".join(part + bytes(-len(part) % 8) for part in parts)


@mutant(Specified.chain)
def sends_everything_raw(client: Specified, records: Sequence[Record], /) -> bytes:
    """Every record is of type 0x01."""
    return golden(client).chain([record._replace(type=1) for record in records])


@mutant(Specified.chain)
def sends_type_0(client: Specified, records: Sequence[Record], /) -> bytes:
    """Every record is of type 0x00."""
    return golden(client).chain([record._replace(type=0) for record in records])


@mutant(Specified.chain)
def sends_nulls_with_a_value(client: Specified, records: Sequence[Record], /) -> bytes:
    """Every record is of type 0xFF."""
    return golden(client).chain([record._replace(type=0xFF) for record in records])


@mutant(Specified.chain)
def strips_values(client: Specified, records: Sequence[Record], /) -> bytes:
    """What follows the first zero byte of a value is cut off, as in a C string."""
    cut = [record._replace(value=record.value.split(b"\0")[0][:60_000]) for record in records]
    return golden(client).chain([r if r.value else r._replace(value=b" ") for r in cut])


@mutant(Specified.chain)
def lets_values_speak(client: Specified, records: Sequence[Record], /) -> bytes:
    """A value that looks like a frame or a record is sent as it is, without a record around it."""
    return b"".join(
        record.value
        if record.value.startswith((b"LANC", b"\x01\x05\0\0\0"))
        else golden(client).chain([record])
        for record in records
    )


@mutant(Specified.may_send)
def sends_any_type(_client: Specified, _record: Record, /) -> bool:
    """Records of the reserved type leave the client."""
    return True


@mutant(Specified.name)
def ends_names_with_zero(_client: Specified, name: str, /) -> bytes:
    """A topic name ends with a zero byte."""
    return name.encode() + b"\0"


@mutant(Specified.limited)
def measures_names_in_32_bits(_client: Specified, name: str, age: int, size: int, /) -> bytes:
    """The length of the name has 4 bytes, as in the samples of section 14.4."""
    raw = name.encode()
    return struct.pack("<I", len(raw)) + raw + struct.pack("<QQ", age, size)


@mutant(Specified.limited)
def limits_size_before_age(client: Specified, name: str, age: int, size: int, /) -> bytes:
    """CreateTopicWithRetention has its limits in the other order."""
    return golden(client).limited(name, size, age)


@mutant(Specified.limited, only="specified", asked=("admin/create-limited-*",))
def counts_the_characters_of_names(client: Specified, name: str, age: int, size: int, /) -> bytes:
    """The length before a name is its number of characters."""
    right = golden(client).limited(name, age, size)
    return struct.pack("<H", len(name)) + right[2:]


@mutant(Specified.topic)
def sends_topic_ids_in_8_bytes(_client: Specified, topic: int, /) -> bytes:
    """Topic ids have 8 bytes."""
    return struct.pack("<Q", topic)


@mutant(Specified.topic)
def sends_topic_ids_big_endian(_client: Specified, topic: int, /) -> bytes:
    """Topic ids are big-endian."""
    return struct.pack(">I", topic)


@mutant(Specified.retention)
def sets_size_before_age(client: Specified, topic: int, age: int, size: int, /) -> bytes:
    """SetRetention has its limits in the other order."""
    return golden(client).retention(topic, size, age)


@mutant(Specified.fetch)
def fetches_as_much_as_there_is(client: Specified, topic: int, offset: int, _max: int, /) -> bytes:
    """The largest answer is not passed on."""
    return golden(client).fetch(topic, offset, 65_536)


@mutant(Specified.fetch)
def fetches_from_the_beginning(client: Specified, topic: int, _offset: int, size: int, /) -> bytes:
    """Every Fetch starts at 0."""
    return golden(client).fetch(topic, 0, size)


@mutant(Specified.subscribe, only="specified")
def subscribes_as_nobody(
    client: Specified, topic: int, offset: int, size: int, _consumer: int, /
) -> bytes:
    """The consumer of a Subscribe is 0."""
    return golden(client).subscribe(topic, offset, size, 0)


@mutant(Specified.commit)
def commits_as_nobody(client: Specified, topic: int, _consumer: int, offset: int, /) -> bytes:
    """The consumer of a CommitOffset is 0."""
    return golden(client).commit(topic, 0, offset)


@mutant(Specified.control)
def lists_with_another_command(client: Specified, command: int, payload: bytes, /) -> bytes:
    """ListTopics is sent as TopicResponse."""
    return golden(client).control(0x80 if command == 0x03 else command, payload)


@mutant(Specified.control)
def lists_with_a_payload(client: Specified, command: int, payload: bytes, /) -> bytes:
    """ListTopics has a payload."""
    return golden(client).control(command, b"{}" if command == 0x03 else payload)
