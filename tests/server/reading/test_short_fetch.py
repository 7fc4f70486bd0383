"""The usual Fetch takes a short way to its answer, and gets the same one."""

import errno
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_server.fault_injection.role import Role
from lance_server.log.reading.reader import Fetched, Range
from lance_server.log.segments.segment_files import View
from lance_server.lwp.fetch import _WANTED, FetchHandler
from lance_server.lwp.responses import fetch_response, room_for_headers
from lance_server.telemetry.distribution import Distribution
from lance_server.testing import SessionPeer, told
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command, Flag
from lance_spec.frames import encode_control, encode_header
from lance_spec.limits import END_OFFSET
from lance_spec.messages.lwp import Fetch, FetchResponse, FetchResponseExtended
from lance_spec.records import encode_records

MIB = 1024 * 1024
GROUPS = [[[b"v" * 10 * size for size in range(batch + 1)] for batch in range(4)]] * 3
SIZES = [len(encode_records(batch)) for group in GROUPS for batch in group]
EDGES = list(accumulate(SIZES, initial=0))
CONTROL = int(Flag.CONTROL)
EXTENDED = replace(SPECIFIED, name="extended", fetch_header=24)


@dataclass(frozen=True)
class Wanted:
    """A Fetch, perhaps one that is not quite in order."""

    start: int
    most: int
    topic_id: int = 0
    flags: int = CONTROL
    spare: int = 0

    def frame(self, dialect: Dialect) -> bytes:
        """Return it as a client of a dialect sends it."""
        payload = Fetch(self.topic_id, self.start, self.most).encode() + bytes(self.spare)
        return encode_header(dialect, self.flags, batch_id=Command.FETCH, payload=payload) + payload


def other(peer: SessionPeer, name: str) -> bytes:
    """Return a request that asks for no data."""
    return {
        "keepalive": peer.keepalive(),
        "ingest": peer.ingest(77, [b"new"]),
        "topic": peer.control(Command.GET_TOPIC, b"\1\0\0\0"),
        "short": peer.control(Command.FETCH, b"\0"),
    }[name]


starts = st.one_of(
    st.sampled_from(EDGES), st.integers(0, EDGES[-1] + 5), st.sampled_from([2**63, END_OFFSET])
)
mosts = st.one_of(st.sampled_from([*SIZES, 2**20, 2**32 - 1]), st.integers(0, 300))
fetches = st.builds(Wanted, starts, mosts)
odd = st.builds(
    Wanted,
    starts,
    mosts,
    st.sampled_from([0, 1, 9]),
    st.sampled_from([CONTROL, CONTROL | Flag.ENCRYPTED]),
    st.integers(0, 1),
)
others = st.sampled_from(["keepalive", "ingest", "topic", "short"])
disks = st.sampled_from(["warm", "warm", "warm", "cold", "broken"])
turns = st.lists(st.tuples(disks, st.lists(fetches | odd | others, max_size=6)), max_size=4)


@dataclass(frozen=True)
class World:
    """What the requests meet."""

    dialect: Dialect = SPECIFIED
    rate: int = 0
    behind: int = 0
    others_hold: int = 0

    def peer(self) -> SessionPeer:
        """Return a client of a server whose log has several segments, the last of them open."""
        role = Role()
        peer = SessionPeer(
            self.dialect,
            role=role if self.behind else None,
            consumer_rate=self.rate,
            max_memory=64 * MIB,
        )
        peer.exchange(peer.create("one"))
        peer.log.engine.topic(0).partition._active_segment._segment_size = 150
        for number, group in enumerate(GROUPS):
            peer.exchange(*(peer.ingest(4 * number + n, each) for n, each in enumerate(group, 1)))
        role.change_to(Role(behind=self.behind))
        peer.service.memory.new_holder().update(self.others_hold)
        return peer


worlds = st.builds(
    World,
    st.sampled_from([SPECIFIED, DEPLOYED]),
    st.sampled_from([0, 0, 500]),
    st.sampled_from([0, 0, 40]),
    st.sampled_from([0, 0, 55 * MIB]),
)


def the_long_way(peer: SessionPeer) -> SessionPeer:
    """Take the short cuts away: that of the request, and that of the read."""
    vars(peer.session._fetching)["fetch_plainly"] = lambda *_: 0
    vars(peer.log.engine.topic(0).partition._reader)["fetch"] = partial(judged, peer)
    return peer


def judged(peer: SessionPeer, view: View, wanted: Range, *, cached_only: bool = False) -> Fetched:
    """Read as where something is to be judged first."""
    number = bisect_right([segment.base_offset for segment in view.segments], wanted.start) - 1
    reader = peer.log.engine.topic(0).partition._reader
    return reader._fetch_judged(view, wanted, number, cached_only)


def state(peer: SessionPeer) -> dict[str, object]:
    """Return the counters, how much was observed, and what the connection holds."""
    counted = {
        name: value.cumulative()[0][-1] if isinstance(value, Distribution) else value
        for name in peer.counters.__dataclass_fields__
        if isinstance(value := getattr(peer.counters, name), int | Distribution)
    }
    session = peer.session
    held = {
        "memory": session.request_bytes + session.other_bytes,
        "owed": session._owed_bytes,
        "shown": repr(session),
    }
    return {**counted, **held, "used": peer.service.memory.used}


@settings(deadline=None, max_examples=60)
@given(worlds, turns, st.booleans())
def test_the_short_way_ends_where_the_long_one_does(
    world: World, turns: list[tuple[str, list[Wanted | str]]], together: bool
) -> None:
    """Answers, counters and what is held are the same to the last bit."""
    short, long = world.peer(), the_long_way(world.peer())
    for disk, wanted in turns:
        frames = [
            other(short, each) if isinstance(each, str) else each.frame(world.dialect)
            for each in wanted
        ]
        for peer in short, long:
            peer.disk.cold = disk == "cold"
            peer.disk.fail = {"read_into": errno.EIO} if disk == "broken" else {}
            for part in [b"".join(frames)] if together else frames:
                peer.send(part)
        assert state(short) == state(long)
        sent = True
        while sent:
            answers, same = short.session.data_to_send(), long.session.data_to_send()
            assert answers == same
            for peer in short, long:
                peer.session.advance(peer.now)
                peer.work()
            assert state(short) == state(long)
            sent = bool(answers)


@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=lambda dialect: dialect.name)
def test_fetches_in_one_read_take_the_short_way(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that a prefetching client sends, in either dialect."""
    peer = World(dialect).peer()
    monkeypatch.setattr(FetchHandler, "fetch", None)
    answers = peer.exchange(*(peer.fetch(edge, 100) for edge in EDGES[:-1]))
    assert told(answers) == ["FETCH_RESPONSE"] * len(SIZES)


def test_whole_batches_are_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compared to its checksum is handed out as it is."""
    peer = World().peer()
    reader = peer.log.engine.topic(0).partition._reader
    peer.exchange(peer.fetch(0, MIB), peer.fetch(EDGES[4], MIB))
    monkeypatch.setattr(reader, "_fetch_judged", None)
    assert told(peer.exchange(peer.fetch(0, MIB))) == ["FETCH_RESPONSE"]


@pytest.mark.parametrize(
    "dialect", [SPECIFIED, EXTENDED, DEPLOYED], ids=["specified", "extended", "deployed"]
)
@given(u64=st.integers(0, 2**64 - 1), count=st.integers(0, 2**32 - 1), data=st.binary(max_size=50))
def test_an_answer_is_the_grammars_message(
    dialect: Dialect, u64: int, count: int, data: bytes
) -> None:
    """What is laid out by hand, in both forms, is what the generated message and header are."""
    behind = max(u64, len(data))
    message = (
        FetchResponse(behind, len(data), count if dialect.strict else min(len(data), 1), data)
        if dialect.fetch_header == FetchResponse.MIN_SIZE
        else FetchResponseExtended(behind - len(data), behind, u64, data)
    )
    fetched = Fetched(behind, count, bytearray(room_for_headers(dialect)) + data)
    answer = fetch_response(dialect, fetched, u64)
    assert answer == encode_control(dialect, Command.FETCH_RESPONSE, message.encode())


def test_a_push_names_its_topic() -> None:
    """The header's topic id is the subscription's (AMB-21)."""
    fetched = Fetched(3, 1, bytearray(room_for_headers(SPECIFIED)) + b"abc")
    payload = FetchResponse(3, 3, 1, b"abc").encode()
    header = encode_header(
        SPECIFIED, Flag.CONTROL, batch_id=Command.FETCH_RESPONSE, topic_id=7, payload=payload
    )
    assert fetch_response(SPECIFIED, fetched, 3, topic_id=7) == header + payload


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
def test_a_request_is_read_as_the_grammar_reads_it(topic_id: int, start: int, most: int) -> None:
    """What is taken apart by hand is the generated message."""
    message = Fetch(topic_id, start, most)
    assert _WANTED.unpack(message.encode()) == (topic_id, start, most)
