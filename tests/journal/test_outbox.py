"""What goes out, in which order, and what answers mean; without a network."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_sdk._protocol.backoff import Backoff
from lance_sdk.errors import ClosedError
from lance_sdk.journal import (
    AckOutOfRange,
    Category,
    Journal,
    JournalConfig,
    OutboxLimits,
    Policy,
    Rejection,
    SenderHalted,
)
from lance_sdk.journal._sending.outbox import Outbox
from lance_sdk.journal.dead_letters import DeadLetterFile, read_dead_letters
from lance_sdk.journal.rejections import AfterRejection
from lance_sdk.journal.testing import ForgetfulDisk
from lance_sdk.testing import LoadedDice

SLOT = Path("/disk/slot")
CONFIG = JournalConfig(segment_bytes=256, max_total_bytes=1 << 20, background=False)
NOW = 1000.0


class Told:
    """An inbox that keeps what it is told."""

    def __init__(self) -> None:
        self.all: list[Rejection] = []

    def offer(self, rejection: Rejection) -> None:
        """Keep it."""
        self.all.append(rejection)


class World:
    """An outbox over a journal on a disk in memory.

    Args:
        frames: how many frames are stored to begin with.
        limits: windows and policies.
        letters: where dead letters go.
    """

    def __init__(
        self,
        frames: int = 0,
        limits: OutboxLimits | None = None,
        letters: DeadLetterFile | None = None,
    ) -> None:
        self.disk = ForgetfulDisk()
        self.journal = Journal.open(SLOT, CONFIG, files=self.disk)
        for number in range(frames):
            self.journal.append(b"frame %d" % number)
        self.told = Told()
        self.outbox = Outbox(
            self.journal,
            limits or OutboxLimits(),
            self.told,
            letters,
            backoff=Backoff(0.1, 5.0, LoadedDice()),
            wall_clock=lambda: 1.5,
        )
        self.outbox.connected(NOW)

    def take(self, most: int = 1000) -> list[int]:
        """Send what may be sent; return the numbers."""
        sent: list[int] = []
        while len(sent) < most and (frame := self.outbox.next_frame(NOW)) is not None:
            assert frame.payload == b"frame %d" % frame.fsn
            sent.append(frame.fsn)
        return sent

    def reject(self, fsn: int, category: Category, now: float = NOW) -> AfterRejection:
        """Have a frame rejected."""
        rejection = Rejection(category=category, message="no", first_fsn=fsn, last_fsn=fsn)
        return self.outbox.rejected(rejection, now)


def test_frames_leave_in_order_up_to_the_window() -> None:
    """And the next one when an answer came."""
    world = World(10, OutboxLimits(frames=4))
    assert world.take() == [0, 1, 2, 3]
    world.outbox.acked(1, NOW)
    assert world.take() == [4, 5]
    assert world.journal.acked_fsn == 1


def test_the_window_has_bytes_too() -> None:
    """One frame may always leave."""
    world = World(5, OutboxLimits(bytes=10))
    assert world.take() == [0, 1]
    world.outbox.acked(1, NOW)
    assert world.take() == [2, 3]


def test_a_frame_that_is_never_answered_stops_the_others_in_the_end() -> None:
    """What is answered behind it is remembered, within a bound."""
    world = World(300, OutboxLimits(frames=2))
    sent = world.take()
    while new := [fsn for fsn in sent if fsn]:
        for fsn in new:
            world.outbox.settled(fsn, NOW)
        sent = world.take()
    assert world.outbox.counters.sent == 2 * 64
    world.outbox.settled(0, NOW)
    assert world.journal.acked_fsn == 127
    assert world.take(1) == [128]


def test_frames_that_come_later_are_found() -> None:
    """Whoever appends learns from `idle` that the driver must be woken."""
    world = World(0)
    assert (world.take(), world.outbox.idle) == ([], True)
    world.journal.append(b"frame 0")
    assert (world.take(), world.outbox.idle) == ([0], True)


def test_a_lost_connection_starts_again_behind_what_is_settled() -> None:
    """Frames that were answered one by one are not sent again."""
    world = World(5)
    assert world.take() == [0, 1, 2, 3, 4]
    world.outbox.settled(0, NOW)
    world.outbox.settled(3, NOW)
    world.outbox.disconnected(NOW)
    world.outbox.connected(NOW)
    assert world.take() == [1, 2, 4]
    assert world.outbox.counters.replayed == 3


def test_answers_in_any_order_move_the_watermark_without_gaps() -> None:
    """The journal gives frames up only when none before them is missing."""
    world = World(4)
    world.take()
    seen = []
    for fsn in (2, 0, 3, 1):
        world.outbox.settled(fsn, NOW)
        seen.append(world.journal.acked_fsn)
    assert seen == [-1, 0, 0, 3]
    assert world.outbox.drained


@settings(max_examples=40)
@given(st.data())
def test_whatever_the_network_does_every_frame_is_answered_once(data: st.DataObject) -> None:
    """Answers in any order, cuts at any moment: nothing settled is sent again, nothing is lost."""
    world = World(12, OutboxLimits(frames=data.draw(st.integers(1, 12))))
    settled: set[int] = set()
    on_wire: list[int] = []
    for _ in range(100):
        if world.outbox.drained:
            break
        step = data.draw(st.sampled_from(["send", "answer", "cut", "again"]))
        if step == "send":
            new = world.take(data.draw(st.integers(1, 5)))
            assert settled.isdisjoint(new)
            on_wire += [each for each in new if each not in on_wire]
        elif step == "cut":
            world.outbox.disconnected(NOW)
            world.outbox.connected(NOW)
            on_wire = []
        elif on_wire:
            fsn = data.draw(st.sampled_from(on_wire))
            if step == "again":
                world.outbox.again(fsn)
                continue
            on_wire.remove(fsn)
            world.outbox.settled(fsn, NOW)
            settled.add(fsn)
        assert world.journal.acked_fsn == next(n for n in range(13) if n not in settled) - 1
    while not world.outbox.drained:
        for fsn in [*on_wire, *world.take()]:
            world.outbox.settled(fsn, NOW)
        on_wire = []
    assert world.journal.acked_fsn == 11


@pytest.mark.parametrize("fsn", [-1, 3, 10**6, -(2**63)])
def test_an_ack_of_what_was_not_sent_is_refused(fsn: int) -> None:
    """Nothing moves (SF-35)."""
    world = World(5)
    assert world.take(3) == [0, 1, 2]
    with pytest.raises(AckOutOfRange):
        world.outbox.acked(fsn, NOW)
    with pytest.raises(AckOutOfRange):
        world.outbox.settled(fsn, NOW)
    assert world.journal.acked_fsn == -1


def test_an_ack_of_an_earlier_connection_does_not_count() -> None:
    """What this connection did not carry, it cannot acknowledge."""
    world = World(5)
    world.take()
    world.outbox.disconnected(NOW)
    world.outbox.connected(NOW)
    assert world.take(2) == [0, 1]
    with pytest.raises(AckOutOfRange):
        world.outbox.acked(4, NOW)


def test_acks_start_the_backoff_over_and_connections_do_not() -> None:
    """A server that accepts and closes is not dialled ever faster."""
    world = World(2)
    delays = [world.outbox.backoff.next_delay() for _ in range(3)]
    world.outbox.disconnected(NOW)
    world.outbox.connected(NOW)
    assert world.outbox.backoff.next_delay() > delays[-1]
    world.take()
    world.outbox.acked(0, NOW)
    assert world.outbox.backoff.next_delay() == delays[0]


def test_a_frame_may_be_sent_again_at_once() -> None:
    """Before anything newer, and only where it is still waiting."""
    world = World(3)
    assert world.take(2) == [0, 1]
    world.outbox.again(0)
    world.outbox.again(0)
    world.outbox.again(7)
    assert world.take() == [0, 2]


def test_careful_means_one_at_a_time() -> None:
    """Up to the last frame that was on the wire; those that were answered are left out."""
    world = World(6)
    assert world.take(4) == [0, 1, 2, 3]
    world.outbox.settled(1, NOW)
    world.outbox.be_careful()
    order = []
    for _ in range(3):
        (fsn,) = world.take()
        order.append(fsn)
        world.outbox.settled(fsn, NOW)
    assert order == [0, 2, 3]
    assert world.take() == [4, 5]


def test_the_default_policies() -> None:
    """What cannot get better halts, what can is tried again; nothing unknown is given up."""
    verdicts = {
        category: World(1, letters=None).reject(0, category)
        for category in Category
        if category not in {Category.UNSUPPORTED, Category.DAMAGED}
    }
    assert verdicts == {
        Category.SCHEMA_MISMATCH: AfterRejection.HALT,
        Category.PARSE_ERROR: AfterRejection.HALT,
        Category.SECURITY_ERROR: AfterRejection.HALT,
        Category.INTERNAL_ERROR: AfterRejection.RECONNECT,
        Category.WRITE_ERROR: AfterRejection.RECONNECT,
        Category.PROTOCOL_VIOLATION: AfterRejection.RECONNECT,
        Category.UNKNOWN: AfterRejection.RECONNECT,
    }


def test_a_halt_tells_everybody() -> None:
    """Waiters, the inbox, and whoever asks; frames stay."""
    world = World(3)
    waiter = world.outbox.milestone(2)
    world.take()
    assert world.reject(1, Category.PARSE_ERROR) is AfterRejection.HALT
    assert isinstance(world.outbox.failure, SenderHalted)
    assert waiter.error is world.outbox.failure
    assert world.outbox.milestone(2).error is world.outbox.failure
    assert [each.first_fsn for each in world.told.all] == [1]
    assert (world.take(), world.journal.acked_fsn) == ([], -1)


def test_strikes_alone_do_not_halt() -> None:
    """They must also have taken their time, so that a short outage never does."""
    world = World(2, OutboxLimits(strikes=2, dwell=10.0))
    world.take()
    assert world.reject(0, Category.INTERNAL_ERROR, NOW) is AfterRejection.RECONNECT
    assert world.reject(0, Category.INTERNAL_ERROR, NOW + 9) is AfterRejection.RECONNECT
    assert world.reject(0, Category.INTERNAL_ERROR, NOW + 10) is AfterRejection.HALT


def test_strikes_count_for_each_frame() -> None:
    """Rejections of other frames in between do not hide a poisonous one."""
    world = World(2, OutboxLimits(strikes=3, dwell=0.0))
    world.take()
    verdicts = [world.reject(fsn, Category.INTERNAL_ERROR) for fsn in (0, 1, 0, 1, 0)]
    assert verdicts == [AfterRejection.RECONNECT] * 4 + [AfterRejection.HALT]


def test_an_answer_clears_the_strikes() -> None:
    """Frames that arrive in the end leave nothing behind."""
    world = World(1, OutboxLimits(strikes=2, dwell=0.0))
    world.take()
    world.reject(0, Category.INTERNAL_ERROR)
    world.outbox.acked(0, NOW)
    world.journal.append(b"frame 1")
    world.take()
    assert world.reject(1, Category.INTERNAL_ERROR) is AfterRejection.RECONNECT


def test_retry_elsewhere() -> None:
    """The transport is told to try another host."""
    policies = {Category.WRITE_ERROR: Policy.RETRY_OTHER}
    world = World(1, OutboxLimits(policies=policies))
    world.take()
    assert world.reject(0, Category.WRITE_ERROR) is AfterRejection.RECONNECT_ELSEWHERE


def test_a_dead_letter_is_on_disk_before_its_frame_is_given_up(tmp_path: Path) -> None:
    """With the reason, readable line by line."""
    policies = {Category.SCHEMA_MISMATCH: Policy.DEAD_LETTER}
    world = World(3, OutboxLimits(policies=policies), DeadLetterFile(tmp_path, 1 << 20))
    world.take()
    world.outbox.acked(0, NOW)
    assert world.reject(1, Category.SCHEMA_MISMATCH) is AfterRejection.CONTINUE
    (letter,) = read_dead_letters(tmp_path)
    assert letter.payload == b"frame 1"
    assert (letter.rejection.first_fsn, letter.rejection.message) == (1, "no")
    assert world.journal.acked_fsn == 1
    assert world.outbox.counters.dead_lettered == 1


def test_dead_letters_that_cannot_be_kept_halt(tmp_path: Path) -> None:
    """A full file, or a missing folder: the frame is not lost."""
    policies = {Category.SCHEMA_MISMATCH: Policy.DEAD_LETTER}
    for letters in (DeadLetterFile(tmp_path, 10), DeadLetterFile(tmp_path / "no", 1000), None):
        world = World(1, OutboxLimits(policies=policies), letters)
        world.take()
        assert world.reject(0, Category.SCHEMA_MISMATCH) is AfterRejection.HALT
        assert world.journal.acked_fsn == -1


def test_a_line_that_a_crash_cut_short_is_left_out(tmp_path: Path) -> None:
    """Its frame was not given up, so it comes again; the next letter starts a new line."""
    file = DeadLetterFile(tmp_path, 1 << 20)
    rejection = Rejection(category=Category.UNKNOWN, message="m", first_fsn=4, last_fsn=4)
    file.write(rejection, b"whole")
    with file.path.open("ab") as lines:
        lines.write(b'{"fsn": 5, "cat')
    file.write(rejection, b"behind")
    assert [each.payload for each in read_dead_letters(file.path)] == [b"whole", b"behind"]


def damage(world: World, fsn: int) -> None:
    """Flip a byte of a stored frame under the open journal."""
    for path in (SLOT / name for name in world.disk.names(SLOT) if name.endswith(".sfl")):
        content = bytearray(world.disk.content(path))
        place = content.find(b"frame %d" % fsn)
        if place >= 0:
            world.disk.poke(path, place, b"X")


def test_a_frame_that_changed_on_disk_is_left_out_and_told() -> None:
    """The others go on; the segment is set aside when it is given up."""
    world = World(4)
    damage(world, 2)
    assert world.take() == [0, 1, 3]
    assert [each.category for each in world.told.all] == [Category.DAMAGED]
    for fsn in (0, 1, 3):
        world.outbox.settled(fsn, NOW)
    assert world.journal.acked_fsn == 3
    assert world.outbox.counters.dropped == 1


def test_a_damaged_last_frame_does_not_block_the_end() -> None:
    """Whoever waits for it goes on."""
    world = World(3)
    damage(world, 2)
    waiter = world.outbox.milestone(2)
    assert world.take() == [0, 1]
    world.outbox.acked(1, NOW)
    world.take()
    assert waiter.done
    assert world.outbox.drained


def test_damage_may_halt_instead() -> None:
    """By policy."""
    world = World(3, OutboxLimits(policies={Category.DAMAGED: Policy.HALT}))
    damage(world, 1)
    assert world.take() == [0]
    assert isinstance(world.outbox.failure, SenderHalted)


def test_a_segment_that_cannot_be_read_is_tried_again() -> None:
    """An input error is no reason to give a frame up."""
    world = World(20)
    world.outbox.journal.maintain()
    world.disk.broken["open"] = OSError(5, "Input/output error")
    sent = world.take()
    assert len(sent) < 20
    assert world.outbox.next_deadline() == NOW + 1.0
    del world.disk.broken["open"]
    assert world.take() == []
    world.outbox.handle_timeout(NOW + 1.0)
    assert sent + world.take() == list(range(20))


def test_closing_is_no_error() -> None:
    """Nobody is told of an end that the application asked for."""
    world = World(1)
    world.outbox.failed(ClosedError("closed"))
    assert world.told.all == []
    assert world.outbox.counters.last_error == ""


def test_an_outbox_shows_where_it_stands() -> None:
    """For people who debug."""
    world = World(2)
    world.take()
    assert "next=2 in_flight=2 settled=-1 online=True" in repr(world.outbox)
