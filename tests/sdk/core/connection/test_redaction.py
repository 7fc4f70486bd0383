"""A connection's token is hidden in what the server says."""

from typing import Any

import pytest

from lance_sdk._api.arguments.redaction import HIDDEN, Redaction
from lance_sdk._protocol.handshake import Plan, handshake
from lance_sdk.errors import (
    AccessDenied,
    AuthenticationFailed,
    DeliveryFailed,
)
from lance_spec.enums import ErrorCode
from lance_spec.frames import FrameKind
from lance_spec.messages.lwp import AuthenticateResponse

TOKEN = "s3cret-token"


def test_every_occurrence_is_hidden() -> None:
    """Not only the first."""
    assert Redaction(TOKEN).text(f"{TOKEN}, again {TOKEN}!") == f"{HIDDEN}, again {HIDDEN}!"


def test_without_a_secret_a_text_is_what_it_was() -> None:
    """Neither None nor nothing is hidden."""
    assert Redaction(None, "").text("as it was") == "as it was"


def test_a_longer_secret_goes_before_its_part() -> None:
    """Or its rest would stay."""
    assert Redaction("abc", "abcdef").text("abcdef") == HIDDEN


def test_a_secret_that_was_cut_off_is_hidden() -> None:
    """Long errors are cut, and the cut may go through it."""
    assert Redaction(TOKEN).text(f"denied: {TOKEN[:-1]}") == f"denied: {HIDDEN}"


def test_a_few_characters_at_the_end_tell_nothing() -> None:
    """They are a coincidence."""
    assert Redaction(TOKEN).text("denied: s3c") == "denied: s3c"


def test_details_are_searched_to_the_bottom() -> None:
    """Keys, values, lists; numbers stay what they are."""
    details = {TOKEN: [{"who": f"<{TOKEN}>"}], "code": 7, "none": None}
    hidden = Redaction(TOKEN).details(details)
    assert hidden == {HIDDEN: [{"who": f"<{HIDDEN}>"}], "code": 7, "none": None}


def test_a_leader_that_is_called_like_the_token_is_found() -> None:
    """The address is used, not only shown."""
    details = {"leader_addr": "lance-2:1992"}
    assert Redaction("lance").details(details) == details


def test_a_leader_whose_address_is_the_token_is_hidden() -> None:
    """That is not an address."""
    assert Redaction(TOKEN).details({"leader_addr": TOKEN}) == {"leader_addr": HIDDEN}


def test_a_redaction_does_not_show_what_it_hides() -> None:
    """In its own repr."""
    assert TOKEN not in repr(Redaction(TOKEN))


def connected(producer: Any) -> Any:
    """Return a producer whose connection has a token."""
    rig = producer.build()
    rig.wire.connect()
    rig.session.connection.redaction = Redaction(TOKEN)
    return rig


def test_a_refusal_of_the_token_does_not_show_it() -> None:
    """The answer to Authenticate has words of its own (LWP section 5.2)."""
    steps = handshake(Plan("lance://one", token=TOKEN))
    next(steps)  # Ping
    steps.send(b"")  # Authenticate
    with pytest.raises(AuthenticationFailed) as caught:
        steps.send(AuthenticateResponse(ok=False, message=f"no {TOKEN}".encode()).encode())
    assert caught.value.message == f"no {HIDDEN}"


def test_a_refused_batch_does_not_show_the_token(producer: Any) -> None:
    """Neither the message nor the details."""
    rig = connected(producer)
    batch = rig.send()
    rig.wire.take(FrameKind.INGEST)
    rig.wire.error(ErrorCode.ACCESS_DENIED, f"{TOKEN} may not", batch_id=batch.batch_id, who=TOKEN)
    failure = batch.failure()
    assert isinstance(failure, DeliveryFailed)
    assert isinstance(failure.cause, AccessDenied)
    assert failure.cause.message == f"{HIDDEN} may not"
    assert failure.cause.details["who"] == HIDDEN
