"""Settling, announcing, callbacks, and the handles on records."""

from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.produce.delivery import Batch, DeliveryHandle
from lance_sdk.errors import ClosedError, DeliveryFailed


class Latch:
    """Notes that it was set."""

    is_set = False

    def set(self) -> None:
        """Let go."""
        self.is_set = True


def test_an_outcome_settles_once() -> None:
    """What comes second changes nothing."""
    outcome = Completion()
    assert outcome.settle("first")
    assert not outcome.settle("second")
    assert outcome.value == "first"


def test_announcing_sets_the_latch() -> None:
    """Only then do waiters go on."""
    outcome = Completion()
    latch = outcome.latch = Latch()
    outcome.settle()
    assert not latch.is_set
    outcome.announce(print)
    assert latch.is_set


def test_callbacks_run_once_in_order_and_survive_each_other() -> None:
    """One that raises is reported, and the next one runs."""
    outcome, calls, errors = Completion(), [], []

    def bad() -> None:
        calls.append("bad")
        raise ValueError("no")

    outcome.add_callback(bad)
    outcome.add_callback(lambda: calls.append("good"))
    outcome.settle()
    outcome.announce(errors.append)
    outcome.announce(errors.append)
    assert calls == ["bad", "good"]
    assert [str(error) for error in errors] == ["no"]


def test_a_settled_outcome_takes_no_callback() -> None:
    """Whoever adds it calls it himself."""
    outcome = Completion()
    outcome.settle()
    assert not outcome.add_callback(lambda: None)


def test_a_handle_shows_its_state() -> None:
    """Pending, delivered, failed; batch and index."""
    batch = Batch(1, 0.0, 60.0, None)
    batch.batch_id = 0x2A
    assert repr(DeliveryHandle(batch, 3)) == "<DeliveryHandle pending batch=0x2a index=3>"
    batch.finish(0.0)
    assert repr(DeliveryHandle(batch, 3)) == "<DeliveryHandle delivered batch=0x2a index=3>"


def test_a_failure_tells_whether_it_may_have_been_applied() -> None:
    """In its message and as a fact."""
    failure = DeliveryFailed(ClosedError("closed"), maybe_applied=True)
    assert "may or may not have been stored" in str(failure)
    assert failure.maybe_applied
    assert "not stored: closed" in str(DeliveryFailed(ClosedError("closed")))


def test_looking_at_a_failure_is_observing_it() -> None:
    """Then the report at the end does not repeat it."""
    batch = Batch(1, 0.0, 60.0, None)
    handle = DeliveryHandle(batch, 0)
    assert handle.exception() is None
    assert not batch.observed
    batch.finish(DeliveryFailed(ClosedError("closed")))
    assert handle.exception() is batch.failure()
    assert batch.observed
