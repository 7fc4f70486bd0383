"""Clients that are wrong in a subscription of their own, in commits, and in what tokens are."""

from collections.abc import Callable
from functools import partial
from typing import Any

from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import ProblemError
from lance_conformance.client.mutants.operators import cut, kept, register
from lance_conformance.client.mutants.registry import golden
from lance_conformance.server.golden.codec import Wire

PUSHED = "specified"
"""Where a client subscribes."""

# -- numbers that are compared in part -------------------------------------------------------------


def _compares_pushed(bits: int) -> None:
    def is_ours(_client: Specified, topic: int, frame: Wire, /) -> bool:
        return cut(topic ^ frame.topic, bits) == 0

    register(Specified.is_ours, f"compares-{bits}-bits-of-pushed-topics",
             f"Of the topic of a push {bits} bits are compared.", is_ours, PUSHED)  # fmt: skip


def _compares_acks(bits: int) -> None:
    def masked(payload: bytes) -> bytes:
        numbers = (int.from_bytes(payload[at : at + 8], "little") for at in (0, 8))
        return b"".join(cut(number, bits).to_bytes(8, "little") for number in numbers)

    def committed(client: Specified, payload: bytes, consumer: int, offset: int, /) -> None:
        if len(payload) == 16:
            golden(client).committed(masked(payload), cut(consumer, bits), cut(offset, bits))
        else:
            golden(client).committed(payload, consumer, offset)

    def subscribed(client: Specified, payload: bytes, consumer: int, /) -> int:
        said = payload[:8]
        same = cut(int.from_bytes(said, "little") ^ consumer, bits) == 0
        right = consumer.to_bytes(8, "little") if same and len(said) == 8 else said
        return golden(client).subscribed(right + payload[8:], consumer)

    register(Specified.committed, f"compares-{bits}-bits-of-commits",
             f"Of a CommitAck {bits} bits of each number are compared.", committed)  # fmt: skip
    register(Specified.subscribed, f"compares-{bits}-bits-of-consumers",
             f"Of a SubscribeAck {bits} bits of the consumer are compared.", subscribed,
             PUSHED)  # fmt: skip


for _bits in (8, 16, 24, 31):
    _compares_pushed(_bits)
for _bits in (8, 31, 32, 53, 63):
    _compares_acks(_bits)


def _looks_at(what: str, at: int) -> None:
    def committed(client: Specified, payload: bytes, consumer: int, offset: int, /) -> None:
        right = consumer.to_bytes(8, "little") + offset.to_bytes(8, "little")
        seen = right[:at] + payload[at : at + 8] + right[at + 8 :]
        golden(client).committed(seen if len(payload) == 16 else payload, consumer, offset)

    register(Specified.committed, f"looks-at-the-{what}-of-commits",
             f"Of a CommitAck only the {what} is compared.", committed)  # fmt: skip


_looks_at("consumer", 0)
_looks_at("offset", 8)

# -- where a subscription is -----------------------------------------------------------------------


def _begins_where_it_asked(client: Specified, payload: bytes, consumer: int, /) -> int:
    golden(client).subscribed(payload, consumer)
    return 0


def _resumes_in(bits: int) -> None:
    def resumed(_client: Specified, _begun: int, position: int, /) -> int:
        return cut(position, bits)

    register(Specified.resumed, f"resumes-in-{bits}-bits",
             f"Of where a subscription goes on {bits} bits are sent.", resumed, PUSHED)  # fmt: skip


def _resumes(times: int) -> None:
    def resumed(client: Specified, begun: int, position: int, /) -> int:
        count = kept(client, "resumed", [])
        count.append(position)
        return begun if len(count) > times else position

    register(Specified.resumed, f"resumes-{times}-times",
             f"After {times} losses a subscription begins where it began.", resumed,
             PUSHED)  # fmt: skip


register(Specified.subscribed, "begins-where-it-asked",
         "A SubscribeAck does not say where a subscription begins.", _begins_where_it_asked,
         PUSHED)  # fmt: skip
for _bits in (8, 16, 31, 32, 33, 53):
    _resumes_in(_bits)
for _number in (1, 2):
    _resumes(_number)

# -- commits and sizes -----------------------------------------------------------------------------

Change = Callable[[Specified, int], int]


def _changes(  # noqa: PLR0917 - a row of a table
    hook: Callable[..., Any], name: str, title: str, at: int, change: Change,
    only: str | None = None,
) -> None:  # fmt: skip
    """A number of a request that is another one than was asked for."""

    def replacement(client: Specified, *arguments: Any) -> Any:
        sent = [change(client, each) if n == at else each for n, each in enumerate(arguments)]
        return getattr(golden(client), hook.__name__)(*sent)

    register(hook, name, title, replacement, only)


def _highest(client: Specified, offset: int) -> int:
    seen: list[int] = kept(client, "offsets", [])
    seen.append(offset)
    return max(seen)


def _cut_in(bits: int, _client: Specified, number: int) -> int:
    return cut(number, bits)


def _no_more_than(most: int, _client: Specified, number: int) -> int:
    return min(most, number)


_changes(Specified.commit, "never-commits-back", "A commit that goes back repeats the highest.",
         2, _highest)  # fmt: skip
_changes(Specified.commit, "never-commits-nothing", "A commit of 0 is one of 1.",
         2, lambda _, offset: offset or 1)  # fmt: skip
for _bits in (8, 16):
    _changes(Specified.subscribe, f"cuts-subscribe-sizes-to-{_bits}",
             f"Of the size of a subscription {_bits} bits are sent.", 2,
             partial(_cut_in, _bits), PUSHED)  # fmt: skip
_changes(Specified.subscribe, "has-its-own-subscribe-size",
         "A subscription asks for 64 KiB at a time.", 2, lambda *_: 65_536, PUSHED)  # fmt: skip
for _most in (1_000, 65_536, 1 << 20):
    _changes(Specified.fetch, f"fetches-{_most}-bytes-at-most",
             f"A Fetch asks for {_most} bytes at most.", 2,
             partial(_no_more_than, _most))  # fmt: skip
for _what, _at in (("ages", 1), ("sizes", 2)):
    _changes(Specified.retention, f"has-no-{_what}-of-0", f"Of limits, {_what} of 0 are others.",
             _at, lambda _, number: number or 604_800, PUSHED)  # fmt: skip
    _changes(Specified.limited, f"creates-no-{_what}-of-0",
             f"Of a new topic, {_what} of 0 are others.", _at,
             lambda _, number: number or 604_800, PUSHED)  # fmt: skip

# -- tokens ----------------------------------------------------------------------------------------


def _cuts_tokens(size: int) -> None:
    def hello(client: Specified, token: str | None, /) -> bytes | None:
        whole = golden(client).hello(token)
        return None if whole is None else whole[:size]

    register(Specified.hello, f"cuts-tokens-to-{size}", f"Of a token {size} bytes are sent.",
             hello)  # fmt: skip


def _spells_tokens_in_latin(_client: Specified, token: str | None, /) -> bytes | None:
    return None if token is None else token.encode("latin-1", "replace")


def _takes_bare_admissions(client: Specified, payload: bytes, /) -> None:
    if payload != b"\0":
        golden(client).admitted(payload)


def _admits_itself_later(client: Specified, payload: bytes, /) -> None:
    seen: list[bytes] = kept(client, "admissions", [])
    seen.append(payload)
    if len(seen) == 1:
        golden(client).admitted(payload)


def _tells_admissions_as_lost(client: Specified, payload: bytes, /) -> None:
    try:
        golden(client).admitted(payload)
    except ProblemError as problem:
        raise ProblemError("fatal", problem.text) from None


for _size in (16, 128, 255):
    _cuts_tokens(_size)
register(Specified.hello, "spells-tokens-in-latin", "A token is sent in Latin-1.",
         _spells_tokens_in_latin)  # fmt: skip
register(Specified.admitted, "takes-bare-admissions",
         "An AuthenticateResponse of one byte lets in.", _takes_bare_admissions)  # fmt: skip
register(Specified.admitted, "looks-at-its-first-admission",
         "Only the first AuthenticateResponse is looked at.", _admits_itself_later)  # fmt: skip
register(Specified.admitted, "tells-admissions-as-lost",
         "A token that is refused is told as fatal.", _tells_admissions_as_lost)  # fmt: skip
