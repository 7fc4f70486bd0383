"""What the SC tells of topics."""

from types import SimpleNamespace
from typing import Any

import pytest

from lance_sdk.fluvio._asks import Ask
from lance_sdk.fluvio._topics import leaders
from lance_sdk.fluvio.errors import FluvioRefused
from lance_spec.messages.fluvio import ComputedReplicas

ORDERS, OWN = (
    SimpleNamespace(
        name=name,
        spec=SimpleNamespace(
            replicas=ComputedReplicas(partitions=1, replication=1, ignore_rack=False)
        ),
    )
    for name in ("orders", "consumer-offset")
)


def asked_after(*lists: list[Any]) -> Ask:
    """Return what is asked for once the SC has answered with these topics, one after another."""
    steps = leaders("orders")
    asked = next(steps)
    for each in lists:
        asked = steps.send(SimpleNamespace(objects=each))
    assert isinstance(asked, Ask)
    return asked


def test_an_sc_that_reads_its_topics_between_two_answers_is_asked_again() -> None:
    """A topic that is there is never said to be missing."""
    assert asked_after([], [OWN], [ORDERS]).kind == "SPU"


@pytest.mark.parametrize(("own", "passes"), [([], True), ([OWN], False)])
def test_an_sc_without_topics_of_its_own_has_not_read_them(own: list[Any], *, passes: bool) -> None:
    """Only then may a missing topic come yet."""
    with pytest.raises(FluvioRefused) as refused:
        asked_after([], own, [])
    assert refused.value.retryable is passes
