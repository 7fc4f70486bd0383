"""An outage is told once when it begins and once when it ends, with what waits."""

import pickle

import pytest

from lance_sdk._protocol.events import BacklogSeen, Disconnected, Notice
from lance_sdk.journal import JournalFull
from lance_sdk.journal._sending.outbox import OutboxLimits

from .world import Host, Wire, World

FRAME = b"a frame"


def outages(world: World) -> list[str]:
    """Return the kinds of what operators are told about outages."""
    kinds = [each.kind for each in world.events if isinstance(each, Notice)]
    return [kind for kind in kinds if kind.startswith("outage")]


def texts(world: World) -> list[str]:
    """Return what operators are told."""
    return [each.message for each in world.events if isinstance(each, Notice)]


def seen(world: World) -> list[BacklogSeen]:
    """Return what the backlog hook is told."""
    return [each for each in world.events if isinstance(each, BacklogSeen)]


def test_an_outage_at_the_start_is_told_once() -> None:
    """However many attempts it costs; the text has the cause and what waits."""
    world = World(Host(reachable=False))
    world.append(FRAME, FRAME)
    world.run(60.0)
    assert len(world.attempts) > 5
    assert outages(world) == ["outage begins"]
    assert texts(world)[0].startswith("the server cannot be used: ")
    assert f"2 frames with {2 * len(FRAME)} bytes wait" in texts(world)[0]


def test_its_end_is_told_when_a_frame_is_acknowledged() -> None:
    """With its length, the attempts it took, and what still waits."""
    host = Host(reachable=False)
    world = World(host)
    world.append(FRAME)
    world.run(60.0)
    tries = len(world.attempts)
    host.reachable = True
    world.run(20.0)
    assert outages(world) == ["outage begins", "outage ends"]
    assert f"s and {tries} more attempts; nothing waits" in texts(world)[-1]
    assert seen(world)[-1].frames == 0


@pytest.mark.parametrize(
    "host", [Host(on_open=Wire.drop), Host(on_message=Wire.drop)], ids=["at once", "each frame"]
)
def test_a_server_that_accepts_and_closes_is_one_outage(host: Host) -> None:
    """A connection alone does not end it."""
    world = World(host, limits=OutboxLimits(strikes=10**9))
    world.append(FRAME)
    world.run(120.0)
    assert outages(world) == ["outage begins"]


def test_with_nothing_to_send_an_outage_ends_when_a_connection_stands() -> None:
    """There is no acknowledgement to wait for."""
    host = Host(reachable=False)
    world = World(host)
    world.run(30.0)
    host.reachable = True
    world.run(20.0)
    assert outages(world) == ["outage begins", "outage ends"]


def test_every_outage_is_told() -> None:
    """Also the second one with the same cause."""
    host = Host()
    world = World(host)
    for _ in range(3):
        world.append(FRAME)
        world.run(10.0)
        host.reachable = False
        world.wire.drop()
        world.run(30.0)
        host.reachable = True
        world.append(FRAME)
        world.run(30.0)
    assert outages(world) == ["outage begins", "outage ends"] * 3


def test_lost_connections_are_told_by_the_outage_alone() -> None:
    """The log has one warning; the hook gets every attempt."""
    world = World(Host(reachable=False))
    world.append(FRAME)
    world.run(60.0)
    lost = [each for each in world.events if isinstance(each, Disconnected)]
    assert len(lost) == len(world.attempts)
    assert all(each.told for each in lost)


def test_the_last_error_is_filled_during_an_outage() -> None:
    """`stats` has why the server cannot be used."""
    world = World(Host(reachable=False))
    world.append(FRAME)
    world.run(1.0)
    assert "refused" in world.outbox.counters.last_error


def test_the_backlog_is_told_every_ten_seconds_of_an_outage() -> None:
    """With frames, bytes, age and the time without a server."""
    world = World(Host(reachable=False))
    world.append(FRAME)
    world.run(35.0)
    assert [each.frames for each in seen(world)] == [1, 1, 1, 1]
    assert [each.size for each in seen(world)] == [len(FRAME)] * 4
    lag = [each.age for each in seen(world)]
    assert lag == sorted(lag)
    assert lag[-1] >= 30.0
    assert all(each.outage is not None for each in seen(world))


def test_a_backlog_behind_a_slow_server_is_told_too() -> None:
    """Frames wait, though the connection stands."""
    world = World(Host(on_message=lambda _wire: None))
    world.append(FRAME)
    world.run(25.0)
    assert [(each.frames, each.outage) for each in seen(world)] == [(1, None), (1, None)]


def test_without_a_backlog_and_an_outage_nothing_is_told() -> None:
    """A quiet sender stays quiet."""
    world = World(Host())
    world.append(FRAME)
    world.run(100.0)
    assert not seen(world)
    assert not texts(world)


def test_a_full_journal_says_that_there_never_was_a_connection() -> None:
    """With the number of attempts and the last cause (SF client section 16)."""
    world = World(Host(reachable=False))
    world.append(FRAME)
    world.run(10.0)
    link = world.core.link(world.now)
    assert link.startswith(f"never connected, in {len(world.attempts)} attempts: ")
    assert "refused" in link


def test_a_full_journal_says_that_nothing_is_acknowledged() -> None:
    """That is another fault than an absent server."""
    world = World(Host(on_message=lambda _wire: None))
    world.append(FRAME)
    world.run(10.0)
    said = "connected, and 1 frames were sent and not acknowledged"
    assert world.core.link(world.now) == said


def test_a_full_journal_says_that_the_connection_was_lost() -> None:
    """And for how long."""
    host = Host()
    world = World(host)
    world.append(FRAME)
    world.run(5.0)
    host.reachable = False
    world.wire.drop()
    world.append(FRAME)
    world.run(10.0)
    assert world.core.link(world.now).startswith("not connected for 10.0 s: ")


def test_what_a_full_journal_says_survives_pickling() -> None:
    """Workers hand errors to each other."""
    full = JournalFull("backlog", 1.0, limit=8, backlog=7).with_link("never connected")
    assert str(pickle.loads(pickle.dumps(full))) == str(full)
    assert "(never connected)" in str(full)
