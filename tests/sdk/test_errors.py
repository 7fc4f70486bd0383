"""The tree of errors: one class per code, two facts on each, a next step in the message."""

import copy
import pickle
import ssl

import pytest

from lance_sdk import errors
from lance_sdk._errors import server
from lance_sdk._errors.advice import words
from lance_sdk.errors import (
    Attempt,
    ConnectFailed,
    DeliveryFailed,
    LanceError,
    NotLeader,
    RateLimited,
    RecordsLost,
    ServerError,
    TopicNotFound,
    server_error,
)
from lance_sdk.types import CloseReport
from lance_spec.enums import ErrorCode

ANSWERS = [code for code in ErrorCode if code not in {ErrorCode.SUCCESS, ErrorCode.RESERVED}]
RETRYABLE = {0x20, 0x21, 0x22, 0x23, 0x30, 0x31, 0x32, 0x62}


@pytest.mark.parametrize("code", ANSWERS)
def test_every_code_has_a_class_of_its_own(code: ErrorCode) -> None:
    """LWP section 12.2, one to one."""
    error = server_error(code, "message", {"key": 1})
    assert type(error) is not ServerError
    assert type(error) is server.BY_CODE[code]
    assert (error.code, error.message, error.details) == (code, "message", {"key": 1})


def test_no_two_codes_share_a_class() -> None:
    """And no class is without a code."""
    assert len(server.BY_CODE) == len(ANSWERS) == len(ServerError.__subclasses__())


@pytest.mark.parametrize("code", ANSWERS)
def test_retryable_is_as_specified(code: ErrorCode) -> None:
    """LWP section 12.4; a connection limit passes, too."""
    assert server_error(code, "x").retryable == (code in RETRYABLE)


def test_every_error_is_a_lance_error_with_both_facts() -> None:
    """So one except clause is enough."""
    for name in errors.__all__:
        kind = getattr(errors, name)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning):
            assert issubclass(kind, LanceError), name
            assert isinstance(kind.retryable, bool), name
            assert isinstance(kind.maybe_applied, bool), name
            assert kind.__doc__, name


def test_builtin_bases_make_ordinary_handlers_work() -> None:
    """ValueError, OSError, TimeoutError where people expect them."""
    assert issubclass(errors.ConfigError, ValueError)
    assert issubclass(errors.TransportError, OSError)
    assert issubclass(errors.DeadlineExceeded, TimeoutError)


def test_no_builtin_name_is_shadowed() -> None:
    """`from lance_sdk.errors import *` breaks nobody's except clauses."""
    import builtins  # noqa: PLC0415 - used here only

    assert not set(errors.__all__) & set(dir(builtins))


@pytest.mark.parametrize("wait", [True, "5", None, -1, float("nan")])
def test_a_wait_that_is_none_is_not_believed(wait: object) -> None:
    """A server's details are checked before they are used."""
    error = server_error(ErrorCode.RATE_LIMITED, "slow", {"retry_after_ms": wait})
    assert isinstance(error, RateLimited)
    assert error.retry_after is None


def test_details_have_names() -> None:
    """The leader, the wait, the earliest offset."""
    leader = server_error(ErrorCode.NOT_LEADER, "x", {"leader_addr": "h:1"})
    assert isinstance(leader, NotLeader)
    assert leader.leader == "h:1"
    limited = server_error(ErrorCode.RATE_LIMITED, "x", {"retry_after_ms": 100})
    assert isinstance(limited, RateLimited)
    assert limited.retry_after == 0.1


REPORT = CloseReport(1, 2, 1, TopicNotFound("gone"))


@pytest.mark.parametrize(
    "error",
    [
        server_error(0x10, "message", {"a": 1}),
        server_error(0x77, "unlisted"),
        ConnectFailed("lance://h", [Attempt("h:1", "tcp", OSError("refused"), "1.2.3.4:1")]),
        DeliveryFailed(TopicNotFound("gone"), batch_id=7, maybe_applied=True),
        RecordsLost(REPORT),
        errors.FrameError("magic", 0, "LANC", "HTTP"),
        errors.MisalignedOffset("inside", 7),
        errors.DeliveryExpired("late", batch_id=3, maybe_applied=True),
        errors.ConnectionLost("gone", peer="h"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickle_and_copy(error: LanceError) -> None:
    """They travel between processes with their facts."""
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert twin.retryable == error.retryable
        assert twin.maybe_applied == error.maybe_applied


def test_an_error_of_tls_without_a_reason_is_named_as_one_of_tls() -> None:
    """Python 3.11.2 gives none where a server without TLS hangs up."""
    closed = ssl.SSLZeroReturnError(6, "TLS/SSL connection has been closed (EOF) (_ssl.c:992)")
    assert words(closed) == "TLS failed: TLS/SSL connection has been closed (EOF)"
