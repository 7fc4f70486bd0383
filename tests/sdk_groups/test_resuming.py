"""Going on behind a commit, and knowing what is done: without sockets."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk.errors import ConsumeError, InvalidOffset, TopicChanged
from lance_sdk.groups._core.membership import AssignedTopic
from lance_sdk.groups._feed import Feed
from lance_sdk.groups._progress import Progress, Resume
from lance_sdk.offsets import Commit, Fingerprint, TopicIdentity
from lance_sdk.types import RecordBatch
from lance_spec.records import encode_records, scan_records

ORDERS = TopicIdentity(id=7, name="orders", created_at=1, epoch=1)
VALUES = [b"%d" % number for number in range(20)]
LOG = encode_records(VALUES)
STARTS = [sum(5 + len(each) for each in VALUES[:place]) for place in range(len(VALUES) + 1)]


def batch(first: int, last: int) -> RecordBatch:
    """Return these records as a batch."""
    data = LOG[STARTS[first] : STARTS[last]]
    return RecordBatch("orders", STARTS[first], last - first, data)


def committed(done: int, covered: int) -> Commit:
    """Return the commit of the first records, with a fingerprint of the last ones of them."""
    mark = Fingerprint.of(LOG[STARTS[done - covered] : STARTS[done]], STARTS[done])
    return Commit(consumer="g", topic=ORDERS, offset=STARTS[done], fingerprint=mark)


def test_without_a_commit_everything_is_handed_out() -> None:
    """A topic without a commit begins where the consumer's settings say."""
    resume = Resume(None, "end", ORDERS)
    assert (resume.start, resume.checking) == ("end", False)
    assert resume.take(batch(0, 3)) == batch(0, 3)


def test_commit_without_a_fingerprint_is_believed() -> None:
    """Where no fingerprint was taken, reading goes on at the offset itself."""
    resume = Resume(Commit(consumer="g", topic=ORDERS, offset=STARTS[4]), "beginning", ORDERS)
    assert (resume.start, resume.checking) == (STARTS[4], False)


@given(
    done=st.integers(1, 19),
    data=st.data(),
)
def test_records_before_the_offset_are_seen_and_not_handed_out(
    done: int, data: st.DataObject
) -> None:
    """However the log arrives, what is handed out begins exactly at the commit."""
    covered = data.draw(st.integers(1, done))
    resume = Resume(committed(done, covered), "beginning", ORDERS)
    cuts = data.draw(st.sets(st.integers(done - covered + 1, 19)))
    places = [done - covered, *sorted(cuts), 20]
    handed = [resume.take(batch(*pair)) for pair in pairwise(places)]
    got = b"".join(each.data for each in handed if each is not None)
    assert resume.start == STARTS[done - covered]
    assert got == LOG[STARTS[done] :]
    first = next(each for each in handed if each is not None)
    assert first.offset == STARTS[done]
    assert first.count == scan_records(first.data).count


def test_other_records_are_noticed() -> None:
    """Other bytes of the same length before the offset stop everything."""
    resume = Resume(committed(10, 5), "beginning", ORDERS)
    found = batch(5, 20)
    changed = RecordBatch("orders", found.offset, found.count, found.data.replace(b"7", b"8"))
    with pytest.raises(TopicChanged, match="not those that 'g' had read"):
        resume.take(changed)


def test_other_topic_is_noticed() -> None:
    """A commit of another topic of the same name is not gone on from."""
    with pytest.raises(TopicChanged, match="epoch 2 instead of 1"):
        Resume(committed(10, 5), "beginning", TopicIdentity(7, "orders", 1, 2))


def test_gap_before_the_offset_is_noticed() -> None:
    """Where records before the offset are missing in the middle, they cannot be compared."""
    resume = Resume(committed(10, 5), "beginning", ORDERS)
    with pytest.raises(ConsumeError, match="a gap before offset"):
        resume.take(batch(7, 20))


class Retained:
    """A consumer of a log whose first records were removed by retention."""

    def __init__(self, start: Any) -> None:
        self._start = start

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def close(self, timeout: float) -> None:
        """Do nothing."""

    def batches(self) -> Iterator[RecordBatch]:
        """Yield what is left, or refuse what is not."""
        if self._start < STARTS[10]:
            raise InvalidOffset("gone", details={"earliest": STARTS[10]})
        yield batch(STARTS.index(self._start), 20)


def test_where_retention_took_the_records_identity_decides() -> None:
    """When the records before the offset are gone, reading goes on at the offset (AMB-30)."""
    delivered: list[Any] = []
    resume = Resume(committed(12, 6), "beginning", ORDERS)
    feed = Feed(ORDERS, resume, Retained, lambda _feed, what: delivered.append(what))  # type: ignore[arg-type]
    feed._run()
    assert delivered == [batch(12, 20), None]


def test_offset_that_is_gone_is_raised() -> None:
    """When the committed offset itself is gone, that is an error, and nothing is skipped."""
    delivered: list[Any] = []
    resume = Resume(committed(5, 2), "beginning", ORDERS)
    feed = Feed(ORDERS, resume, Retained, lambda _feed, what: delivered.append(what))  # type: ignore[arg-type]
    feed._run()
    assert [type(each) for each in delivered] == [InvalidOffset]


def test_commit_covers_what_is_done() -> None:
    """A commit in the middle of a batch has the fingerprint of the batch's done records."""
    progress = Progress("g", AssignedTopic(ORDERS, None, 5))
    assert not progress.due
    progress.passed(batch(0, 20), STARTS[7])
    made = progress.commit()
    assert (made.offset, made.generation) == (STARTS[7], 5)
    assert made.fingerprint.matches(LOG[: STARTS[7]])


def test_nothing_new_is_nothing_to_commit() -> None:
    """What is committed already is not committed again."""
    progress = Progress("g", AssignedTopic(ORDERS, committed(7, 2), 5))
    assert not progress.due
    progress.passed(batch(7, 20), STARTS[9])
    assert progress.due
    progress.committed = STARTS[9]
    assert not progress.due
