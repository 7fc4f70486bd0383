"""What comes of each record, and what a node refuses to go on with."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulation.cluster.alone import Node
from tests.simulation.cluster.logs import DATA_DIR, NONCE, NOW, SECOND, a_batch

from lance_server.cluster.applying.mark import load_mark
from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.applying.restore import DamagedFilesError
from lance_server.cluster.applying.results import Result, Status
from lance_server.cluster.applying.settings import APPLY_VERSION
from lance_server.cluster.applying.window import ExactWindow, WindowSize
from lance_server.cluster.records import UnknownRecordError, encode
from lance_server.cluster.replicated_log import (
    Entry,
    LogGapError,
    LogReplacedError,
    LogTrimmedError,
    StopNodeError,
)
from lance_server.errors import DataDirError
from lance_server.testing import MemoryStorage
from lance_spec.messages import replication


def created(node: Node, name: str = "orders", *, max_age_secs: int = 0, max_bytes: int = 0) -> int:
    """Create a topic and begin it; return its id."""
    made = node.apply(
        replication.CreateTopic(
            name=name,
            max_age_secs=max_age_secs,
            max_bytes=max_bytes,
            shard=0,
            accepted_ns=node.now_ns,
        )
    )
    assert made.status is Status.DONE
    catalog = node.replica.shards[0].state.catalog.topics
    node.apply(catalog[made.topic_id].begins(made.topic_id))
    return made.topic_id


class TestBatches:
    """A batch goes to the end of its topic, once."""

    def test_offsets_and_records_are_counted(self, node: Node) -> None:
        """A result says where the batch begins, in bytes and in records."""
        first, second = node.append(1, [b"a", b"b"]), node.append(2)
        assert first == Result(Status.STORED, 0, 0, 0)
        assert second == Result(Status.STORED, 0, 12, 2)

    def test_a_repeated_batch_is_a_duplicate(self, node: Node) -> None:
        """The same batch is stored once."""
        node.append(1)
        assert node.append(1).status is Status.DUPLICATE
        assert node.topic().state.end_record == 1

    def test_an_id_with_other_content_is_stored(self, node: Node) -> None:
        """The newest content counts from then on."""
        node.append(1, [b"old"])
        assert node.append(1, [b"new"]).status is Status.STORED
        assert node.append(1, [b"new"]).status is Status.DUPLICATE
        assert node.append(1, [b"old"]).status is Status.STORED

    def test_a_batch_without_a_lasting_id_is_stored_again(self, node: Node) -> None:
        """Only ids with a producer's nonce are remembered."""
        assert [node.append(0).status for _ in range(2)] == [Status.STORED] * 2

    def test_data_that_does_not_fit_its_checksum_is_not_stored(self, node: Node) -> None:
        """All nodes refuse it alike."""
        batch = a_batch(0, 1, NOW, [b"value"])
        batch.data = batch.data[:-1] + b"!"
        assert node.apply(batch).status is Status.DAMAGED
        assert node.topic().state.end == 0

    def test_a_fast_clock_moves_the_time_by_a_second(self, node: Node) -> None:
        """The log's own time counts where a sender is further ahead."""
        node.apply(a_batch(0, 1, NOW + 3600 * SECOND, [b"value"]))
        assert node.topic().state.last_ns == NOW + SECOND

    def test_times_never_fall(self, node: Node) -> None:
        """A sender whose clock is behind gets the time of the batch before."""
        node.append(1)
        node.apply(a_batch(0, 2, NOW - 3600 * SECOND, [b"value"]))
        assert node.topic().state.last_ns == NOW

    def test_a_segment_ends_by_size(self, node: Node) -> None:
        """A batch that does not fit any more goes to the next segment."""
        for number in range(1, 4):
            node.append(number, [bytes(140)])
        sizes = [extent.size for extent in node.topic().extents]
        assert sizes == [290, 145]

    def test_each_entry_tells_the_end_before_its_batch(self, node: Node) -> None:
        """Sidecars do not depend on how many batches are applied together."""
        for number in range(1, 4):
            node.append(number)
        raw = node.disk.peek(node.topic().extents[0].segment.sidecar_path)
        ends = [
            int.from_bytes(raw[64 + place + 40 : 64 + place + 48], "little")
            for place in (0, 64, 128)
        ]
        assert ends == [0, 10, 20]


class TestTopics:
    """Topics are created in shard 0 and begin and end in their own."""

    def test_ids_follow_the_order_of_creation(self, node: Node) -> None:
        """A deleted topic's id is not given again, and its name has a higher epoch."""
        first = created(node)
        node.apply(replication.DeleteTopic(topic_id=first))
        node.apply(replication.TopicEnds(topic_id=first))
        second = created(node)
        assert (first, second) == (1, 2)
        assert node.topic(2).file.identity.epoch == 2

    def test_a_taken_name_is_refused_with_its_topic(self, node: Node) -> None:
        """Two creations of one name: the first in the log counts."""
        created(node)
        again = node.apply(
            replication.CreateTopic(
                name="orders", max_age_secs=0, max_bytes=0, shard=0, accepted_ns=NOW
            )
        )
        assert again == Result(Status.EXISTS, 1)

    def test_an_end_is_final(self, node: Node) -> None:
        """A late beginning does not bring a topic back."""
        node.apply(replication.TopicEnds(topic_id=5))
        begins = replication.TopicBegins(
            topic_id=5, name="x", created_at=0, topic_epoch=1, max_age_secs=0, max_bytes=0
        )
        assert node.apply(begins).status is Status.IGNORED
        assert node.append(1, topic_id=5).status is Status.NO_TOPIC

    def test_the_default_topic_stays(self, node: Node) -> None:
        """It can be neither deleted nor ended."""
        assert node.apply(replication.DeleteTopic(topic_id=0)).status is Status.NO_TOPIC
        assert node.apply(replication.TopicEnds(topic_id=0)).status is Status.IGNORED
        assert node.append(1).status is Status.STORED

    def test_the_files_of_a_deleted_topic_stay_until_a_mark(self, node: Node) -> None:
        """A replay from the mark before would need them."""
        topic_id = created(node)
        node.append(1, topic_id=topic_id)
        node.replica.mark(0)
        node.apply(replication.TopicEnds(topic_id=topic_id))
        assert node.names(topic_id)
        node.replica.mark(0)
        assert node.disk.list_dir(DATA_DIR / "segments") == ["0"]


class TestRetention:
    """Whole segments go, under the policy that a record names, by the log's own time."""

    def filled(self, node: Node, *, max_age_secs: int = 0, max_bytes: int = 0) -> int:
        """Return a topic with three segments, the last of them open."""
        topic_id = created(node, max_age_secs=max_age_secs, max_bytes=max_bytes)
        for number in range(1, 4):
            node.append(number, [bytes(200)], topic_id)
            node.now_ns += 10 * SECOND
        return topic_id

    def drop(self, node: Node, topic_id: int, offset: int, version: int = 1) -> Result:
        """Propose to drop what lies before an offset."""
        return node.apply(
            replication.DropBefore(topic_id=topic_id, offset=offset, retention_version=version)
        )

    def test_size_decides_at_the_record(self, node: Node) -> None:
        """What is left without a segment must still be what is to be kept."""
        topic_id = self.filled(node, max_bytes=300)
        assert self.drop(node, topic_id, 2**40) == Result(Status.DONE, topic_id, 205)

    def test_a_limited_topic_keeps_at_most_its_limit(self, node: Node) -> None:
        """Its segments hold an eighth each; what is being written counts, too (AMB-57)."""
        topic_id = created(node, max_bytes=800)
        for number in range(1, 61):
            node.append(number, [bytes(15)], topic_id)
            self.drop(node, topic_id, 2**40)
            topic = node.topic(topic_id)
            assert topic.state.end - topic.file.log_start.offset <= 800
            assert all(extent.size <= 100 for extent in topic.extents)
        assert topic.state.end - topic.file.log_start.offset > 700

    def test_age_decides_by_the_time_of_the_log(self, node: Node) -> None:
        """A segment goes when its last batch is older than the policy allows."""
        topic_id = self.filled(node, max_age_secs=25)
        assert self.drop(node, topic_id, 2**40) == Result(Status.DONE, topic_id, 205)

    def test_the_offset_rounds_down_to_a_segment(self, node: Node) -> None:
        """A segment that ends after the offset stays."""
        topic_id = self.filled(node, max_age_secs=1)
        assert self.drop(node, topic_id, 300).offset == 205

    def test_a_second_proposal_changes_nothing(self, node: Node) -> None:
        """Any node may propose what another one did."""
        topic_id = self.filled(node, max_bytes=300)
        self.drop(node, topic_id, 2**40)
        assert self.drop(node, topic_id, 2**40).status is Status.IGNORED

    def test_another_policy_voids_a_proposal(self, node: Node) -> None:
        """A proposal that was made under an older policy drops nothing."""
        topic_id = self.filled(node, max_bytes=1)
        change = replication.SetRetention(topic_id=topic_id, version=1, max_age_secs=0, max_bytes=0)
        assert node.apply(change).status is Status.DONE
        assert self.drop(node, topic_id, 2**40).status is Status.STALE
        assert node.apply(change) == Result(Status.STALE, topic_id, 2)

    def test_data_goes_after_a_mark_and_the_window_stays(self, node: Node) -> None:
        """A batch that was dropped is still known, also after a restart."""
        topic_id = self.filled(node, max_bytes=300)
        self.drop(node, topic_id, 2**40)
        assert sum(name.endswith(".lnc") for name in node.names(topic_id)) == 3
        node.replica.mark(0)
        assert sum(name.endswith(".lnc") for name in node.names(topic_id)) == 2
        assert sum(name.endswith(".window") for name in node.names(topic_id)) == 1
        node.restart()
        node.now_ns -= 20 * SECOND
        assert node.append(1, [bytes(200)], topic_id).status is Status.DUPLICATE

    def test_a_roll_ends_the_segment_that_its_sender_saw(self, node: Node) -> None:
        """A topic that has grown since keeps its segment."""
        node.append(1)
        assert node.apply(replication.Roll(topic_id=0, end=3)).status is Status.STALE
        assert node.apply(replication.Roll(topic_id=0, end=10)).status is Status.DONE
        assert node.apply(replication.Roll(topic_id=0, end=10)).status is Status.STALE


class TestCommits:
    """A commit names the one that it replaces."""

    def commit(self, node: Node, version: int, offset: int = 0, consumer: int = 1) -> Result:
        """Commit to the default topic."""
        return node.apply(
            replication.CommitOffset(
                topic_id=0, consumer_id=consumer, version=version, offset=offset, accepted_ns=NOW
            )
        )

    def test_a_late_commit_does_not_replace_a_newer_one(self, node: Node) -> None:
        """One that names an older version changes nothing and learns the current one."""
        node.append(1)
        assert self.commit(node, 0, 5).status is Status.DONE
        assert self.commit(node, 1, 10).status is Status.DONE
        assert self.commit(node, 1, 5) == Result(Status.STALE, 0, 2)
        assert node.topic().state.commits[1].offset == 10

    def test_a_deleted_commit_can_be_made_again(self, node: Node) -> None:
        """A deletion names a version, too."""
        self.commit(node, 0)
        gone = replication.DeleteCommit(topic_id=0, consumer_id=1, version=1)
        assert node.apply(gone).status is Status.DONE
        assert node.apply(gone).status is Status.STALE
        assert self.commit(node, 0).status is Status.DONE

    def test_there_is_a_limit(self, node: Node) -> None:
        """One more consumer than the cluster allows is refused."""
        statuses = [self.commit(node, 0, consumer=each).status for each in range(3)]
        assert statuses == [Status.DONE, Status.DONE, Status.FULL]

    def test_old_commits_expire(self, node: Node) -> None:
        """But for those of consumers that are named."""
        for consumer in range(2):
            self.commit(node, 0, consumer=consumer)
        expire = replication.ExpireCommits(topic_id=0, before_ns=NOW + 1, kept=[1])
        assert node.apply(expire).offset == 1
        assert list(node.topic().state.commits) == [1]


class TestStops:
    """A node stops rather than skip something or trust what is not the log's."""

    def test_a_gap_stops(self, node: Node) -> None:
        """A record that does not follow the last one is not applied."""
        with pytest.raises(LogGapError, match="position 1 was expected, the log gave 2"):
            node.replica.apply(0, [Entry(2, 0, NOW, encode(None, 1, 1))])

    @pytest.mark.parametrize(
        ("record", "problem"),
        [
            (b"hello", "another program writes to the log"),
            (b"LNRL\x02\x00" + bytes(30), "format 2, this release knows up to 1; upgrade"),
            (b"LNRL\x01\x00\xff" + bytes(16), "not a record of a LANCE cluster"),
        ],
    )
    def test_a_record_that_is_not_known_stops(
        self, node: Node, record: bytes, problem: str
    ) -> None:
        """What a node does not understand it never skips."""
        with pytest.raises(UnknownRecordError, match=problem):
            node.replica.apply(0, [Entry(1, 0, NOW, record)])

    def test_a_newer_version_of_the_rules_stops(self, node: Node) -> None:
        """A node that does not know the rules does not guess."""
        with pytest.raises(UnknownRecordError, match=r"version 2 .* up to 1; upgrade"):
            node.apply(replication.ApplyVersion(version=2))

    def test_data_of_a_newer_version_of_the_rules_is_refused(self, node: Node) -> None:
        """An older release would go on by the older rules."""
        node.replica.shards[0].state.apply_version = APPLY_VERSION + 1
        node.append(1)
        node.replica.mark(0)
        with pytest.raises(StopNodeError, match="upgrade this node"):
            node.restart()

    def test_a_log_without_genesis_stops(self) -> None:
        """The first record of a shard holds the settings."""
        replica = Replica.open(MemoryStorage(), DATA_DIR, "log-1", 1, lambda _: 0)
        with pytest.raises(UnknownRecordError, match="lwp cluster init"):
            replica.apply(0, [Entry(0, 0, NOW, encode(None, 1, 1))])

    def test_another_log_is_refused(self, node: Node) -> None:
        """The data of one log is never continued from another."""
        node.replica.mark(0)
        with pytest.raises(LogReplacedError, match="log-2"):
            node.restart("log-2")

    def test_a_trimmed_log_is_refused(self, node: Node) -> None:
        """What the node needs next must be there."""
        node.append(1)
        node.replica.mark(0)
        node.restart(earliest=2)
        with pytest.raises(LogTrimmedError, match="position 2 is trimmed"):
            node.restart(earliest=3)

    def test_a_new_node_needs_the_whole_log(self) -> None:
        """A log that was trimmed is not begun in the middle."""
        with pytest.raises(LogTrimmedError, match="lance-server clone"):
            Replica.open(MemoryStorage(), DATA_DIR, "log-1", 1, lambda _: 1)


class TestDamage:
    """What lies below the mark must be what it says."""

    @pytest.fixture
    def marked(self, node: Node) -> Node:
        """A node with a closed segment and an open one, at a mark."""
        for number in range(1, 4):
            node.append(number, [bytes(140)])
        node.replica.mark(0)
        return node

    def test_a_closed_segment_that_is_short_is_damage(self, marked: Node) -> None:
        """It is found at the start."""
        path = marked.topic().extents[0].segment.data_path
        marked.disk.poke(path, marked.disk.peek(path)[:-1])
        with pytest.raises(DamagedFilesError, match=r"289 bytes, its sidecar 290; the disk is"):
            marked.restart()

    def test_an_open_segment_that_is_short_is_damage(self, marked: Node) -> None:
        """What the mark counts must be there."""
        path = marked.topic().extents[1].segment.data_path
        marked.disk.poke(path, b"")
        with pytest.raises(DamagedFilesError, match="shorter than the 145 bytes"):
            marked.restart()

    def test_a_missing_segment_is_damage(self, marked: Node) -> None:
        """The segments of a topic follow each other without a gap."""
        marked.disk.remove(marked.topic().extents[0].segment.data_path)
        with pytest.raises(DamagedFilesError, match="does not begin at 0"):
            marked.restart()

    def test_a_damaged_entry_is_damage(self, marked: Node) -> None:
        """Sidecars are read whole."""
        path = marked.topic().extents[0].segment.sidecar_path
        raw = bytearray(marked.disk.peek(path))
        raw[70] ^= 1
        marked.disk.poke(path, bytes(raw))
        with pytest.raises(DamagedFilesError, match="damaged entry"):
            marked.restart()

    def test_a_missing_topic_is_damage(self, marked: Node) -> None:
        """A folder that the mark knows must be there."""
        for name in marked.names():
            marked.disk.remove(DATA_DIR / "segments" / "0" / name)
        marked.disk.remove(DATA_DIR / "segments" / "0")
        with pytest.raises(DamagedFilesError, match="is missing"):
            marked.restart()

    def test_one_damaged_copy_of_a_mark_does_not_matter(self, marked: Node) -> None:
        """There are two."""
        marked.disk.poke(DATA_DIR / "cluster" / "shard-0.json", b"{}")
        marked.restart()
        assert marked.topic().state.end == 435

    def test_two_damaged_copies_stop(self, marked: Node) -> None:
        """A node without its mark does not know where it is."""
        for name in ("shard-0.json", "shard-0.json.bak"):
            marked.disk.poke(DATA_DIR / "cluster" / name, b"{}")
        with pytest.raises(DataDirError, match="damaged"):
            marked.restart()

    def test_a_mark_keeps_what_it_holds(self, marked: Node) -> None:
        """What is read is what was written."""
        mark = load_mark(marked.disk, DATA_DIR, 0)
        assert mark is not None
        assert mark.to_body() == type(mark).from_body(mark.to_body()).to_body()


class TestWindow:
    """The duplicate window is exact."""

    @given(
        st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=60),
        st.integers(0, 8),
        st.integers(0, 4),
    )
    def test_it_knows_what_the_rule_says(
        self, stored: list[tuple[int, int]], entries: int, age: int
    ) -> None:
        """Known are the last batches that are young enough; the newest of an id counts."""
        window, now = ExactWindow(WindowSize(entries, age)), NOW
        model: list[tuple[int, bytes, int]] = []
        for number, seconds in stored:
            now += seconds * SECOND
            content = len(model).to_bytes(16, "little")
            recent = model[max(0, len(model) - entries) :]
            wanted = [one for one in recent if one[0] == number]
            newest = wanted[-1] if wanted and now - wanted[-1][2] <= age * SECOND else None
            assert window.find(NONCE + number, now) == (newest[1] if newest else None)
            window.add(NONCE + number, content, now)
            model.append((number, content, now))

    def test_it_is_exact_over_generations(self) -> None:
        """What is packed away is found, and what falls out is not."""
        window, chance = ExactWindow(WindowSize(40_000, 10)), Random(1)
        for number in range(70_000):
            window.add(NONCE + number, number.to_bytes(16, "little"), NOW)
        for _ in range(50):
            number = chance.randrange(70_000)
            found = window.find(NONCE + number, NOW)
            assert found == (number.to_bytes(16, "little") if number >= 30_000 else None)
        assert window.find(NONCE + 29_999, NOW) is None
        assert window.find(NONCE + 30_000, NOW) is not None
