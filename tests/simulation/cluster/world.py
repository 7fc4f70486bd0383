"""The world: nodes on disks that crash, clients that retry, and one log that all share.

A seed decides every step. Nothing runs by itself: a node's worker, its loop and its reports move
when the world says so. At the end faults stop, everything is served again, and what clients were
told is held against the files of every node.
"""

import logging
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.cluster import hosting
from tests.simulation.cluster.clients import Client, Sent
from tests.simulation.cluster.hosts import Catcher, Host, WrongError, find_batches
from tests.simulation.cluster.judge import judge
from tests.simulation.cluster.logs import NOW, SECOND, SETTINGS_OF_WORLD

from lance_server.cluster.memory import MemoryLog
from lance_server.cluster.records import encode
from lance_server.cluster.replicated_log import LogTrimmedError, StopNodeError
from lance_server.errors import DataDirError
from lance_server.log.metadata.topic_file import Retention
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import Completion
from lance_server.testing import CrashError
from lance_spec.checksum import CRC32C
from lance_spec.codec.ingest_runs import BatchMeta
from lance_spec.records import encode_record

if TYPE_CHECKING:
    from collections.abc import Callable

NODES: Final = 3
ELSEWHERE: Final = 7 << 40
"""What ids of batches begin with that nobody sends again."""
_QUIET_STEPS: Final = 4000
_LAST_TURNS: Final = 40


class World:
    """Everything there is.

    Args:
        seed: decides every step.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.seconds = 0.0
        self.shards = range(self.random.choice((1, 1, 2, 3)))
        self.log = MemoryLog("log-1", shards=len(self.shards), clock=lambda: self.now_ns)
        for shard in self.shards:
            self.log.put(shard, encode(SETTINGS_OF_WORLD.to_genesis(), 1, 0))
        self.hosts = [Host(self, number) for number in range(1, NODES + 1)]
        self.clients = [Client(nonce, 0, self.hosts[nonce % NODES]) for nonce in range(1, 4)]
        self.created: dict[str, int] = {}
        self.deleted: set[int] = set()
        self.maybe_deleted: set[int] = set()
        self.offsets: dict[tuple[int, int], int] = {}
        self.seen: dict[int, bytes] = {}
        self.late: list[tuple[int, bytes]] = []
        self.ends: dict[int, int] = {}
        self.elsewhere: dict[int, tuple[int, int]] = {}
        self.has_joined = self.is_calm = False
        self._elsewhere = count(1)
        self.linear_reads = self.left = self.forwarded = 0
        self.faults: list[str] = []
        self._handler = Catcher(self.faults)
        self._names = iter("abcdefghijklmnopqrstuvwxyz" * 4)

    @property
    def now_ns(self) -> int:
        """What a right clock shows."""
        return NOW + int(self.seconds * SECOND)

    # A run -------------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        """Live for so many steps, then end all faults and judge.

        Raises:
            WrongError: an invariant does not hold.
        """
        logger = logging.getLogger("lance_server")
        logger.addHandler(self._handler)
        try:
            for host in self.hosts:
                host.start()
            self._register()
            if len(self.shards) > 1:
                self._write_to_another_shard()
            for _ in range(steps):
                self._step()
            self._heal()
            judge(self)
        finally:
            logger.removeHandler(self._handler)

    def _register(self) -> None:
        """Let every node become a host, so that the log keeps what it lacks."""
        wanted = {
            shard: {host.number for host in self.hosts if shard in host.hosted}
            for shard in self.shards
        }
        for _ in range(_QUIET_STEPS):
            shards = [
                shard for host in self.hosts for shard in host.manager.node.replica.shards.values()
            ]
            if all(shard.state.hosts == wanted[shard.number] for shard in shards):
                self.has_joined = True
                return
            self._turn()
        raise WrongError("the nodes do not become hosts")

    def _write_to_another_shard(self) -> None:
        """Let a client write to a topic that is not in the first shard."""
        made = self.hosts[0].manager.create_topic("clients", Retention())
        for _ in range(_QUIET_STEPS):
            self._turn()
            if made.done:
                self.clients[0].topic_id = made.result().id
                return
        raise WrongError("no topic is created")

    def _step(self) -> None:
        actions: list[tuple[Callable[[], None], int]] = [
            (self._work, 40),
            (self._commit_append, 25),
            (self._report, 25),
            (self._pass_time, 12),
            (self._send, 25),
            (self._break_connection, 1),
            (self._arrive_late, 2),
            (self._crash, 1),
            (self._crash_in_work, 2),
            (self._restart, 4),
            (self._lose_disk, 1),
            (self._lag, 2),
            (self._cut_off, 2),
            (self._read, 5),
            (self._read_linearly, 10),
            (self._commit_offset, 6),
            (self._create, 8),
            (self._write_elsewhere, 10),
            (self._delete, 5),
            (self._set_retention, 1),
            (self._skew, 1),
            (lambda: hosting.rehost(self), 3),
        ]
        functions, weights = zip(*actions, strict=True)
        self.random.choices(functions, weights)[0]()
        self._check_nodes()

    def _live(self) -> Host | None:
        alive = [host for host in self.hosts if host.alive]
        return self.random.choice(alive) if alive else None

    def _check_nodes(self) -> None:
        for host in self.hosts:
            if not host.alive or host.manager.node.problem is None:
                continue
            is_late = host.is_behind() or host.is_joining()
            if is_late and isinstance(host.manager.node.problem, LogTrimmedError):
                host.crash()  # the log went on before it could tell how far it is
                host.needs_clone = True
            else:
                raise WrongError(f"node {host.number} stopped: {host.manager.node.problem!r}")
        if self.faults:
            raise WrongError(self.faults[0])

    # What the machines do ----------------------------------------------------------------------

    def _work(self) -> None:
        if host := self._live():
            host.work()

    def _commit_append(self) -> None:
        host = self._live()
        for _ in range(self.random.choice((1, 2, 4))):
            if host and host.log.pending:
                host.log.commit(self.random.choice([each.shard for each in host.log.pending]))

    def _report(self) -> None:
        host = self._live()
        for _ in range(self.random.choice((1, 2, 4))):
            if host and host.log.reports:
                host.log.report()
                host.scheduler.run_soon()

    def _pass_time(self) -> None:
        self.seconds += self.random.choice((0.01, 0.1, 0.3, 1.0, 3.0))
        for host in self.hosts:
            if host.alive and self.random.random() < 0.8:
                host.pass_time()

    def _break_connection(self) -> None:
        """All that is on its way fails; a part of it arrives nevertheless."""
        host = self._live()
        if host is None:
            return
        for shard in self.shards:
            pending = sum(each.shard == shard for each in host.log.pending)
            arrived = self.random.randrange(pending + 1)
            for number in range(pending):
                host.log.fail(applied=number < arrived, shard=shard)

    def _arrive_late(self) -> None:
        """Let the log take what a process sent before it died."""
        if self.late:
            self.log.put(*self.late.pop(0))

    def _crash(self) -> None:
        if host := self._live():
            host.crash()

    def _crash_in_work(self) -> None:
        host = self._live()
        if host is None:
            return
        host.disk.crash_after = host.disk.operations + self.random.randrange(20)
        try:
            for _ in range(6):
                host.work()
                host.pass_time()
        except CrashError:
            host.crash()
        host.disk.crash_after = None

    def _restart(self) -> None:
        for host in self.hosts:
            if not host.alive and self.random.random() < 0.7:
                self._start(host)

    def _start(self, host: Host) -> None:
        """Start a node, on the files of another one where it needs them."""
        if host.needs_clone:
            peers = [each for each in self.hosts if each.alive and not each.is_behind()]
            if peers:
                host.clone(self.random.choice(peers))
        if host.needs_clone and not host.shows_its_loss():
            return
        try:
            host.start()
        except (DataDirError, StopNodeError):
            if not (host.is_behind() or host.is_joining()):
                raise
            host.needs_clone = True
        else:
            host.needs_clone = False

    def _lose_disk(self) -> None:
        host = self._live()
        if host and not any(each.is_behind() for each in self.hosts):
            host.lose_disk()

    def _lag(self) -> None:
        if host := self._live():
            shard = self.random.choice(self.shards)
            end = self.log.end(shard)
            host.log.visible[shard] = self.random.choice((None, max(0, end - 3), end))

    def _cut_off(self) -> None:
        if host := self._live():
            host.log.reachable = self.random.random() < 0.6

    def _skew(self) -> None:
        if host := self._live():
            host.skew = self.random.choice((0, 0, SECOND // 3, -SECOND // 3, 5 * SECOND))

    # What clients do ---------------------------------------------------------------------------

    def _send(self) -> None:
        client = self.random.choice(self.clients)
        self._advance(client)
        under_way = any(sent.state == "sent" for sent in client.batches)
        if not under_way and (not client.host.alive or self.random.random() < 0.05):
            client.host = self.random.choice(self.hosts)
        if client.host.alive:
            self._send_next(client)

    def _advance(self, client: Client) -> None:
        """Look at what became of what a client sent."""
        for sent in client.batches:
            if sent.state != "sent":
                continue
            attempt = sent.attempt
            assert attempt is not None, "it was sent"
            if attempt.done and attempt.error is None:
                sent.state = "acked"
            elif (
                attempt.done
                or sent.is_cut_off
                or not client.host.alive
                or client.host.starts != sent.process
            ):
                self._fail(client)
                return

    def _fail(self, client: Client) -> None:
        """Repeat everything that is not acknowledged, at another node perhaps."""
        client.failed = True
        for sent in client.batches:
            if sent.state == "sent":
                sent.state = "new"
        client.host = self.random.choice(self.hosts)

    def _send_next(self, client: Client) -> None:
        under_way = sum(sent.state == "sent" for sent in client.batches)
        waiting = [sent for sent in client.batches if sent.state == "new"]
        if not waiting and under_way < 3:
            number = len(client.batches)
            value = bytes([client.nonce]) * self.random.choice((1, 40, 120))
            sent = Sent(number, encode_record(value + number.to_bytes(4, "little")))
            client.batches.append(sent)
            waiting = [sent]
        if waiting and under_way < 3:
            self._transmit(client, waiting[0])

    def _transmit(self, client: Client, sent: Sent) -> None:
        host = client.host
        if host.manager.find(client.topic_id) is None:
            host = hosting.forward(self, host, client.topic_id) or host
        manager = host.manager
        topic = manager.find(client.topic_id)
        if topic is None:
            return
        crc = CRC32C(sent.data)
        batch_id = client.batch_id(sent.number)
        batch = BatchMeta(
            len(sent.data), 1, batch_id, NOW + sent.number, manager.now_ns(topic), crc, 0
        )
        try:
            attempt = topic.partition.append(sent.data, batch)
        except Refusal:
            client.host = self.random.choice(self.hosts)
            self._fail(client)
            return
        sent.state, sent.process, sent.attempt, sent.via = "sent", client.host.starts, attempt, None
        if host is not client.host:
            sent.attempt, sent.via = hosting.relay(self, attempt), (host, host.starts)
            self.forwarded += 1
        attempt.wake(lambda: self._note_end(host, client, sent, attempt))

    def _note_end(self, host: Host, client: Client, sent: Sent, attempt: Completion[None]) -> None:
        if attempt.error is None:
            self._note_ack(host, client, sent)

    def _note_ack(self, host: Host, client: Client, sent: Sent) -> None:
        """What is acknowledged must be there, at the node that said so, unless it was dropped."""
        found = find_batches(host, client.topic_id).get(client.batch_id(sent.number))
        if not found:
            if not host.manager.topic(client.topic_id).partition.start_offset:
                words = f"batch {sent.number} of {client.nonce} is acknowledged and not there"
                self.faults.append(words)
            return
        self.offsets[client.nonce, sent.number] = offset = found[0][0]
        self._note_stored(client.topic_id, offset + len(sent.data))

    def _note_stored(self, topic_id: int, end: int) -> None:
        self.ends[topic_id] = max(self.ends.get(topic_id, 0), end)

    def _read(self) -> None:
        """What can be read must never change."""
        host = self._live()
        if host is None or (topic := host.manager.find(0)) is None:
            return
        for extent in host.manager.node.replica.shards[0].topics[0].extents:
            segment = extent.segment
            if not segment.size:
                continue
            raw = host.disk.peek(segment.data_path)[: segment.size]
            known = self.seen.get(segment.base_offset, b"")
            shorter = min(len(raw), len(known))
            if raw[:shorter] != known[:shorter]:
                raise WrongError(f"node {host.number} changed what was read of {segment.name}")
            if len(raw) > len(known):
                self.seen[segment.base_offset] = raw
        assert topic.partition.end_offset <= host.manager.node.replica.shards[0].topics[0].state.end

    def _read_linearly(self) -> None:
        """A linear read sees all that any node had acknowledged before it began."""
        host = self._live()
        if host is None or host.manager.find(0) is None:
            return
        known, starts = dict(self.ends), host.starts
        barrier = host.manager.read_barrier()

        def note() -> None:
            if barrier.error is not None or not host.alive or host.starts != starts:
                return
            self.linear_reads += 1
            for topic_id, least in known.items():
                if host.manager.remote_name(topic_id) is not None:
                    continue  # its host is asked
                topic = host.manager.find(topic_id)
                end = topic.partition.end_offset if topic else -1
                if end < least and topic_id not in self.maybe_deleted:
                    words = f"a linear read of {topic_id} at node {host.number} ends at {end}"
                    self.faults.append(f"{words}, {least} was acknowledged before it began")

        barrier.wake(note)

    def _commit_offset(self) -> None:
        client = self.random.choice(self.clients)
        host = client.host
        at = client.commit_at
        if at is not None and (not at[0].alive or at[0].starts != at[1]):
            client.committing = None  # whoever was asked is gone
        if client.committing is not None or not host.alive:
            return
        topic = host.manager.find(0)
        if topic is None or host.manager.node.refusal() is not None:
            return
        offset = min(client.committed + self.random.randrange(1, 50), topic.partition.end_offset)
        if offset <= client.committed:
            return
        client.committing = offset
        end = topic.consumers.commit(client.nonce, offset)

        def note() -> None:
            if end.error is None:
                client.committed = max(client.committed, offset)
            client.committing = None

        end.wake(note)
        client.commit_at = host, host.starts

    def _create(self) -> None:
        host = self._live()
        if host is None:
            return
        free = [name for name, topic_id in self.created.items() if topic_id in self.deleted]
        if free and self.random.random() < 0.6:
            name = self.random.choice(free)
        elif len(self.created) > 7:
            return
        else:
            name = next(self._names)
        try:
            made = host.manager.create_topic(name, Retention())
        except Refusal:
            return

        def note() -> None:
            if made.error is None:
                self.created[name] = topic_id = made.result().id
                self._note_stored(topic_id, 0)

        made.wake(note)

    def _write_elsewhere(self) -> None:
        """Write to a topic that was created, whoever may delete it; nobody sends it again."""
        host = self._live()
        if host is None or not self.created or host.manager.node.refusal() is not None:
            return
        topic = host.manager.find(self.random.choice(sorted(self.created.values())))
        if topic is None:
            return
        data, batch_id = encode_record(b"elsewhere"), ELSEWHERE + next(self._elsewhere)
        batch = BatchMeta(len(data), 1, batch_id, 1, self.now_ns, CRC32C(data), 0)
        end = topic.partition.append(data, batch)

        def note() -> None:
            if end.error is not None or topic.id in self.maybe_deleted:
                return
            found = find_batches(host, topic.id).get(batch_id)
            if not found:
                self.faults.append(f"batch {batch_id} of {topic.id} is acknowledged and not there")
                return
            self.elsewhere[batch_id] = topic.id, found[0][0]
            self._note_stored(topic.id, found[0][0] + len(data))

        end.wake(note)

    def _delete(self) -> None:
        host = self._live()
        if host is None or not self.created:
            return
        topic_id = self.random.choice(sorted(self.created.values()))
        try:
            gone = host.manager.delete_topic(topic_id, text="")
        except Refusal:
            return
        self.maybe_deleted.add(topic_id)
        gone.wake(lambda: self.deleted.add(topic_id) if gone.error is None else None)

    def _set_retention(self) -> None:
        host = self._live()
        if host is None or (topic := host.manager.find(0)) is None:
            return
        if host.manager.node.refusal() is not None:
            return
        retention = Retention(0, self.random.choice((0, 300, 900)))
        host.manager.set_retention(topic, retention)

    # What must hold ----------------------------------------------------------------------------

    def _heal(self) -> None:
        """End all faults, and serve everything that is still asked for."""
        while self.late:
            self._arrive_late()
        for host in self.hosts:
            host.skew = 0
            host.log.reachable = True
            host.log.visible = [None] * len(self.shards)
        for _ in range(_QUIET_STEPS):
            self._turn()
            if self._is_quiet() and self._all_live():
                break
        else:
            raise WrongError("not everything is served after the faults ended")
        self._finish_batches()

    def _turn(self) -> None:
        self.seconds += 0.3
        for host in self.hosts:
            if not host.alive:
                self._start(host)
        for host in self.hosts:
            if host.alive:
                host.log.take_all()
                host.pass_time()
                host.work()
        for client in self.clients:
            self._advance(client)
            waiting = [sent for sent in client.batches if sent.state == "new"]
            is_free = client.host.alive and not any(sent.state == "sent" for sent in client.batches)
            if waiting and is_free:
                self._transmit(client, waiting[0])
        self._check_nodes()

    def _all_live(self) -> bool:
        return all(host.alive for host in self.hosts)

    def _is_quiet(self) -> bool:
        return all(sent.state == "acked" for each in self.clients for sent in each.batches)

    def _finish_batches(self) -> None:
        """Bring every node to the same position, with a mark there."""
        self.is_calm = True
        for turns in range(_QUIET_STEPS):
            if turns >= _LAST_TURNS and self._all_live():
                break
            self._turn()
        for host in self.hosts:
            host.log.pending.clear()
        for host in self.hosts:
            replica = host.manager.node.replica
            shards = replica.shards.items()
            for _ in range(_QUIET_STEPS):
                if all(each.state.position >= self.log.end(key) for key, each in shards):
                    break
                host.work()
            else:
                raise WrongError(f"node {host.number} does not apply what the log has")
            self._check_nodes()
            for number, shard in shards:
                replica.mark(number)
                shard.index()
