"""A clone of what answers as no node does: it is refused, in time and with little memory."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socket import SHUT_WR, create_server
from typing import Final

import pytest

from lance_server.cluster.copies.http_source import HttpSource
from lance_server.errors import PeerError
from lance_spec.checksum import CRC32C

SIZE: Final = 1000
PIECE: Final = b"." * SIZE
GOOD: Final = f"x-crc32c: {CRC32C(PIECE)}\r\n"
ENDLESS: Final = 1 << 40
_PATIENT: Final = 60.0


@contextmanager
def answering(*parts: bytes, timeout: float = _PATIENT, again: int = 1) -> Iterator[HttpSource]:
    """Yield a source whose peer answers each connection with parts, the last one for ever."""
    over = threading.Event()
    with create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            for _ in range(again):
                connection, _ = listening.accept()
                with connection:
                    try:
                        connection.recv(65536)
                        for part in parts:
                            connection.sendall(part)
                        while parts and parts[-1] == b"x" and not over.wait(0.001):
                            connection.sendall(b"x" * 50)
                        if timeout == _PATIENT:
                            connection.shutdown(SHUT_WR)
                        while connection.recv(65536):  # unread requests would reset it
                            pass
                    except OSError:
                        pass

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            with HttpSource(f"127.0.0.1:{listening.getsockname()[1]}", timeout=timeout) as source:
                yield source
        finally:
            over.set()
            thread.join()


def head(length: int | None, more: str = "", status: int = 200) -> bytes:
    """Return the beginning of an answer."""
    told = "" if length is None else f"content-length: {length}\r\n"
    return f"HTTP/1.1 {status} Said\r\n{told}{more}\r\n".encode()


def ask_piece(source: HttpSource) -> bytes | None:
    """Ask for a piece that is not there yet."""
    return source.piece("ab", "cluster/file", 0, SIZE, None)


def test_a_piece_of_the_right_size_is_taken() -> None:
    """Whatever else comes is judged against this."""
    with answering(head(SIZE, GOOD), PIECE) as source:
        assert ask_piece(source) == PIECE


@pytest.mark.parametrize(
    "parts",
    [
        (head(ENDLESS, GOOD), PIECE * 5),
        (head(None, GOOD), PIECE + b"m"),
        (head(ENDLESS, GOOD), PIECE, b"x"),
        (head(None, "transfer-encoding: chunked\r\n"), b"ffffffff\r\n", PIECE * 5),
    ],
    ids=["announced", "until the end", "without an end", "in chunks"],
)
def test_more_than_was_asked_for_is_refused(parts: tuple[bytes, ...]) -> None:
    """However it is announced; no more than the piece is kept of it."""
    with (
        answering(*parts) as source,
        pytest.raises(PeerError, match=f"sends more than the {SIZE} bytes that were asked for"),
    ):
        ask_piece(source)


def test_less_than_was_asked_for_is_asked_for_again() -> None:
    """Three times; then the command has to be repeated."""
    parts = (head(SIZE, "connection: close\r\n" + GOOD), PIECE[1:])
    with (
        answering(*parts, again=3) as source,
        pytest.raises(PeerError, match="arrives damaged at 0; repeat the command"),
    ):
        ask_piece(source)


def test_nothing_is_no_piece_that_is_not_there() -> None:
    """A node may say only of a known piece that it is equal."""
    parts = (head(None, "connection: close\r\n", 204),)
    with (
        answering(*parts, again=3) as source,
        pytest.raises(PeerError, match="arrives damaged"),
    ):
        ask_piece(source)


@pytest.mark.parametrize(
    "parts",
    [(), (head(SIZE),), (head(SIZE), b"some"), (b"HTTP/1.1 200 Said\r\nx-slow: ", b"x")],
    ids=["nothing", "a head", "some", "a head without an end"],
)
def test_an_answer_that_stalls_is_given_up(parts: tuple[bytes, ...]) -> None:
    """In all it may take so long, though bytes come all the time."""
    with answering(*parts, timeout=0.2) as source, pytest.raises(PeerError, match="not answer"):
        ask_piece(source)


def test_a_refusal_without_an_end_is_told_shortly() -> None:
    """The beginning of what it says."""
    with (
        answering(head(None, "", 400), b"no" * 5000) as source,
        pytest.raises(PeerError, match=r"refused: (no)+$") as refused,
    ):
        source.end("ab")
    assert len(str(refused.value)) < 5000


def test_a_token_that_is_missing_is_asked_for() -> None:
    """The option is named."""
    with (
        answering(head(0, "", 401)) as source,
        pytest.raises(PeerError, match=r"needs a valid token: give one of the node's with --token"),
    ):
        source.take()


@pytest.mark.parametrize(
    "listing",
    [
        {"id": "a/b", "identity": "log", "files": []},
        {"id": "ab", "identity": "log", "files": [["cluster/a", -1]]},
        {"id": "ab", "identity": "log", "files": [["cluster/a", 1 << 60]]},
        {"id": "ab", "identity": "log", "files": [["cluster/a", "1"]]},
        {"id": "ab", "files": []},
        [],
    ],
)
def test_a_list_that_no_node_sends_is_refused(listing: object) -> None:
    """Before anything of it is asked for."""
    body = json.dumps(listing).encode()
    with (
        answering(head(len(body)), body) as source,
        pytest.raises(PeerError, match="sent no valid copy"),
    ):
        source.take()


def test_a_list_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the size of the longest one."""
    monkeypatch.setattr("lance_server.cluster.copies.http_source._MAX_LISTING", 1000)
    with (
        answering(head(ENDLESS), b"[" * 1001) as source,
        pytest.raises(PeerError, match="sends more than the 1000 bytes"),
    ):
        source.take()
