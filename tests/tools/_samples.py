"""Messages that nest, drawn from the grammar, and the same with one fault."""

from functools import cache
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_spec import vectors
from lance_spec.codec.composed import codec
from lance_spec.errors import DecodeError
from lance_spec.explain import explain_message
from lance_spec.ir.families import composed as families
from lance_spec.strategies.composed import composed

PER_MESSAGE = 12


@cache
def samples(family: str) -> list[tuple[str, bytes]]:
    """Return names and bytes of messages: valid ones, cut ones and ones with a flipped bit."""
    versions = families()[family].versions
    version = versions[1] if versions else 0
    found = []
    for each in families()[family].messages:
        if each.fields:
            for data in _drawn(f"{family}.{each.name}", version):
                found += [(each.name, one) for one in data if one]
    return found


def faulty(family: str, name: str, data: bytes) -> bool:
    """Whether Python finds a fault in a message.

    Records in a batch of Fluvio's do not count: they may be compressed, and other languages
    leave them to their caller, as the one field of bytes that they are.
    """
    versions = families()[family].versions
    explained = explain_message(f"{family}.{name}", data, versions[1] if versions else 0)
    message = explained.parts[0]
    return any(row.verdict == "fault" for row in message.rows)


def readable(family: str, name: str, data: bytes) -> bool:
    """Whether Python reads a message; most other languages leave its checksum to their caller."""
    try:
        codec(f"{family}.{name}").decode(data)
    except DecodeError:
        return False
    return True


def _drawn(name: str, version: int) -> list[tuple[bytes, ...]]:
    found: list[tuple[bytes, ...]] = []

    @settings(
        max_examples=PER_MESSAGE,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(value=composed(name, version), place=st.integers(0, 2**16), data=st.data())
    def draw(value: Any, place: int, data: st.DataObject) -> None:
        whole = _encoded(value, version)
        cut = whole[: place % max(len(whole), 1)]
        bit = data.draw(st.integers(0, max(8 * len(whole) - 1, 0)))
        flipped = bytearray(whole)
        if flipped:
            flipped[bit // 8] ^= 1 << bit % 8
        found.append((whole, cut, bytes(flipped), whole + b"\0"))

    draw()
    return found


def _encoded(value: Any, version: int) -> bytes:
    try:
        return bytes(value.encode(version))
    except TypeError:
        return bytes(value.encode())


VECTORS = {"groups": "group_message", "qwp": "qwp_message", "rustlog": "rustlog_message"}
"""The vectors whose bytes are one message, by family; those of Fluvio depend on versions."""


def judged(family: str, *, checksums: bool) -> list[tuple[str, bytes, bool]]:
    """Return the vectors of a family: the message, its bytes, and whether they are valid.

    Args:
        family: one of `VECTORS`.
        checksums: keep those whose only fault is a checksum.
    """
    return [
        (each.group["message"], each.data, each.result == "valid")
        for each in vectors.load(VECTORS[family])
        if each.data and (checksums or each.outcomes[0].get("reason") != "checksum")
    ]
