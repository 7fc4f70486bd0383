"""Judges the result of an operation."""

import base64
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from lance_conformance.client.operations import KINDS, Op, encoded
from lance_conformance.client.scripted.model import trigger_of
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.server import ScriptedServer
from lance_conformance.engine.failures import Blocked, Failure
from lance_conformance.wire.tlv import RECORD_HEADER, boundaries

Result = Mapping[str, Any]
LONGEST_TEXT = 300


def read(op: Op, response: Mapping[str, Any]) -> Result:
    """Take a driver's answer apart.

    Raises:
        Blocked: The driver does not keep to the protocol; that is not the client's fault.
    """
    if isinstance(response.get("ok"), Mapping):
        return {"ok": response["ok"]}
    error = response.get("error")
    if isinstance(error, Mapping) and error.get("kind") in KINDS and "text" in error:
        return {"error": error}
    raise Blocked(
        "driver-protocol",
        f"the driver answered {op} with {str(response)[:LONGEST_TEXT]}; expected an object with "
        f"ok, unsupported or error, which has text and a kind: one of {', '.join(KINDS)}",
    )


def judge(op: Op, result: Result, server: ScriptedServer, answered: int) -> None:
    """Judge the outcome of one operation.

    Args:
        op: What was asked for.
        result: What came of it.
        server: What the server knows.
        answered: How many requests had been answered rightly when it began.

    Raises:
        Failure: It may not be.
    """
    if "error" in result:
        _judge_error(op, result["error"], server)
    elif not op.want.ok:
        raise _failure("accepted", op, "success", server)
    else:
        _judge_success(op, result["ok"], server, answered)


def _failure(
    reason: str, op: Op, received: str, server: ScriptedServer, *, late: bool = False
) -> Failure:
    return Failure(
        reason,
        f"{op}: expected {op.want}; got {received}",
        expected=(f"{op}: {op.want}",),
        received=received,
        connection=server.transcript.last_connection(),
        timing=late or server.ran_out or None,
    )


_OUT_OF_TIME = frozenset({"timeout", "redirect", "retriable"})
"""Kinds of errors that a client tells whose time ran out: it may tell what it last heard."""


def _may_be_late(kind: str, server: ScriptedServer) -> bool:
    """Whether an error may come of too little time: the client may also have hung up over it."""
    return kind in _OUT_OF_TIME or (kind == "closed" and server.hung_up)


def _judge_error(op: Op, error: Mapping[str, Any], server: ScriptedServer) -> None:
    kind, text = error["kind"], str(error["text"])[:LONGEST_TEXT]
    told = f"an error of kind {kind}: {text}"
    if not op.want.error:
        raise _failure("failed", op, told, server, late=_may_be_late(kind, server))
    # Without a connection, because connect told it: what connect told is the reason.
    reason = server.unconnected if kind == "closed" and server.unconnected else kind
    if op.want.kinds and not {kind, reason} & set(op.want.kinds):
        raise _failure(f"kind:{kind}", op, told, server, late=kind == "timeout")
    server.ran_out |= kind == "timeout"


def _judge_success(op: Op, ok: Mapping[str, Any], server: ScriptedServer, answered: int) -> None:
    honest = _HONEST.get(op.name)
    wrong = honest(op, ok, server, server.answered[answered:]) if honest else ""
    if wrong:
        raise _failure("believed", op, f"success, although {wrong}", server)
    for name, value in op.want.result.items():
        found = _found(ok, name)
        if found != value:
            told = f"{name} {str(found)[:LONGEST_TEXT]}, must be {str(value)[:LONGEST_TEXT]}"
            raise _failure(f"result:{name}", op, told, server, late=_ran_out(ok))


def _ran_out(ok: Result) -> bool:
    """Whether a flush tells of batches that failed for lack of time."""
    failed = ok.get("failed")
    told = failed if isinstance(failed, list) else []
    return any(isinstance(each, Mapping) and each.get("kind") == "timeout" for each in told)


def _found(ok: Result, name: str) -> object:
    """A field of a result, or the length of one (``count:FIELD``)."""
    if not name.startswith("count:"):
        return ok.get(name)
    value = ok.get(name.removeprefix("count:"))
    return len(value) if isinstance(value, list) else value


def records_of(result: Result) -> list[Mapping[str, Any]]:
    """The records that an operation has read."""
    records = result.get("ok", {}).get("records", [])
    return (
        [each for each in records if isinstance(each, Mapping)] if isinstance(records, list) else []
    )


def batch_of(op: Op) -> bytes:
    """The records of an operation as they stand in a payload."""
    parts = []
    for each in op.arguments["records"]:
        value = decoded(each["value"])
        parts.append(bytes([each["type"]]) + len(value).to_bytes(4, "little") + value)
    return b"".join(parts)


def decoded(text: object) -> bytes:
    """Bytes as drivers give them; no bytes for a value that is not Base64 text."""
    try:
        return base64.b64decode(str(text), validate=True)
    except ValueError:
        return b""


Answered = list[ReceivedFrame]


def _sent(op: Op, _ok: Result, _server: ScriptedServer, answered: Answered) -> str:
    acked = b"".join(each.opened.payload for each in answered if _is(each, "ingest"))
    return "" if batch_of(op) in acked else "no right Ack of this batch was sent"


def _is(received: ReceivedFrame, what: str) -> bool:
    return trigger_of(received.frame) == what


def _flushed(_op: Op, ok: Result, server: ScriptedServer, _answered: Answered) -> str:
    acked, failed = ok.get("acked"), ok.get("failed")
    if not isinstance(acked, list) or not isinstance(failed, list):
        raise Blocked("driver-protocol", "the driver's flush tells no lists of acked and failed")
    payloads = {each.opened.payload for each in server.answered if _is(each, "ingest")}
    records = sum(len(boundaries(payload)) - 1 for payload in payloads)
    if len(acked) > records:
        return f"{len(acked)} batches are said to be acknowledged, and Acks of {records} were sent"
    sent = b"".join(payloads)
    told = {str(each) for each in acked}
    right = {ticket for ticket, batch in server.tickets if batch in sent}
    wrong = sorted(told & {ticket for ticket, _ in server.tickets} - right)
    if wrong:
        return f"batch {wrong[0]} is said to be acknowledged, and no Ack of it was sent"
    lost = len(server.tickets) - len(acked) - len(failed)
    return f"{lost} batches have neither been acknowledged nor failed" if lost else ""


def _read_records(_op: Op, ok: Result, server: ScriptedServer, _answered: Answered) -> str:
    records = ok.get("records")
    if not isinstance(records, list):
        raise Blocked("driver-protocol", "the driver's records are not a list")
    log = server.model.log
    starts = boundaries(log)
    held = {
        (log[start], encoded(log[start + RECORD_HEADER : end]))
        for start, end in itertools.pairwise(starts)
    }
    alien = [each for each in records if (each.get("type"), each.get("value")) not in held]
    return f"the topic holds no such record: {str(alien[0])[:100]}" if alien else ""


def _fetched(op: Op, ok: Result, server: ScriptedServer, answered: Answered) -> str:
    if not any(trigger_of(each.frame) in ("fetch", "subscribe") for each in answered):
        return "no right FetchResponse was sent"
    return _read_records(op, ok, server, answered)


def _needs(*triggers: str) -> Callable[[Op, Result, ScriptedServer, Answered], str]:
    def honest(_op: Op, _ok: Result, _server: ScriptedServer, answered: Answered) -> str:
        found = any(_is(each, what) for each in answered for what in triggers)
        return "" if found else "no right answer was sent"

    return honest


_HONEST: dict[str, Callable[[Op, Result, ScriptedServer, Answered], str]] = {
    "send": _sent,
    "flush": _flushed,
    "fetch": _fetched,
    "poll": _read_records,
    "create_topic": _needs("create", "create-limited", "list"),
    "list_topics": _needs("list"),
    "get_topic": _needs("get", "list"),
    "delete_topic": _needs("delete"),
    "set_retention": _needs("retention"),
    "commit": _needs("commit"),
}
