"""Reconnecting is paced by what was acknowledged, never by what was connected."""

from collections.abc import Callable

import pytest

from lance_sdk.journal._sending.outbox import OutboxLimits
from lance_spec.messages.qwp import ErrorResponse, Status

from .world import Host, Wire, World

PATIENT = OutboxLimits(strikes=10**9, dwell=10**9)


def refuse(status: int) -> Callable[[Wire], None]:
    """Return a host's habit of refusing every message."""

    def habit(wire: Wire) -> None:
        number = len(wire.messages) - 1
        wire.answer(ErrorResponse(status=status, wire_sequence=number, text=b"no").encode())

    return habit


PATTERNS = {
    "nobody listens": Host(reachable=False),
    "503": Host(status=503),
    "404": Host(status=404),
    "replica": Host(status=421, headers={"X-QuestDB-Role": "REPLICA"}),
    "catching up": Host(status=421, headers={"X-QuestDB-Role": "PRIMARY_CATCHUP"}),
    "another version": Host(headers={"X-QWP-Version": "2"}),
    "close 1000 at once": Host(on_open=lambda wire: wire.close(1000)),
    "close 1001 at once": Host(on_open=lambda wire: wire.close(1001)),
    "close 1011 at once": Host(on_open=lambda wire: wire.close(1011)),
    "close 1011 for each frame": Host(on_message=lambda wire: wire.close(1011)),
    "close 1013 for each frame": Host(on_message=lambda wire: wire.close(1013)),
    "close 1000 for each frame": Host(on_message=lambda wire: wire.close(1000)),
    "drop at once": Host(on_open=Wire.drop),
    "drop for each frame": Host(on_message=Wire.drop),
    "an answer that is none": Host(on_message=lambda wire: wire.answer(b"\0")),
    "an ack of too much": Host(on_message=lambda wire: wire.ok(99)),
    "not writable": Host(on_message=refuse(Status.NOT_WRITABLE)),
    "write error": Host(on_message=refuse(Status.WRITE_ERROR)),
    "unknown error": Host(on_message=refuse(0xEE)),
}


def most_in_a_second(attempts: list[float]) -> int:
    """Return the most attempts of any second."""
    return max(sum(start <= each < start + 1.0 for each in attempts) for start in attempts)


@pytest.mark.parametrize("hosts", [1, 3], ids=["one host", "three hosts"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_pattern_makes_a_storm(pattern: str, hosts: int) -> None:
    """At most ten attempts a second, and few of them once the backoff has grown."""
    world = World(*[PATTERNS[pattern]] * hosts, limits=PATIENT)
    world.append(b"a frame")
    world.run(40.0)
    assert most_in_a_second(world.attempts) <= 10
    late = [each for each in world.attempts if each > world.now - 20]
    steady = 20 / 0.1 if "replica" in pattern or "catching" in pattern else 20 / 5.0 + 1
    assert 0 < len(late) <= steady * hosts
    assert world.outbox.failure is None


def test_acks_between_closes_do_not_make_a_storm() -> None:
    """A host that takes one frame and closes is dialled ten times a second and no more."""

    def one_and_out(wire: Wire) -> None:
        wire.ok()
        wire.close(1000)

    world = World(Host(on_message=one_and_out), limits=OutboxLimits(frames=1))
    world.append(*(b"%d" % number for number in range(200)))
    world.run(10.0)
    assert most_in_a_second(world.attempts) <= 10
    assert world.outbox.settled_fsn > 50


def test_progress_makes_the_next_pause_short() -> None:
    """The backoff starts over with an acknowledgement."""
    host = Host(status=503)
    world = World(host)
    world.append(b"one")
    world.run(30.0)
    host.status = 101
    world.run(10.0)
    assert world.outbox.settled_fsn == 0
    before = len(world.attempts)
    world.wire.drop()
    world.run(0.2)
    assert len(world.attempts) == before + 1
