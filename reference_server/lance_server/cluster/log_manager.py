"""The log of all topics on a node of a cluster: what the protocols use, over the shared log."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.applying.results import Result, Status
from lance_server.cluster.applying.shard import Changes
from lance_server.cluster.applying.topic import ReplicatedTopic
from lance_server.cluster.copies.offered import OfferedCopies, remove_copies
from lance_server.cluster.copies.snapshot import NodeSnapshots
from lance_server.cluster.hosting.remote_topics import RemoteTopics
from lance_server.cluster.linear_reads import ReadBarriers
from lance_server.cluster.node import ClusterNode
from lance_server.cluster.node_options import NodeOptions, hosted_of
from lance_server.cluster.partition import ReplicatedConsumers, ReplicatedPartition
from lance_server.cluster.refusals import clock_problem
from lance_server.cluster.replicated_log import ReplicatedLog
from lance_server.config.settings import Address
from lance_server.log.clock import Clock
from lance_server.log.dedup import WindowLimits
from lance_server.log.log_manager import LogManager
from lance_server.log.log_options import LogOptions
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.recovery.topic_recovery import TopicLog
from lance_server.log.topic import Topic
from lance_server.lwp.refusals import Refusal, topic_not_found
from lance_server.runtime.completion import Completion
from lance_server.runtime.scheduling import Job, Scheduler
from lance_server.storage.contract import StorageBackend
from lance_spec.bodies import TopicInfo
from lance_spec.enums import ErrorCode
from lance_spec.limits import DEFAULT_TOPIC_ID
from lance_spec.messages.replication import CreateTopic, DeleteTopic, SetRetention, TopicEnds

_log = logging.getLogger(__name__)
_NOT_PARTITIONED: Final = (
    "A cluster keeps no descriptions of partitioned topics; create each partition as a topic, and "
    "name them to producers and consumers"
)
_ATTEMPTS: Final = 8


@dataclass(slots=True)
class _ShardUse:
    """How much a shard holds."""

    bytes: int = 0
    topics: int = 0


class ReplicatedLogManager(LogManager):
    """Everything that a node has applied. Belongs to the event loop's thread.

    Attributes:
        node: puts records into the log and applies all of them.
        barriers: those of linear reads.
        remote: the topics that other nodes serve.
    """

    node: ClusterNode
    remote: RemoteTopics
    barriers: ReadBarriers

    @classmethod
    def join(
        cls,
        data_dir: Path,
        storage: StorageBackend,
        scheduler: Scheduler,
        *,
        log: ReplicatedLog,
        node: NodeOptions,
        options: LogOptions,
        post: Callable[[Job], object],
        clock: Clock = time.time_ns,
        now: Callable[[], float] = time.monotonic,
    ) -> "ReplicatedLogManager":
        """Open a node's directory and begin to apply.

        Args:
            data_dir: the directory.
            storage: the backend.
            scheduler: the loop and its worker threads.
            log: the replicated log.
            node: what the node is told.
            options: how much it keeps open; what influences files comes from the log.
            post: runs a job on the loop's thread, called on any thread.
            clock: the wall clock in nanoseconds.
            now: a clock of seconds that never goes back.

        Raises:
            ReplicatedLogError: the log cannot be used, or is not the one of the data.
            DataDirError: the directory is damaged, or is a single server's.
            OSError: the disk refused.
        """
        replica = Replica.open(
            storage,
            data_dir,
            log.identity(),
            log.shards,
            log.earliest,
            hosted=hosted_of(node, log.shards),
        )
        manager = cls(data_dir, storage, scheduler, options, clock)
        manager.partitioned.unavailable = _NOT_PARTITIONED
        manager.node = ClusterNode(
            node,
            log,
            replica,
            scheduler=scheduler,
            clock=clock,
            now=now,
            post=post,
            publish=manager._publish,
        )
        manager.remote = RemoteTopics(manager.node)
        manager.barriers = ReadBarriers(manager.node)
        manager.snapshots = NodeSnapshots(manager.node, data_dir, storage, scheduler)
        remove_copies(storage, data_dir)
        if node.offers_copies:
            manager.copies = OfferedCopies(manager.node, data_dir, storage, scheduler, now=now)
        manager._show_all(replica)
        _log.info("node %d joins the cluster: %r", node.node_id, replica)
        manager.node.start()
        return manager

    # Publishing --------------------------------------------------------------------------------

    def _show_all(self, replica: Replica) -> None:
        for shard in replica.shards.values():
            for topic in shard.topics.values():
                segments = [extent.segment for extent in topic.extents]
                found = TopicLog(segments, topic.state.end, topic.state.end_record)
                self._show(shard.number, topic, found)

    def _show(self, shard: int, topic: ReplicatedTopic, log: TopicLog) -> None:
        partition = ReplicatedPartition(
            self._storage,
            self._cache,
            topic,
            log,
            node=self.node,
            shard=shard,
            backlog=self.backlog,
        )
        consumers = ReplicatedConsumers(
            self._storage,
            self._scheduler,
            topic,
            node=self.node,
            shard=shard,
            clock=self.clock,
        )
        name = topic.file.identity.name
        newer = self._by_name.get(name, 0)
        self._register(Topic(topic.file, partition, consumers))
        if newer > topic.file.identity.id:  # the shard of the older one lags
            self._by_name[name] = newer

    def _publish(self, changes: Sequence[Changes]) -> None:
        for each in changes:
            shard = self.node.replica.shards[each.shard]
            for topic in each.begun:
                if topic.file.identity.id in shard.topics:
                    self._show(each.shard, topic, TopicLog([], 0, 0))  # its changes follow
            for topic, changed in each.topics:
                self._change(topic.file.identity.id, changed)
            for topic in each.ended:
                self._hide(topic.file.identity.id)
            if each.topics:
                self.flusher.flushes += 1

    def _change(self, topic_id: int, changes: Sequence[Any]) -> None:
        topic = self._topics.get(topic_id)
        if topic is None:
            return
        assert isinstance(topic.consumers, ReplicatedConsumers), "all topics are replicated"
        topic.consumers.publish(changes)
        _replicated(topic).publish(changes)

    def _hide(self, topic_id: int) -> None:
        topic = self._topics.pop(topic_id, None)
        if topic is not None:
            self._forget_name(topic_id, topic.file.identity.name)
            topic.partition.abandon()
            topic.partition.notify()

    def _forget_name(self, topic_id: int, name: str) -> None:
        """Let a name mean no topic, or one of that name that is still here."""
        if self._by_name.get(name) != topic_id:
            return
        del self._by_name[name]
        others = [
            key
            for key, each in self._topics.items()
            if key != DEFAULT_TOPIC_ID and each.file.identity.name == name
        ]
        if others:
            self._by_name[name] = max(others)

    @property
    def window(self) -> WindowLimits:
        """How far back repeated batches are recognised: what the log says, once it is read."""
        settings = self.node.replica.shards[0].state.settings
        if settings is None:
            return super().window
        return WindowLimits(settings.window_entries, settings.window_age_secs)

    # Topics ------------------------------------------------------------------------------------

    def topic(self, topic_id: int, *, text: str = "Topic not found") -> Topic:
        """Return a topic.

        Raises:
            Refusal: there is none, or none any more, as far as this node has applied.
        """
        topic = self._topics.get(topic_id)
        if topic is not None:
            return topic
        if DEFAULT_TOPIC_ID not in self._topics:
            raise Refusal(
                ErrorCode.CLUSTER_NOT_READY,
                "The cluster has not begun: run `lwp cluster init`, or wait until this node has "
                "read the log",
            )
        self.remote.check(topic_id)
        next_id = self.node.replica.shards[0].state.catalog.next_id
        raise topic_not_found(topic_id, existed=topic_id < next_id, text=text)

    def topic_named(self, name: str) -> Topic | None:
        """Return the topic with a name in Unicode NFC, or None.

        Raises:
            Refusal: another node serves it.
        """
        self.remote.check_name(name)
        return super().topic_named(name)

    def remote_topics(self) -> list[TopicInfo]:
        """Return the topics that only other nodes serve, by id."""
        return self.remote.infos() if self._hosts_some else []

    def remote_name(self, topic_id: int) -> str | None:
        """Return the name of a topic that only other nodes serve, or None."""
        remote = self.remote.find(topic_id)
        return None if remote is None else remote.name

    def host_of(self, topic_id: int) -> Address | None:
        """Return the node to which requests for a topic are forwarded; None: they are not."""
        return self.remote.host_of(topic_id) if self.forwards else None

    @property
    def forwards(self) -> bool:
        """Whether there may be topics whose requests are forwarded."""
        return self._hosts_some and not self.node.options.redirects

    @property
    def _hosts_some(self) -> bool:
        return len(self.node.replica.shards) < self.node.shard_count

    def create_topic(self, name: str, retention: Retention) -> Completion[Topic]:
        """Propose a topic; the completion is settled when it has begun here.

        Raises:
            Refusal: the node cannot take it.
        """
        self._judge()
        body = CreateTopic(
            name=name,
            max_age_secs=retention.max_age_secs,
            max_bytes=retention.max_bytes,
            shard=self._emptiest_shard(),
            accepted_ns=self.clock(),
        )
        end: Completion[Topic] = Completion()
        created = self.node.propose(0, body)
        created.wake(lambda: self._take_creation(name, created, end))
        return end

    def _use_of_shards(self) -> dict[int, _ShardUse]:
        """Return how much each shard holds, as far as this node knows."""
        used = {number: _ShardUse() for number in self.node.replica.shards}
        for topic in self._topics.values():
            partition = _replicated(topic)
            use = used[partition.shard]
            use.bytes += partition.end_offset - partition.start_offset
            use.topics += 1
        return used

    def _emptiest_shard(self) -> int:
        """Return the shard with the fewest bytes, then topics, of those for new topics."""
        used = self._use_of_shards()
        wanted = self.node.options.shards or used.keys()
        return min(wanted, key=lambda number: (used[number].bytes, used[number].topics, number))

    def _judge(self) -> None:
        refusal = self.node.refusal()
        if refusal is not None:
            raise refusal

    def _take_creation(
        self, name: str, created: Completion[Result], end: Completion[Topic]
    ) -> None:
        if created.error is not None:
            end.fail(created.error)
            return
        result = created.result()
        if result.status is Status.EXISTS:
            end.fail(Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists"))
            return
        if result.status is not Status.DONE:
            words = "The cluster holds as many topics as it may; delete some"
            end.fail(Refusal(ErrorCode.UNKNOWN_ERROR, words))
            return
        entry = self.node.replica.shards[0].state.catalog.topics.get(result.topic_id)
        if entry is None:
            end.fail(topic_not_found(result.topic_id, existed=True, text="Topic not found"))
            return
        begun = self.node.propose(entry.shard, entry.begins(result.topic_id))
        begun.wake(lambda: self._begun(result.topic_id, begun, end))

    def _begun(self, topic_id: int, begun: Completion[Result], end: Completion[Topic]) -> None:
        topic = self._topics.get(topic_id)
        if begun.error is not None:
            end.fail(begun.error)
        elif topic is None:
            end.fail(topic_not_found(topic_id, existed=True, text="Topic not found"))
        else:
            end.settle(topic)

    def delete_topic(self, topic_id: int, *, text: str) -> Completion[None]:
        """Propose to delete a topic; the completion is settled when it has ended here.

        Raises:
            Refusal: there is no such topic, it is the default one, or the node cannot take it.
        """
        shard = _replicated(self.topic(topic_id, text=text)).shard
        if topic_id == DEFAULT_TOPIC_ID:
            raise Refusal(ErrorCode.ACCESS_DENIED, "The default topic cannot be deleted", text=text)
        self._judge()
        end: Completion[None] = Completion()
        deleted = self.node.propose(0, DeleteTopic(topic_id=topic_id))

        def go_on() -> None:
            if deleted.error is not None:
                end.fail(deleted.error)
            elif deleted.result().status is not Status.DONE:
                end.fail(topic_not_found(topic_id, existed=True, text=text))
            else:
                ended = self.node.propose(shard, TopicEnds(topic_id=topic_id))
                ended.wake(lambda: end.fail(ended.error) if ended.error else end.settle(None))

        deleted.wake(go_on)
        return end

    def set_retention(self, topic: Topic, retention: Retention) -> Completion[None]:
        """Propose another retention; the completion is settled when it is applied."""
        end: Completion[None] = Completion()
        shard = _replicated(topic).shard
        known = self.node.replica.shards[shard].topics.get(topic.id)

        def attempt(version: int, left: int) -> None:
            body = SetRetention(
                topic_id=topic.id,
                version=version,
                max_age_secs=retention.max_age_secs,
                max_bytes=retention.max_bytes,
            )
            proposed = self.node.propose(shard, body)
            proposed.wake(lambda: self._judge_retention(proposed, end, attempt, left))

        attempt(1 if known is None else known.state.retention_version, _ATTEMPTS)
        return end

    def _judge_retention(
        self,
        proposed: Completion[Result],
        end: Completion[None],
        again: Callable[[int, int], None],
        left: int,
    ) -> None:
        if proposed.error is not None:
            end.fail(proposed.error)
            return
        result = proposed.result()
        if result.status is Status.DONE:
            end.settle(None)
        elif result.status is Status.STALE and left:
            again(result.offset, left - 1)
        elif result.status is Status.STALE:
            words = "Other nodes changed this retention at the same time; set it again"
            end.fail(Refusal(ErrorCode.UNKNOWN_ERROR, words))
        else:
            end.fail(topic_not_found(result.topic_id, existed=True, text="Topic not found"))

    # The cluster -----------------------------------------------------------------------------

    def catch_up(self) -> Completion[bool]:
        """Return what is settled when this node has applied all that was acknowledged anywhere.

        It is False where the log cannot tell: the node answers as far as it knows.
        """
        known: Completion[bool] = Completion()
        if self.node.refusal() is not None or not self.node.has_genesis:
            known.settle(False)
            return known
        barrier = self.barriers.wait()
        barrier.wake(lambda: known.settle(barrier.error is None))
        return known

    def on_dismissal(self, dismiss: Callable[[], object]) -> None:
        """Call something once this node has stopped applying: other nodes know more."""
        self.node.on_break = dismiss
        if self.node.problem is not None:
            dismiss()

    @property
    def is_replicated(self) -> bool:
        """Return True: what is to be known on every node goes through the shared log."""
        return True

    @property
    def is_linear(self) -> bool:
        """Whether a read waits for `read_barrier` first."""
        return self.node.options.linear_reads

    def read_barrier(self) -> Completion[None]:
        """Return what is settled when all that was acknowledged before this call is applied here.

        It fails with a `Refusal` where the log cannot tell.
        """
        return self.barriers.wait()

    def cluster_facts(self) -> dict[str, Any]:
        """Return what GetClusterStatus tells of the cluster."""
        node = self.node
        live, leader = node.peers.live(), node.peers.leader()
        shard = node.replica.shards[0].state
        return {
            "mode": "shared_log",
            "is_leader": leader == node.options.node_id,
            "leader_id": leader,
            "node_count": max(1, len(shard.hosts | shard.nodes.keys())),
            "healthy_nodes": len(live),
            "quorum_available": node.unavailable_since is None,
            "peer_states": {
                str(key): {
                    "address": told.status.address,
                    "release": told.status.release,
                    "live": key in live,
                    "applied": {str(each.shard): each.applied for each in told.status.positions},
                    "durable": {str(each.shard): each.durable for each in told.status.positions},
                }
                for key, told in sorted(node.peers.all().items())
            },
            "shards": {
                str(number): {"topics": use.topics, "bytes": use.bytes}
                for number, use in self._use_of_shards().items()
            },
            "hosts": {str(number): node.peers.hosts(number) for number in range(node.shard_count)},
            "behind": node.figures.behind,
            "outstanding_bytes": node.outstanding,
            "pending": node.pending,
            "records_appended": node.figures.appended,
            "records_applied": node.figures.applied,
            "appends_timed_out": node.figures.timed_out,
            "durability": node.durability,
            "apply_version": shard.apply_version,
        }

    def unready_reasons(self) -> list[str]:
        """Return why this node is not to be written to or read from first."""
        node, reasons = self.node, list[str]()
        if node.problem is not None:
            reasons.append(f"this node has stopped applying: {node.told}")
        if DEFAULT_TOPIC_ID not in self._topics:
            reasons.append("the cluster has not begun, or this node has not read the log yet")
        if node.unavailable_since is not None and node.problem is None:
            reasons.append(f"the shared log cannot be reached ({node.unreachable}); reads go on")
        asks = node.problem is None and node.unavailable_since is None
        if (clock := clock_problem(node.skew_ns)) is not None:
            reasons.append(f"{clock}; until then it takes no writes, and reads go on")
        elif asks and (silence := node.peers.silence(self.clock())):
            reasons.append(
                f"the shared log has confirmed nothing of this node for {silence:.0f} s; look at "
                "its brokers, at the settings of its topic and at this node's log; reads go on"
            )
        if node.lags:
            reasons.append(f"this node is {node.figures.behind} records behind the shared log")
        return reasons

    # The end -----------------------------------------------------------------------------------

    def start_upkeep(self, interval: float) -> None:
        """Do nothing: a node that does the housekeeping proposes it."""
        del interval

    @property
    def clock_behind_ns(self) -> int:
        """Nanoseconds that the clock is behind the newest batch of all topics; 0 as a rule."""
        return super().clock_behind_ns if self._topics else 0

    def close(self) -> Completion[None]:
        """Stop applying, and write a last mark.

        The completion fails with what kept the node from it.
        """
        return self.node.stop()

    def release(self) -> None:
        """Close all files, whatever state they are in."""
        for topic in self._topics.values():
            topic.partition.abandon()
        self._cache.close()
        self.node.replica.release()
        self._storage.release()


def _replicated(topic: Topic) -> ReplicatedPartition:
    """Return a topic's partition, which is a replicated one in a cluster."""
    assert isinstance(topic.partition, ReplicatedPartition), "all topics are replicated"
    return topic.partition
