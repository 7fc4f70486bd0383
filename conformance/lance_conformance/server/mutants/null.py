"""Servers that do not speak LWP at all: no case may pass against them."""

from collections.abc import Callable, Mapping

from lance_conformance.engine.selftest.null_servers import COMMON, NullServer, React, answers_with
from lance_conformance.server.golden.codec import SIZE, Reply, parse
from lance_conformance.server.golden.server import GOLDEN, Connections
from lance_conformance.server.golden.specified import Specified


def _stalls_in_the_header(rules: Specified) -> React:
    """Answers with half a header, and then nothing."""
    return answers_with(rules.encode(Reply(0x20))[: SIZE // 2])


def _acks_everything(rules: Specified) -> React:
    """Answers whatever comes with an Ack."""

    def react(server: NullServer, data: bytes) -> None:
        if len(data) >= SIZE:
            server.say(rules.encode(Reply(0x08, parse(data).batch_id)))

    return react


def _refuses_everything(rules: Specified) -> React:
    """Answers whatever comes with an ErrorResponse."""
    words = "Unknown topic not found, already exists"
    return answers_with(rules.encode(rules.error(0x04, words, {})))


_OWN: Mapping[str, Callable[[Specified], React]] = {
    "stalls-in-the-header": _stalls_in_the_header,
    "acks-everything": _acks_everything,
    "refuses-everything": _refuses_everything,
}


def null_names() -> tuple[str, ...]:
    """The names of all null servers."""
    return (*COMMON, *_OWN)


def connections(name: str, dialect: str) -> Connections:
    """The connections of a null server.

    Args:
        name: One of `null_names`.
        dialect: The dialect in which it encodes what it says.
    """
    react = COMMON[name] if name in COMMON else _OWN[name](GOLDEN[dialect]())
    return lambda: NullServer(react)
