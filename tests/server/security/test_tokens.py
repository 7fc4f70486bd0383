"""Bearer tokens: who has none is kept out (design section 28)."""

import logging
from pathlib import Path
from typing import Any

import pytest

from lance_server import running
from lance_server.errors import ConfigError
from lance_server.security.authorizer import MOST_FAILURES, Security
from lance_server.security.tls import ANONYMOUS
from lance_server.security.tokens import AuthConfig, TokenSet
from lance_server.testing import RawClient, SessionPeer, the_error, told
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.messages.lwp import (
    AddPartitions,
    AuthenticateResponse,
    BatchTimes,
    CommitOffset,
    CreatePartitionedTopic,
    DeleteTopic,
    Fetch,
    GetTopic,
    OffsetForTime,
    SetRetention,
    Subscribe,
    Unsubscribe,
)

TOKEN = b"correct-horse-battery"
BOTH = pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)

READS = {
    Command.FETCH: Fetch(0, 0, 100).encode(),
    Command.GET_TOPIC: GetTopic(0).encode(),
    Command.LIST_TOPICS: b"",
    Command.GET_CLUSTER_STATUS: b"",
    Command.GET_CLUSTER_STATUS_ALIAS: b"",
    Command.SUBSCRIBE: Subscribe(0, 0, 100, 1).encode(),
    Command.UNSUBSCRIBE: Unsubscribe(0, 1).encode(),
    Command.OFFSET_FOR_TIME: OffsetForTime(0, 0).encode(),
    Command.BATCH_TIMES: BatchTimes(0, 0, 0).encode(),
}
CHANGES = {
    Command.COMMIT_OFFSET: CommitOffset(0, 1, 0).encode(),
    Command.CREATE_TOPIC: b"orders",
    Command.CREATE_TOPIC_WITH_RETENTION: b"\x06\x00orders" + bytes(16),
    Command.CREATE_PARTITIONED_TOPIC: CreatePartitionedTopic(b"p", 2, 1, 0, 0).encode(),
    Command.ADD_PARTITIONS: AddPartitions(b"p", 2).encode(),
    Command.DELETE_PARTITIONED_TOPIC: b"p",
    Command.DELETE_TOPIC: DeleteTopic(0).encode(),
    Command.SET_RETENTION: SetRetention(0, 1, 1).encode(),
}


def guarded(dialect: Dialect = SPECIFIED, **auth: Any) -> SessionPeer:
    """A connection to a server that asks for a token."""
    return SessionPeer(dialect, auth=AuthConfig(tokens=(TOKEN.decode(),), **auth))


def authenticate(peer: SessionPeer, token: bytes) -> tuple[bool, bytes]:
    """Send a token; return what came of it."""
    answer = AuthenticateResponse.decode(peer.ask(Command.AUTHENTICATE, token).payload)
    return bool(answer.ok), bytes(answer.message)


@BOTH
def test_a_valid_token_opens_the_connection(dialect: Dialect) -> None:
    """Before it nothing is stored, after it everything works."""
    peer = guarded(dialect)
    assert the_error(peer.exchange(peer.ingest(1))).message.startswith("Authentication required")
    assert authenticate(peer, TOKEN) == (True, b"Authenticated")
    assert told(peer.exchange(peer.ingest(1), peer.fetch())) == [1, "FETCH_RESPONSE"]


def test_the_error_has_the_documented_code() -> None:
    """0x40, AuthenticationRequired; the batch is named."""
    peer = guarded()
    error = the_error(peer.exchange(peer.ingest(7)))
    assert (error.code, error.details) == (ErrorCode.AUTHENTICATION_REQUIRED, {"batch_id": 7})
    assert peer.counters.denied == 1


@pytest.mark.parametrize("command", [*READS, *CHANGES], ids=lambda each: each.name)
@BOTH
def test_every_command_asks_for_a_token(dialect: Dialect, command: Command) -> None:
    """Control commands are guarded like batches."""
    peer = guarded(dialect)
    error = peer.error(command, {**READS, **CHANGES}[command])
    assert error.message.startswith("Authentication required")


def test_the_table_of_commands_is_complete() -> None:
    """A command that is added here must be guarded, and listed above."""
    peer = guarded()
    known = set(peer.session._commands._handlers)
    assert known == {*READS, *CHANGES, Command.AUTHENTICATE}


@pytest.mark.parametrize("command", READS, ids=lambda each: each.name)
def test_with_write_only_reading_is_free(command: Command) -> None:
    """Fetch, lists and subscriptions need no token then."""
    peer = guarded(write_only=True)
    assert "ERROR_RESPONSE" not in told(peer.exchange(peer.control(command, READS[command])))


@pytest.mark.parametrize("command", CHANGES, ids=lambda each: each.name)
def test_with_write_only_changing_is_not(command: Command) -> None:
    """Creating, deleting, retention and commits are writes, as batches are."""
    peer = guarded(write_only=True)
    assert peer.error(command, CHANGES[command]).code is ErrorCode.AUTHENTICATION_REQUIRED
    assert the_error(peer.exchange(peer.ingest(1))).code is ErrorCode.AUTHENTICATION_REQUIRED


def test_keepalives_need_no_token() -> None:
    """They tell nothing but that the server is alive."""
    peer = guarded()
    assert told(peer.exchange(peer.keepalive())) == ["KEEPALIVE"]


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (b"wrong-horse-battery", b"Invalid token"),
        (TOKEN[:-1], b"Invalid token"),
        (TOKEN + b" ", b"Invalid token"),
        (b"", b"No token provided"),
        (b"\xff\xfe", b"Invalid token encoding"),
    ],
)
def test_other_tokens_are_not_valid(token: bytes, words: bytes) -> None:
    """In the words of the published server, and counted."""
    peer = guarded()
    assert authenticate(peer, token) == (False, words)
    assert peer.counters.auth_failures == 1
    assert the_error(peer.exchange(peer.ingest(1))).code is ErrorCode.AUTHENTICATION_REQUIRED


def test_a_wrong_token_ends_what_a_right_one_allowed() -> None:
    """The last one counts."""
    peer = guarded()
    authenticate(peer, TOKEN)
    assert told(peer.exchange(peer.ingest(1))) == [1]
    authenticate(peer, b"something else")
    assert the_error(peer.exchange(peer.ingest(2))).code is ErrorCode.AUTHENTICATION_REQUIRED


def test_guessing_ends_the_connection() -> None:
    """After a number of wrong tokens, with an answer to each."""
    peer = guarded()
    for _ in range(MOST_FAILURES):
        assert peer.session.closing is None
        authenticate(peer, b"a guess at it")
    peer.session.advance(0.0)
    assert peer.session.closing is not None


def test_guessing_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A line a second says that somebody guesses, and how often."""
    security = Security(auth=AuthConfig(tokens=(TOKEN.decode(),)))
    for _ in range(1000):
        security.note_failure(ANONYMOUS)
    assert len(caplog.records) <= 2


def test_without_tokens_any_is_accepted() -> None:
    """Clients that always authenticate work with a server that does not ask."""
    assert authenticate(SessionPeer(), b"whatever") == (True, b"Authenticated")


def test_a_token_that_is_withdrawn_is_refused_on_open_connections() -> None:
    """A reload judges every connection again, and lets others in."""
    peer = guarded()
    authenticate(peer, TOKEN)
    assert told(peer.exchange(peer.ingest(1))) == [1]
    peer.service.security.reload(None, AuthConfig(tokens=("another-secret",)), None)
    assert the_error(peer.exchange(peer.ingest(2))).code is ErrorCode.AUTHENTICATION_REQUIRED
    assert authenticate(peer, b"another-secret") == (True, b"Authenticated")


# Files ------------------------------------------------------------------------------------------


def test_tokens_stand_in_a_file_one_a_line(tmp_path: Path) -> None:
    """With comments and empty lines between them."""
    path = tmp_path / "tokens"
    path.write_text("# producers\nfirst-secret\n\n  second-secret  \n# end\n")
    tokens = TokenSet.load(AuthConfig(token_file=path))
    assert tokens.find(b"first-secret")
    assert tokens.find(b"second-secret")
    assert not tokens.find(b"# producers")


def test_protection_that_cannot_be_had_is_an_error(tmp_path: Path) -> None:
    """The server does not start with less protection than it was told to have."""
    with pytest.raises(ConfigError, match="there is no token"):
        Security(auth=AuthConfig())
    with pytest.raises(ConfigError, match="cannot read auth"):
        Security(auth=AuthConfig(token_file=tmp_path / "missing"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(ConfigError, match="it is not UTF-8"):
        Security(auth=AuthConfig(token_file=tmp_path / "binary"))
    with pytest.raises(ConfigError, match="token 2 is shorter than 8 bytes"):
        Security(auth=AuthConfig(tokens=("long-enough", "short")))


def test_a_reload_that_fails_changes_nothing(tmp_path: Path) -> None:
    """The tokens that were valid stay valid."""
    peer = guarded()
    authenticate(peer, TOKEN)
    with pytest.raises(ConfigError):
        peer.service.security.reload(None, AuthConfig(token_file=tmp_path / "missing"), None)
    assert told(peer.exchange(peer.ingest(1))) == [1]


# Secrets ----------------------------------------------------------------------------------------


def test_tokens_are_never_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in representations, nor in the log at its most talkative."""
    caplog.set_level(logging.DEBUG)
    auth = AuthConfig(tokens=(TOKEN.decode(),))
    with running(tmp_path, auth=auth) as server, RawClient(server.address) as client:
        assert client.authenticate(b"a-wrong-secret") == (False, "Invalid token")
        assert client.authenticate(TOKEN) == (True, "Authenticated")
        client.store([b"one"], batch_id=1)
        shown = [repr(auth), repr(server), repr(server._config), str(server.stats())]
    text = caplog.text + "".join(shown)
    assert "correct-horse" not in text
    assert "a-wrong-secret" not in text
