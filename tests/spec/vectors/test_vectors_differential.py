"""The generated codec and the vectors' own reader, which share no code, agree on damaged bytes.

``LANCE_VECTOR_ROUNDS`` sets how often each example is damaged; 600 takes twenty seconds.
"""

import os
import random
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lance_spec.errors import DecodeError
from lance_spec.messages import fluvio, groups, qwp, replication, rustlog, store_forward
from lance_spec.messages._cursor import whole
from lance_spec.vectors._foreign import _check_seal, plain

ROUNDS = int(os.environ.get("LANCE_VECTOR_ROUNDS", "15"))
CHECKOUT = Path(__file__).parents[3] / "vectors"
SOURCES = {
    "fluvio": (
        fluvio,
        ("fluvio.inside", "INNER"),
        ("fluvio.producing", "PRODUCING"),
        ("fluvio.consuming", "CONSUMING"),
        ("fluvio.admin", "OBJECTS"),
        ("fluvio.admin", "ADMIN"),
    ),
    "qwp": (qwp, ("qwp.grammar", "PARTS"), ("qwp.forms", "FORMS"), ("qwp.forms", "SYMBOL_FILE")),
    "rustlog": (rustlog, ("rustlog.messages", "EXAMPLES")),
    "store_forward": (store_forward, ("journal.slot_messages", "EXAMPLES")),
    "groups": (groups, ("cluster.group_messages", "EXAMPLES")),
    "replication": (replication, ("cluster.replication_messages", "EXAMPLES")),
}
"""Generated modules, and where the generator keeps its second description of their messages."""


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The generator, which is no installed package."""
    monkeypatch.syspath_prepend(str(CHECKOUT))
    yield
    for name in [each for each in sys.modules if each.split(".")[0] == "generate"]:
        monkeypatch.delitem(sys.modules, name)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Bytes with one to three changes: other values, missing ones, more of them."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        place = chance.randrange(len(data) + 1)
        more = bytes(chance.choice((0, 1, 0x7F, 0x80, 0xFF)) for _ in range(chance.randrange(4)))
        gone = chance.choice((0, 1, len(more), len(data)))
        data = data[:place] + more + data[place + gone :]
    return data


Verdict = tuple[str, int] | None


def ours(module: Any, name: str, data: bytes, version: int) -> tuple[Any, Verdict]:
    """What the generated class reads, or where it stops."""
    cls = getattr(module, name)
    try:
        flat = module is store_forward
        decoded = cls.decode(data) if flat else whole(cls, data, version)
        _check_seal(decoded)
    except DecodeError as error:
        return None, (error.field, error.offset)
    return comparable(plain(decoded)), None


def theirs(struct: Any, data: bytes, version: int) -> tuple[Any, Verdict]:
    """What the vectors' own reader reads, or where it stops."""
    refused = import_module("generate.codec.cursor").RefusedError
    try:
        return comparable(struct.show(struct.decode(data, version), version)), None
    except refused as error:
        return None, (error.field, error.offset)


def comparable(value: Any) -> Any:
    """Numbers and bytes as text, whoever has read them."""
    if isinstance(value, dict):
        return {name: comparable(each) for name, each in value.items()}
    if isinstance(value, list):
        return [comparable(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    return str(int(value)) if isinstance(value, int) else value


def holds(read: Any, wanted: Any) -> bool:
    """Whether everything that one has read was read by the other."""
    if isinstance(wanted, dict):
        return isinstance(read, dict) and all(holds(read.get(n), w) for n, w in wanted.items())
    if isinstance(wanted, list):
        return isinstance(read, list) and len(read) == len(wanted) and all(map(holds, read, wanted))
    return bool(read == wanted)


@pytest.mark.usefixtures("generator")
@pytest.mark.parametrize("system", SOURCES)
def test_two_readers_agree_on_damaged_messages(system: str) -> None:
    """Both read the same, or both stop at the same place.

    Flat messages are measured first and read then, so that of two faults either may be named. A
    null flag beyond 1, which nobody writes, is refused by one and a flag to the other.
    """
    module, *places = SOURCES[system]
    chance, read = random.Random(7), 0
    for file, name in places:
        for struct, *_, examples in getattr(import_module(f"generate.{file}"), name):
            for example in examples * ROUNDS:
                data = damaged(struct.encode(example.value, example.version), chance)
                found, stopped = ours(module, struct.name, data, example.version)
                wanted, refused = theirs(struct, data, example.version)
                if stopped and stopped[0] == "nulls" and stopped != refused:
                    continue
                assert bool(stopped) == bool(refused), (struct.name, data.hex(), stopped, refused)
                if module is not store_forward:
                    assert stopped == refused, (struct.name, data.hex())
                assert refused or holds(found, wanted), (struct.name, data.hex())
                read += not refused
    assert read > 20, "damage that nothing survives shows little"
