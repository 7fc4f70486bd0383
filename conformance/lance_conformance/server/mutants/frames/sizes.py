"""Servers that are wrong about the size of one command's payload."""

from collections.abc import Callable

from lance_conformance.server.golden.rules.consumers import SIZES
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import golden, mutant

COMMANDS = {
    0x02: "delete_topic",
    0x20: "subscribe",
    0x21: "unsubscribe",
    0x22: "commit_offset",
    0x70: "offset_for_time",
}
BARE = {0x03: "list_topics", 0x07: "cluster_status"}
BY_DIALECT = frozenset({0x20, 0x21, 0x22})
"""Commands whose short payloads are refused in both dialects."""
ALSO_EMPTY = frozenset({0x20, 0x22})
"""Commands of which a case asks without a payload."""
Wrong = Callable[[int], bool]


def _register(name: str, title: str, command: int, wrong: Wrong, *, both: bool) -> None:
    def replacement(server: Specified, asked: int, size: int, /) -> bool:
        return (asked == command and wrong(size)) or golden(server).size_ok(asked, size)

    register(Specified.size_ok, name, title, replacement, None if both else "specified")


def _sizes(command: int, name: str) -> None:
    right = SIZES[command]
    words = name.replace("_", " ")
    _register(
        f"fills_up_short_{name}",
        f"Bytes that are missing from {words} are taken for zeros.",
        command,
        lambda size: 0 < size < right,
        both=command in BY_DIALECT,
    )
    if command in ALSO_EMPTY:
        _register(
            f"fills_up_empty_{name}",
            f"An empty payload of {words} is taken for zeros.",
            command,
            lambda size: size == 0,
            both=True,
        )
    _trailing(command, name)


def _trailing(command: int, name: str) -> None:
    right = SIZES[command]
    words = name.replace("_", " ")
    _register(
        f"ignores_trailing_bytes_of_{name}",
        f"Bytes after the payload of {words} are ignored.",
        command,
        lambda size: size > right,
        both=False,
    )


for each, its_name in COMMANDS.items():
    _sizes(each, its_name)
for each, its_name in BARE.items():
    _trailing(each, its_name)


@mutant(Specified.size_ok, only="deployed")
def demands_4_bytes_of_delete_topic(server: Specified, command: int, size: int, /) -> bool:
    """A short DeleteTopic is an invalid payload, where the published server finds no topic."""
    return size == SIZES[command] if command == 0x02 else golden(server).size_ok(command, size)
