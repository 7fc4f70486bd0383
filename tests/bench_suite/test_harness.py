"""How pairs are taken."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, count, repeat

import pytest
from bench.harness import Effort, Rate, Scenario, measure, rate

from bench import harness

_EFFORT = Effort(pairs=3, least=2, share=1.0)


def _scenario(ours: Rate, theirs: Rate, budget: float = 1e9) -> Scenario:
    @contextmanager
    def sides() -> Iterator[tuple[Rate, Rate]]:
        yield ours, theirs

    return Scenario(name="a/b", unit="x/s", other="another", sides=sides, budget=budget)


def _speeds(monkeypatch: pytest.MonkeyPatch, speeds: Iterator[float]) -> None:
    monkeypatch.setattr(harness, "_machine_speed", lambda: next(speeds))


def _rates(*values: float) -> Rate:
    """Return a side that warms up, and then has these rates."""
    return iter((1.0, *values)).__next__


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the machine be calm where a test does not say otherwise."""
    _speeds(monkeypatch, repeat(1.0))


def test_the_ratio_is_the_median_of_the_pairs() -> None:
    """A pair is divided by itself; the median of three counts."""
    outcome = measure(_scenario(_rates(2, 9, 40), _rates(1, 3, 10)), _EFFORT)
    assert (outcome.ratios, outcome.ratio) == ([2, 3, 4], 3)


def test_the_noise_is_how_far_a_typical_pair_is_away() -> None:
    """Of 1, 2 and 2.2 against 2 the median is a tenth."""
    outcome = measure(_scenario(_rates(1, 2, 2.2), _rates(1, 1, 1)), _EFFORT)
    assert outcome.noise == pytest.approx(0.1)


def test_the_first_run_of_each_side_does_not_count() -> None:
    """It warms up what is needed."""
    outcome = measure(_scenario(iter((99, 1, 1, 1)).__next__, _rates(1, 1, 1)), _EFFORT)
    assert outcome.ours == [1, 1, 1]


def test_sides_take_turns_in_being_first() -> None:
    """So that neither has the other's warm caches every time."""
    order: list[str] = []

    def side(name: str) -> Rate:
        def run() -> float:
            order.append(name)
            return 1.0

        return run

    measure(_scenario(side("a"), side("b")), _EFFORT)
    assert "".join(order[2:]) == "abbaab"


def test_a_disturbed_pair_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine became twice as slow during the first."""
    _speeds(monkeypatch, chain((2.0,), repeat(1.0)))
    outcome = measure(_scenario(_rates(7, 1, 1, 1), _rates(1, 1, 1, 1)), _EFFORT)
    assert (outcome.ours, outcome.disturbed) == ([1, 1, 1], 1)


def test_pairs_of_a_machine_that_is_never_calm_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many as were asked for are thrown away, and that is said."""
    _speeds(monkeypatch, (2.0 ** (number % 2) for number in count()))
    outcome = measure(_scenario(lambda: 1.0, lambda: 1.0), _EFFORT)
    assert (len(outcome.ours), outcome.disturbed) == (3, 6)


def test_a_spent_budget_ends_it_once_there_are_enough() -> None:
    """Each look at the clock is a second later, and the budget is one second."""
    scenario = _scenario(lambda: 1.0, lambda: 1.0, budget=1.0)
    outcome = measure(scenario, _EFFORT, clock=_ticking())
    assert len(outcome.ours) == _EFFORT.least


def _ticking() -> Callable[[], float]:
    return map(float, count()).__next__


def test_a_bar_that_only_some_pairs_miss_is_looked_at_again() -> None:
    """As many pairs are taken again, and the median of all of them decides."""
    scenario = _scenario(_rates(0.8, 0.9, 1.1, 1.2, 1.3, 1.4), lambda: 1.0)
    outcome = measure(scenario, _EFFORT, floor=1.0)
    assert (len(outcome.ours), outcome.passed) == (6, True)


def test_a_bar_that_a_single_pair_misses_is_looked_at_again() -> None:
    """The budget was spent after one pair; one more is taken, and each look has its own budget."""
    hasty = Effort(pairs=3, least=1, share=1.0)
    scenario = _scenario(_rates(0.8, 1.6), lambda: 1.0, budget=1.0)
    outcome = measure(scenario, hasty, floor=1.0, clock=_ticking())
    assert (outcome.ours, outcome.passed) == ([0.8, 1.6], True)


def test_a_bar_that_every_pair_misses_is_missed() -> None:
    """There is nothing to look at again."""
    outcome = measure(_scenario(lambda: 0.8, lambda: 1.0), _EFFORT, floor=1.0)
    assert (len(outcome.ours), outcome.passed) == (3, False)


def test_a_bar_that_further_looks_miss_too_is_missed() -> None:
    """One good pair does not help: it is looked again until the interval lies below the bar."""
    scenario = _scenario(_rates(1.1, *[0.8] * 8), lambda: 1.0)
    outcome = measure(scenario, _EFFORT, floor=1.0)
    assert (len(outcome.ours), outcome.passed, outcome.is_sure) == (9, False, True)


def test_a_bar_that_no_look_decides_is_not_missed() -> None:
    """There is an end to it: the ratio cannot be told from the bar."""
    scenario = _scenario(_rates(*[1.1, 0.8, 0.8] * 4), lambda: 1.0)
    outcome = measure(scenario, _EFFORT, floor=1.0)
    assert (len(outcome.ours), outcome.passed, outcome.is_sure) == (12, True, False)


def test_nothing_to_do_has_no_rate() -> None:
    """It is refused where it is set up, instead of being divided by later."""
    with pytest.raises(ValueError, match="no rate of 0 units"):
        rate(0, int)
