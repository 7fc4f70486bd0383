"""The dictionary of a slot: kept across sessions, repaired from frames, never guessed."""

import errno
import os
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.platforms.systems import needs_posix

from lance_sdk.errors import ConfigError
from lance_sdk.journal import Durability, Journal, JournalConfig, JournalFailed, SlotKind
from lance_sdk.journal._slot.symbol_file import HEADER, NAME, decode_file, encode_chunk
from lance_sdk.journal.qwp import QwpSender, SymbolsLost, dictionary
from lance_sdk.journal.qwp._connection.exchange import catch_up_messages
from lance_sdk.journal.qwp.dictionary import SymbolDictionary, delta_of, open_dictionary
from lance_sdk.journal.testing import ForgetfulDisk, PowerCut
from lance_server.listeners.qwp import QwpOptions
from lance_server.listeners.qwp.rows import Reader
from lance_server.listeners.qwp.testing import Endpoint
from lance_spec.messages.qwp import SymbolChunk, SymbolDictionaryHeader, Symbols
from lance_spec.messages.store_forward import SegmentHeader, WatermarkSimple

from .conftest import quick
from .test_transport import delta
from .world import Host, World

PUBLISHED = bytes.fromhex("53594431 01 000000 01 03 02 4130 6f d5 78 8c")
"""A file of a published client with the symbol ``A0``."""


def test_the_file_is_what_published_clients_write() -> None:
    """Header, chunk and checksum, byte for byte."""
    assert HEADER + encode_chunk(["A0"]) == PUBLISHED
    assert decode_file(PUBLISHED).symbols == ["A0"]


@given(st.lists(st.lists(st.text(max_size=300), min_size=1, max_size=20), max_size=5))
@settings(max_examples=50)
def test_chunks_are_read_back(chunks: list[list[str]]) -> None:
    """Ids are places in the file, across chunks."""
    loaded = decode_file(HEADER + b"".join(map(encode_chunk, chunks)))
    assert loaded.symbols == [each for chunk in chunks for each in chunk]
    assert not loaded.damage


def test_a_file_cut_anywhere_keeps_its_whole_chunks() -> None:
    """What a crash cut off is found, and nothing before it is lost."""
    chunks = [encode_chunk(["alpha", "beta"]), encode_chunk(["gamma"])]
    data = HEADER + b"".join(chunks)
    ends = [len(HEADER), len(HEADER) + len(chunks[0]), len(data)]
    for size in range(1, len(data)):
        loaded = decode_file(data[:size])
        whole = sum(end <= size for end in ends[1:])
        assert loaded.symbols == ["alpha", "beta", "gamma"][: [0, 2, 3][whole]]
        assert bool(loaded.damage) is (size not in ends)


def test_a_flipped_bit_anywhere_is_found() -> None:
    """No bit of a chunk can change without its checksum noticing."""
    data = HEADER + encode_chunk(["alpha", "beta"])
    for place in range(len(data)):
        for bit in range(8):
            raw = bytearray(data)
            raw[place] ^= 1 << bit
            loaded = decode_file(bytes(raw))
            assert loaded.damage
            assert loaded.symbols == []


CONFIG = JournalConfig(kind=SlotKind.QWP, segment_bytes=4096, background=False)


def opened(folder: Path) -> Journal:
    """Open a slot."""
    return Journal.open(folder, CONFIG)


def test_symbols_get_ids_in_the_order_they_come(tmp_path: Path) -> None:
    """And keep them in the next session, while a frame waits."""
    with opened(tmp_path) as journal:
        first = open_dictionary(journal)
        assert first.ids(["b", "a", "b"]) == {"b": 0, "a": 1}
        first.note()
        journal.append(delta(0, "b", "a"))
    with opened(tmp_path) as journal:
        second = open_dictionary(journal)
        assert second.snapshot() == ["b", "a"]
        assert second.ids(["c", "a"]) == {"c": 2, "a": 1}
    with opened(tmp_path) as journal:
        assert open_dictionary(journal).snapshot() == ["b", "a", "c"]


def test_a_drained_slot_forgets_its_symbols(tmp_path: Path) -> None:
    """No frame needs them, and no host has to learn them again."""
    with opened(tmp_path) as journal:
        symbols = open_dictionary(journal)
        symbols.ids(["a"])
        journal.append(delta(0, "a"))
        list(journal.read_from(0))
        journal.ack(0)
    with opened(tmp_path) as journal:
        assert open_dictionary(journal).snapshot() == []
        assert not (tmp_path / NAME).exists()


@needs_posix("files are written by other calls than os.pwrite")
def test_a_write_that_fails_adds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a chunk on a full disk is overwritten by the next one."""
    with opened(tmp_path) as journal:
        symbols = open_dictionary(journal)
        symbols.ids(["a"])
        real = os.pwrite

        def half(fd: int, data: memoryview, place: int) -> int:
            if len(data) > 3:
                return real(fd, data[:3], place)
            raise OSError(errno.ENOSPC, "full")

        with monkeypatch.context() as broken:
            broken.setattr(os, "pwrite", half)
            with pytest.raises(OSError, match="full"):
                symbols.ids(["b"])
        assert len(symbols) == 1
        assert symbols.ids(["c"]) == {"c": 1}
        assert decode_file((tmp_path / NAME).read_bytes()).symbols == ["a", "c"]


def test_more_symbols_than_hosts_take_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way out is in the error."""
    monkeypatch.setattr(dictionary, "MOST_SYMBOLS", 2)
    symbols = SymbolDictionary()
    symbols.ids(["a", "b"])
    with pytest.raises(ConfigError, match="text columns"):
        symbols.ids(["c"])
    assert symbols.ids(["b"]) == {"b": 1}


def slot(folder: Path, *frames: bytes, acked: int = -1) -> None:
    """Write frames into a slot, of which some are acknowledged."""
    with Journal.open(folder, JournalConfig(kind=SlotKind.QWP, segment_bytes=4096)) as journal:
        for each in frames:
            journal.append(each)
        if acked >= 0:
            list(journal.read_from(0))
            journal.ack(acked)


def test_a_lost_file_is_rebuilt_from_the_frames(tmp_path: Path) -> None:
    """Acknowledged frames that are still there help too."""
    slot(tmp_path, delta(0, "a", "b"), delta(2, "c"), delta(3), acked=1)
    with opened(tmp_path) as journal:
        assert open_dictionary(journal).snapshot() == ["a", "b", "c"]
    assert decode_file((tmp_path / NAME).read_bytes()).symbols == ["a", "b", "c"]


def test_a_damaged_file_is_completed_from_the_frames(tmp_path: Path) -> None:
    """Its copy is kept, its valid part is used, the rest comes from the frames."""
    slot(tmp_path, delta(0, "a"), delta(1, "b"), delta(2, "c"))
    damaged = HEADER + encode_chunk(["a"]) + encode_chunk(["b", "c"])[:-1] + b"\0"
    (tmp_path / NAME).write_bytes(damaged)
    with opened(tmp_path) as journal:
        assert open_dictionary(journal).snapshot() == ["a", "b", "c"]
    assert (tmp_path / f"{NAME}.corrupt").read_bytes() == damaged


def test_frames_that_bring_all_their_symbols_need_no_dictionary(tmp_path: Path) -> None:
    """In slots of other clients each frame, or each session, numbers symbols from 0."""
    slot(tmp_path, delta(0, "x"), delta(0, "y", "z"))
    with opened(tmp_path) as journal:
        assert open_dictionary(journal).snapshot() == []


def test_what_cannot_be_rebuilt_is_not_guessed(tmp_path: Path) -> None:
    """A gap between the file and the frames stays one, and no symbol gets an id in it."""
    slot(tmp_path, delta(5, "f"))
    with opened(tmp_path) as journal:
        symbols = open_dictionary(journal)
        assert symbols.snapshot() == []
        assert not symbols.grows
        assert not symbols.fits(["new"])


@pytest.mark.parametrize("kept", [0, 1, 2], ids=["none", "one", "two"])
@pytest.mark.parametrize("trimmed", [0, 1, 2])
def test_a_dictionary_that_ends_early_at_a_chunk_is_found_out(kept: int, trimmed: int) -> None:
    """A loss of power may take whole chunks; what frames lack then is lost, and never reused."""
    disk, folder = ForgetfulDisk(), Path("/disk/slot")
    frames = [delta(0, "a"), delta(1, "b"), delta(2, "c"), delta(3)]
    with Journal.open(folder, CONFIG, files=disk) as journal:
        symbols = open_dictionary(journal)
        for text, frame in zip(["a", "b", "c", "a"], frames, strict=True):
            symbols.ids([text])
            symbols.note()
            journal.append(frame)
    disk.put(folder / NAME, HEADER + b"".join(encode_chunk([each]) for each in "abc"[:kept]))
    if trimmed:  # the frames that brought the first symbols are gone
        size = sum(8 + len(each) for each in frames[:trimmed])
        content = disk.content(folder / "sf-0000000000000001.sfa")
        head = SegmentHeader(1, trimmed, SegmentHeader.decode(content[:24]).created_us).encode()
        disk.put(folder / "sf-0000000000000001.sfa", head + content[24 + size :] + bytes(size))
        disk.put(folder / ".ack-watermark", WatermarkSimple(trimmed - 1).encode())
    with Journal.open(folder, CONFIG, files=disk) as journal:
        found = open_dictionary(journal)
        whole = kept >= trimmed
        assert found.snapshot() == (["a", "b", "c"] if whole else list("abc"[:kept]))
        assert found.grows is whole


def test_a_dictionary_with_other_symbols_is_not_used() -> None:
    """It is whole and long enough, and not the one that the frames were written with."""
    disk, folder = ForgetfulDisk(), Path("/disk/slot")
    with Journal.open(folder, CONFIG, files=disk) as journal:
        symbols = open_dictionary(journal)
        symbols.ids(["a", "b"])
        symbols.note()
        journal.append(delta(2))
    disk.put(folder / NAME, HEADER + encode_chunk(["x", "y"]))
    with Journal.open(folder, CONFIG, files=disk) as journal:
        found = open_dictionary(journal)
        assert (found.snapshot(), found.grows) == ([], False)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 120))
def test_no_loss_of_power_gives_a_row_another_symbol(seed: int, steps: int) -> None:
    """Cut anywhere: what a host makes of the frames is what was written, or they are not sent."""
    rng, disk, folder = random.Random(seed), ForgetfulDisk(), Path("/disk/slot")
    config = replace(CONFIG, durability=Durability.APPEND, synced_before_trim=(NAME,))
    disk.cut_power_after(steps)
    with suppress(PowerCut):
        for _ in range(4):
            with Journal.open(folder, config, files=disk) as journal:
                symbols = open_dictionary(journal)
                for _ in range(6):
                    text = f"s{rng.randrange(30)}"
                    number = symbols.ids([text])[text]
                    symbols.note()
                    brings = [text] if number == len(symbols) - 1 else []
                    start = number if brings else len(symbols)
                    journal.append(delta(start, *brings) + text.encode())
    left = disk.power_lost(rng)
    with Journal.open(folder, config, files=left) as journal:
        known = open_dictionary(journal)
        for _, payload in journal.read_from(journal.acked_fsn + 1):
            start, count = delta_of(payload)
            written = payload.rpartition(b"s")[2].decode()
            if count and start < len(known):
                assert known.agrees(payload)
            if start + count <= len(known) and not count:
                assert f"s{written}" in known.snapshot()[:start]
        if known.grows:
            waiting = journal.read_from(journal.acked_fsn + 1)
            stored = [sum(delta_of(each)) for _, each in waiting]
            assert max(stored, default=0) <= len(known)


def test_a_file_of_absurd_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read into memory."""
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(2**30)
    monkeypatch.setattr(dictionary, "MOST_BYTES", 1 << 10)
    with opened(tmp_path) as journal:
        journal.append(delta(0, "a"))
        with pytest.raises(ConfigError, match="no sender writes such a file"):
            open_dictionary(journal)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (delta(3, "a", "b"), (3, 2)),
        (delta(0), (0, 0)),
        (b"not QWP", (0, 0)),
        (b"", (0, 0)),
        (b"QWP1\x01\x00\0\0\x02\0\0\0\x05\x01", (0, 0)),
        (b"QWP1\x01\x08\0\0\x02\0\0\0\xff\xff", (0, 0)),
    ],
)
def test_a_frame_says_what_it_brings(payload: bytes, expected: tuple[int, int]) -> None:
    """What is not a frame with a dictionary brings nothing and needs nothing."""
    assert delta_of(payload) == expected


@given(st.lists(st.text(min_size=1, max_size=200), max_size=60), st.integers(50, 2000))
@settings(max_examples=50)
def test_catch_up_messages_build_the_same_dictionary(symbols: list[str], limit: int) -> None:
    """A host that reads them has the symbols, whatever it takes at once."""
    reader = Reader(QwpOptions())
    for message in catch_up_messages(symbols, limit):
        reader.read(message, 1)
    assert reader.symbols == symbols


def test_a_damaged_dictionary_does_not_stop_the_sender(qwp: Endpoint, sf: Path) -> None:
    """Frames, file and host agree again after the repair."""
    conf = f"sf_dir={sf};sf_frames=delta;close_flush_timeout_millis=0;"
    with QwpSender(quick(f"ws::addr=127.0.0.1:1;initial_connect_retry=async;{conf}")) as sender:
        for number in range(4):
            sender.row("t", symbols={"s": f"s{number}"}, columns={"v": number})
            sender.flush()
    file = sf / "default" / NAME
    file.write_bytes(file.read_bytes()[:-3])
    with QwpSender(quick(f"ws::addr={qwp.addr};sf_dir={sf};")) as sender:
        sender.row("t", symbols={"s": "new"}, columns={"v": 4})
    assert qwp.values("t", "s") == ["s0", "s1", "s2", "s3", "new"]


def test_a_dictionary_that_is_gone_for_good_halts_the_sender(qwp: Endpoint, sf: Path) -> None:
    """Nothing is sent with wrong symbols, and the error names what is missing."""
    conf = f"ws::addr={qwp.addr};sf_dir={sf};sf_frames=delta;auto_flush=off;"
    conf += "sf_max_segment_bytes=512;"
    with QwpSender(quick(conf)) as sender:
        for number in range(40):
            sender.row("t", symbols={"s": f"symbol {number}"}, columns={"v": number})
            sender.flush()
        assert sender.wait(timeout=5)
        qwp.when(stall=True, times=0)
        sender.row("t", symbols={"s": "symbol 0"}, columns={"v": 40})
        sender.flush()
        sender.close(0)
    (sf / "default" / NAME).unlink()
    qwp.script.rules.clear()
    sender = QwpSender(quick(conf)).open()
    with pytest.raises(SymbolsLost, match=r"\.symbol-dict"):
        sender.wait(timeout=5)
    sender.close()
    assert qwp.values("t") == [*range(40)]


def test_frames_before_one_whose_symbols_are_lost_arrive() -> None:
    """The sender halts only when they are dealt with, however many waited together."""
    world = World(Host())
    world.append(delta(0, "a"), delta(1, "b"), delta(5, "f"), delta(0, "a"))
    world.run(1.0)
    assert isinstance(world.outbox.failure, SymbolsLost)
    assert world.outbox.failure.fsn == 2
    assert world.wires[0].messages == [delta(0, "a"), delta(1, "b")]
    assert world.outbox.settled_fsn == 1


def test_a_killed_slot_that_was_drained_keeps_symbols_while_it_keeps_frames() -> None:
    """A client that does not know our watermark would send them, with new symbols."""
    disk, folder = ForgetfulDisk(), Path("/disk/slot")
    journal = Journal.open(folder, CONFIG, files=disk)
    symbols = open_dictionary(journal)
    symbols.ids(["a"])
    symbols.note()
    journal.append(delta(0, "a"))
    list(journal.read_from(0))
    journal.ack(0)
    disk = disk.killed()
    with Journal.open(folder, CONFIG, files=disk) as journal:
        assert open_dictionary(journal).snapshot() == ["a"]
    with Journal.open(folder, CONFIG, files=disk) as journal:  # closed in order: nothing is left
        assert not open_dictionary(journal).snapshot()


def test_without_the_file_frames_of_two_clients_teach_no_symbol() -> None:
    """One that needs an id which both have given is kept, and not sent with either symbol."""
    disk, folder = ForgetfulDisk(), Path("/disk/slot")
    with Journal.open(folder, CONFIG, files=disk) as journal:
        for frame in (delta(0, "ours"), delta(0, "theirs"), delta(1)):
            journal.append(frame)
    for _ in range(2):  # what the first opening found out, the next one does not forget
        with Journal.open(folder, CONFIG, files=disk) as journal:
            assert open_dictionary(journal).unproven == {delta(1)}
    with Journal.open(folder, CONFIG, files=disk) as journal:
        symbols = open_dictionary(journal)
        assert not symbols.grows
        world = World(Host(), journal=journal, dictionary=symbols)
        world.run(1.0)
        assert isinstance(world.outbox.failure, SymbolsLost)
        assert delta(1) not in world.wires[0].messages


def test_a_frame_behind_damage_needs_a_note_of_ours_to_get_its_symbols() -> None:
    """The dictionary may be that of a client which gave lost ids again, however whole it looks."""
    disk, folder = ForgetfulDisk(), Path("/disk/slot")
    alone = delta(0, "c")
    with Journal.open(folder, CONFIG, files=disk) as journal:
        for frame in (delta(0, "a"), delta(1, "b"), delta(2), alone):
            journal.append(frame)
    (name,) = (each for each in disk.names(folder) if each.endswith(".sfa"))
    second = disk.content(folder / name).index(delta(1, "b"))
    disk.poke(folder / name, second, b"!")
    disk.put(folder / NAME, HEADER + encode_chunk(["a", "theirs"]))
    with Journal.open(folder, CONFIG, files=disk) as journal:
        assert dict(journal.read_from(0)) == {0: delta(0, "a"), 2: delta(2), 3: alone}
        assert open_dictionary(journal).unproven == {delta(2)}


def test_a_note_ahead_of_the_file_does_not_hold_back_frames_that_agree_with_the_file() -> None:
    """A loss of power took a noted symbol, another client gave its id, and lost its own end."""
    disk, folder = ForgetfulDisk(), Path("/disk/slot")
    with Journal.open(folder, CONFIG, files=disk) as journal:
        symbols = open_dictionary(journal)
        symbols.ids(["a", "b", "lost"])
        symbols.note()
        needy = delta(4)
        for frame in (delta(0, "a"), delta(1, "b"), delta(2), delta(0, "alone"), needy):
            journal.append(frame)
    theirs = HEADER + encode_chunk(["a", "b"]) + encode_chunk(["theirs"])
    disk.put(folder / NAME, theirs + encode_chunk(["cut off"])[:-1])
    with Journal.open(folder, CONFIG, files=disk) as journal:
        assert open_dictionary(journal).unproven == {needy}


def test_symbols_that_a_failed_sync_left_in_memory_are_written_again() -> None:
    """The next sync sends them to the disk, which never got them (SF-38)."""
    disk, folder = ForgetfulDisk(), Path("/disk/slot")
    config = replace(CONFIG, durability=Durability.APPEND, synced_before_trim=(NAME,))
    journal = Journal.open(folder, config, files=disk)
    open_dictionary(journal).ids(["a"])
    disk.broken["sync"] = OSError(errno.EIO, "refused")
    with pytest.raises(JournalFailed):
        journal.append(delta(0, "a"))
    disk = disk.killed()
    journal = Journal.open(folder, config, files=disk)
    symbols = open_dictionary(journal)
    symbols.note()
    journal.append(delta(1))
    disk = disk.power_lost()
    with Journal.open(folder, config, files=disk) as journal:
        assert open_dictionary(journal).snapshot() == ["a"]


def test_the_grammar_agrees_about_the_file() -> None:
    """Chunks are packed by hand where it is fast; the declaration is the oracle."""
    chunk = encode_chunk(["alpha", "é", ""])
    decoded = SymbolChunk.decode(chunk)
    assert decoded.crc_ok()
    assert decoded.entry_count == 3
    assert Symbols.decode(decoded.entries).symbols == ["alpha", "é", ""]
    assert SymbolDictionaryHeader().encode() == HEADER


def test_beyond_the_bound_of_the_dictionary_rows_go_on(
    qwp: Endpoint, sf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames with more symbols stand alone; rows without a symbol never notice."""
    monkeypatch.setattr(dictionary, "MOST_SYMBOLS", 3)
    conf = f"ws::addr={qwp.addr};sf_dir={sf};sf_frames=delta;auto_flush=off;"
    with QwpSender(quick(conf)) as sender:
        for number in range(8):
            symbols = {} if number == 5 else {"s": f"s{number % 7}"}
            sender.row("t", symbols=symbols, columns={"v": number})
            sender.flush()
        assert sender.wait(timeout=5)
        assert len(decode_file((sf / "default" / NAME).read_bytes()).symbols) == 3
    assert qwp.values("t") == [*range(8)]
    expected = ["s0", "s1", "s2", "s3", "s4", None, "s6", "s0"]
    assert [row.get("s") for row in qwp.rows("t")] == expected
    assert not (sf / "default" / NAME).exists()


def test_a_note_that_the_disk_refused_is_made_again() -> None:
    """What frames need is on record before a frame needs it, also at the second try."""
    disk, folder = ForgetfulDisk(), Path("/disk/slot")
    with Journal.open(folder, CONFIG, files=disk) as journal:
        symbols = open_dictionary(journal)
        symbols.ids(["a"])
        disk.broken["write"] = OSError(errno.EIO, "refused")
        with pytest.raises(OSError, match="refused"):
            symbols.note()
        del disk.broken["write"]
        symbols.note()
        journal.append(delta(0, "a"))
    with Journal.open(folder, CONFIG, files=disk) as journal:
        assert journal.noted_symbols[0] == 1


@pytest.mark.parametrize("count", [3, 5000])
def test_ids_stay_the_same_whatever_was_used_lately(count: int) -> None:
    """Also where a frame has more symbols than are kept at hand."""
    symbols = SymbolDictionary()
    names = [f"s{number}" for number in range(count)]
    expected = {each: number for number, each in enumerate(names)}
    for _ in range(3):
        assert symbols.for_frame(names) == expected
        assert symbols.for_frame(names[-2:]) == {each: expected[each] for each in names[-2:]}
    symbols.grows = False
    assert symbols.for_frame(names[:1]) is None
