"""Answers with one wrong header field, or a wrong checksum, in the place of a right one."""

from collections.abc import Mapping
from dataclasses import dataclass

from lance_conformance.client.cases.registry import BOTH, SPECIFIED, add_case
from lance_conformance.client.checks import Closes
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import Op, fetch, list_topics, send
from lance_conformance.client.scripted.script import Answer, Change, Other, Trigger, Xor, on
from lance_conformance.wire.frame import MAX_ANSWER


@dataclass(frozen=True, slots=True)
class FaultyAnswer:
    """An operation, and the answer that carries a fault.

    Attributes:
        name: As it stands in ids.
        op: The operation.
        trigger: The request that is answered.
        what: The answer in words.
    """

    name: str
    op: Op
    trigger: Trigger
    what: str

    @property
    def beginning(self) -> str:
        """The answer in words, at the beginning of a sentence."""
        return self.what[0].upper() + self.what[1:]


ACK = FaultyAnswer("ack", send(b"one"), "ingest", "an Ack")
TOPICS = FaultyAnswer("topics", list_topics(), "list", "a TopicResponse")
FETCHED = FaultyAnswer("fetched", fetch(), "fetch", "a FetchResponse")
FAULTY_ANSWERS = (ACK, TOPICS, FETCHED)

NOT_LATE = ("protocol", "closed", "fatal", "retriable")
"""Kinds of errors of a client that has noticed, and did not merely run out of time."""
SOON = 0.05
"""Parts of the time of an operation in which an answer has arrived."""

HEADS: Mapping[str, tuple[str, str, Mapping[str, Change], tuple[str, ...]]] = {
    "magic": ("11.1/magic", "wrong magic bytes", {"magic": b"LANX"}, BOTH),
    "version-0": ("17.5/version", "version 0", {"version": 0}, BOTH),
    "version-2": ("17.5/version", "version 2", {"version": 2}, BOTH),
    "crc": ("17.3/header-crc", "one bit of the header CRC inverted", {"header_crc": Xor(1)}, BOTH),
    "crc-high": (
        "17.3/header-crc", "the highest bit of the header CRC inverted",
        {"header_crc": Xor(1 << 31)}, BOTH,
    ),
    "crc-zero": ("17.3/header-crc", "header CRC 0", {"header_crc": 0}, BOTH),
    "crc-other": (
        "17.3/header-crc", "a header CRC of the other polynomial", {"header_crc": Other()}, BOTH,
    ),
    "bit-7": ("3.3/bit-7", "flag bit 7 set", {"flags": Xor(0x80)}, SPECIFIED),
    "reserved": ("3.2/reserved", "reserved bytes that are not 0", {"reserved": 1}, SPECIFIED),
    "reserved-high": (
        "3.2/reserved", "a second reserved byte that is not 0", {"reserved": 0x100}, SPECIFIED,
    ),
}  # fmt: skip
"""Clause, words, fault and dialects by name."""

PAYLOADS: Mapping[str, tuple[str, Mapping[str, Change]]] = {
    "payload-crc": ("one bit of the payload CRC inverted", {"payload_crc": Xor(1)}),
    "payload-crc-zero": ("payload CRC 0", {"payload_crc": 0}),
    "payload-crc-other": ("a payload CRC of the other polynomial", {"payload_crc": Other()}),
}
LENGTHS: Mapping[str, tuple[str, int]] = {
    "length-4g": ("4 GiB of payload announced", 0xFFFF_FFFF),
    "length-over": ("one byte more than the largest payload announced", MAX_ANSWER + 1),
}


def _faulty(faulty: FaultyAnswer, header: Mapping[str, Change], *kinds: str) -> ClientCase:
    answer = Answer(header=header)
    return ClientCase((faulty.op.safe(*kinds),), (on(faulty.trigger, answer),))


for faulty in FAULTY_ANSWERS:
    for name, (clause, words, fault, dialects) in HEADS.items():
        add_case(
            f"head/{name}-{faulty.name}",
            clause,
            f"{faulty.beginning} with {words} is not believed.",
            _faulty(faulty, fault),
            dialects=dialects,
        )
    for name, (words, length) in LENGTHS.items():
        add_case(
            f"head/{name}-{faulty.name}",
            "13.1/payload-limit",
            f"{faulty.beginning} with {words} is given up at once, not waited for.",
            _faulty(faulty, {"payload_length": length}, *NOT_LATE),
        )

for faulty in (TOPICS, FETCHED):
    for name, (words, fault) in PAYLOADS.items():
        add_case(
            f"head/{name}-{faulty.name}",
            "9.4/checked",
            f"{faulty.beginning} with {words} is not believed.",
            _faulty(faulty, fault),
        )

for name, words, fault in (
    ("magic", "wrong magic bytes", {"magic": b"LANX"}),
    ("version-2", "version 2", {"version": 2}),
    ("crc", "a wrong header CRC", {"header_crc": Xor(1)}),
    ("payload-crc", "a wrong payload CRC", {"payload_crc": Xor(1)}),
):
    add_case(
        f"head/closes-after-{name}",
        "11.3/closes",
        f"The connection on which an answer with {words} came is closed.",
        ClientCase(
            (TOPICS.op.safe(),),
            (on(TOPICS.trigger, Answer(header=fault)),),
            checks=(Closes(),),
        ),
    )

add_case(
    "head/closes-after-ack-magic", "11.3/closes",
    "The connection on which something with wrong magic bytes came in place of an Ack is closed.",
    ClientCase((ACK.op.safe(),), (on(ACK.trigger, Answer(header={"magic": b"LANX"})),),
               checks=(Closes(),)),
    quick=False,
)  # fmt: skip
