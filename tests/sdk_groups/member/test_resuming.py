"""What is done, and in which pieces it is handed out: without sockets."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lance_sdk.groups._member.member_reader import pieces
from lance_sdk.groups._member.progress import TopicProgress
from lance_sdk.groups._protocol.membership import AssignedTopic
from lance_sdk.offsets import Commit, Fingerprint, TopicIdentity
from lance_sdk.types import RecordBatch
from lance_spec.records import encode_records

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


def test_commit_covers_what_is_done() -> None:
    """A commit in the middle of a batch has the fingerprint of the batch's done records."""
    progress = TopicProgress("g", AssignedTopic(ORDERS, None, 5))
    assert not progress.due
    progress.passed(batch(0, 20), STARTS[7])
    made = progress.commit()
    assert (made.offset, made.generation) == (STARTS[7], 5)
    assert made.fingerprint.matches(LOG[: STARTS[7]])


def test_nothing_new_is_nothing_to_commit() -> None:
    """What is committed already is not committed again."""
    progress = TopicProgress("g", AssignedTopic(ORDERS, committed(7, 2), 5))
    assert not progress.due
    progress.passed(batch(7, 20), STARTS[9])
    assert progress.due
    progress.committed = STARTS[9]
    assert not progress.due


def test_a_commit_of_an_earlier_topic_does_not_count() -> None:
    """Where the later topic of its name is read to the same offset, that is committed."""
    later = replace(ORDERS, id=ORDERS.id + 1, epoch=ORDERS.epoch + 1)
    progress = TopicProgress("g", AssignedTopic(later, committed(7, 2), 5))
    assert progress.committed is None
    progress.passed(batch(0, 20), STARTS[7])
    assert progress.due


@given(count=st.integers(1, 20), most=st.integers(1, 25))
def test_pieces_of_a_batch(count: int, most: int) -> None:
    """A batch in pieces has the same records, so many in each piece at most."""
    whole = batch(0, count)
    found = pieces(whole, most)
    assert [record for each in found for record in each] == list(whole)
    assert [each.count for each in found] == [len(list(each)) for each in found]
    assert max(each.count for each in found) <= most
