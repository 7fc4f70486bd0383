"""The layout of the write-ahead log: frames, generations, and the entries of the first log."""

from hypothesis import given
from hypothesis import strategies as st

from lance_spec.checksum import CRC32C
from lance_spec.disk.redo_entries import END, Entry, decode_entries
from lance_spec.disk.wal_frames import (
    Use,
    encode_frame,
    encode_removal,
    encode_write,
)
from lance_spec.messages.engine import (
    RedoEntry,
    RedoWrite,
    WalCommit,
    WalFrame,
    WalGeneration,
    WalWrite,
)

entries = st.lists(
    st.builds(
        Entry,
        sequence=st.integers(1, 2**32),
        name=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
        offset=st.integers(0, 2**64 - 1),
        data=st.binary(max_size=80),
    ),
    max_size=6,
    unique_by=lambda each: each.sequence,
).map(lambda found: sorted(found, key=lambda each: each.sequence))


@given(entries, st.binary(max_size=50))
def test_entries_are_read_back_up_to_the_end(written: list[Entry], residue: bytes) -> None:
    """What an earlier use left after the end is not read."""
    raw = b"".join(each.encode() for each in written) + END + residue
    assert [Entry(e.sequence, e.name, e.offset, bytes(e.data)) for e in decode_entries(raw)] == [
        Entry(e.sequence, e.name, e.offset, bytes(e.data)) for e in written
    ]


@given(entries.filter(bool), st.data())
def test_a_damaged_or_torn_entry_ends_them(written: list[Entry], data: st.DataObject) -> None:
    """Entries before it stand; neither it nor anything after it is believed."""
    sizes = [len(each.encode()) for each in written]
    raw = bytearray(b"".join(each.encode() for each in written))
    place = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        raw[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del raw[place:]
    whole = next(number for number in range(len(sizes)) if place < sum(sizes[: number + 1]))
    assert len(list(decode_entries(bytes(raw)))) <= whole


def test_what_an_earlier_use_left_is_not_believed() -> None:
    """An old entry that happens to follow the newest one has a lower sequence."""
    raw = Entry(9, "a", 0, b"new").encode() + Entry(3, "a", 0, b"old").encode()
    assert [each.sequence for each in decode_entries(raw)] == [9]


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.binary(max_size=40))
def test_an_entry_is_what_the_grammar_says(sequence: int, offset: int, data: bytes) -> None:
    """The one place that writes entries and the declared layout are the same (AMB-50)."""
    body = RedoWrite(sequence, offset, b"segments/1/a", data).encode()
    declared = RedoEntry(CRC32C.compute(body), body).encode()
    assert Entry(sequence, "segments/1/a", offset, data).encode() == declared


numbers = st.integers(0, 2**64 - 1)


uses = st.builds(Use, st.binary(min_size=8, max_size=8), numbers)


@given(uses)
def test_a_generation_is_what_the_grammar_says(use: Use) -> None:
    """The checksum is of the two fields behind it (AMB-50)."""
    covered = WalGeneration(0, *use).encode()[8:]
    assert use.encode() == WalGeneration(CRC32C.compute(covered), *use).encode()


@given(uses, numbers, numbers, numbers, st.binary(max_size=40))
def test_a_frame_is_what_the_grammar_says(
    use: Use, index: int, number: int, offset: int, data: bytes
) -> None:
    """A write and a removal, in one commit (AMB-50)."""
    writes = [*encode_write(b"segments/1/a", offset, data), *encode_removal(b"segments/2")]
    declared = WalWrite(0, offset, b"segments/1/a", data), WalWrite(1, 0, b"segments/2", b"")
    body = WalCommit(*use, index, number, b"".join(each.encode() for each in declared)).encode()
    assert encode_frame(use, index, number, writes) == WalFrame(CRC32C.compute(body), body).encode()
