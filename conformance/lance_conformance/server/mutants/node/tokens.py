"""Servers that are wrong about tokens."""

from collections.abc import Callable

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.rules.access_rules import INGEST
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Connection, Refused, Topic
from lance_conformance.server.mutants.registry import golden, mutant

COMMANDS = {
    "ingest": INGEST,
    "create": 0x01,
    "delete": 0x02,
    "list": 0x03,
    "get": 0x04,
    "set_retention": 0x05,
    "create_limited": 0x06,
    "status": 0x07,
    "fetch": 0x10,
    "subscribe": 0x20,
    "unsubscribe": 0x21,
    "commit": 0x22,
    "time": 0x70,
}


# -- tokens, right and wrong -----------------------------------------------------------------------


def _accepts(name: str, title: str, fits: Callable[[bytes, bytes], bool]) -> None:
    """A mutant that takes tokens which merely resemble a right one."""

    def token_ok(server: Specified, token: bytes, /) -> bool:
        known = any(fits(token, right) for right in server.memory.tokens)
        return known or golden(server).token_ok(token)

    token_ok.__name__ = f"accepts_{name}"
    token_ok.__doc__ = title
    mutant(Specified.token_ok)(token_ok)


_accepts(
    "any_long_token",
    "A token that is long enough is accepted, whatever it is.",
    lambda token, right: len(token) >= len(right) and token[:3] == b"no-",
)
_accepts("empty_tokens", "An empty token is accepted.", lambda token, _: not token)
_accepts(
    "beginnings_of_tokens",
    "The beginning of a token is accepted.",
    lambda token, right: len(token) == len(right) - 1 and right.startswith(token),
)
_accepts(
    "ends_of_tokens",
    "The end of a token is accepted.",
    lambda token, right: len(token) == len(right) - 1 and right.endswith(token),
)
_accepts(
    "tokens_with_more_behind",
    "A token may go on.",
    lambda token, right: token == right + token[len(right) :] and token[len(right) :] == b"x",
)
_accepts(
    "tokens_with_a_line_feed",
    "White space after a token is stripped.",
    lambda token, right: token != right and token.rstrip() == right,
)
_accepts(
    "tokens_with_a_blank",
    "White space in front of a token is stripped.",
    lambda token, right: token != right and token.lstrip() == right,
)
_accepts(
    "tokens_up_to_a_nul",
    "A token ends at its first NUL.",
    lambda token, right: b"\0" in token and token.partition(b"\0")[0] == right,
)
_accepts(
    "any_case",
    "Upper and lower case are the same.",
    lambda token, right: token != right and token.lower() == right.lower(),
)
_accepts("repeated_tokens", "A token may be repeated.", lambda token, right: token == right + right)
_accepts(
    "tokens_that_are_no_text",
    "What cannot be decoded is not compared.",
    lambda token, _: not _is_text(token),
)
_accepts(
    "tokens_cut_to_a_page",
    "Of a long token only the beginning is compared.",
    lambda token, right: len(token) > 4096 and token.startswith(right),
)
_accepts(
    "tokens_with_a_wrong_bit",
    "The lowest bit of the first byte is not compared.",
    lambda token, right: token[1:] == right[1:] and bool(token) and token[0] ^ right[0] == 1,
)


def _is_text(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


@mutant(Specified.auth_words)
def says_nothing_about_tokens(_server: Specified, _token: bytes, _ok: bool, /) -> str:
    """The answer to a token has no words."""
    return ""


@mutant(Specified.auth_words)
def repeats_wrong_tokens(server: Specified, token: bytes, ok: bool, /) -> str:
    """A refusal has the token in it."""
    words = golden(server).auth_words(token, ok)
    return words if ok else f"{words}: {token.decode(errors='replace')}"


@mutant(Specified.auth_answer)
def answers_tokens_with_an_ack(_server: Specified, _ok: bool, _words: str, /) -> Reply:
    """A token is answered by an Ack."""
    return Reply(0x08, 0x08)


@mutant(Specified.auth_answer)
def says_yes_to_every_token(server: Specified, _ok: bool, words: str, /) -> Reply:
    """The answer says yes, though a wrong token opens nothing."""
    return golden(server).auth_answer(True, words)


@mutant(Specified.auth_answer)
def answers_tokens_in_json(_server: Specified, ok: bool, words: str, /) -> Reply:
    """The answer to a token is JSON, not a byte and words."""
    return Reply(0x40, 0x09, f'{{"ok": {str(ok).lower()}, "message": "{words}"}}'.encode())


# -- who is trusted --------------------------------------------------------------------------------


@mutant(Specified.let_in)
def never_trusts_again(server: Specified, connection: Connection, token: bytes, /) -> bool:
    """After a wrong token no other one counts."""
    if not server.token_ok(token):
        connection.notes.add("wrong once")
    connection.trusted = not server.memory.tokens or "wrong once" not in connection.notes
    return connection.trusted


@mutant(Specified.let_in)
def opens_the_door_and_says_no(server: Specified, connection: Connection, token: bytes, /) -> bool:
    """A wrong token is refused, and opens the connection all the same."""
    connection.trusted = True
    return not server.memory.tokens or server.token_ok(token)


@mutant(Specified.let_in)
def forgets_at_the_second_showing(
    server: Specified, connection: Connection, token: bytes, /
) -> bool:
    """A token shown again takes away what it gave."""
    again = connection.trusted
    ok = golden(server).let_in(connection, token)
    connection.trusted = ok and not (again and server.memory.tokens)
    return ok


@mutant(Specified.let_in)
def needs_tokens_configured(server: Specified, connection: Connection, token: bytes, /) -> bool:
    """Where no token is asked for, showing one is refused."""
    connection.trusted = server.token_ok(token)
    return connection.trusted


@mutant(Specified.trusted)
def trusts_everybody_after_the_first(server: Specified, connection: Connection, /) -> bool:
    """A token that was used on one connection opens all of them."""
    if connection.trusted:
        server.memory.scars.add("trusted")
    return connection.trusted or "trusted" in server.memory.scars


@mutant(Specified.trusted)
def trusts_for_thirty_requests(_server: Specified, connection: Connection, /) -> bool:
    """A token is good for thirty requests."""
    connection.notes.add(f"request {len(connection.notes)}")
    return connection.trusted and len(connection.notes) <= 30


@mutant(Specified.trusted)
def refuses_once_a_connection(_server: Specified, connection: Connection, /) -> bool:
    """Who has been refused once is not checked any more."""
    trusted = connection.trusted or "refused" in connection.notes
    connection.notes.add("refused")
    return trusted


def _does_it_all_the_same(name: str, title: str, does: Callable[[Specified, bytes], None]) -> None:
    """A mutant that refuses a request for want of a token, and carries it out."""

    def without_token(server: Specified, command: int, payload: bytes, /) -> None:
        if command == COMMANDS[name]:
            does(server, payload)
        golden(server).without_token(command, payload)

    without_token.__name__ = f"refuses_{name}_and_does_it"
    without_token.__doc__ = title
    mutant(Specified.without_token)(without_token)


def _number(payload: bytes) -> int:
    return int.from_bytes(payload[:4], "little")


def _store(server: Specified, payload: bytes) -> None:
    server.memory.topics[_number(payload)].log += payload[4:]


def _create(server: Specified, payload: bytes) -> None:
    server.memory.last_id += 1
    topic = Topic(server.memory.last_id, payload.decode())
    server.memory.topics[topic.id] = topic


def _delete(server: Specified, payload: bytes) -> None:
    server.memory.topics[_number(payload)].log = b""


_does_it_all_the_same("ingest", "A batch is stored, and then refused for want of a token.", _store)
_does_it_all_the_same(
    "create", "A topic is created, and then refused for want of a token.", _create
)
_does_it_all_the_same(
    "delete", "A topic is emptied, and its removal then refused for want of a token.", _delete
)


@mutant(Specified.without_token)
def says_failed_for_required(_server: Specified, _command: int, _payload: bytes, /) -> None:
    """A request without a token is told that its token was wrong."""
    raise Refused(0x41, "Authentication failed")


def _asks_nothing(slug: str, command: int) -> None:
    def needs_token(server: Specified, asked: int, /) -> bool:
        return asked != command and golden(server).needs_token(asked)

    needs_token.__name__ = f"asks_no_token_for_{slug}"
    needs_token.__doc__ = f"No token is needed for {slug.replace('_', ' ')}."
    mutant(Specified.needs_token)(needs_token)


for _slug, _command in COMMANDS.items():
    _asks_nothing(_slug, _command)


@mutant(Specified.needs_token)
def asks_a_token_for_keepalives(_server: Specified, _asked: int, /) -> bool:
    """Even a Keepalive needs a token."""
    return True


def _opens_too_much(slug: str, command: int) -> None:
    def needs_token(server: Specified, asked: int, /) -> bool:
        free = server.memory.write_only and asked == command
        return not free and golden(server).needs_token(asked)

    needs_token.__name__ = f"write_only_leaves_{slug}_open"
    needs_token.__doc__ = f"Where only writing needs a token, {slug.replace('_', ' ')} needs none."
    mutant(Specified.needs_token)(needs_token)


for _slug in ("ingest", "create", "delete", "set_retention"):
    _opens_too_much(_slug, COMMANDS[_slug])


def _closes_too_much(slug: str, command: int) -> None:
    def needs_token(server: Specified, asked: int, /) -> bool:
        return asked == command or golden(server).needs_token(asked)

    needs_token.__name__ = f"write_only_closes_{slug}"
    needs_token.__doc__ = f"Where only writing needs a token, {slug.replace('_', ' ')} does, too."
    mutant(Specified.needs_token)(needs_token)


for _slug in ("list", "get", "fetch", "subscribe"):
    _closes_too_much(_slug, COMMANDS[_slug])
