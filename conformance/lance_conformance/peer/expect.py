"""What may come: events, and the outcomes a case allows.

An expectation is a set of alternatives. Each says in words what it is and names the clause or the
ambiguity it rests on; each judges an event and, where it is nearly right, says in which field not.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lance_conformance.dialect import Dialect
from lance_conformance.wire.control import read_json, read_offset
from lance_conformance.wire.frame import Command, Frame, Kind, Violation, command_name

ANOTHER_KIND = "another-kind"
"""The judgement of an event that is not even of the kind an alternative describes."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The target ended the connection; a reset is as good as a FIN."""

    how: Literal["fin", "rst"]

    def __str__(self) -> str:
        return f"the connection closed ({self.how.upper()})"


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing came until the deadline of the case."""

    seconds: float

    def __str__(self) -> str:
        return f"nothing within {self.seconds * 1000:.0f} ms"


Event = Frame | Violation | Closed | Silence
Judge = Callable[[Event], str | None]


@dataclass(frozen=True, slots=True)
class Allowed:
    """One allowed outcome.

    Attributes:
        what: The outcome in words.
        cite: The clause (``5.8/max-bytes``) or ambiguity (``AMB-18``) it rests on.
        judge: ``None`` when the event is this outcome, `ANOTHER_KIND` when it is nothing like it,
            otherwise the reason code of the part that is wrong.
    """

    what: str
    cite: str
    judge: Judge

    def __str__(self) -> str:
        return f"{self.what} [{self.cite}]"


def _frames(kind: Kind, judge: Callable[[Frame], str | None]) -> Judge:
    def judge_event(event: Event) -> str | None:
        return judge(event) if isinstance(event, Frame) and event.kind is kind else ANOTHER_KIND

    return judge_event


def ack(batch_id: int, cite: str = "4.2/batch-id") -> Allowed:
    """An Ack of this batch."""
    return Allowed(
        f"Ack of batch {batch_id:#x}",
        cite,
        _frames(Kind.ACK, lambda f: None if f.batch_id == batch_id else "field:batch_id"),
    )


def keepalive(cite: str = "4.3/answer") -> Allowed:
    """A Keepalive."""
    return Allowed("Keepalive", cite, _frames(Kind.KEEPALIVE, lambda _: None))


def closed(cite: str) -> Allowed:
    """The end of the connection, by FIN or by RST."""
    return Allowed(
        "the connection closed without a further frame",
        cite,
        lambda event: None if isinstance(event, Closed) else ANOTHER_KIND,
    )


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
        _frames(Kind.CONTROL, lambda f: None if f.batch_id == command else ANOTHER_KIND),
    )


def topic_response(cite: str) -> Allowed:
    """A TopicResponse whose payload is a JSON object."""

    def judge(frame: Frame) -> str | None:
        if frame.batch_id != Command.TOPIC_RESPONSE:
            return ANOTHER_KIND
        return "body:not-json" if read_json(frame.payload) is None else None

    return Allowed("TopicResponse with a JSON object", cite, _frames(Kind.CONTROL, judge))


def catching_up(offset: int) -> Allowed:
    """A CatchingUp frame with the end of the log."""

    def judge(frame: Frame) -> str | None:
        if frame.batch_id != Command.CATCHING_UP:
            return ANOTHER_KIND
        return None if read_offset(frame.payload) == offset else "field:current_max_offset"

    what = f"CatchingUp (0x12) with offset {offset}"
    return Allowed(what, "AMB-18", _frames(Kind.CONTROL, judge))


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


def _errors(judge: Callable[[Frame], str | None]) -> Judge:
    def judge_frame(frame: Frame) -> str | None:
        return judge(frame) if frame.batch_id == Command.ERROR_RESPONSE else ANOTHER_KIND

    return _frames(Kind.CONTROL, judge_frame)


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
