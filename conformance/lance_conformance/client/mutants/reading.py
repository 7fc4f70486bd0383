"""Clients that are wrong about data: what is a record, and where reading goes on."""

import struct
from collections.abc import Sequence

from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import Fetched, ProblemError, Record
from lance_conformance.client.mutants.registry import golden, mutant


@mutant(Specified.check_size)
def does_not_compare_sizes(_client: Specified, _announced: int, _size: int, /) -> None:
    """The announced size of the data is not looked at."""


@mutant(Specified.check_next)
def goes_on_wherever_it_is_told(
    _client: Specified, _offset: int, _size: int, _next: int, /
) -> None:
    """The next offset is not looked at."""


@mutant(Specified.check_aligned, only="specified")
def reads_misaligned_data(_client: Specified, _data: bytes, _count: int, /) -> None:
    """Data that does not begin at a record is read as if it did."""


@mutant(Specified.fetched)
def fills_short_answers(client: Specified, payload: bytes, offset: int, /) -> Fetched:
    """A FetchResponse that is too short is filled with zeros."""
    if len(payload) < 16:
        return Fetched([], offset)
    return golden(client).fetched(payload, offset)


@mutant(Specified.fetched)
def knows_the_extended_header(client: Specified, payload: bytes, offset: int, /) -> Fetched:
    """What may be a 24-byte header is taken for one."""
    if len(payload) >= 24:
        start, end, _ = struct.unpack_from("<QQQ", payload)
        if end - start == len(payload) - 24:
            records, whole = client.records(payload[24:])
            return Fetched(records, start + whole)
    return golden(client).fetched(payload, offset)


@mutant(Specified.fetched)
def does_not_ask_for_more(client: Specified, payload: bytes, offset: int, /) -> Fetched:
    """A record that is larger than what was asked for is never fetched."""
    return golden(client).fetched(payload, offset)._replace(more=False)


@mutant(Specified.fetched)
def stops_at_gaps(client: Specified, payload: bytes, offset: int, /) -> Fetched:
    """An empty answer that moves the offset is an error."""
    found = golden(client).fetched(payload, offset)
    if not found.records and payload[:8] != offset.to_bytes(8, "little") and not found.more:
        raise TypeError("the log has a gap")
    return found


@mutant(Specified.records)
def loses_the_last_record(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
    """The last record of every answer is lost."""
    records, whole = golden(client).records(data)
    return records[:-1], whole


@mutant(Specified.records)
def hands_on_cut_records(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
    """A part of a record is handed on like a whole one, as sample code does."""
    records, whole = golden(client).records(data)
    rest = data[whole:]
    if len(rest) >= 5:
        records.append(Record(rest[0], rest[5:]))
        whole = len(data)
    return records, whole


@mutant(Specified.records)
def reads_nothing_where_something_is_cut(
    client: Specified, data: bytes, /
) -> tuple[list[Record], int]:
    """Data that does not end with a record gives no record at all."""
    records, whole = golden(client).records(data)
    if whole != len(data):
        raise ProblemError("fatal", "the data does not end with a record")
    return records, whole


@mutant(Specified.records)
def reads_lengths_in_two_bytes(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
    """Values end after 65,535 bytes."""
    records, whole = golden(client).records(data)
    return [record._replace(value=record.value[:65_535]) for record in records], whole


@mutant(Specified.records)
def reads_a_hundred_records(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
    """Of an answer only the first hundred records are read."""
    records, whole = golden(client).records(data)
    return records[:100], whole


@mutant(Specified.records)
def reads_text(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
    """Values are text."""
    records, whole = golden(client).records(data)
    return [r._replace(value=r.value.decode(errors="replace").encode()) for r in records], whole


@mutant(Specified.records)
def passes_over_empty_values(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
    """Records without a value are not handed on."""
    records, whole = golden(client).records(data)
    return [record for record in records if record.value], whole


@mutant(Specified.records)
def reads_everything_as_raw(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
    """Types are not handed on."""
    records, whole = golden(client).records(data)
    return [record._replace(type=1) for record in records], whole


@mutant(Specified.records)
def unwraps_what_looks_wrapped(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
    """A value that looks like a record or a frame is unwrapped."""
    records, whole = golden(client).records(data)
    return [
        r._replace(value=r.value[5:]) if r.value.startswith((b"\x01\x05\0\0\0", b"LANC")) else r
        for r in records
    ], whole


@mutant(Specified.readable)
def dies_of_undefined_types(client: Specified, record: Record, /) -> Record:
    """A record of a type that nobody has defined ends the program."""
    if 0x12 < record.type < 0x80:
        raise LookupError(record.type)
    return golden(client).readable(record)


@mutant(Specified.position)
def goes_on_behind_the_data(
    _client: Specified, _offset: int, _whole: int, next_offset: int, /
) -> int:
    """Reading goes on at the next offset even where a record was cut."""
    return next_offset


@mutant(Specified.position)
def never_moves(_client: Specified, offset: int, _whole: int, _next: int, /) -> int:
    """The offset stays where it is."""
    return offset


@mutant(Specified.position)
def skips_a_byte(client: Specified, offset: int, whole: int, next_offset: int, /) -> int:
    """The offset is one byte further than it should be."""
    return golden(client).position(offset, whole, next_offset) + 1


@mutant(Specified.catching_up)
def takes_catching_up_for_data(_client: Specified, payload: bytes, offset: int, /) -> Fetched:
    """CatchingUp moves the offset, as in an earlier published Python client."""
    return Fetched([Record(1, payload)] if len(payload) < 8 else [], offset + 8)


@mutant(Specified.chain)
def sends_records_backwards(client: Specified, records: Sequence[Record], /) -> bytes:
    """The records of a batch leave in reverse."""
    return golden(client).chain(list(reversed(records)))
