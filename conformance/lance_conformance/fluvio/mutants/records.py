"""Servers that are wrong about batches: what they take, and what they make of records."""

import zlib

from lance_conformance.fluvio.golden.codec import (
    Cursor,
    Entry,
    Malformed,
    Packed,
    unpack_entries,
)
from lance_conformance.fluvio.golden.objects import code
from lance_conformance.fluvio.golden.server import Rules
from lance_conformance.fluvio.golden.state import Refused
from lance_conformance.fluvio.mutants.registry import golden, mutant

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4


@mutant(Rules.crc_ok)
def skips_the_crc(_server: Rules, _batch: Packed, /) -> bool:
    """The checksum of batches is not looked at."""
    return True


@mutant(Rules.crc_ok)
def expects_the_other_polynomial(_server: Rules, batch: Packed, /) -> bool:
    """The checksum of batches is taken for that of Ethernet."""
    return batch.crc == zlib.crc32(batch.covered)


@mutant(Rules.attributes_ok)
def takes_any_attributes(_server: Rules, _attributes: int, /) -> bool:
    """Attributes that nobody knows are passed over."""
    return True


@mutant(Rules.attributes_ok)
def takes_no_compression(_server: Rules, attributes: int, /) -> bool:
    """Only uncompressed batches are taken."""
    return attributes == 0


@mutant(Rules.opened)
def cannot_open_gzip(server: Rules, kind: int, records: bytes, /) -> bytes:
    """Batches compressed with gzip are refused."""
    return _without(server, GZIP, kind, records)


@mutant(Rules.opened)
def cannot_open_snappy(server: Rules, kind: int, records: bytes, /) -> bytes:
    """Batches compressed with Snappy are refused."""
    return _without(server, SNAPPY, kind, records)


@mutant(Rules.opened)
def cannot_open_lz4(server: Rules, kind: int, records: bytes, /) -> bytes:
    """Batches compressed with LZ4 are refused."""
    return _without(server, LZ4, kind, records)


@mutant(Rules.opened)
def cannot_open_zstd(server: Rules, kind: int, records: bytes, /) -> bytes:
    """Batches compressed with Zstandard are refused."""
    return _without(server, ZSTD, kind, records)


def _without(server: Rules, missing: int, kind: int, records: bytes) -> bytes:
    if kind == missing:
        raise Malformed(f"compression {kind}")
    return golden(server).opened(kind, records)


@mutant(Rules.opened)
def wants_compressed_batches(server: Rules, kind: int, records: bytes, /) -> bytes:
    """Batches that are not compressed are refused."""
    return _without(server, 0, kind, records)


@mutant(Rules.opened)
def stores_what_it_cannot_open(server: Rules, kind: int, records: bytes, /) -> bytes:
    """Records that cannot be decompressed are taken as they are."""
    try:
        return golden(server).opened(kind, records)
    except Malformed:
        return records


@mutant(Rules.opened)
def opens_what_there_is_of_gzip(server: Rules, kind: int, records: bytes, /) -> bytes:
    """The end of what is compressed with gzip may be missing."""
    if kind != GZIP or records[:2] != b"\x1f\x8b":
        return golden(server).opened(kind, records)
    try:
        return zlib.decompressobj(wbits=31).decompress(records)
    except zlib.error as problem:
        raise Malformed(str(problem)) from problem


@mutant(Rules.unpacked)
def ignores_bytes_behind_records(server: Rules, batch: Packed, /) -> list[Entry]:
    """Bytes after the last record are passed over."""
    raw = server.opened(batch.attributes, batch.records)
    while True:
        try:
            return golden(server).unpacked(batch._replace(attributes=0, records=raw))
        except Malformed as problem:
            if "after the last record" not in str(problem):
                raise
            raw = raw[:-1]


@mutant(Rules.unpacked)
def takes_negative_counts_for_none(server: Rules, batch: Packed, /) -> list[Entry]:
    """A batch with a negative number of records is one without records."""
    raw = server.opened(batch.attributes, batch.records)
    if raw[:1] >= b"\x80":
        raise Refused(code(0))
    return golden(server).unpacked(batch)


@mutant(Rules.unpacked)
def counts_records_outside(server: Rules, batch: Packed, /) -> list[Entry]:
    """The number of records is looked for before compressed records, as in Kafka's batches."""
    if not batch.attributes:
        return golden(server).unpacked(batch)
    raw = batch.records[:4] + server.opened(batch.attributes, batch.records[4:])
    return golden(server).unpacked(batch._replace(attributes=0, records=raw))


@mutant(Rules.unpacked)
def passes_over_empty_records(server: Rules, batch: Packed, /) -> list[Entry]:
    """A record with an endless length ends a batch in peace."""
    raw = server.opened(batch.attributes, batch.records)
    if raw[4:14] == b"\xff" * 10:
        raise Refused(code(0))
    return golden(server).unpacked(batch)


@mutant(Rules.count_fits)
def does_not_count_records(_server: Rules, _batch: Packed, _entries: list[Entry], /) -> bool:
    """The number of records that a header claims does not matter."""
    return True


@mutant(Rules.bad_batch)
def refuses_without_an_error(_server: Rules, _reason: str, /) -> bytes:
    """A batch that is refused is answered without an error."""
    return code(0)


@mutant(Rules.bad_batch)
def refuses_with_an_unknown_error(_server: Rules, _reason: str, /) -> bytes:
    """A batch that is refused is answered with a code that published clients do not know."""
    return code(9999)


@mutant(Rules.entries)
def takes_schemas(server: Rules, batch: Packed, /) -> list[Entry]:
    """The id of a schema is passed over, and the batch stored."""
    if batch.attributes & 0x10:
        batch = batch._replace(attributes=0, last=1, records=batch.records[4:])
        return golden(server).unpacked(batch)
    return golden(server).entries(batch)


@mutant(Rules.entries)
def keeps_what_there_is_of_a_batch(server: Rules, batch: Packed, /) -> list[Entry]:
    """Of a batch whose last record is cut short the others are stored."""
    try:
        return golden(server).entries(batch)
    except Refused:
        whole = _without_the_last(batch)
        if whole is None or batch.attributes or not server.crc_ok(batch):
            raise
        return whole


def _without_the_last(batch: Packed) -> list[Entry] | None:
    """The records of a batch that says how many there are, less one, or nothing."""
    count, cursor = batch.last + 1, Cursor(batch.records)
    try:
        cursor.octets(4)
        for _ in range(count - 1):
            cursor.octets(cursor.zigzag())
        raw = (count - 1).to_bytes(4, "big") + batch.records[4 : cursor.at]
        return unpack_entries(raw, batch.first_time)
    except Malformed:
        return None


# What becomes of records -------------------------------------------------------------------------


@mutant(Rules.shown)
def loses_keys(_server: Rules, entries: list[Entry], /) -> list[Entry]:
    """Records come without their keys."""
    return [entry._replace(key=None) for entry in entries]


@mutant(Rules.shown)
def takes_empty_keys_for_none(_server: Rules, entries: list[Entry], /) -> list[Entry]:
    """A record with an empty key comes without one."""
    return [entry._replace(key=entry.key or None) for entry in entries]


@mutant(Rules.shown)
def gives_everybody_a_key(_server: Rules, entries: list[Entry], /) -> list[Entry]:
    """A record without a key comes with an empty one."""
    return [entry._replace(key=entry.key or b"") for entry in entries]


@mutant(Rules.shown)
def cuts_keys(_server: Rules, entries: list[Entry], /) -> list[Entry]:
    """Keys are cut after 255 bytes."""
    return [entry._replace(key=entry.key and entry.key[:255]) for entry in entries]


@mutant(Rules.shown)
def gives_a_batch_one_time(_server: Rules, entries: list[Entry], /) -> list[Entry]:
    """All records of a batch come with the time of the first."""
    return [entry._replace(time=entries[0].time) for entry in entries]


@mutant(Rules.shown)
def cuts_times_to_seconds(_server: Rules, entries: list[Entry], /) -> list[Entry]:
    """Times come without their milliseconds."""
    return [entry._replace(time=entry.time // 1000 * 1000) for entry in entries]


@mutant(Rules.shown)
def sorts_records_by_time(_server: Rules, entries: list[Entry], /) -> list[Entry]:
    """Records of a batch come in the order of their times."""
    return sorted(entries, key=lambda entry: entry.time)


@mutant(Rules.shown)
def cuts_values_at_zero(_server: Rules, entries: list[Entry], /) -> list[Entry]:
    """Values end before their first zero byte."""
    return [entry._replace(value=entry.value.partition(b"\0")[0]) for entry in entries]


@mutant(Rules.shown)
def cuts_values_at_64_kib(_server: Rules, entries: list[Entry], /) -> list[Entry]:
    """Values are cut after 65,535 bytes."""
    return [entry._replace(value=entry.value[:65_535]) for entry in entries]


@mutant(Rules.shown)
def swaps_keys_and_values(_server: Rules, entries: list[Entry], /) -> list[Entry]:
    """A record with a key comes with its value as key and the other way round."""
    return [e if e.key is None else e._replace(key=e.value, value=e.key) for e in entries]


@mutant(Rules.numbered)
def numbers_records_from_1(_server: Rules, place: int, /) -> int:
    """The first record of a batch has the place 1."""
    return place + 1


@mutant(Rules.numbered)
def numbers_no_records(_server: Rules, _place: int, /) -> int:
    """All records of a batch have the place 0."""
    return 0


@mutant(Rules.crc_fault)
def serves_wrong_checksums(_server: Rules, /) -> int:
    """The checksum of batches that are served is wrong."""
    return 0xDEAD_BEEF


@mutant(Rules.last_delta)
def serves_wrong_counts(_server: Rules, count: int, /) -> int:
    """The header of batches that are served claims a record too many."""
    return count


@mutant(Rules.highest)
def serves_no_highest_time(_server: Rules, _entries: list[Entry], /) -> int:
    """The header of batches that are served claims -1 as highest time."""
    return -1


@mutant(Rules.batch)
def serves_the_first_layout(server: Rules, base: int, entries: list[Entry], /) -> bytes:
    """Batches claim to be of the first layout."""
    data = golden(server).batch(base, entries)
    return data[:16] + b"\1" + data[17:]


@mutant(Rules.batch)
def serves_batches_from_0(server: Rules, _base: int, entries: list[Entry], /) -> bytes:
    """Every batch claims to begin at offset 0."""
    return golden(server).batch(0, entries)


@mutant(Rules.batch)
def serves_half_of_large_batches(server: Rules, base: int, entries: list[Entry], /) -> bytes:
    """Of batches with more than 20,000 bytes the last byte is missing."""
    data = golden(server).batch(base, entries)
    return data if len(data) <= 20_000 else data[:-1]
