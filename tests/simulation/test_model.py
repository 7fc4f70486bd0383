"""The model of what was promised: what it excuses, and what it does not."""

import pytest
from tests.simulation.model import (
    Batch,
    Reading,
    State,
    TopicModel,
    ViolationError,
    make_batch,
)


def stored(*batches: Batch, start: int = 0) -> Reading:
    """Return a reading of a topic that holds batches back to back from an offset on."""
    data = b"".join(batch.raw for batch in batches)
    return Reading(start, start + len(data), {start: data})


def topic_with(*batches: Batch) -> TopicModel:
    """Return a topic whose batches were all acknowledged."""
    model = TopicModel("topic", 1, present=True)
    for batch in batches:
        batch.state = State.ACKED
        model.batches[batch.number] = batch
    return model


def two() -> tuple[Batch, Batch]:
    """Return two batches."""
    return make_batch(1, 1, 30, 0.0), make_batch(2, 1, 30, 0.0)


def judge(model: TopicModel, *readings: Reading) -> None:
    """Compare a topic with what readers found, one after the other."""
    for reading in readings:
        model.judge(reading, settled=False)


def test_an_acknowledged_batch_must_be_there() -> None:
    """A batch that was acknowledged and is not found is lost."""
    first, second = two()
    with pytest.raises(ViolationError, match=r"batch 2 .* is lost"):
        judge(topic_with(first, second), stored(first))


def test_a_duplicate_of_a_dropped_batch_is_not_lost() -> None:
    """A batch that retention dropped stays a duplicate, and nobody can read it."""
    first, second = two()
    model = topic_with(first, second)
    judge(model, stored(first, second), stored(second, start=len(first.raw)))
    model.doubt()
    first.state = State.ACKED
    judge(model, stored(second, start=len(first.raw)))


def test_a_batch_in_doubt_may_have_gone_with_what_was_dropped() -> None:
    """What nobody saw before the topic's begin rose may stand before it."""
    first, second = two()
    model = topic_with(first, second)
    model.doubt()
    judge(model, stored(second, start=len(first.raw)))
    first.state = State.ACKED
    judge(model, stored(second, start=len(first.raw)))


def test_a_batch_that_came_back_is_owed_again() -> None:
    """What was taken for dropped, and was read later, must stay."""
    first, second = two()
    model = topic_with(first, second)
    judge(model, stored(second, start=len(first.raw)))
    assert first.dropped
    begin, first.resent = len(first.raw), True
    judge(model, stored(second, first, start=begin))
    with pytest.raises(ViolationError, match=r"batch 1 .* is lost"):
        judge(model, stored(second, start=begin))
