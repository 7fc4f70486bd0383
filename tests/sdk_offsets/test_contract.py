"""What every store promises, whatever it is made of."""

import contextlib
import dataclasses
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_sdk.errors import ConfigError, LanceError, TopicChanged
from lance_sdk.offsets import (
    Commit,
    Fingerprint,
    MemoryStore,
    OffsetStore,
    StaleGeneration,
    StaleTopic,
    StoreLocked,
    TopicIdentity,
)
from lance_spec.records import encode_record

BILLS = TopicIdentity(id=8, name="bills", created_at=1_700_000_001, epoch=1)


def commit(topic: TopicIdentity, offset: int, **changes: object) -> Commit:
    """Return a commit of the consumer ``billing``."""
    return dataclasses.replace(Commit(consumer="billing", topic=topic, offset=offset), **changes)


def offset_in(store: OffsetStore, topic: TopicIdentity, generation: int = 0) -> int | None:
    """Return where ``billing`` goes on."""
    found = store.claim("billing", topic, generation)
    store.release("billing", topic)
    return None if found is None else found.offset


def test_nothing_committed(store: OffsetStore, orders: TopicIdentity) -> None:
    """Without a commit there is nothing to go on from."""
    assert store.claim("billing", orders) is None


def test_last_commit_is_returned(store: OffsetStore, orders: TopicIdentity) -> None:
    """A claim returns the last commit."""
    store.save(commit(orders, 100))
    store.save(commit(orders, 250))
    assert offset_in(store, orders) == 250


def test_commit_outlives_its_store(lasting_place: Any, orders: TopicIdentity) -> None:
    """Whoever opens the same place later finds everything that was committed."""
    kept = commit(orders, 90, fingerprint=Fingerprint(40, 50, "ab" * 16), committed_at_ns=5)
    first = lasting_place.open()
    first.claim("billing", orders)
    first.save(kept)
    first.close()
    second = lasting_place.open()
    found = second.claim("billing", orders)
    second.close()
    assert found == kept
    assert found is not None
    assert found.committed_at_ns == 5


def test_committing_back_is_allowed(store: OffsetStore, orders: TopicIdentity) -> None:
    """A consumer that went back commits the earlier offset."""
    store.save(commit(orders, 250))
    store.save(commit(orders, 100))
    assert offset_in(store, orders) == 100


@pytest.mark.parametrize("known", [("epoch",), ("created_at",), ()], ids=str)
def test_earlier_topic_takes_nothing_from_a_later_one(
    store: OffsetStore, orders: TopicIdentity, known: tuple[str, ...]
) -> None:
    """An offset of an earlier topic never replaces one of the topic that was created again."""
    blank: dict[str, Any] = {"epoch": None, "created_at": None}
    earlier = dataclasses.replace(orders, **blank | {name: getattr(orders, name) for name in known})
    changes = {name: getattr(orders, name) + 1 for name in known}
    later = dataclasses.replace(earlier, id=orders.id + 1, **changes)
    store.save(commit(earlier, 340))
    store.save(commit(later, 18))
    with contextlib.suppress(StaleTopic):
        store.save(commit(earlier, 500))
    assert offset_in(store, later) == 18


def test_largest_offset_is_kept(store: OffsetStore, orders: TopicIdentity) -> None:
    """The largest offset a commit can have comes back."""
    store.save(commit(orders, 2**63 - 1))
    assert offset_in(store, orders) == 2**63 - 1


def test_unknown_identity_is_kept(store: OffsetStore) -> None:
    """What is not known of a topic stays unknown."""
    bare = TopicIdentity(id=7, name="orders")
    store.save(commit(bare, 1))
    assert store.claim("billing", bare).topic == bare


def test_topics_do_not_mix(store: OffsetStore, orders: TopicIdentity) -> None:
    """Each topic has its own offset."""
    store.save(commit(orders, 1))
    store.save(commit(BILLS, 2))
    assert (offset_in(store, orders), offset_in(store, BILLS)) == (1, 2)


def test_consumers_do_not_mix(store: OffsetStore, orders: TopicIdentity) -> None:
    """Each consumer has its own offset."""
    store.save(commit(orders, 1))
    store.save(commit(orders, 2, consumer="audit"))
    assert offset_in(store, orders) == 1


@pytest.mark.parametrize(
    "name", ["a b", "a:b", "*", "%s", "'; --", "Ünïcode-名前", "x" * 255, "-", "{a}"]
)
def test_any_name_is_a_key(store: OffsetStore, orders: TopicIdentity, name: str) -> None:
    """Names of consumers and topics may hold what file names, keys and SQL give a meaning."""
    topic = dataclasses.replace(orders, name=name)
    store.save(commit(topic, 5, consumer=name))
    store.save(commit(orders, 6))
    assert [(each.consumer, each.topic.name) for each in store.commits(name)] == [(name, name)]


def test_impossible_name_is_refused(store: OffsetStore, orders: TopicIdentity) -> None:
    """A consumer cannot be called like a path."""
    with pytest.raises(ConfigError, match=r"cannot be called '\.\./x'"):
        store.claim("../x", orders)


def test_commits_are_listed(store: OffsetStore, orders: TopicIdentity) -> None:
    """All commits are listed in order, or those of one consumer."""
    store.save(commit(orders, 1))
    store.save(commit(BILLS, 2))
    store.save(commit(orders, 3, consumer="audit"))
    listed = [(each.consumer, each.topic.label, each.offset) for each in store.commits()]
    assert listed == [("audit", "orders", 3), ("billing", "bills", 2), ("billing", "orders", 1)]
    assert [each.offset for each in store.commits("billing")] == [2, 1]


def test_claim_alone_is_no_commit(store: OffsetStore, orders: TopicIdentity) -> None:
    """A topic that was only claimed is not listed."""
    store.claim("billing", orders, generation=3)
    assert list(store.commits()) == []


def test_forgotten(store: OffsetStore, orders: TopicIdentity) -> None:
    """A commit that was removed is gone; removing it again finds nothing."""
    store.save(commit(orders, 1))
    assert store.forget("billing", orders)
    assert not store.forget("billing", orders)
    assert offset_in(store, orders) is None


def test_forgetting_for_nobody(store: OffsetStore, orders: TopicIdentity) -> None:
    """Removing the commit of a consumer that never was finds nothing."""
    assert not store.forget("nobody", orders)


def test_topic_created_again_is_noticed(store: OffsetStore, orders: TopicIdentity) -> None:
    """The commit of an earlier topic of the same name is returned, and refuses the new one."""
    store.save(commit(orders, 100))
    again = TopicIdentity(id=9, name="orders", created_at=1_800_000_000, epoch=3)
    found = store.claim("billing", again)
    with pytest.raises(TopicChanged, match=r"id 9 instead of 7.*lwp offsets reset"):
        found.check_topic(again)


def test_new_topic_takes_the_place_of_the_old(store: OffsetStore, orders: TopicIdentity) -> None:
    """Once the new topic has a commit, that is the one that counts."""
    store.save(commit(orders, 100))
    again = dataclasses.replace(orders, id=9, epoch=3)
    store.save(commit(again, 5))
    found = store.claim("billing", again)
    found.check_topic(again)
    assert found.offset == 5


def test_older_generation_cannot_claim(store: OffsetStore, orders: TopicIdentity) -> None:
    """A member of an earlier generation cannot take a topic back."""
    store.claim("billing", orders, generation=5)
    store.release("billing", orders)
    with pytest.raises(StaleGeneration) as caught:
        store.claim("billing", orders, generation=4)
    assert (caught.value.generation, caught.value.current) == (4, 5)


def test_older_generation_cannot_commit(store: OffsetStore, orders: TopicIdentity) -> None:
    """A member that lost a topic cannot commit, even before its new owner has."""
    store.save(commit(orders, 100, generation=4))
    store.claim("billing", orders, generation=5)
    with pytest.raises(StaleGeneration, match="given away in generation 5"):
        store.save(commit(orders, 200, generation=4))
    store.release("billing", orders)
    assert offset_in(store, orders, generation=5) == 100


def test_same_generation_commits_again(store: OffsetStore, orders: TopicIdentity) -> None:
    """The owner commits as often as it likes."""
    store.claim("billing", orders, generation=5)
    store.save(commit(orders, 1, generation=5))
    store.save(commit(orders, 2, generation=5))
    assert store.commits()[0].offset == 2


def test_generation_is_told(store: OffsetStore, orders: TopicIdentity) -> None:
    """A commit comes back with the highest generation its topic was claimed with."""
    store.save(commit(orders, 1, generation=2))
    store.claim("billing", orders, generation=6)
    assert store.commits()[0].generation == 6


def test_generation_outlives_the_store(lasting_place: Any, orders: TopicIdentity) -> None:
    """A claim without a commit fences earlier generations off, also later."""
    first = lasting_place.open()
    first.claim("billing", orders, generation=5)
    first.close()
    second = lasting_place.open()
    with pytest.raises(StaleGeneration):
        second.save(commit(orders, 1, generation=4))
    second.close()


def test_claimed_offset_keeps_others_out(place: Any, orders: TopicIdentity) -> None:
    """Where a store can lock, a second consumer of the same name is refused."""
    if not place.locks:
        pytest.skip("this store cannot lock: generations and save_in fence instead")
    first, second = place.open(), place.open()
    first.claim("billing", orders)
    with pytest.raises(StoreLocked):
        second.claim("billing", orders)
    first.release("billing", orders)
    assert second.claim("billing", orders) is None
    first.close()
    second.close()


def test_releasing_nothing(store: OffsetStore, orders: TopicIdentity) -> None:
    """Releasing what was not claimed does no harm."""
    store.release("billing", orders)


def test_closing_twice(place: Any) -> None:
    """A store may be closed twice."""
    store = place.open()
    store.close()
    store.close()


def test_repr_says_where(store: OffsetStore) -> None:
    """A store shows what it is."""
    assert repr(store).startswith(f"<{type(store).__name__}")


def test_threads_agree_on_the_generation(store: OffsetStore, orders: TopicIdentity) -> None:
    """Of many threads that commit at once, the highest generation wins."""
    start = threading.Barrier(8)

    def member(generation: int) -> None:
        start.wait()
        for step in range(5):
            try:
                store.save(commit(orders, generation * 10 + step, generation=generation))
            except StaleGeneration:
                return

    threads = [threading.Thread(target=member, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (store.commits()[0].generation, store.commits()[0].offset) == (7, 74)


_TOPICS = st.sampled_from([TopicIdentity(1, "a"), TopicIdentity(2, "b")])
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("save"), _TOPICS, st.integers(0, 9), st.integers(0, 2**63 - 1)),
        st.tuples(st.just("claim"), _TOPICS, st.integers(0, 9), st.just(0)),
        st.tuples(st.just("forget"), _TOPICS, st.just(0), st.just(0)),
    ),
    max_size=12,
)


def _step(store: OffsetStore, action: str, topic: TopicIdentity, gen: int, offset: int) -> object:
    """Do one thing and return what it gave, or the error it raised."""
    try:
        if action == "save":
            return store.save(commit(topic, offset, generation=gen))
        if action == "forget":
            return store.forget("billing", topic)
        found = store.claim("billing", topic, gen)
        store.release("billing", topic)
    except LanceError as error:
        return type(error)
    else:
        return found


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each example starts clean
)
@given(steps=_STEPS)
def test_every_store_behaves_as_memory_does(
    place: Any, steps: list[tuple[str, TopicIdentity, int, int]]
) -> None:
    """Whatever is done, a store answers as the simplest one would."""
    store, model = place.open(), MemoryStore()
    for topic in (TopicIdentity(1, "a"), TopicIdentity(2, "b")):
        store.forget("billing", topic)
    for step in steps:
        assert _step(store, *step) == _step(model, *step)
    assert list(store.commits()) == list(model.commits())
    if place.kind != "memory":
        store.close()


def record(size: int) -> bytes:
    """Return a record whose value has this many zeros."""
    return encode_record(bytes(size))


def test_fingerprint_of_no_records() -> None:
    """Where nothing was read there is nothing to recognise."""
    assert Fingerprint.of(b"", 0) is None


@given(st.lists(st.integers(0, 40_000), min_size=1, max_size=12))
def test_fingerprint_covers_whole_records(sizes: list[int]) -> None:
    """A fingerprint covers whole records up to the offset: at most 64 KiB, but at least one."""
    records = [record(size) for size in sizes]
    data = b"".join(records)
    mark = Fingerprint.of(data, 1000 + len(data))
    boundaries = {len(data) - sum(map(len, records[:n])) for n in range(len(records))}
    assert mark is not None
    assert mark.end == 1000 + len(data)
    assert mark.length in boundaries
    assert mark.length <= max(64 * 1024, len(records[-1]))
    assert mark.matches(data[mark.start - 1000 :])


def test_fingerprint_of_one_huge_record() -> None:
    """A record larger than a fingerprint is covered whole."""
    data = record(10) + record(200_000)
    assert Fingerprint.of(data, len(data)).start == 15


def test_fingerprint_refuses_other_records() -> None:
    """One changed byte is noticed."""
    data = record(10)
    mark = Fingerprint.of(data, len(data))
    assert not mark.matches(data[:-1] + b"!")


def test_other_records_are_refused(orders: TopicIdentity) -> None:
    """A commit refuses to go on behind records that were not the ones read."""
    data = record(10)
    made = commit(orders, 15, fingerprint=Fingerprint.of(data, 15))
    made.check_records(data)
    with pytest.raises(TopicChanged, match="not those that 'billing' had read"):
        made.check_records(record(9) + b"!")


@pytest.mark.parametrize("offset", [-1, 2**63, True, 1.5])
def test_impossible_offset_is_refused(orders: TopicIdentity, offset: object) -> None:
    """An offset that not every store could keep is refused at once."""
    with pytest.raises(ConfigError, match="offset="):
        commit(orders, offset)


def test_fingerprint_of_another_offset_is_refused(orders: TopicIdentity) -> None:
    """A fingerprint must end at the offset that is committed."""
    with pytest.raises(ConfigError, match="ends at 90 and not at the offset 91"):
        commit(orders, 91, fingerprint=Fingerprint(40, 50, "ab" * 16))
