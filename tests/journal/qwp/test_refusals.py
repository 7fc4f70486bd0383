"""What a host's refusal is about, on a clock that stands still until it is turned."""

from collections.abc import Callable

import pytest

from lance_sdk._protocol.backoff import Backoff
from lance_sdk.journal import Journal, JournalConfig, SlotKind
from lance_sdk.journal._sending.outbox import Outbox, OutboxLimits
from lance_sdk.journal.qwp.dictionary import SymbolDictionary
from lance_sdk.journal.rejections import QWP_POLICIES, Category, Policy, Rejection, SenderHalted
from lance_spec.messages.qwp import (
    ErrorResponse,
    MessageFlag,
    QwpMessage,
)

from .world import Fixed, Host, Inbox, Wire, World


def with_times(flags: int, dictionary: bytes) -> bytes:
    """Return a message of one row of table ``t``, which has a time and nothing else."""
    encoding = b"\0" if flags & MessageFlag.GORILLA else b""
    body = dictionary + b"\x01t\x01\x01\0\x10\0" + encoding + bytes(8)
    return QwpMessage(flags=flags, table_count=1, payload=body).encode()


@pytest.mark.parametrize("gorilla", [0, MessageFlag.GORILLA], ids=["plain", "gorilla"])
@pytest.mark.parametrize("delta", [0, MessageFlag.DELTA_DICTIONARY], ids=["local", "delta"])
def test_a_refused_frame_of_one_table_names_it(gorilla: int, delta: int) -> None:
    """Whatever the flags of the frame say of its form."""
    error = ErrorResponse(status=5, wire_sequence=0, text=b"no")
    world = World(Host(on_message=lambda wire: wire.answer(error.encode())))
    world.append(with_times(gorilla | delta, bytes(2) if delta else b""))
    world.run(1.0)
    assert [each.table for each in world.inbox] == ["t"]


def test_an_error_about_the_catch_up_blames_no_frame() -> None:
    """The sender halts, whatever the policies are: every frame is kept."""

    def refuse_dictionary(wire: Wire) -> None:
        if len(wire.messages) == 1:
            error = ErrorResponse(status=5, wire_sequence=0, text=b"no dictionary")
            wire.answer(error.encode())

    limits = OutboxLimits(policies=dict.fromkeys(QWP_POLICIES, Policy.DROP))
    host = Host(on_message=refuse_dictionary)
    world = World(host, dictionary=SymbolDictionary(["a"]), limits=limits)
    world.append(b"frame")
    world.run()
    assert [each.message for each in world.inbox] == ["the slot's symbols: no dictionary"]
    assert "no frame rejected" in str(world.inbox[0])
    assert isinstance(world.outbox.failure, SenderHalted)
    assert world.outbox.settled_fsn == -1


def test_a_late_error_about_an_acknowledged_frame_hits_no_other() -> None:
    """It costs the connection; the next frame is sent again and settled."""

    def take_and_refuse(wire: Wire) -> None:
        if len(wire.messages) == 1:
            wire.ok(0)
            wire.answer(ErrorResponse(status=3, wire_sequence=0, text=b"late").encode())
        else:
            wire.ok()

    limits = OutboxLimits(policies=dict.fromkeys(QWP_POLICIES, Policy.DROP))
    world = World(Host(on_message=take_and_refuse), limits=limits)
    world.append(b"one", b"two")
    world.run(5.0)
    assert world.outbox.settled_fsn == 1
    assert world.outbox.counters.dropped == 0


def closing(code: int, reason: str) -> Callable[[Wire], None]:
    """Return a host's habit of closing at the first message."""

    def habit(wire: Wire) -> None:
        if len(wire.messages) == 1:
            wire.close(code, reason)

    return habit


@pytest.mark.parametrize("code", [1002, 1003, 1007, 1008, 1009, 1010])
def test_a_close_of_section_15_1_halts_whatever_the_policies_say(code: int) -> None:
    """The whole window that is not acknowledged is named, and kept."""
    limits = OutboxLimits(policies=dict.fromkeys(QWP_POLICIES, Policy.DROP))
    world = World(Host(on_message=closing(code, "no")), limits=limits)
    world.append(b"one", b"two")
    world.run(1.0)
    assert isinstance(world.outbox.failure, SenderHalted)
    (told,) = world.inbox
    assert (told.first_fsn, told.last_fsn, told.status, told.wire_seq) == (0, 1, -1, -1)
    assert told.message == f"ws-close[{code}]: no"
    assert len(world.attempts) == 1


@pytest.mark.parametrize("code", [1000, 1001, 1011, 1012, 1013, 4000])
def test_other_closes_reconnect_for_ever(code: int) -> None:
    """A server that restarts, again and again, halts nobody."""
    host = Host(on_message=closing(code, "restarting"))
    world = World(host)
    world.append(b"one", b"two")
    world.run(120.0)
    assert world.outbox.failure is None
    host.on_message = Wire.ok
    world.run(10.0)
    assert world.outbox.settled_fsn == 1


def test_a_frame_that_another_host_takes_is_not_condemned() -> None:
    """The small host is passed over; nothing becomes a dead letter."""
    small = Host(headers={"X-QWP-Max-Batch-Size": "20"})
    world = World(small, Host())
    world.append(b"x" * 100, b"small", b"y" * 100)
    world.run(30.0)
    assert world.outbox.settled_fsn == 2
    assert world.outbox.counters.dead_lettered == 0
    assert world.inbox == []


def test_an_error_about_nothing_costs_the_connection() -> None:
    """A number that was never sent is a protocol error (SF-35)."""
    error = ErrorResponse(status=5, wire_sequence=7, text=b"?")
    host = Host(on_message=lambda wire: wire.answer(error.encode()))
    world = World(host)
    world.append(b"frame")
    world.run(0.05)
    assert world.inbox == []
    host.on_message = Wire.ok
    world.run(1.0)
    assert world.outbox.settled_fsn == 0


@pytest.mark.parametrize("lost", [True, False], ids=["resent", "sent once"])
def test_a_refusal_after_an_unanswered_attempt_says_that_the_frame_may_be_stored(
    lost: bool,
) -> None:
    """The first attempt may have succeeded, and only its answer was lost."""

    def refuse(wire: Wire) -> None:
        if lost and wire.number == 0:
            wire.drop()
        else:
            wire.answer(ErrorResponse(status=5, wire_sequence=0, text=b"no").encode())

    world = World(Host(on_message=refuse))
    world.append(b"frame")
    world.run(20.0)
    (told,) = world.inbox
    assert told.maybe_stored is lost
    assert ("may have stored it" in str(told)) is lost


def test_a_refusal_of_a_frame_from_an_earlier_sender_says_that_it_may_be_stored() -> None:
    """Nobody knows what that one sent."""
    limits = OutboxLimits(dwell=0.0, defaults=QWP_POLICIES)
    journal = Journal.open(None, JournalConfig(kind=SlotKind.QWP, background=False))
    journal.append(b"old")
    inbox = Inbox()
    outbox = Outbox(
        journal, limits, inbox, None, backoff=Backoff(1, 1, Fixed()), wall_clock=lambda: 0.0
    )
    journal.append(b"new")
    told = []
    for fsn in (0, 1):
        rejection = Rejection(
            category=Category.WRITE_ERROR, message="no", first_fsn=fsn, last_fsn=fsn
        )
        outbox.rejected(rejection, 0.0, policy=Policy.DROP)
        told.append(inbox[-1].maybe_stored)
    assert told == [True, False]
