"""A server that a data directory is compared with: its topics and bytes, over one connection."""

import json
import socket
import ssl
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

from lance_server.errors import ConfigError, PeerError
from lance_spec.bodies import decode_error, decode_topic, decode_topics
from lance_spec.checksum import Buffer
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command
from lance_spec.errors import DecodeError
from lance_spec.frames import Frame, FrameKind, FrameSplitter, encode_control
from lance_spec.limits import DEFAULT_PORT, DEFAULT_TOPIC_ID
from lance_spec.messages.lwp import (
    Authenticate,
    AuthenticateResponse,
    Fetch,
    FetchResponse,
    GetTopic,
    ListTopics,
)

_TIMEOUT: Final = 30.0
_LARGEST_ANSWER: Final = 64 * 1024 * 1024
_CHUNK: Final = 1024 * 1024


class TopicRange(NamedTuple):
    """What a peer has of a topic.

    Attributes:
        name: the topic's name.
        start: the earliest offset that can be read, in bytes.
        end: the offset after the last byte.
    """

    name: str
    start: int
    end: int


class Stretch(NamedTuple):
    """What stands at an offset of a peer's topic.

    Attributes:
        data: bytes from there on; none where there is a gap.
        next_offset: where the next bytes are.
        problem: why there is no data, or "".
    """

    data: Buffer
    next_offset: int
    problem: str = ""


class ServerPeer:
    """One blocking connection to a server.

    Args:
        url: ``lance://HOST[:PORT]``, or ``lances://`` for TLS.
        token: what it is shown, or None.
        tls_ca: a file of certificates that are believed instead of the system's.

    Raises:
        ConfigError: the URL is something else.
        PeerError: nobody answers there, or the token is refused.
    """

    def __init__(self, url: str, token: str | None = None, tls_ca: Path | None = None) -> None:
        host, port, tls = _parse(url)
        self.url = url
        self._splitter = FrameSplitter((SPECIFIED,), max_payload=_LARGEST_ANSWER)
        self._frames: deque[Frame] = deque()
        try:
            self._socket = socket.create_connection((host, port), timeout=_TIMEOUT)
        except OSError as error:
            raise PeerError(f"{url} does not answer: {error}") from error
        try:
            if tls:
                context = ssl.create_default_context(cafile=tls_ca)
                self._socket = context.wrap_socket(self._socket, server_hostname=host)
            if token is not None:
                self._authenticate(token)
        except (OSError, DecodeError) as error:
            self.close()
            raise PeerError(f"{url} cannot be used: {error}") from error
        except PeerError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def topics(self) -> dict[int, TopicRange]:
        """Return what the server has of all topics, by id; the default topic is among them.

        Raises:
            PeerError: the server does not tell.
        """
        listed = self._ask(ListTopics.COMMAND, b"", Command.TOPIC_RESPONSE)
        try:
            ids = [DEFAULT_TOPIC_ID, *(each.id for each in decode_topics(listed.payload))]
            return {each: self._range_of(each) for each in ids}
        except DecodeError as error:
            raise PeerError(f"{self.url} sent an invalid answer: {error}") from error

    def _range_of(self, topic_id: int) -> TopicRange:
        request = GetTopic(topic_id).encode()
        info = decode_topic(self._ask(GetTopic.COMMAND, request, Command.TOPIC_RESPONSE).payload)
        if info.start_offset is None or info.end_offset is None:
            raise PeerError(f"{self.url} does not report where its topics begin and end")
        return TopicRange(info.name, info.start_offset, info.end_offset)

    def read(self, topic_id: int, offset: int, size: int) -> Stretch:
        """Return what stands at an offset, at most so many bytes.

        Raises:
            PeerError: the server does not tell, or has no more than that offset.
        """
        request = Fetch(topic_id, offset, min(size, _CHUNK)).encode()
        frame = self._exchange(Command.FETCH, request)
        if frame.command == Command.FETCH_RESPONSE:
            try:
                answer = FetchResponse.decode(frame.payload)
            except DecodeError as error:
                raise PeerError(f"{self.url} sent an invalid answer: {error}") from error
            following, found = answer.next_offset, Stretch(answer.data, answer.next_offset)
        else:
            body = decode_error(frame.payload)
            told = body.details.get("next_offset", body.details.get("earliest"))
            following = told if isinstance(told, int) else offset
            found = Stretch(b"", following, body.message)
        if following <= offset:
            what = found.problem or "its log ends there now"
            raise PeerError(f"{self.url}, topic {topic_id}, offset {offset}: {what}")
        return found

    def _authenticate(self, token: str) -> None:
        frame = self._ask(
            Authenticate.COMMAND,
            Authenticate(token.encode()).encode(),
            Command.AUTHENTICATE_RESPONSE,
        )
        answer = AuthenticateResponse.decode(frame.payload)
        if not answer.ok:
            raise PeerError(
                f"{self.url} refused the token: {bytes(answer.message).decode(errors='replace')}"
            )

    def _ask(self, command: int, payload: Buffer, wanted: Command) -> Frame:
        frame = self._exchange(command, payload)
        if frame.command != wanted:
            told = decode_error(frame.payload).message
            raise PeerError(f"{self.url} refused: {told}")
        return frame

    def _exchange(self, command: int, payload: Buffer) -> Frame:
        """Send a command and return the control frame that answers it."""
        try:
            self._socket.sendall(encode_control(SPECIFIED, command, payload))
            while True:
                frame = self._receive()
                if frame.kind is FrameKind.CONTROL:
                    return frame
        except OSError as error:
            raise PeerError(f"{self.url} was lost: {error}") from error

    def _receive(self) -> Frame:
        while not self._frames:
            data = self._socket.recv(_CHUNK)
            if not data:
                raise ConnectionError("it closed the connection")
            self._frames.extend(self._splitter.receive_data(data))
            if self._splitter.fault is not None and not self._frames:
                raise ConnectionError(f"it sent no frame: {self._splitter.fault}")
        return self._frames.popleft()


def _parse(url: str) -> tuple[str, int, bool]:
    """Return host, port, and whether TLS is spoken."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{json.dumps(url)} is not a URL: {error}") from error
    is_plain = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in {"lance", "lances"} or not parts.hostname or not is_plain:
        raise ConfigError(
            f"{json.dumps(url)} names no server: write lance://HOST:PORT, or lances:// for TLS; a "
            "token goes to --token"
        )
    return parts.hostname, port or DEFAULT_PORT, parts.scheme == "lances"
