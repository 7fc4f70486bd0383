"""One connection of a coordinator: frames in, answers out, in order."""

import hmac
import logging
from dataclasses import dataclass
from typing import Final

import anyio
from anyio.abc import ByteStream

from lance_sdk.groups._coordinator.service import CoordinatorLink, GroupService
from lance_sdk.groups._coordinator.text_protocol import TextService
from lance_spec.bodies import encode_json
from lance_spec.dialect import DIALECTS, Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.errors import DecodeError
from lance_spec.frames import Frame, FrameKind, FrameSplitter, encode_control, encode_keepalive
from lance_spec.limits import MAGIC
from lance_spec.messages.lwp import Authenticate, AuthenticateResponse

_log = logging.getLogger("lance_sdk.groups")

_CHUNK: Final = 64 * 1024
SILENCE: Final = 60.0
"""Seconds after which a connection that says nothing is closed; members say something each 10 s."""
WRITE_TIMEOUT: Final = 10.0
"""Seconds that a peer may take to accept an answer."""


@dataclass(frozen=True, slots=True)
class CoordinatorContext:
    """What all connections of a coordinator share.

    Attributes:
        service: the groups.
        text: the published text protocol, where it is spoken.
        token: what a peer has to authenticate with, or None.
        silence: seconds after which a silent connection is closed.
        write_timeout: seconds that a peer may take to accept an answer.
    """

    service: GroupService
    text: TextService | None
    token: str | None
    silence: float = SILENCE
    write_timeout: float = WRITE_TIMEOUT


class PeerConnection:
    """Speaks with one peer until it goes away, breaks LWP, or is silent for too long.

    Args:
        shared: what all connections share.
        stream: the connection.
        link: stands for it in the groups.
    """

    def __init__(
        self, shared: CoordinatorContext, stream: ByteStream, link: CoordinatorLink
    ) -> None:
        self._shared = shared
        self._stream = stream
        self._link = link
        self._splitter = FrameSplitter(
            tuple(DIALECTS.values()), max_payload=shared.service.limits.request_bytes
        )
        self._trusted = shared.token is None

    def __repr__(self) -> str:
        return f"<PeerConnection {self._link.peer} {self._splitter!r}>"

    async def run(self) -> None:
        """Speak."""
        try:
            await self._converse()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        except TimeoutError:
            _log.info("%s was silent or did not take its answer in time", self._link.peer)
        except Exception:  # noqa: BLE001 - a fault in one conversation must not end the others
            _log.exception("the conversation with %s ended by an error", self._link.peer)
        finally:
            self._link.open = False

    async def _converse(self) -> None:
        data = await self._receive()
        if self._shared.text is not None and not MAGIC.startswith(data[: len(MAGIC)]):
            await self._converse_in_text(self._shared.text, data)
            return
        while self._splitter.fault is None:
            for frame in self._splitter.receive_data(data):
                if not await self._take(frame):
                    return
            if self._splitter.fault is None:
                data = await self._receive()
        _log.warning("%s broke LWP: %s", self._link.peer, self._splitter.fault)

    async def _converse_in_text(self, text: TextService, data: bytes) -> None:
        while True:
            await self._send(await text.answer(data, self._link))
            data = await self._receive()

    async def _receive(self) -> bytes:
        with anyio.fail_after(self._shared.silence):
            return await self._stream.receive(_CHUNK)

    async def _send(self, data: bytes) -> None:
        with anyio.fail_after(self._shared.write_timeout):
            await self._stream.send(data)

    async def _take(self, frame: Frame) -> bool:
        """Answer a frame; return whether to go on."""
        dialect = self._splitter.dialect
        assert dialect is not None, "a frame proved it"
        if frame.kind is FrameKind.KEEPALIVE:
            await self._send(encode_keepalive(dialect))
            return True
        if frame.kind is not FrameKind.CONTROL:
            message = "a coordinator of groups takes control frames only"
            await self._send(_error(dialect, ErrorCode.INVALID_PAYLOAD, message))
            return False
        if frame.batch_id == Command.AUTHENTICATE:
            return await self._authenticate(frame, dialect)
        if not self._trusted:
            message = "authenticate first"
            await self._send(_error(dialect, ErrorCode.AUTHENTICATION_REQUIRED, message))
            return True
        await self._send(await self._answer(frame, dialect))
        return True

    async def _answer(self, frame: Frame, dialect: Dialect) -> bytes:
        payload = bytes(frame.payload)  # the view does not outlive the next read
        answer = await self._shared.service.answer(frame.batch_id, payload, self._link)
        if answer is None:
            name = getattr(frame.command, "name", f"{frame.batch_id:#x}")
            message = f"a coordinator of groups does not answer {name}"
            return _error(dialect, ErrorCode.INVALID_PAYLOAD, message)
        return encode_control(dialect, *answer)

    async def _authenticate(self, frame: Frame, dialect: Dialect) -> bool:
        try:
            token = Authenticate.decode(frame.payload).token
        except DecodeError as error:
            await self._send(_error(dialect, ErrorCode.INVALID_PAYLOAD, str(error)))
            return False
        expected = (self._shared.token or "").encode()
        self._trusted = self._shared.token is None or hmac.compare_digest(bytes(token), expected)
        message = b"" if self._trusted else b"wrong token"
        answer = AuthenticateResponse(ok=self._trusted, message=message)
        code = Command.AUTHENTICATE_RESPONSE
        await self._send(encode_control(dialect, code, answer.encode()))
        return self._trusted


def _error(dialect: Dialect, code: ErrorCode, message: str) -> bytes:
    body = {"code": int(code), "message": message, "details": {}}
    return encode_control(dialect, Command.ERROR_RESPONSE, encode_json(body))
