"""What peers of the whole server do that behave."""

from typing import Final

from tests.simulation.model import TopicModel, ViolationError, make_batch
from tests.simulation.server.network import Link
from tests.simulation.server.peers import LwpPeer, Peer, batches_in
from tests.simulation.server.server import LWP_PORT
from tests.simulation.server.story import ServerStory
from tests.simulation.world import EPOCH_NS

_AGAIN: Final = (0.01, 0.3)
"""Seconds after which a peer that behaves connects again."""
_BEAT: Final = 1.0
"""Seconds between two keepalives of a peer that behaves."""


class GoodPeers(ServerStory):
    """Connects those who behave, and has them ask for things."""

    def _connect(self, peer: Peer, port: int = LWP_PORT) -> None:
        """Connect a peer, if there is somebody to connect to."""
        if self.life is None or peer.link is not None:
            return
        link = Link(self.world, self.plan.settings.limits.room)
        peer.connect(link)
        life, name = self.life, peer.name
        self.world.call_later(1e-4, lambda: life.accept(name, port, link))
        if peer in self.good:
            self._beat(peer, link)
            self._go_on(peer)

    def _beat(self, peer: Peer, link: Link) -> None:
        """Have a peer that behaves show that it is alive."""
        if peer.link is link and isinstance(peer, LwpPeer):
            if not peer.owed:
                peer.ask_alive()
            self.world.call_later(_BEAT, lambda: self._beat(peer, link))

    def _go_on(self, peer: Peer) -> None:
        """Have a peer that behaves send again what was never answered."""
        if not isinstance(peer, LwpPeer):
            return
        model = self._mine.get(peer)
        if model is None:
            model = self._mine[peer] = TopicModel(f"topic-{peer.number}")
        if model.id is None:
            peer.create(model)
            return
        for owner, batch in list(peer.unanswered.values()):
            batch.resent = True
            peer.append(owner, batch)

    def lost(self, peer: Peer) -> None:
        """Have a peer that behaves connect again."""
        if peer in self.good and not self._calm:
            pause = self.world.random.uniform(*_AGAIN)
            self.world.call_later(pause, lambda: self._connect(peer))

    def created(self, model: TopicModel, topic_id: int) -> None:
        """Note that a topic was created."""
        if topic_id in self.topics:
            self.trouble.append(ViolationError(f"topic id {topic_id} was given twice"))
        model.id, model.present = topic_id, True
        self.topics[topic_id] = model

    def committed(self, model: TopicModel, consumer: int, offset: int) -> None:
        """Note that a commit was acknowledged."""
        known = model.commits[consumer]
        model.commits[consumer] = known[known.index(offset) :] if offset in known else known

    def refused(self, peer: Peer, message: str) -> None:
        """Note that a request was refused: at the end nobody who behaves is."""
        if self._calm and peer in self.good:
            self.trouble.append(ViolationError(f"{peer.name} is refused: {message}"))

    def judge_data(self, model: TopicModel, start: int, data: bytes) -> None:
        """Judge what was read, and note what stands where, for ever."""
        for place, batch in batches_in(model, start, data).items():
            known = model.taken.setdefault(place, batch.number)
            if known != batch.number or batch.place not in {None, place}:
                raise ViolationError(
                    f"{model.name}: at {place} stands {batch}; before it was batch {known}"
                )
            batch.place, batch.seen = place, True

    def may_be_hole(self, model: TopicModel, first: int, behind: int) -> bool:
        """Whether a crash may have retired a range of offsets: nothing was ever seen there."""
        return self.result.crashes > 0 and not any(first <= at < behind for at in model.taken)

    def do_append(self, peer: int, count: int, size: int) -> None:
        """Have a peer send batches."""
        client = self.good[peer]
        model = self._mine.get(client)
        if model is None or model.id is None or client.link is None:
            return
        for _ in range(count):
            self._append(client, model, size)

    def _append(self, client: LwpPeer, model: TopicModel, size: int) -> None:
        self._number += 1
        batch = make_batch(self._number, 1, size, self.world.now)
        batch.resent = model.id == 0  # many write there, in no order
        model.batches[batch.number] = batch
        client.append(model, batch)

    def do_fetch(self, peer: int, share: float, size: int) -> None:
        """Have a peer fetch what stands somewhere."""
        client, model = self.good[peer], self._some_topic(share)
        places = [0, *model.taken]
        client.fetch(model, places[int(share * len(places))], size)

    def _some_topic(self, share: float) -> TopicModel:
        topics = list(self.topics.values())
        return topics[int(share * 7919) % len(topics)]

    def do_request(self, peer: int, kind: str) -> None:
        """Have a peer ask for something."""
        self._ask(self.good[peer], kind, 0)

    def _ask(self, client: LwpPeer, kind: str, index: int) -> None:
        model = self._some_topic(self.world.random.random())
        if kind == "fetch":
            client.fetch(model, next(iter(model.taken), 0), 2000)
        elif kind == "append":
            self._append(client, self.topics[0], 40)
        elif kind == "get":
            client.get_topic(model)
        elif kind == "list":
            client.list_topics()
        elif kind == "commit":
            places = [0, *model.taken]
            client.commit(model, places[index % len(places)])
        elif kind == "seek":
            client.seek(model, EPOCH_NS + round(self.world.random.random() * self.world.now * 1e9))
        elif kind == "token":
            client.authenticate()
        elif kind == "create":
            client.create(TopicModel(f"t-{client.number}-{index}"))
        elif kind == "subscribe":
            client.subscribe(model, 100)
        else:
            client.ask_alive()
