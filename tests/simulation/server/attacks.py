"""What peers of the whole server do that do not behave."""

from tests.simulation.server.clients import GoodPeers
from tests.simulation.server.framed import KINDS
from tests.simulation.server.peers import LwpPeer, Peer


class Attacks(GoodPeers):
    """Peers that pipeline without reading, say nothing, send nonsense, or vanish."""

    def _new_attacker(self) -> LwpPeer:
        peer = LwpPeer(self, 10 + len(self.attackers))
        self.attackers.append(peer)
        self._connect(peer)
        return peer

    def do_pipeline(self, listener: str, count: int, *, reads: bool) -> None:
        """Have a new peer of another listener send many requests at once."""
        if self.life is None:
            return
        peer = KINDS[listener](self, 10 + len(self.attackers))
        self.attackers.append(peer)
        peer.reads = reads
        self.result.floods += 1
        self._connect(peer, self.life.port_of(listener))
        if peer.link is not None:
            peer.corked = True
            peer.ask(count)
            peer.uncork()

    def do_flood(self, kind: str, count: int, *, reads: bool, shut: bool) -> None:
        """Have a new peer send many requests at once, and perhaps end its side after them."""
        peer = self._new_attacker()
        peer.reads = reads
        self.result.floods += 1
        if kind == "nonsense":
            peer.babble(self.world.random.randbytes(count))
            return
        peer.corked = True
        if kind == "waiting":  # those after the first have to wait
            self._ask(peer, "seek", 0)
        plain = {"part": "get", "waiting": "fetch"}.get(kind, kind)
        for index in range(count):
            self._ask(peer, plain, index)
        if kind == "part":
            frame = peer.raw_ingest(bytes(1000), 1)
            peer.babble(frame[: self.world.random.randrange(1, len(frame))])
        peer.uncork()
        if shut:
            self._end_peer(peer, "shut")

    def do_crowd(self, count: int) -> None:
        """Have new peers connect that say nothing, or little."""
        for _ in range(count):
            peer = self._new_attacker()
            if self.world.random.random() < 0.5:
                peer.list_topics()

    def do_subscribe(self, size: int, topic: int) -> None:
        """Have a new peer subscribe."""
        model = self._mine.get(self.good[topic])
        if model is not None and model.id is not None:
            self._new_attacker().subscribe(model, size)

    def _attacker(self, back: int) -> Peer | None:
        there = [peer for peer in self.attackers if peer.link is not None]
        return there[-1 - back % len(there)] if there else None

    def do_reader(self, back: int, reads: bool) -> None:
        """Have a peer stop reading, or begin again."""
        peer = self._attacker(back)
        if peer is not None:
            peer.reads = reads
            if reads:
                peer.read_again()

    def do_fate(self, back: int, fate: str) -> None:
        """Let a connection end in some way, as its peer does it."""
        peer = self._attacker(back)
        if peer is not None:
            self._end_peer(peer, fate)

    def _end_peer(self, peer: Peer, fate: str) -> None:
        link = peer.link
        if link is None or fate == "stay":
            return
        if fate == "shut":
            peer.end()
            return
        {"reset": link.reset, "leave": link.close, "vanish": link.vanish}[fate]()
        peer.lose()
