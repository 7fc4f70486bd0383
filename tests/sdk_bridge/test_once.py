"""A copy to an LWP server, or to Fluvio, stores every record once, wherever it is interrupted."""

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.sdk_fluvio.breaking import Proxy

from lance_sdk import Consumer, Producer
from lance_sdk.bridge import Envelope, Writing, open_source, open_target
from lance_sdk.bridge.contract import CopyPosition
from lance_sdk.bridge.copy_run import Bridge, Ends
from lance_sdk.bridge.copying import PartitionCopy
from lance_sdk.bridge.fluvio import _FluvioTarget
from lance_sdk.bridge.shutdown import Stop
from lance_sdk.bridge.state import CopyState
from lance_sdk.cli.console.progress import Meter
from lance_sdk.errors import ConfigError, ConnectionLost, LanceError
from lance_server.config.settings import Address
from lance_server.listeners.fluvio import FluvioOptions
from lance_server.listeners.fluvio.testing import fluvio_servers

from .urls import Urls

NAMES = itertools.count()
RECORDS = [
    Envelope(1, b"%05d" % number + b"." * (number % 7 * 20_000), number, number + 1)
    for number in range(60)
]
"""Of a source: some batches are full before they are flushed."""
VALUES = [b"%05d" % number + b"." * 1000 for number in range(200)]
"""Of a source: several pieces."""


class InterruptedRunError(Exception):
    """The run ended here, as by a kill."""


class Run:
    """One run of a copy, which ends at one of its steps.

    Args:
        url: the target.
        state: how far it is.
        ends_at: the step that is not done any more; None goes through.
        sizes: how many records the source gives at a time.
    """

    def __init__(
        self, url: str, state: CopyState, ends_at: int | None, sizes: Sequence[int]
    ) -> None:
        self._url = url
        self._state = state
        self._ends_at = ends_at
        self._sizes = sizes
        self._steps = itertools.count()
        self._end: Callable[[], int | None] = lambda: None

    def _step(self, work: Callable[[], object]) -> None:
        if next(self._steps) == self._ends_at:
            raise InterruptedRunError
        work()

    def __call__(self) -> bool:
        """Copy what is left; return whether that came to its end."""
        place = self._state.places.get(0)
        records = RECORDS[0 if place is None else place.following :]
        target = open_target(self._url, Writing(identity=self._state.identity))
        try:
            with target:
                lane = PartitionCopy(
                    target,
                    note=self._note,
                    intend=lambda end: self._step(lambda: self._state.intend(0, end)),
                    written=self._state.written.get(0),
                    ended=self._state.ends.get(0),
                    clock=lambda: 0.0,
                )
                self._end = lambda: lane.end
                if lane.end is not None and not self._state.ends:
                    self._step(lambda: self._state.begin(0, lane.end or 0))
                assert target.stores_once or lane.end is not None
                for size in itertools.cycle(self._sizes):
                    self._step(lambda some=records[:size]: lane.take(some))  # type: ignore[misc]
                    records = records[size:]
                    if not records:
                        break
                lane.settle()
        except InterruptedRunError:
            return False
        return True

    def _note(self, place: CopyPosition) -> None:
        self._step(lambda: self._state.save(0, place, self._end()))


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    runs=st.lists(
        st.tuples(st.integers(0, 30), st.lists(st.integers(0, 9), min_size=1).filter(any)),
        max_size=4,
    )
)
@example(runs=[(2, [3]), (4, [0, 1])])  # full batches, and then an end in their middle
@pytest.mark.parametrize("system", ["lance", "fluvio"])
def test_every_record_is_stored_once(
    urls: Urls, tmp_path: Path, system: str, runs: list[tuple[int, list[int]]]
) -> None:
    """However often a copy is ended, at whatever step, and however its source cuts the records."""
    topic = f"once-{next(NAMES)}"
    urls.fill(topic)
    url = urls.of(system, topic)
    path = tmp_path / topic
    for ends_at, sizes in [*runs, (None, [7])]:
        with CopyState.held(path, "fluvio://a/b", url) as state:
            Run(url, state, ends_at, sizes)()
    assert urls.bodies(topic) == [each.value for each in RECORDS]


def test_a_copy_that_is_begun_again_by_another_state_is_another_copy(
    urls: Urls, tmp_path: Path
) -> None:
    """Whoever removes the state wants the records once more."""
    urls.fill("twice")
    url = urls.of("lance", "twice")
    for name in ("first", "second"):
        with CopyState.held(tmp_path / name, "fluvio://a/b", url) as state:
            assert Run(url, state, None, [60])()
    assert len(urls.bodies("twice")) == 2 * len(RECORDS)


@pytest.mark.parametrize("identity", [{"nonce": 0}, {"nonce": 1 << 24}, {"began_ns": "now"}, 7])
def test_a_state_without_a_usable_identity_is_refused(tmp_path: Path, identity: object) -> None:
    """It cannot be told what the target has."""
    path = tmp_path / "state"
    noted = {"source": "a://b", "target": "c://d", "places": {}, "identity": identity}
    path.write_text(json.dumps(noted))
    with pytest.raises(ConfigError, match="not a state"), CopyState.held(path, "a://b", "c://d"):
        pass


def test_what_another_writer_stored_is_not_taken_for_the_copy(urls: Urls) -> None:
    """Where the target's end has other records, those of the copy are written."""
    urls.fill("shared")
    with open_target(urls.of("fluvio", "shared")) as target:
        urls.fill("shared", b"other")
        part = PartitionCopy(target, ended=0)
        part.take(RECORDS[:1])
        assert part.end == 2
    assert urls.bodies("shared") == [b"other", RECORDS[0].value]


def test_a_lost_answer_doubles_nothing_in_fluvio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run itself looks what of its last piece was stored, and goes on behind it."""
    told: list[LanceError] = []
    with Proxy() as between:
        options = FluvioOptions(spu_public=Address(*between.address))
        with fluvio_servers(tmp_path / "data", options) as servers:
            between.target = servers.spu
            monkeypatch.setattr(_FluvioTarget, "flush", losing_the_first_answer(between))
            source = f"{servers.server.url}/from"
            with Producer(source, create_topic=True) as producer:
                producer.send_many(VALUES)
            target = "fluvio://{}:{}/to".format(*servers.sc)
            ends = Ends(
                lambda: [None],
                lambda reading: open_source(source, reading),
                lambda *_: open_target(target, Writing(create_topic=True)),
            )
            state = CopyState(None, source, target)
            Bridge(ends, state, Stop(), progress=Meter(), tell=told.append).run()
            with Consumer(
                f"{servers.server.url}/to", start="beginning", stop_at_end=True
            ) as copies:
                assert [each.body for each in copies] == VALUES
    assert [type(each) for each in told] == [ConnectionLost]


def losing_the_first_answer(between: Proxy) -> Callable[[_FluvioTarget], None]:
    """Return a flush whose first answer is lost, and its connection with it."""
    flush, is_first = _FluvioTarget.flush, iter([True])

    def losing(target: _FluvioTarget) -> None:
        if next(is_first, False):
            between.swallow.set()
        flush(target)

    return losing
