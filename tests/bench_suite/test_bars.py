"""What a missed bar is, and what is said of it."""

from dataclasses import replace

import pytest
from bench.bars import bars, missed
from bench.harness import Outcome


def _outcome(floor: float | None) -> Outcome:
    return Outcome(
        scenario="a/b",
        unit="x/s",
        other="another",
        ours=[1.0, 2.0, 3.0],
        theirs=[2.0, 2.0, 2.0],
        floor=floor,
        disturbed=0,
    )


def test_a_missed_bar_is_told_with_its_noise() -> None:
    """Who reads it sees how sure it is."""
    (sentence,) = missed([_outcome(1.6)])
    assert sentence == (
        "a/b: 1.00 instead of 1.60; 3 pair(s) from 0.50 to 1.50, typically 50% from the median"
    )


def test_a_bar_that_is_just_reached_is_not_missed() -> None:
    """The bar itself is good enough."""
    assert missed([_outcome(1.0)]) == []


def test_a_bar_within_the_confidence_interval_is_told_as_such() -> None:
    """It is missed all the same: three pairs do not tell 1.0 from 1.2."""
    (sentence,) = missed([_outcome(1.2)])
    assert sentence.startswith("a/b: 1.00 instead of 1.20, within the noise; ")


@pytest.mark.parametrize(
    ("pairs", "interval"), [(1, (1, 1)), (3, (1, 3)), (6, (1, 6)), (15, (4, 12)), (30, (10, 21))]
)
def test_the_interval_narrows_with_the_pairs(pairs: int, interval: tuple[int, int]) -> None:
    """It is where the true median lies in 95 of 100 runs, whatever the ratios look like."""
    outcome = replace(
        _outcome(None), ours=[float(n) for n in range(1, pairs + 1)], theirs=[1.0] * pairs
    )
    assert outcome.interval == interval


def test_nothing_is_missed_without_a_bar() -> None:
    """Such a scenario is only told."""
    assert missed([_outcome(None)]) == []


def test_the_committed_bars_can_be_missed() -> None:
    """Each is over zero and has the name of a scenario."""
    committed = bars()
    assert committed
    assert all(bar > 0 and name.count("/") == 1 for name, bar in committed.items())
