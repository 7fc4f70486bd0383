"""Allowed outcomes of a case, and events.

An expectation is a set of alternatives. Each says in words what it is and names the clause or the
ambiguity it rests on; each judges an event and, where it is nearly right, says in which field not.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from lance_conformance.dialect import Dialect
from lance_conformance.engine.expectations import (
    ANOTHER_KIND,
    Allowed,
    Closed,
    Matcher,
    NoAnswer,
    Violation,
)
from lance_conformance.wire.access import read_authenticated
from lance_conformance.wire.control import read_json, read_offset
from lance_conformance.wire.frame import Command, Frame, FrameKind, command_name

Event = Frame | Violation | Closed | NoAnswer


def _frames(kind: FrameKind, judge: Callable[[Frame], str | None]) -> Matcher:
    def judge_event(event: Event) -> str | None:
        return judge(event) if isinstance(event, Frame) and event.kind is kind else ANOTHER_KIND

    return judge_event


def ack(batch_id: int, cite: str = "4.2/batch-id") -> Allowed:
    """An Ack of this batch."""
    return Allowed(
        f"Ack of batch {batch_id:#x}",
        cite,
        _frames(FrameKind.ACK, lambda f: None if f.batch_id == batch_id else "field:batch_id"),
    )


def keepalive(cite: str = "4.3/answer") -> Allowed:
    """A Keepalive."""
    return Allowed("Keepalive", cite, _frames(FrameKind.KEEPALIVE, lambda _: None))


@dataclass(frozen=True, slots=True)
class Quiet:
    """No answer at all, proven by two Keepalives that pass; it stands alone in an expectation.

    Attributes:
        cite: The clause or ambiguity it rests on.
    """

    cite: str


def answer(command: int, cite: str) -> Allowed:
    """A control frame with this command, whatever its payload."""
    return Allowed(
        f"Control {command_name(command)}",
        cite,
        _frames(FrameKind.CONTROL, lambda f: None if f.batch_id == command else ANOTHER_KIND),
    )


def let_in(cite: str = "28.2/answer") -> Allowed:
    """An AuthenticateResponse that says yes."""
    return _authenticated("that accepts the token", cite, accepted=True)


def turned_away(cite: str) -> Allowed:
    """An AuthenticateResponse that says no."""
    return _authenticated("that refuses the token", cite, accepted=False)


def _authenticated(words: str, cite: str, *, accepted: bool) -> Allowed:
    def judge(frame: Frame) -> str | None:
        if frame.batch_id != Command.AUTHENTICATE_RESPONSE:
            return ANOTHER_KIND
        said = read_authenticated(frame.payload)
        if said is None or said.ok not in (0, 1):
            return "field:ok"
        if bool(said.ok) != accepted:
            return "unauthorised-accepted" if said.ok else "authorised-refused"
        return None

    return Allowed(f"AuthenticateResponse {words}", cite, _frames(FrameKind.CONTROL, judge))


def topic_response(cite: str) -> Allowed:
    """A TopicResponse whose payload is a JSON object."""

    def judge(frame: Frame) -> str | None:
        if frame.batch_id != Command.TOPIC_RESPONSE:
            return ANOTHER_KIND
        return "body:not-json" if read_json(frame.payload) is None else None

    return Allowed("TopicResponse with a JSON object", cite, _frames(FrameKind.CONTROL, judge))


def fetched(data: bytes, header: int, cite: str) -> Allowed:
    """A FetchResponse with this data.

    Args:
        data: What it must bring, all of it and nothing else.
        header: The size of its header, 16 or 24 (AMB-05).
        cite: The clause or ambiguity.
    """

    def judge(frame: Frame) -> str | None:
        if frame.batch_id != Command.FETCH_RESPONSE:
            return ANOTHER_KIND
        return None if frame.payload[header:] == data else "data"

    what = f"FetchResponse with {len(data)} bytes of data"
    return Allowed(what, cite, _frames(FrameKind.CONTROL, judge))


def catching_up(offset: int) -> Allowed:
    """A CatchingUp frame with the end of the log."""

    def judge(frame: Frame) -> str | None:
        if frame.batch_id != Command.CATCHING_UP:
            return ANOTHER_KIND
        return None if read_offset(frame.payload) == offset else "field:current_max_offset"

    what = f"CatchingUp (0x12) with offset {offset}"
    return Allowed(what, "AMB-18", _frames(FrameKind.CONTROL, judge))


def error(codes: Collection[int], text: str, dialect: Dialect, cite: str) -> Allowed:
    """An ErrorResponse in the form the target was found to use.

    Args:
        codes: The codes of LWP section 12.2 that fit, judged where errors are JSON.
        text: What the message contains in any case, judged where errors are text.
        dialect: The dialect the target was found to speak.
        cite: The clause or ambiguity.
    """
    if dialect.errors == "json":
        names = " or ".join(f"{code:#04x}" for code in sorted(codes))
        return Allowed(
            f"ErrorResponse with code {names}", cite, _errors(lambda f: _judge_json(f, codes))
        )
    said = f" saying {text!r}" if text else ""
    return Allowed(f"ErrorResponse{said}", cite, _errors(lambda f: _judge_text(f, text)))


def _errors(judge: Callable[[Frame], str | None]) -> Matcher:
    def judge_frame(frame: Frame) -> str | None:
        return judge(frame) if frame.batch_id == Command.ERROR_RESPONSE else ANOTHER_KIND

    return _frames(FrameKind.CONTROL, judge_frame)


def _judge_json(frame: Frame, codes: Collection[int]) -> str | None:
    body = read_json(frame.payload)
    if body is None:
        return "body:not-json"
    reason = error_body_fault(body)
    if reason is not None:
        return reason
    return None if body["code"] in codes else "field:code"


def error_body_fault(body: Mapping[str, Any]) -> str | None:
    """What is wrong with the JSON of an ErrorResponse (LWP section 12.1), as a reason code."""
    code = body.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        return "field:code"
    if not isinstance(body.get("message"), str) or not body["message"]:
        return "field:message"
    return None if isinstance(body.get("details", {}), dict) else "field:details"


def _judge_text(frame: Frame, text: str) -> str | None:
    try:
        message = frame.payload.decode()
    except UnicodeDecodeError:
        return "body:not-utf8"
    return None if message and text.lower() in message.lower() else "body:text"
