"""Family ``consumer_id``: the number that stands for a consumer's name."""

from typing import Any

from generate.document import Test, document, group, note
from generate.plain import Plain

NOTES = {
    "BlockEdge": note(
        "EDGE_CASE",
        "A name whose length lies at the edge of what the hash takes in at once.",
        "A hash that gets the last block wrong finds the commits of none of these names.",
        "5.14",
    ),
    "Utf8": note(
        "EDGE_CASE",
        "A name beyond ASCII.",
        "A hash over letters instead of bytes finds other commits, or none.",
        "AMB-24",
    ),
}
SEEN = {
    "name": "DefaultHasher of rustc",
    "version": "1",
    "how": "captured: ids that the published Rust client's own hasher gives",
}
KNOWN = {
    "my-consumer": 18044035401257023742,
    "worker-1": 16750551406947868958,
    "test": 14402189752926126668,
    "a": 8186225505942432243,
}
"""Ids that a program in the field has computed."""
MASK = 2**64 - 1
START = ("somepseu", "dorandom", "lygenera", "tedbytes")
"""The words that SipHash begins with."""


def consumer_id(name: str) -> int:
    """Return SipHash-1-3 with a key of zeros over a name and a byte 0xFF."""
    data = name.encode() + b"\xff"
    last = data[len(data) // 8 * 8 :].ljust(7, b"\0") + bytes([len(data) % 256])
    blocks = [data[at : at + 8] for at in range(0, len(data) // 8 * 8, 8)]
    state = [int.from_bytes(word.encode(), "big") for word in START]
    for block in (*blocks, last):
        word = int.from_bytes(block, "little")
        state[3] ^= word
        state = _mixed(*state)
        state[0] ^= word
    state[2] ^= 0xFF
    for _ in range(3):
        state = _mixed(*state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _mixed(a: int, b: int, c: int, d: int) -> list[int]:
    a, c = a + b & MASK, c + d & MASK
    b, d = _turned(b, 13) ^ a, _turned(d, 16) ^ c
    a = _turned(a, 32)
    c, a = c + b & MASK, a + d & MASK
    b, d = _turned(b, 17) ^ c, _turned(d, 21) ^ a
    return [a, b, _turned(c, 32), d]


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & MASK


def build() -> dict[str, Any]:
    """Return the family's file."""
    for name, known in KNOWN.items():
        assert consumer_id(name) == known, name
    header = [
        "The name of a consumer in UTF-8, and `fields.consumer_id`, the number by which the",
        "published Rust client commits for it and names its offset file: SipHash-1-3 with a key",
        "of zeros, over the name and a byte 0xFF.",
    ]
    known = [
        _test(Plain("captured-consumer-id", CLAUSE, "capture"), each, each, "") for each in KNOWN
    ]
    groups = [
        group("ConsumerId", [*_names()]),
        group("ConsumerId", known) | {"source": SEEN},
    ]
    return document("consumer_id", header, NOTES, groups)


CLAUSE = "5.14/consumer-id"


def _names() -> list[Test]:
    plain = Plain("consumer-id", CLAUSE)
    edges = (0, 1, 6, 7, 8, 14, 15, 16, 17, 254, 255, 256)
    tests = [_test(plain, f"of-{size}-bytes", "n" * size, "BlockEdge") for size in edges]
    tests += [
        _test(plain, name, text, "Utf8") for name, text in (("umlaut", "größe"), ("wide", "日本"))
    ]
    return [*tests, _test(plain, "zero-byte", "a\0b", "")]


def _test(plain: Plain, name: str, text: str, flag: str) -> Test:
    fields = {"consumer_id": str(consumer_id(text))}
    comment = f"The name {text!r}." if len(text) < 20 else f"A name of {len(text)} letters."
    test = plain.valid(name, comment, text.encode(), fields)
    return test | {"flags": [flag]} if flag else test
