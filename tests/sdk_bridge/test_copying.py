"""What a copy promises, whatever its ends do."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count, pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk.bridge import (
    CopyPosition,
    Envelope,
    ReadOptions,
    RecordsGoneError,
    SourceChangedError,
    check,
    copy,
)
from lance_sdk.bridge.copy_run import Bridge, Ends
from lance_sdk.bridge.shutdown import Stop
from lance_sdk.bridge.state import CopyState
from lance_sdk.cli.console.progress import Meter
from lance_sdk.errors import ConfigError, ConnectFailed, ConnectionLost, LanceError

FROM, TO = "lance://host/from", "fluvio://host/to"


class End:
    """What both ends have in common."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class Store(End):
    """A target that keeps what it is given at a flush, and fails when it is told to."""

    stores_once = True

    def __init__(self, failures: Sequence[int] = ()) -> None:
        self.stored: list[bytes] = []
        self._waiting: list[bytes] = []
        self._turn = count()
        self._failures = set(failures)

    def write(self, records: Sequence[Envelope]) -> None:
        """Take records, or fail."""
        if next(self._turn) in self._failures:
            self._waiting.clear()
            raise ConnectionLost("the target is gone")
        self._waiting += [each.value for each in records]

    def flush(self) -> None:
        """Keep what was taken."""
        self.stored += self._waiting
        self._waiting.clear()


def number(value: int, mark: bytes = b"") -> Envelope:
    """Return a record that stands at the offset that it tells."""
    return Envelope(1, b"%d" % value + mark, value, value + 1)


class Numbers(End):
    """A source of numbers, one in each batch."""

    def __init__(self, reading: ReadOptions, end: int, kept: int = 0, mark: bytes = b"") -> None:
        self._start = 0 if reading.start == "beginning" else reading.start
        self._end, self._kept, self._mark = end, kept, mark

    def batches(self) -> Iterator[Sequence[Envelope]]:
        """Yield them."""
        if self._start < self._kept:
            raise RecordsGoneError(f"{self._start} is gone")
        for value in range(self._start, self._end):
            yield [number(value, self._mark)]


def test_what_was_noted_is_stored_whatever_happens() -> None:
    """A note never runs ahead of the target."""
    target, places = Store([9]), []
    ticks = count(step=0.3)

    def note(place: CopyPosition) -> None:
        places.append(place.following)
        assert target.stored[-1] == b"%d" % place.offset

    with pytest.raises(ConnectionLost):
        copy(
            Numbers(ReadOptions(), 20).batches(),
            target,
            progress=Meter(),
            note=note,
            clock=lambda: float(next(ticks)),
        )
    assert places
    assert places[-1] <= 9


def test_an_idle_source_is_a_time_to_note() -> None:
    """What was copied last does not wait for a record that may never come."""
    target, places = Store(), []
    idle: list[list[Envelope]] = [[number(0)], [], [], [number(1)], []]
    copy(idle, target, progress=Meter(), note=places.append, clock=lambda: 0.0)
    assert [each.following for each in places] == [1, 2]
    assert target.stored == [b"0", b"1"]


@pytest.mark.parametrize(
    ("end", "kept", "mark", "complaint"),
    [
        (10, 0, b"", None),
        (10, 7, b"", None),
        (5, 0, b"", "no record at offset 5"),
        (10, 0, b"other", "made again"),
    ],
)
def test_a_source_is_recognised(end: int, kept: int, mark: bytes, complaint: str | None) -> None:
    """By the record that was copied last, as long as it is kept."""
    source = Numbers(ReadOptions(5), end, kept, mark)
    place = CopyPosition.behind(number(5))
    if complaint is None:
        check(source, place)
    else:
        with pytest.raises(SourceChangedError, match=complaint):
            check(source, place)


def bridge(
    source: Callable[[ReadOptions], Numbers],
    targets: list[Store],
    tell: Callable[[LanceError], None],
) -> CopyState:
    """Return the state that following a source with so many partitions leads to."""
    state = CopyState(None, "a://from", "b://to")
    stop = Stop()
    stop.pause = lambda _: None  # type: ignore[method-assign]
    ends = Ends(
        lambda: list(range(len(targets))), source, lambda partition, _: targets[partition or 0]
    )
    Bridge(ends, state, stop, progress=Meter(), tell=tell, follow=True).run()
    return state


FAILURES = st.sets(st.integers(0, 30), max_size=8)


@given(st.lists(FAILURES, min_size=1, max_size=3), st.integers(1, 20))
def test_every_record_is_stored_at_least_once(failures: list[set[int]], end: int) -> None:
    """Whenever targets fail: in order, beginning again only behind what was noted."""
    told: list[LanceError] = []
    targets = [Store(sorted(each)) for each in failures]
    state = bridge(lambda reading: Numbers(reading, end), targets, told.append)
    for number_of, target in enumerate(targets):
        stored = [int(each) for each in target.stored]
        assert set(stored) == set(range(end))
        assert all(after == before + 1 or after <= before for before, after in pairwise(stored))
        assert state.places[number_of] == CopyPosition.behind(number(end - 1))
    assert len(told) <= sum(map(len, failures))


class Breaking(Numbers):
    """A source whose connection breaks before some numbers, once each."""

    def __init__(self, reading: ReadOptions, end: int, breaks: set[int]) -> None:
        super().__init__(reading, end)
        self._breaks = breaks

    def batches(self) -> Iterator[Sequence[Envelope]]:
        """Yield them, or fail."""
        for records in super().batches():
            if (place := records[0].offset) in self._breaks:
                self._breaks.discard(place)
                raise ConnectionLost("the source is gone")
            yield records


@given(breaks=st.sets(st.integers(0, 19)), end=st.integers(0, 20))
def test_a_source_that_breaks_doubles_nothing(breaks: set[int], end: int) -> None:
    """What came before a source broke is stored and noted, and not copied once more."""
    store = Store()
    bridge(lambda reading: Breaking(reading, end, breaks), [store], lambda _: None)
    assert store.stored == [b"%d" % value for value in range(end)]


def ended(failures: list[int], retry_for: float) -> tuple[Store, list[LanceError]]:
    """Copy 20 records to a target that fails, each attempt a second after the one before."""
    told: list[LanceError] = []
    store = Store(failures)
    stop = Stop()
    stop.pause = lambda _: None  # type: ignore[method-assign]
    ends = Ends(lambda: [None], lambda reading: Numbers(reading, 20), lambda *_: store)
    state, seconds = CopyState(None, "a://from", "b://to"), count()
    Bridge(
        ends,
        state,
        stop,
        progress=Meter(),
        tell=told.append,
        retry_for=retry_for,
        clock=lambda: float(next(seconds)),
    ).run()
    return store, told


def test_a_copy_that_is_to_end_is_tried_again() -> None:
    """An error that passes is told, and nothing is left out."""
    store, told = ended([0, 1, 2], 60.0)
    assert store.stored == [b"%d" % value for value in range(20)]
    assert len(told) == 3


def test_a_copy_gives_up_when_nothing_could_be_copied_for_so_long() -> None:
    """Attempts are no end in themselves."""
    with pytest.raises(ConnectionLost):
        ended(list(range(100)), 10.0)


def begun(failures: int, *, wait_at_start: bool, retry_for: float = 60.0) -> list[LanceError]:
    """Copy from a source that is not reached at first, each attempt a second after the other."""
    told: list[LanceError] = []
    stop, seconds, attempts = Stop(), count(), iter(range(failures))
    stop.pause = lambda _: None  # type: ignore[method-assign]

    def source(reading: ReadOptions) -> Numbers:
        if next(attempts, None) is not None:
            raise ConnectFailed("host:1", [])
        return Numbers(reading, 20)

    Bridge(
        Ends(lambda: [None], source, lambda *_: Store()),
        CopyState(None, "a://from", "b://to"),
        stop,
        progress=Meter(),
        tell=told.append,
        wait_at_start=wait_at_start,
        retry_for=retry_for,
        clock=lambda: float(next(seconds)),
    ).run()
    return told


def test_what_was_never_there_is_an_error_at_once() -> None:
    """A wrong address is not tried again."""
    with pytest.raises(ConnectFailed):
        begun(1, wait_at_start=False)


def test_a_copy_may_begin_before_its_servers_do() -> None:
    """Where that is wanted, what is away at the start is waited for."""
    assert len(begun(5, wait_at_start=True)) == 5


def test_a_copy_waits_at_its_start_for_so_long_only() -> None:
    """The limit holds there, too."""
    with pytest.raises(ConnectFailed):
        begun(100, wait_at_start=True, retry_for=10.0)


def test_a_state_is_found_again(tmp_path: Path) -> None:
    """It belongs to one source and one target."""
    path, place = tmp_path / "state", CopyPosition(3, 4, "ab")
    with CopyState.held(path, FROM, TO) as state:
        assert state.places == {}
        state.save(2, place)
    with CopyState.held(path, FROM, TO) as state:
        assert state.places == {2: place}
    complaint = f"a copy from {FROM} to {TO}"
    with pytest.raises(ConfigError, match=complaint), CopyState.held(path, "a://x", TO):
        pass


def test_a_state_keeps_no_secrets(tmp_path: Path) -> None:
    """A token in a URL opens the server; a state lies around."""
    path = tmp_path / "state"
    with CopyState.held(path, "lance://token@host/a@b", TO) as state:
        state.save(0, CopyPosition(3, 4, "ab"))
    assert "token" not in path.read_text()
    assert json.loads(path.read_text())["source"] == "lance://host/a@b"


def test_a_state_has_one_user(tmp_path: Path) -> None:
    """Two runs at once would copy everything twice."""
    path = tmp_path / "state"
    with (
        CopyState.held(path, FROM, TO),
        pytest.raises(ConfigError, match="another lwp bridge uses"),
        CopyState.held(path, FROM, TO),
    ):
        pass


@pytest.mark.parametrize(
    "content", ["", "[]", '{"source": "from"}', '{"places": {"0": {"offset": "1"}}}', "\udcff"]
)
def test_a_broken_state_is_named(tmp_path: Path, content: str) -> None:
    """Nothing is copied from a place that nobody noted."""
    path = tmp_path / "state"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=str(path)), CopyState.held(path, FROM, TO):
        pass
