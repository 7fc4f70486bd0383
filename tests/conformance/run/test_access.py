"""Getting in at a target: TLS, tokens, and what may be done there."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lance_conformance.app import run_app
from lance_conformance.engine.access import Access, AccessError, read_token, tls_for
from lance_conformance.engine.run.capabilities import CAPABILITIES, missing
from lance_conformance.server.cases import all_cases
from lance_conformance.server.golden.server import Connections, sessions
from lance_conformance.server.golden.settings import TOKEN, access_in, furnished
from lance_conformance.server.golden.specified import Specified
from lance_conformance.wire.access import authenticate, may_change, read_authenticated
from lance_conformance.wire.consumers import CLUSTER_STATUS, commit_offset, subscribe
from lance_conformance.wire.control import (
    KEEPALIVE,
    LIST_TOPICS,
    create_topic,
    delete_topic,
    fetch,
    get_topic,
    ingest,
    set_retention,
)
from lance_conformance.wire.frame import Frame

Serve = Callable[[Connections], int]


def asked(port: int, *options: str) -> int:
    """Ask a server and return the exit code of the kit."""
    return run_app(["--target", f"127.0.0.1:{port}", "--timeout-scale", "3", *options])


def test_every_capability_that_a_case_needs_is_known() -> None:
    """Each has a sentence that says why there is nothing to ask without it."""
    assert {need for case in all_cases() for need in case.needs} <= set(CAPABILITIES)


def test_what_is_missing_is_told() -> None:
    """The reason for a skip names what to do about it."""
    assert missing({"push"}, {"push", "tls"}) is None
    assert missing({"token-all", "tls"}, ()) == (
        "the target was not asked over TLS (--tls); "
        "no token was given that everything asks for (--token-file)"
    )


def test_cases_about_tokens_are_skipped_without_one(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server without tokens is no broken server."""
    assert asked(serve(sessions(Specified())), "auth", "--json") == 0
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert totals["PASS"] == 1
    assert totals["SKIP"] > 40


@pytest.mark.parametrize("mode", ["all", "write-only"])
def test_a_token_opens_the_target(
    serve: Serve, tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the token from a file, the cases about tokens are asked and pass."""
    (tmp_path / "token").write_bytes(TOKEN + b"\n")
    port = serve(furnished(Specified(), f"token-{mode}"))
    options = ["--token-file", str(tmp_path / "token"), "--token-mode", mode, "--json"]
    assert asked(port, "auth", "kal", *options) == 0
    assert json.loads(capsys.readouterr().out)["totals"]["PASS"] > 5


def test_a_token_is_taken_from_a_file_as_lwp_takes_it(serve: Serve, tmp_path: Path) -> None:
    """As @FILE."""
    (tmp_path / "token").write_bytes(TOKEN + b"\n")
    port = serve(furnished(Specified(), "token-all"))
    assert asked(port, "auth", "kal", "--token", f"@{tmp_path / 'token'}") == 0


def test_a_target_that_wants_a_token_is_told_apart_from_one_that_is_silent(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it says stands first, then the advice, which is --token."""
    assert asked(serve(furnished(Specified(), "token-all")), "kal") == 3
    told = capsys.readouterr().err
    said, advice = "AUTHENTICATION_REQUIRED (0x40): '", "give --token TOKEN or --token @FILE"
    assert 0 < told.index(said) < told.index(advice)


def test_a_token_that_the_target_refuses_is_told(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not a target that does not answer."""
    port = serve(furnished(Specified(), "token-all"))
    assert asked(port, "kal", "--token", "another-token") == 3
    assert f"127.0.0.1:{port} refuses the token" in capsys.readouterr().err


def test_no_report_has_the_token(serve: Serve, tmp_path: Path) -> None:
    """Neither the run file nor anything made from it."""
    token = tmp_path / "token"
    token.write_bytes(TOKEN)
    port = serve(furnished(Specified(), "token-all"))
    files = {name: tmp_path / f"run.{name}" for name in ("jsonl", "html", "md", "junit")}
    written = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    pcaps = ["--pcap", str(tmp_path / "pcaps")]
    assert asked(port, "auth/each-connection", "--token-file", str(token), *written, *pcaps) == 0
    for path in [*files.values(), *(tmp_path / "pcaps").iterdir()]:
        text = path.read_bytes()
        assert text, path
        assert TOKEN not in text, path
        assert TOKEN.hex().encode() not in text, path


def test_tls_is_asked_over_tls(serve: Serve) -> None:
    """The cases about TLS pass against a golden server behind TLS."""
    port = serve(furnished(Specified(), "tls"))
    access = access_in("tls")
    assert access.capabilities == {"tls"}
    assert asked(port, "kal") == 3, "without --tls nothing can be proven"


def test_a_certificate_means_that_one_is_demanded() -> None:
    """Then cases about clients without one have a meaning."""
    assert access_in("mtls").capabilities == {"tls", "mtls"}
    assert access_in("").capabilities == frozenset()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ca", "ca.pem"], "need --tls"),
        (["--tls", "--key", "k.pem"], "--key needs --cert"),
        (["--tls", "--ca", "no-such.pem"], "cannot be prepared from no-such.pem"),
        (["--token", "a", "--token-file", "b"], "not both"),
        (["--token-file", "no-such-file"], "cannot be read"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is asked, with a sentence that says what to do."""
    assert asked(1, *options) == 2
    assert words in capsys.readouterr().err


def test_a_token_file_without_a_token_is_refused(tmp_path: Path) -> None:
    """An empty first line is no token."""
    path = tmp_path / "token"
    path.write_bytes(b"\nsecret")
    with pytest.raises(AccessError, match="has no token in its first line"):
        read_token(path)


def test_nothing_shows_the_token() -> None:
    """Neither the access nor what it is part of."""
    assert "secret" not in repr(Access(token=b"secret-token"))
    assert not tls_for(None, None, None, "localhost").has_certificate


READING = [
    KEEPALIVE,
    LIST_TOPICS,
    CLUSTER_STATUS,
    get_topic(1),
    fetch(1, 0, 10),
    subscribe(1, 2),
    authenticate(b"token"),
]
CHANGING = [
    create_topic("a"),
    delete_topic(1),
    set_retention(1, 0, 0),
    commit_offset(1, 2, 3),
    ingest(1, 1, [b"x"]),
    Frame(flags=0, payload=b"a published server stores this"),
]


@pytest.mark.parametrize("frame", READING, ids=str)
def test_reading_changes_nothing(frame: Frame) -> None:
    """These may be sent to a target that is only to be read."""
    assert not may_change(frame)


@pytest.mark.parametrize("frame", CHANGING, ids=str)
def test_changing_is_not_reading(frame: Frame) -> None:
    """These may not, and the case that would is skipped."""
    assert may_change(frame)


def test_read_only_leaves_no_trace(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    """Not one topic is created, not one byte stored."""
    rules = Specified()
    assert asked(serve(sessions(rules)), "--read-only", "hdr", "ing", "top", "fet", "--json") == 0
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert totals["PASS"] > 10
    assert totals["SKIP"] > 30
    assert not rules.memory.topics
    assert rules.memory.last_id == 0


@pytest.mark.parametrize(
    ("payload", "said"),
    [(b"\1Authenticated", (1, "Authenticated")), (b"\0", (0, "")), (b"", None), (b"\1\xff", None)],
)
def test_an_answer_to_a_token_is_a_byte_and_words(
    payload: bytes, said: tuple[int, str] | None
) -> None:
    """Words that are no UTF-8, or no byte at all, are no answer."""
    assert read_authenticated(payload) == said


def test_a_dry_run_shows_what_would_be_sent(capsys: pytest.CaptureFixture[str]) -> None:
    """Frame by frame, with the fault marked, and nobody is asked."""
    assert asked(1, "--dry-run", "hdr/magic-closes") == 0
    shown = capsys.readouterr().out
    assert "hdr/magic-closes" in shown
    assert "LANX  <- FAULT, on purpose" in shown
