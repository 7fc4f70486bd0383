"""The table of statuses, closes and answers: the sender does what each of its rows says."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pytest

from lance_sdk.errors import ConfigError
from lance_sdk.journal._sending.outbox import OutboxLimits
from lance_sdk.journal.connect_string import parse_connect_string
from lance_sdk.journal.qwp._connection import policies
from lance_sdk.journal.qwp._connection.policies import RULES, STATUSES, Effect, Rule, rule_of_close
from lance_sdk.journal.qwp.dictionary import SymbolDictionary
from lance_sdk.journal.rejections import QWP_FORCED, QWP_POLICIES, Category, Policy, Rejection
from lance_spec.messages.qwp import ErrorResponse, Status

from .world import Host, Wire, World

FRAMES: Final = tuple(b"frame %d" % number for number in range(3))


@dataclass
class Letters:
    """Keeps dead letters in memory."""

    frames: list[bytes] = field(default_factory=list)

    def write(self, rejection: Rejection, payload: bytes) -> None:
        """Take one."""
        del rejection
        self.frames.append(payload)


@dataclass(frozen=True)
class Scene:
    """How a row is brought about, always by the first of two hosts and about the first frame.

    Attributes:
        host: that host.
        symbols: symbols that the slot has.
        second: the other host.
    """

    host: Host
    symbols: tuple[str, ...] = ()
    second: Host | None = None


def once(act: Callable[[Wire], None]) -> Host:
    """Return a host that does something about the first message of its first connection."""
    return Host(on_message=lambda wire: act(wire) if wire.number == 0 else wire.ok())


def refuses(status: int) -> Host:
    """Return a host that refuses the first message once."""
    answer = bytes([status]) + ErrorResponse(status=3, wire_sequence=0, text=b"no").encode()[1:]
    return once(lambda wire: wire.answer(answer) if len(wire.messages) == 1 else None)


def closes(code: int) -> Host:
    """Return a host that closes at the first message, once."""
    return once(lambda wire: wire.close(code) if len(wire.messages) == 1 else None)


def turns_away(status: int, **headers: str) -> Host:
    """Return a host that does not upgrade."""
    return Host(status=status, headers=headers)


SCENES: dict[str, list[Scene]] = {
    **{rule.signal: [Scene(refuses(status))] for status, rule in STATUSES.items()},
    policies.UNKNOWN_STATUS.signal: [
        Scene(refuses(each)) for each in (0x01, 0x04, 0x07, 0x0A, 0x0B, 0x0E, 0x7F, 0xFF)
    ],
    policies.ABOUT_SYMBOLS.signal: [
        Scene(refuses(Status.PARSE_ERROR), symbols=("a",)),
        Scene(refuses(Status.SCHEMA_MISMATCH), symbols=("a",)),
    ],
    policies.TERMINAL_CLOSE.signal: [Scene(closes(each)) for each in policies.TERMINAL_CODES],
    policies.OTHER_CLOSE.signal: [
        *(Scene(closes(each)) for each in (1000, 1001, 1011, 1012, 1013, 3000, 4000, 4999)),
        Scene(once(Wire.drop)),
    ],
    policies.CREDENTIALS.signal: [Scene(turns_away(401)), Scene(turns_away(403))],
    policies.WRONG_ROLE.signal: [
        Scene(turns_away(421, **{"X-QuestDB-Role": each}), second=Host())
        for each in ("REPLICA", "PRIMARY_CATCHUP")
    ],
    policies.NOT_UPGRADED.signal: [
        *(Scene(turns_away(each), second=Host()) for each in (200, 404, 421, 426, 500, 503)),
        Scene(Host(headers={"X-QWP-Version": "2"}), second=Host()),
    ],
    policies.UNREADABLE.signal: [
        Scene(once(lambda wire: wire.answer(b"\0"))),
        Scene(once(lambda wire: wire.answer(b""))),
    ],
    policies.ACK_OF_UNSENT.signal: [
        Scene(once(lambda wire: wire.ok(99))),
        Scene(once(lambda wire: wire.ok(2**63 - 1))),
    ],
    policies.SILENCE.signal: [
        Scene(
            Host(on_message=lambda wire: None if wire.number == 0 else wire.ok(), pongs=False),
        )
    ],
    policies.NO_PROGRESS.signal: [Scene(once(lambda _wire: None))],
    policies.TOO_LARGE.signal: [
        Scene(
            Host(headers={"X-QWP-Max-Batch-Size": "20"}),
            second=Host(headers={"X-QWP-Max-Batch-Size": "24"}),
        )
    ],
}
CASES: Final = [
    pytest.param(rule, scene, id=f"{rule.signal}-{number}")
    for rule in RULES
    for number, scene in enumerate(SCENES[rule.signal])
]


def played(rule: Rule, scene: Scene, limits: OutboxLimits | None = None) -> tuple[World, Letters]:
    """Return what became of three frames."""
    letters = Letters()
    hosts = [scene.host] if scene.second is None else [scene.host, scene.second]
    world = World(
        *hosts,
        limits=limits or OutboxLimits(dwell=0.0, defaults=QWP_POLICIES),
        dead_letters=letters,
        dictionary=SymbolDictionary(list(scene.symbols)),
    )
    first = b"x" * 30 if rule is policies.TOO_LARGE else FRAMES[0]
    world.append(first, *FRAMES[1:])
    world.run(400.0)
    return world, letters


def test_every_row_has_a_scene() -> None:
    """So that no row is text alone."""
    assert set(SCENES) == {rule.signal for rule in RULES}
    assert len(SCENES) == len(RULES)


@pytest.mark.parametrize(("rule", "scene"), CASES)
def test_the_sender_does_what_the_row_says(rule: Rule, scene: Scene) -> None:
    """By default, for the first of three frames."""
    world, letters = played(rule, scene)
    halted = rule.follows is Effect.HALT
    assert (world.outbox.failure is not None) is halted
    assert world.outbox.drained is not halted
    assert world.journal.acked_fsn == (-1 if halted else 2)
    assert len(letters.frames) == (rule.follows is Effect.DEAD_LETTER)
    if rule.follows is Effect.NEXT_HOST:
        assert world.dialled[1] != world.dialled[0]
    if rule.follows is Effect.RECONNECT:
        assert len(world.wires) == 2


@pytest.mark.parametrize(("rule", "scene"), CASES)
def test_the_error_handler_is_told_the_category_of_the_row(rule: Rule, scene: Scene) -> None:
    """Once, or not at all where nothing is about a frame or the slot."""
    world, _ = played(rule, scene)
    told = [each.category for each in world.inbox]
    if rule is policies.ABOUT_SYMBOLS:
        assert len(told) == 1
    else:
        assert told == ([] if rule.category is None else [rule.category])


CHOICES: Final = [
    pytest.param(rule, SCENES[rule.signal][0], policy, id=f"{rule.signal}-{policy.value}")
    for rule in RULES
    if rule.option and rule is not policies.CREDENTIALS
    for policy in (Policy.HALT, Policy.DEAD_LETTER, Policy.DROP, Policy.RETRY)
    if not (rule is policies.TOO_LARGE and policy is Policy.RETRY)
]


@pytest.mark.parametrize(("rule", "scene", "policy"), CHOICES)
def test_the_option_of_a_row_chooses(rule: Rule, scene: Scene, policy: Policy) -> None:
    """Where the row has one, it is obeyed."""
    assert rule.category is not None
    text = f"ws::addr=a;sf_dir=d;{rule.option}={policy.value};"
    limits = parse_connect_string(text).forward_config().limits
    world, letters = played(rule, scene, limits)
    assert (world.outbox.failure is not None) is (policy is Policy.HALT)
    assert len(letters.frames) == (policy is Policy.DEAD_LETTER)
    assert world.outbox.counters.dropped == (policy is Policy.DROP)


@pytest.mark.parametrize("policy", [Policy.DROP, Policy.DEAD_LETTER, Policy.RETRY])
@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule.category in QWP_FORCED and rule.decided is None]
)
def test_no_option_overrides_a_forced_halt(rule: Rule, policy: Policy) -> None:
    """Neither the key for all, nor settings of a program; the key of its own is refused."""
    assert rule.category is not None
    assert not rule.option
    text = f"ws::addr=a;sf_dir=d;on_server_error={policy.value};"
    limits = parse_connect_string(text).forward_config().limits
    for scene in SCENES[rule.signal]:
        world, letters = played(rule, scene, limits)
        assert world.outbox.failure is not None
        assert not letters.frames
        assert world.journal.acked_fsn == -1
    with pytest.raises(ConfigError, match=rule.category.option):
        parse_connect_string(f"ws::addr=a;{rule.category.option}={policy.value};").forward_config()


def test_every_close_code_has_a_row() -> None:
    """Those of section 15.1 halt; there is no third kind."""
    halting = {code for code in range(1000, 5000) if rule_of_close(code).follows is Effect.HALT}
    assert halting == {1002, 1003, 1007, 1008, 1009, 1010}


def test_what_the_document_drops_is_dropped_in_memory() -> None:
    """There is no folder for a copy."""
    limits = parse_connect_string("ws::addr=a;").forward_config().limits
    rule = STATUSES[Status.SCHEMA_MISMATCH]
    world, letters = played(rule, SCENES[rule.signal][0], limits)
    assert (world.outbox.counters.dropped, letters.frames) == (1, [])


def test_the_rows_that_differ_from_the_document_name_their_reason() -> None:
    """By the id of a row of the register."""
    for rule in RULES:
        assert not rule.differs or "(SF-" in rule.differs
    assert {Category.SCHEMA_MISMATCH, Category.WRITE_ERROR} <= {
        rule.category for rule in RULES if rule.differs
    }
