"""How points are measured, and how steep a curve is."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from bench.curves.bed import Bed
from bench.curves.connections import _Connection
from bench.curves.curve import Curve, Run, Sample, measure
from bench.curves.fit import growth
from bench.curves.report import duration, steep

from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Flag
from lance_spec.frames import encode_ack, encode_header
from lance_spec.limits import HEADER_SIZE

_POINTS = (1, 10, 100)


@pytest.mark.parametrize(("power", "slope"), [(0, 0), (1, 1), (2, 2), (-0.5, -0.5)])
def test_the_slope_is_the_power(power: float, slope: float) -> None:
    """What grows like the square of the axis has slope 2 on logarithmic axes."""
    found = growth(_POINTS, [3 * point**power for point in _POINTS])
    assert (found.whole, found.end) == (pytest.approx(slope), pytest.approx(slope))


def test_what_is_the_same_everywhere_does_not_hide_a_steep_end() -> None:
    """A second for the start, and then the square."""
    points = (1, 10, 100, 1000)
    assert growth(points, [1 + (point / 100) ** 2 for point in points]).steeper_than(1.0)


def test_one_point_has_no_slope() -> None:
    """It is refused instead of being called flat."""
    with pytest.raises(ValueError, match="1 points have no slope"):
        growth([1], [1])


def _curve(order: list[int], steepest: float = 1.0) -> Curve:
    @contextmanager
    def opened(point: int, bed: Bed) -> Iterator[Run]:
        del bed

        def run() -> Sample:
            order.append(point)
            return Sample(float(point**2 + len(order)), 1.0, 1.0)

        yield run

    return Curve(
        name="a/b",
        axis="points",
        unit="x",
        process="server",
        points=_POINTS,
        steepest=steepest,
        open=opened,
    )


def test_rounds_go_forwards_and_backwards() -> None:
    """After one round that warms up, so that a slow minute meets both ends."""
    order: list[int] = []
    with Bed() as bed:
        measure(_curve(order), _POINTS, 2, bed)
    assert order == [1, 10, 100, 1, 10, 100, 100, 10, 1]


def test_a_point_is_the_median_of_its_rounds() -> None:
    """The first point is run 4th, 9th and 10th; its cost is one more each time."""
    with Bed() as bed:
        measured = measure(_curve([]), _POINTS, 3, bed)
    assert [sample.seconds for sample in measured.samples] == [1 + 9, 100 + 8, 10_000 + 7]


def test_a_cost_that_grows_faster_than_it_may_is_told() -> None:
    """It is the square where it may be linear."""
    with Bed() as bed:
        sentence = steep(measure(_curve([]), _POINTS, 1, bed))
    assert sentence is not None
    assert sentence.startswith("a/b ends with slopes seconds +1.9")


def test_a_cost_that_grows_as_it_may_is_not_told() -> None:
    """The square is allowed."""
    with Bed() as bed:
        assert steep(measure(_curve([], steepest=2.0), _POINTS, 1, bed)) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(2, "2 s"), (0.0125, "12.5 ms"), (3e-6, "3 µs"), (5e-10, "0.5 ns")]
)
def test_times_have_three_digits_and_a_unit(seconds: float, text: str) -> None:
    """As people write them."""
    assert duration(seconds) == text


def _received(answer: int, data: bytes) -> int:
    """Give a connection with two open requests some bytes; return how many stay open."""
    near, far = socket.socketpair()
    with near, far:
        connection = _Connection(near, answer)
        connection.ask([b"?", b"?"], room=2)
        far.sendall(data)
        buffer = memoryview(bytearray(50))
        for _ in range(-(-len(data) // len(buffer))):
            connection.receive(buffer)
        return connection.waiting


def test_an_answer_counts_once_all_of_it_has_come() -> None:
    """However it is cut, and the next one may begin."""
    frame = encode_header(SPECIFIED, Flag.CONTROL, payload=bytes(60)) + bytes(60)
    assert _received(len(frame), frame + frame[:-1]) == 1


def test_a_busy_server_has_not_answered() -> None:
    """It says so in a frame of its own, between the answers."""
    busy = encode_header(SPECIFIED, Flag.BACKPRESSURE)
    assert _received(HEADER_SIZE, busy + encode_ack(SPECIFIED, 1) + busy) == 1


def test_another_answer_ends_the_measuring() -> None:
    """An error is quicker than an answer and must not count as one."""
    error = encode_header(SPECIFIED, Flag.CONTROL, payload=b"no") + b"no"
    with pytest.raises(RuntimeError, match="not the answer that was expected"):
        _received(HEADER_SIZE + 60, error)
