"""The transport's decisions, one by one, on a clock that stands still until it is turned."""

import random
from itertools import pairwise

import pytest

from lance_sdk._protocol.backoff import Backoff
from lance_sdk.errors import ClosedError, ConfigError, ConnectFailed, RemoteProtocolError
from lance_sdk.journal._sending.outbox import OutboxLimits
from lance_sdk.journal.connect_string import parse_connect_string
from lance_sdk.journal.qwp import (
    Credentials,
    DurableAckUnavailable,
    QwpSettings,
    SymbolsLost,
)
from lance_sdk.journal.qwp._connection.acks import SentMessages
from lance_sdk.journal.qwp._connection.hosts import HostState
from lance_sdk.journal.qwp.dictionary import SymbolDictionary
from lance_sdk.journal.rejections import Category, Policy, SenderHalted
from lance_spec.messages.qwp import (
    DurableAck,
    OkResponse,
    TableSequence,
)

from .world import HOST, Host, Wire, World

DURABLE = {"X-QWP-Durable-Ack": "Enabled"}
SYMBOLS = bytes.fromhex("51575031 01 08 0000 06000000 00 02 01 61 01 62")


def quiet(wire: Wire) -> None:
    """Answer nothing."""
    del wire


def delta(start: int, *symbols: str) -> bytes:
    """Return a message with a dictionary section and no tables."""
    body = bytes([start, len(symbols)]) + b"".join(bytes([len(s)]) + s.encode() for s in symbols)
    return b"QWP1\x01\x08\0\0" + len(body).to_bytes(4, "little") + body


def test_the_upgrade_asks_for_what_is_wanted() -> None:
    """Version, durable acknowledgements and credentials stand in the headers."""
    world = World(
        Host(headers=DURABLE),
        durable=True,
        credentials=Credentials(username="me", password="secret"),
    )
    world.run()
    headers = world.wire.headers
    assert headers["X-QWP-Max-Version"] == "1"
    assert headers["X-QWP-Request-Durable-Ack"] == "true"
    assert headers["Authorization"] == "Basic bWU6c2VjcmV0"
    assert headers["Host"] == "host:9000"


def test_a_token_goes_as_bearer() -> None:
    """As the specification of the upgrade says."""
    world = World(Host(), credentials=Credentials(token="abc"))
    world.run()
    assert world.wire.headers["Authorization"] == "Bearer abc"
    assert "X-QWP-Request-Durable-Ack" not in world.wire.headers


@pytest.mark.parametrize(
    "wrong",
    [{"token": "a", "username": "b", "password": "c"}, {"username": "b"}, {"token": "a\nb"}],
)
def test_credentials_that_contradict_each_other_are_refused(wrong: dict[str, str]) -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigError):
        Credentials(**wrong)


@pytest.mark.parametrize("endpoints", [[], [HOST, HOST]])
def test_hosts_must_be_some_and_different(endpoints: list[object]) -> None:
    """The option is named."""
    with pytest.raises(ConfigError, match="addr"):
        QwpSettings(endpoints=endpoints)


def test_a_new_connection_is_caught_up_first() -> None:
    """The whole dictionary goes out before any frame, and is not a frame itself."""
    world = World(Host(), dictionary=SymbolDictionary(["a", "b"]))
    world.append(b"frame 0")
    world.run()
    assert world.wire.messages == [SYMBOLS, b"frame 0"]
    assert world.outbox.settled_fsn == 0


def test_a_large_dictionary_is_split_as_the_host_wants_it() -> None:
    """No catch-up message is larger than the host takes."""
    symbols = [f"symbol number {number}" for number in range(500)]
    world = World(
        Host(headers={"X-QWP-Max-Batch-Size": "1000"}), dictionary=SymbolDictionary(symbols)
    )
    world.append(b"frame 0")
    world.run()
    *catch_up, frame = world.wire.messages
    assert frame == b"frame 0"
    assert len(catch_up) > 5
    assert all(len(each) <= 1000 for each in catch_up)
    assert world.outbox.settled_fsn == 0


def test_acks_of_the_catch_up_settle_no_frame() -> None:
    """Numbers on the wire are shifted by the messages of the dictionary."""
    world = World(Host(on_message=quiet), dictionary=SymbolDictionary(["a"]))
    world.append(b"frame 0", b"frame 1")
    world.run()
    world.wire.ok(0)
    world.run()
    assert world.outbox.settled_fsn == -1
    world.wire.ok(1)
    world.run()
    assert world.outbox.settled_fsn == 0


def test_a_frame_whose_symbols_are_lost_is_not_sent() -> None:
    """A wrong symbol would be stored for ever; the sender halts and says what is missing."""
    world = World(Host())
    world.append(delta(0, "a"))
    world.run()
    world.append(delta(3, "d"))
    world.run(1.0)
    assert world.outbox.settled_fsn == 0
    failure = world.outbox.failure
    assert isinstance(failure, SymbolsLost)
    assert (failure.fsn, failure.first, failure.needed) == (1, 1, 3)
    assert world.wires[0].messages == [delta(0, "a")]


def test_frames_teach_the_host_symbols_as_they_go() -> None:
    """What a frame of this connection brought, the next may refer to."""
    world = World(Host())
    world.append(delta(0, "a"), delta(1, "b", "c"), delta(3))
    world.run()
    assert world.outbox.settled_fsn == 2


def test_symbols_of_a_frame_that_is_not_sent_are_not_missed() -> None:
    """Its successors refer to them, so the host gets them without it."""

    class Letters:
        """Takes dead letters."""

        def write(self, rejection: object, payload: bytes) -> None:
            """Take one."""

    symbols = SymbolDictionary()
    world = World(
        Host(headers={"X-QWP-Max-Batch-Size": "40"}), dictionary=symbols, dead_letters=Letters()
    )
    world.run()
    symbols.ids(["a", "b" * 20])
    world.append(delta(0, "a"), delta(1, "b" * 20) + bytes(40), delta(2))
    world.run()
    assert world.wire.messages == [delta(0, "a"), delta(1, "b" * 20), delta(2)]
    assert world.outbox.failure is None
    assert world.outbox.settled_fsn == 2


# Durable acknowledgements ------------------------------------------------------------------------


def ok(number: int, **tables: int) -> bytes:
    """Return an OK that names transactions of tables."""
    named = [TableSequence(name=each.encode(), sequence=tables[each]) for each in tables]
    return OkResponse(wire_sequence=number, tables=named).encode()


def durable(**tables: int) -> bytes:
    """Return a durable acknowledgement."""
    named = [TableSequence(name=each.encode(), sequence=tables[each]) for each in tables]
    return DurableAck(tables=named).encode()


@pytest.fixture
def waiting() -> World:
    """Return a world where frame 0 went to tables a and b, frame 1 to a, frame 2 to none."""
    world = World(Host(headers=DURABLE, on_message=quiet), durable=True)
    world.append(b"0", b"1", b"2")
    world.run()
    for each in (ok(0, a=1, b=1), ok(1, a=2), ok(2)):
        world.wire.answer(each)
    world.run()
    assert world.outbox.settled_fsn == -1
    return world


def test_a_frame_is_durable_with_all_its_tables(waiting: World) -> None:
    """One of two is not enough; the last one settles what waits behind it too."""
    waiting.wire.answer(durable(a=2))
    waiting.run()
    assert waiting.outbox.settled_fsn == -1
    waiting.wire.answer(durable(b=1))
    waiting.run()
    assert waiting.outbox.settled_fsn == 2


def test_older_durable_acks_change_nothing(waiting: World) -> None:
    """Each table's mark only rises."""
    for each in (durable(a=5), durable(a=1), durable(b=0)):
        waiting.wire.answer(each)
    waiting.run()
    assert waiting.outbox.settled_fsn == -1
    waiting.wire.answer(durable(b=1))
    waiting.run()
    assert waiting.outbox.settled_fsn == 2


def test_a_new_connection_forgets_what_waited(waiting: World) -> None:
    """Marks of an old connection mean nothing on the next; everything goes out again."""
    waiting.wire.answer(durable(a=9, b=9)[:-1])
    waiting.run(1.0)
    assert len(waiting.wires) == 2
    assert waiting.wire.messages == [b"0", b"1", b"2"]
    assert waiting.outbox.settled_fsn == -1


def test_marks_of_ever_more_tables_cost_the_connection() -> None:
    """A host cannot fill the sender's memory with names."""
    sent_messages = SentMessages(durable=True)
    marks = [TableSequence(name=b"%04d" % each * 15_000, sequence=1) for each in range(300)]
    sent_messages.durable_ack(DurableAck(tables=marks[:200]))
    with pytest.raises(RemoteProtocolError, match="tables"):
        sent_messages.durable_ack(DurableAck(tables=marks))


def test_pings_ask_for_what_is_due(waiting: World) -> None:
    """Some servers only speak when spoken to; the ping comes every interval while it is due."""
    before = waiting.wire.pings
    waiting.run(1.05)
    assert 4 <= waiting.wire.pings - before <= 6
    waiting.wire.answer(durable(a=2, b=1))
    waiting.run()
    before = waiting.wire.pings
    waiting.run(5.0)
    assert waiting.wire.pings == before


def test_a_host_without_durable_acks_is_refused_at_once() -> None:
    """Waiting for what never comes would fill the disk."""
    world = World(Host(), durable=True)
    world.run(10.0)
    assert isinstance(world.transport.opened.error, DurableAckUnavailable)
    assert len(world.attempts) == 1
    assert world.core.finished


def test_another_host_may_grant_what_the_first_does_not() -> None:
    """The round goes on."""
    world = World(Host(), Host(headers=DURABLE), durable=True)
    world.run()
    assert world.outbox.online
    assert world.wire.host.port == 9001


# Life signs --------------------------------------------------------------------------------------


def test_a_host_that_falls_silent_is_left() -> None:
    """No answer, no pong: the connection is dead after twice the timeout."""
    world = World(Host(on_message=quiet, pongs=False), answer_timeout=10.0)
    world.append(b"frame")
    world.run(19.0)
    assert (len(world.wires), world.wire.pings) == (1, 1)
    world.run(2.0)
    assert len(world.wires) == 2


def test_a_host_that_is_only_slow_is_kept() -> None:
    """Pongs show that it lives; only an answer that is very late means that it does not work."""
    world = World(Host(on_message=quiet), answer_timeout=10.0, ack_timeout=500.0)
    world.append(b"frame")
    world.run(499.0)
    assert len(world.wires) == 1
    world.run(2.0)
    assert len(world.wires) == 2


def test_what_was_taken_may_wait_for_its_disk_for_ever(waiting: World) -> None:
    """Behind the OK no time is set: storage elsewhere may be hours away."""
    waiting.run(3600.0)
    assert len(waiting.wires) == 1


def test_an_idle_connection_costs_nothing() -> None:
    """Without frames in flight no ping is sent and no silence counts."""
    world = World(Host(), answer_timeout=10.0)
    world.append(b"frame")
    world.run(3600.0)
    assert (len(world.wires), world.wire.pings) == (1, 0)


def test_a_frame_after_a_long_silence_gets_its_time() -> None:
    """The silence before it does not count against it."""
    host = Host()
    world = World(host, answer_timeout=10.0)
    world.run(3600.0)
    host.on_message = quiet
    world.append(b"frame")
    world.run(9.0)
    assert len(world.wires) == 1


def test_a_flood_of_pings_costs_the_connection() -> None:
    """Pongs that the host does not take do not pile up."""

    def flood(wire: Wire) -> None:
        for _ in range(1001):
            wire.protocol.send_ping(b"x")
        wire.protocol.writes[:] = [b"".join(wire.protocol.writes)]

    host = Host(on_message=flood)
    world = World(host)
    world.append(b"frame")
    world.run(0.05)
    host.on_message = Wire.ok
    world.run(1.0)
    assert len(world.wires) == 2
    assert world.outbox.settled_fsn == 0


# Hosts and rounds --------------------------------------------------------------------------------


def test_without_retries_one_round_decides() -> None:
    """Every host is tried once, in order, and each attempt is told."""
    world = World(
        Host(reachable=False), Host(status=503), Host(reachable=False), retry_initially=False
    )
    world.run(60.0)
    assert [each.port for each in world.dialled] == [9000, 9001, 9002]
    error = world.transport.opened.error
    assert isinstance(error, ConnectFailed)
    assert [each.phase for each in error.attempts] == ["tcp", "upgrade", "tcp"]


def test_the_sender_follows_the_primary() -> None:
    """A replica is passed over without a pause."""
    world = World(Host(status=421, headers={"X-QuestDB-Role": "REPLICA"}), Host())
    world.run()
    assert world.wire.host.port == 9001
    assert world.transport.hosts.state(0) is HostState.TOPOLOGY_REJECT
    assert world.attempts[0] == world.attempts[1]


def test_a_change_of_roles_is_waited_for_at_a_steady_pace_with_jitter() -> None:
    """The pause is the first one of an outage after every round (SF-15)."""
    world = World(*(Host(status=421, headers={"X-QuestDB-Role": "PRIMARY_CATCHUP"}),) * 2)
    world.outbox.backoff = Backoff(1.0, 60.0, random.Random(1))
    world.run(60.0)
    rounds = world.attempts[::2]
    pauses = [later - earlier for earlier, later in pairwise(rounds)]
    assert world.attempts[1::2] == rounds[: len(world.attempts) // 2]
    assert all(1.0 <= each < 2.0 for each in pauses[1:])
    assert len(set(pauses)) > 20


@pytest.mark.parametrize("status", [401, 403])
def test_a_host_that_knows_the_sender_and_does_not_want_it_ends_everything(status: int) -> None:
    """Whatever may be retried, this is not."""
    world = World(Host(status=status), Host())
    world.run(60.0)
    assert len(world.attempts) == 1
    assert isinstance(world.outbox.failure, SenderHalted)
    assert [each.category for each in world.inbox] == [Category.SECURITY_ERROR]


def test_a_refusal_of_credentials_can_be_retried_by_policy() -> None:
    """Where tokens are replaced from outside, the next one may be right."""
    limits = OutboxLimits(policies={Category.SECURITY_ERROR: Policy.RETRY}, dwell=10**9)
    host = Host(status=401)
    world = World(host, limits=limits)
    world.append(b"frame")
    world.run(3.0)
    host.status = 101
    world.run(10.0)
    assert world.outbox.settled_fsn == 0


@pytest.mark.parametrize("policy", ["dead_letter", "drop", "terminal"])
@pytest.mark.parametrize("key", ["on_server_error", "on_security_error"])
@pytest.mark.parametrize("status", [401, 403])
def test_no_other_policy_tries_refused_credentials_again(
    status: int, key: str, policy: str
) -> None:
    """They give a frame up, and this is about none: the sender halts at once, with all frames."""
    text = f"ws::addr=a;sf_dir=d;{key}={policy};"
    world = World(Host(status=status), limits=parse_connect_string(text).forward_config().limits)
    world.append(b"frame")
    world.run(60.0)
    assert len(world.attempts) == 1
    assert isinstance(world.outbox.failure, SenderHalted)
    assert world.outbox.counters.dead_lettered == world.outbox.counters.dropped == 0


# The window, and the end ------------------------------------------------------------------------


@pytest.mark.parametrize("every", [65, 100, 1000])
def test_one_acknowledgement_for_many_frames_is_enough(every: int) -> None:
    """The window counts what the host has not taken, and holds more than it waits for."""

    def rarely(wire: Wire) -> None:
        if len(wire.messages) % every == 0:
            wire.ok(len(wire.messages) - 1)

    config = parse_connect_string("ws::addr=a;").forward_config()
    world = World(Host(on_message=rarely), limits=config.limits)
    world.append(*(b"%d" % number for number in range(2 * every)))
    world.run(1.0)
    assert world.outbox.settled_fsn == 2 * every - 1


@pytest.mark.parametrize("limits", [{"frames": 1}, {"frames": 4}, {"bytes": 8}], ids=str)
def test_frames_that_wait_for_durable_acknowledgements_stop_no_others(
    limits: dict[str, int],
) -> None:
    """An OK makes room on the way, although the frame is not settled, and however many wait."""

    def take(wire: Wire) -> None:
        number = len(wire.messages) - 1
        wire.answer(ok(number, t=number))

    host = Host(on_message=take, headers=DURABLE)
    world = World(host, durable=True, limits=OutboxLimits(**limits))
    world.append(*(b"%d" % number for number in range(400)))
    world.run(1.0)
    assert len(world.wires[0].messages) == 400
    assert world.outbox.settled_fsn == -1
    world.wire.answer(durable(t=399))
    world.run(1.0)
    assert world.outbox.settled_fsn == 399


def test_a_close_is_answered_and_meant() -> None:
    """The closing handshake is finished, and frames go on elsewhere."""
    host = Host(on_message=lambda wire: wire.close(1001, "bye"))
    world = World(host)
    world.append(b"frame")
    world.run(0.05)
    first = world.wires[0]
    assert first.protocol.close_rcvd is not None
    host.on_message = Wire.ok
    world.run(1.0)
    assert world.outbox.settled_fsn == 0


def test_a_drained_sender_says_goodbye() -> None:
    """The host sees an orderly close."""
    world = World(Host())
    world.append(b"frame")
    world.run()
    world.core.close(world.now, 5.0)
    world.run(1.0)
    assert world.core.finished
    close = world.wires[0].protocol.close_rcvd
    assert close is not None
    assert close.code == 1000


def test_a_sender_with_frames_left_ends_in_time() -> None:
    """Closing waits as long as it was told, and no longer."""
    world = World(Host(on_message=quiet))
    world.append(b"frame")
    world.run()
    world.core.close(world.now, 5.0)
    world.run(4.0)
    assert not world.core.finished
    world.run(2.0)
    assert world.core.finished
    assert isinstance(world.outbox.failure, ClosedError)


@pytest.mark.parametrize("host", [Host(reachable=False), Host(status=503), Host()])
def test_a_sender_can_be_closed_at_any_time(host: Host) -> None:
    """Also before it was ever connected, and between attempts."""
    world = World(host)
    world.run(0.03)
    world.core.close(world.now, 0.0)
    world.run(2.0)
    assert world.core.finished
