"""A coordinator that behaves as the published one does, as far as its workers can see."""

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

MAX_READ: Final = 4096
"""Bytes; one read is one request."""


class Published:
    """Divides topics among workers whenever one joins or leaves, and at no other time.

    Args:
        topics: numbers of the topics.

    Attributes:
        workers: names of those that joined.
        generation: counted from the start of the process, kept nowhere.
        heard: every request.
        hangs_up: whether a connection is closed after each answer.
        reply: returns the bytes of an answer, or None to close; replaced by tests.
    """

    def __init__(self, topics: list[int]) -> None:
        self.topics = topics
        self.workers: list[str] = []
        self.generation = 0
        self.heard: list[str] = []
        self.hangs_up = False
        self.reply: Callable[[str], bytes | None] = lambda request: self.answer(request).encode()
        self._shares: dict[str, list[int]] = {}
        self.url = ""

    def forget(self, worker: str) -> None:
        """Take a worker for dead: a new generation, and its topics stay with nobody."""
        self.workers.remove(worker)
        del self._shares[worker]
        self.generation += 1

    def restart(self) -> None:
        """Lose everything that is only in memory."""
        self.workers.clear()
        self._shares.clear()
        self.generation = 0

    def answer(self, request: str) -> str:
        """Answer a request as Rust's ``{:?}`` prints the answer."""
        verb, _, worker = request.partition(":")
        if verb == "JOIN":
            if worker not in self.workers:
                self.workers.append(worker)
            self._divide()
            share = self._shares[worker]
            told = f"generation: {self.generation}, assignments: {share}"
            return f'JoinAccepted {{ worker_id: "{worker}", {told} }}'
        if worker not in self.workers:
            return 'Error { message: "Worker not found" }'
        if verb == "HEARTBEAT":
            return f"HeartbeatAck {{ generation: {self.generation} }}"
        if verb == "GET_ASSIGNMENTS":
            told = f"generation: {self.generation}, assignments: {self._shares[worker]}"
            return f"Assignments {{ {told} }}"
        self.workers.remove(worker)
        self._divide()
        return "LeaveAcknowledged"

    def _divide(self) -> None:
        self.generation += 1
        count = max(1, len(self.workers))
        each = -(-len(self.topics) // count)
        self._shares = {
            worker: self.topics[place * each : (place + 1) * each]
            for place, worker in enumerate(self.workers)
        }


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    published: Published
    peers: set[socket.socket]


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        self.server.peers.add(self.request)
        with suppress(ConnectionResetError):  # a member may leave with an answer unread
            self._answer_all()

    def _answer_all(self) -> None:
        while request := self.request.recv(MAX_READ):
            said = request.decode(errors="replace")
            self.server.published.heard.append(said)
            answer = self.server.published.reply(said)
            if answer is None:
                return
            self.request.sendall(answer)
            if self.server.published.hangs_up:
                return


@contextmanager
def published(topics: list[int]) -> Iterator[Published]:
    """Run one on a port of its own."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.published, server.peers = Published(topics), set()
        server.published.url = f"lance://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.published
        finally:
            server.shutdown()
            thread.join()
            for peer in server.peers:
                peer.close()
