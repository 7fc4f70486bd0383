"""What an LWP slot knows beside its frames: whose batch ids, which topics."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk.journal import Journal, JournalConfig, JournalFull, SlotUnreadable
from lance_sdk.journal.lwp.batch_ids import BatchIdAssigner
from lance_sdk.journal.lwp.metadata import NAME, SlotMetadata, machine_id
from lance_sdk.journal.testing import ForgetfulDisk
from lance_sdk.testing import LoadedDice
from lance_spec.limits import BATCH_COUNTER_BITS
from lance_spec.messages.store_forward import StoredBatch

SLOT = Path("/disk/slot")
CONFIG = JournalConfig(background=False, segment_bytes=4096)


def opened(disk: ForgetfulDisk, *, expected: bool = True) -> SlotMetadata:
    """Return the metadata as the next process finds it after a loss of power."""
    return SlotMetadata(SLOT, disk.power_lost(), expected=expected)


def test_topics_are_on_disk_before_a_frame_needs_them() -> None:
    """A number, once given, means the same topic after a loss of power."""
    disk = ForgetfulDisk()
    metadata = SlotMetadata(SLOT, disk)
    metadata.draw(random.Random(1))
    assert [metadata.number(name) for name in ("a", "b", "a", "ü")] == [0, 1, 0, 2]
    again = opened(disk)
    assert [each.name.decode() for each in again.topics] == ["a", "b", "ü"]
    assert [again.number(name) for name in ("ü", "b", "a", "c")] == [2, 1, 0, 3]


def test_a_topic_may_be_addressed_by_number_alone() -> None:
    """Two numbers are two topics, and none is the one without a name."""
    metadata = SlotMetadata(None)
    numbers = [metadata.number("", 7), metadata.number("", 8), metadata.number("", 7)]
    assert numbers == [0, 1, 0]


def test_what_the_server_says_of_a_topic_is_kept() -> None:
    """And that it is another one than before is noticed (AMB-30)."""
    disk = ForgetfulDisk()
    metadata = SlotMetadata(SLOT, disk)
    number = metadata.number("a")
    assert metadata.found(number, 5, 1000) is False
    assert metadata.found(number, 5, 1000) is False
    again = opened(disk)
    topic = again.topic(number)
    assert topic is not None
    assert (topic.topic_id, topic.created_at) == (5, 1000)
    assert again.found(number, 5, 2000) is True


def test_every_opening_draws_another_nonce() -> None:
    """So a number that a crash gives out again never repeats a batch id (AMB-25)."""
    disk = ForgetfulDisk()
    seen = []
    for _ in range(5):
        metadata = SlotMetadata(SLOT, disk)
        seen.append(metadata.draw(random.Random(1), machine=lambda: "m1"))
    assert all(one != two for one, two in pairwise(seen))
    assert all(0 < nonce < 2**24 for nonce in seen)


def test_a_copied_slot_draws_another_nonce_on_its_machine() -> None:
    """Both machines go on from the same numbers, under different ids; each says who it is."""
    disk = ForgetfulDisk()
    first = SlotMetadata(SLOT, disk)
    one = first.draw(random.Random(1), machine=lambda: "m1")
    copy = opened(disk)
    two = copy.draw(random.Random(1), machine=lambda: "m2")
    assert one != two
    assert copy.identity is not None
    assert copy.identity.machine_id == b"m2"


def test_the_nonce_is_never_zero_nor_the_one_before() -> None:
    """Whatever the random source says."""

    class Stubborn(LoadedDice):
        values = iter([0, 5, 5, 6])

        def getrandbits(self, k: int, /) -> int:
            return next(self.values) & ((1 << k) - 1)

    metadata = SlotMetadata(None)
    assert [metadata.draw(Stubborn()), metadata.draw(Stubborn())] == [5, 6]


def test_this_machine_has_a_name() -> None:
    """The same one each time."""
    assert machine_id() == machine_id() != ""


def stored(topics: int = 3) -> ForgetfulDisk:
    """Return a disk with the metadata of some topics."""
    disk = ForgetfulDisk()
    metadata = SlotMetadata(SLOT, disk)
    metadata.draw(random.Random(1))
    for number in range(topics):
        metadata.number(f"topic-{number}")
    return disk


@pytest.mark.parametrize("length", range(len(stored().content(SLOT / NAME))))
def test_cut_anywhere_it_never_gives_a_number_to_another_topic(length: int) -> None:
    """What is readable is kept, what is lost is told, and old numbers stay unused."""
    disk = stored()
    disk.put(SLOT / NAME, disk.content(SLOT / NAME)[:length])
    metadata = SlotMetadata(SLOT, disk, expected=True)
    assert [each.name for each in metadata.topics] == [
        b"topic-%d" % number for number in range(len(metadata.topics))
    ]
    assert metadata.damage
    fresh = metadata.number("new")
    assert fresh > 2
    assert opened(disk).topic(fresh) is not None


@given(st.data())
def test_no_flipped_bit_changes_a_topic(data: st.DataObject) -> None:
    """It is noticed, and the file is kept aside before it is written again."""
    disk = stored()
    content = bytearray(disk.content(SLOT / NAME))
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    content[bit // 8] ^= 1 << bit % 8
    disk.put(SLOT / NAME, bytes(content))
    try:
        metadata = SlotMetadata(SLOT, disk, expected=True)
    except SlotUnreadable:  # another version: nothing was changed
        assert 32 <= bit < 64
        return
    assert metadata.damage
    names = [each.name for each in metadata.topics]
    assert names == [b"topic-%d" % number for number in range(len(names))]
    assert metadata.number("new") > 2
    assert f"{NAME}.corrupt" in disk.names(SLOT)


def test_a_missing_file_in_a_used_slot_is_damage() -> None:
    """Numbers that frames may have are not given to other topics."""
    metadata = SlotMetadata(SLOT, ForgetfulDisk(), expected=True)
    assert metadata.damage == "it is missing"
    assert metadata.number("new") >= 100_000


def test_a_full_disk_leaves_topics_as_they_were() -> None:
    """What could not be kept is not known either."""
    disk = stored(1)
    metadata = SlotMetadata(SLOT, disk)
    disk.broken["replace"] = OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space"):
        metadata.number("new")
    del disk.broken["replace"]
    assert metadata.number("new") == 1


def test_a_topic_that_ctrl_c_kept_from_the_disk_is_not_known() -> None:
    """The next frame of the topic has it written first."""
    disk = stored(1)
    metadata = SlotMetadata(SLOT, disk)

    def interrupt(_path: Path, _data: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(disk, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            metadata.number("new")
    number = metadata.number("new")
    assert SlotMetadata(SLOT, disk).known("new") == number


def test_a_batch_id_is_nonce_and_frame_number() -> None:
    """Counted from one, so that it is never the bare nonce (SF-32)."""
    journal = Journal.open(SLOT, CONFIG, files=ForgetfulDisk())
    stamper = BatchIdAssigner(journal, lambda: 0xABC, 1.0, wall_ns=lambda: 77)
    for fsn in range(3):
        assert stamper.append(4, 1, b"tlv") == fsn
    frames = [StoredBatch.decode(payload) for _, payload in journal.read_from(0)]
    assert [each.batch_id for each in frames] == [
        0xABC << BATCH_COUNTER_BITS | n for n in (1, 2, 3)
    ]
    assert {(each.topic_number, each.timestamp_ns, each.records) for each in frames} == {
        (4, 77, b"tlv")
    }


def test_a_batch_that_was_sent_keeps_its_id() -> None:
    """A spilled batch may be at the server already (SF-32)."""
    journal = Journal.open(None, CONFIG)
    stamper = BatchIdAssigner(journal, lambda: 1, 1.0, wall_ns=lambda: 77)
    stamper.append(0, 1, b"tlv", batch_id=99 << 40 | 5, timestamp_ns=3)
    ((_, payload),) = journal.read_from(0)
    batch = StoredBatch.decode(payload)
    assert (batch.batch_id, batch.timestamp_ns) == (99 << 40 | 5, 3)


def test_when_the_counter_is_used_up_another_nonce_is_drawn() -> None:
    """No id comes twice."""
    journal = Journal.open(None, CONFIG)
    nonces = iter([1, 2])
    stamper = BatchIdAssigner(journal, lambda: next(nonces), 1.0)
    journal._state.ring.next_fsn = (1 << BATCH_COUNTER_BITS) - 2
    for _ in range(2):
        stamper.append(0, 1, b"x")
    assert stamper.batch_id((1 << BATCH_COUNTER_BITS) - 1) == 2 << BATCH_COUNTER_BITS


def test_a_store_that_waits_does_not_keep_others_for_ever() -> None:
    """Whoever has no time is told that others are waiting."""
    journal = Journal.open(None, CONFIG)
    stamper = BatchIdAssigner(journal, lambda: 1, 1.0)
    with stamper._lock, pytest.raises(JournalFull) as caught:
        stamper.append(0, 1, b"x", 0.0)
    assert caught.value.reason == "reserving"


def test_a_clock_before_1970_gives_the_least_times() -> None:
    """There is no number for such a time; 0 would be no time, and a frame not known again."""
    journal = Journal.open(None, CONFIG)
    stamper = BatchIdAssigner(journal, lambda: 1, 1.0, wall_ns=lambda: -5_000_000_000)
    stamper.append(0, 1, b"x")
    ((_, payload),) = journal.read_from(0)
    assert StoredBatch.decode(payload).timestamp_ns == 1
    metadata = SlotMetadata(None)
    metadata.draw(random.Random(1), wall_ns=lambda: -5)
    assert metadata.identity is not None
    assert metadata.identity.drawn_ns == 0
