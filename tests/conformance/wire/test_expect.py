"""Outcomes: each accepts what it describes and says what is wrong with what nearly fits."""

import json

import pytest

from lance_conformance.dialect import DEPLOYED, SPECIFIED
from lance_conformance.engine.expectations import (
    ANOTHER_KIND,
    Allowed,
    Closed,
    NoAnswer,
    Violation,
    closed,
)
from lance_conformance.server.expect import (
    Event,
    ack,
    catching_up,
    error,
    keepalive,
    topic_response,
)
from lance_conformance.wire.control import KEEPALIVE, control
from lance_conformance.wire.frame import Command, Flag, Frame

CITE = "12.2/topic-not-found"
NOT_FOUND_JSON = error([0x10], "not found", SPECIFIED, CITE)
NOT_FOUND_TEXT = error([0x10], "not found", DEPLOYED, CITE)


def json_error(**body: object) -> Frame:
    """An ErrorResponse with this JSON."""
    return control(Command.ERROR_RESPONSE, json.dumps(body).encode())


FITS = [
    (ack(7), Frame(flags=Flag.ACK, batch_id=7)),
    (keepalive(), KEEPALIVE),
    (closed(CITE), Closed("fin")),
    (closed(CITE), Closed("rst")),
    (topic_response(CITE), control(Command.TOPIC_RESPONSE, b"{}")),
    (catching_up(9), control(Command.CATCHING_UP, (9).to_bytes(8, "little"))),
    (NOT_FOUND_JSON, json_error(code=16, message="Topic 5 not found")),
    (NOT_FOUND_TEXT, control(Command.ERROR_RESPONSE, b"Configuration error: Topic 5 not found")),
]


@pytest.mark.parametrize(("allowed", "event"), FITS)
def test_an_outcome_accepts_what_it_describes(allowed: Allowed, event: Event) -> None:
    """A reset is as good as a FIN, and errors are judged in the form of the dialect."""
    assert allowed.judge(event) is None


@pytest.mark.parametrize(
    ("allowed", "event", "reason"),
    [
        (ack(7), Frame(flags=Flag.ACK, batch_id=8), "field:batch_id"),
        (topic_response(CITE), control(Command.TOPIC_RESPONSE, b"[]"), "body:not-json"),
        (catching_up(9), control(Command.CATCHING_UP, bytes(8)), "field:current_max_offset"),
        (NOT_FOUND_JSON, json_error(code=1, message="no"), "field:code"),
        (NOT_FOUND_JSON, json_error(code="16", message="no"), "field:code"),
        (NOT_FOUND_JSON, json_error(code=True, message="no"), "field:code"),
        (NOT_FOUND_JSON, json_error(code=16), "field:message"),
        (NOT_FOUND_JSON, json_error(code=16, message="no", details=7), "field:details"),
        (NOT_FOUND_JSON, control(Command.ERROR_RESPONSE, b"not found"), "body:not-json"),
        (NOT_FOUND_TEXT, control(Command.ERROR_RESPONSE, b"no"), "body:text"),
        (NOT_FOUND_TEXT, control(Command.ERROR_RESPONSE, b"\xff"), "body:not-utf8"),
        (NOT_FOUND_TEXT, control(Command.ERROR_RESPONSE), "body:text"),
    ],
)
def test_what_nearly_fits_is_told_by_its_field(allowed: Allowed, event: Event, reason: str) -> None:
    """The reason names the part that is wrong."""
    assert allowed.judge(event) == reason


@pytest.mark.parametrize("allowed", [allowed for allowed, _ in FITS])
@pytest.mark.parametrize(
    "event", [NoAnswer(1.0), Violation("bad-magic", "no"), Frame(flags=0), control(Command.FETCH)]
)
def test_anything_else_is_another_kind(allowed: Allowed, event: Event) -> None:
    """Silence, garbage and other frames fit nothing."""
    assert allowed.judge(event) == ANOTHER_KIND


def test_an_outcome_reads_as_words_with_its_source() -> None:
    """A report says what was allowed and on what that rests."""
    assert str(ack(7)) == "Ack of batch 0x7 [4.2/batch-id]"
    assert str(Closed("rst")) == "the connection closed (RST)"
    assert str(NoAnswer(0.25)) == "nothing within 250 ms"
