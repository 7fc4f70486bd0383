"""The search for sequences of faults that break what producers and consumers promise."""

import pytest
from tests.simulation.delivery.plan import Plan, Settings, make_plan
from tests.simulation.delivery.planted import PLANTED, planted
from tests.simulation.delivery.world import carry_out
from tests.simulation.groups.plan import Happening
from tests.simulation.groups.shrink import describe


@pytest.mark.parametrize("seed", range(6))
def test_no_sequence_of_faults_breaks_a_promise(seed: int) -> None:
    """Acknowledged once, in order, and nothing skipped, whatever happens to either side.

    More seeds: ``python -m tests.simulation.delivery --count 1000``.
    """
    plan = make_plan(seed)
    assert carry_out(plan) is None, describe(plan, carry_out, "delivery")


def sent(at: float, count: int) -> Happening:
    """Return records that are sent at a time."""
    return Happening(at, "send", {"count": count})


SLOW = Happening(1.0, "slow_sync", {"seconds": 4.0})
CUT = Happening(1.3, "cut", {"who": "producer"})
FOUND_WITH: dict[str, tuple[Settings, tuple[Happening, ...]]] = {
    "L4: the end is looked for by every consumer": (
        Settings(start="end"),
        (Happening(5.0, "consumer", {"seconds": 1.0}), sent(5.5, 10)),
    ),
    "L6: an error of the journal's disk ends the driver": (
        Settings(journal=True),
        (
            Happening(1.0, "full_disk", {"seconds": 3.0}),
            Happening(1.1, "server", {"seconds": 5.0}),
            sent(1.2, 40),
        ),
    ),
    "L10: an attempt without an answer is forgotten": (
        Settings(in_flight=1),
        (SLOW, sent(1.1, 8), Happening(1.2, "limit", {"seconds": 3.0})),
    ),
    "L11: a batch expires and nobody says why": (
        Settings(delivery_timeout=5.0),
        (Happening(1.0, "slow_sync", {"seconds": 18.0}), sent(1.1, 24), CUT),
    ),
    "L13: flush says nothing of what failed before": (
        Settings(delivery_timeout=5.0),
        (Happening(1.0, "server", {"seconds": 8.0}), sent(1.1, 8), Happening(9.5, "flush")),
    ),
    "L13: records go into a topic created again without a word": (
        Settings(),
        (SLOW, sent(1.1, 24), Happening(1.2, "create_again"), CUT),
    ),
    "L13: two consumers of one name are let in": (
        Settings(),
        (sent(1.0, 5), Happening(5.0, "second_consumer")),
    ),
    "a lost connection forgets what it carried": (Settings(), (SLOW, sent(1.1, 24), CUT)),
    "what is sent again is sent backwards": (
        Settings(),
        (Happening(1.0, "slow_network", {"seconds": 1.0}), sent(1.28, 24), CUT),
    ),
    "what is sent again gets another number": (Settings(), (SLOW, sent(1.1, 8), CUT)),
    "a commit is one record too far": (
        Settings(),
        (sent(1.0, 5), Happening(5.0, "consumer", {"seconds": 1.0}), sent(5.5, 10)),
    ),
}
"""What happens when each planted fault is found."""


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_found(name: str) -> None:
    """A mistake in a core breaks a promise; the same happenings break none without it."""
    plan = Plan(3, *FOUND_WITH[name])
    with planted(name):
        assert carry_out(plan) is not None
    assert carry_out(plan) is None


def test_same_seed_same_run() -> None:
    """A failing run can be repeated by its seed."""
    plan = Plan(5, *FOUND_WITH["what is sent again gets another number"])
    with planted("what is sent again gets another number"):
        assert carry_out(plan) == carry_out(plan) is not None
