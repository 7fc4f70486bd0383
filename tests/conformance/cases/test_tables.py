"""Cases that are data: each stimulus has exactly its one fault, and says what it means."""

from types import SimpleNamespace
from typing import Any

import pytest

from lance_conformance.dialect import PRESETS
from lance_conformance.server.case_context import Topic
from lance_conformance.server.cases import all_cases
from lance_conformance.server.cases.played import PlayedCase
from lance_conformance.server.cases.tables import rows
from lance_conformance.spec.clauses import clauses
from lance_conformance.wire.frame import Decoder, Frame, faulty_field

ROWS = list(rows())
DUELS = [row for row in ROWS if "right" in row]
EXCHANGES = [row for row in ROWS if "steps" in row]
TOPICS = [Topic(n, f"topic-{n}") for n in range(1, 9)]
DIALECTS = tuple(PRESETS)


def played_case(row: Any, dialect: str) -> PlayedCase:
    """The placeholders of a case, filled without a server."""
    stub: Any = SimpleNamespace(
        dialect=PRESETS[dialect], specified=dialect == "specified", unknown_topic=0xF0000000
    )
    return PlayedCase(stub, row, TOPICS)


def named(row: Any) -> str:
    """How a case is called in a test report."""
    return str(row["id"])


def test_a_row_is_a_duel_or_an_exchange() -> None:
    """Never both; most rows are duels."""
    assert len(DUELS) + len(EXCHANGES) == len(ROWS)
    assert [row["id"] for row in DUELS if row in EXCHANGES] == []
    assert len(DUELS) > len(EXCHANGES)


def test_every_row_is_a_case() -> None:
    """With the title, the clause and the dialects that it states."""
    cases = {case.id: case for case in all_cases()}
    for row in ROWS:
        case = cases[row["id"]]
        assert (case.title, case.clause) == (row["title"], clauses()[row["clause"]])
        assert set(case.dialects) == set(row.get("dialects", DIALECTS))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("row", DUELS, ids=named)
def test_a_stimulus_differs_from_its_twin_in_one_field(row: Any, dialect: str) -> None:
    """The fault, the whole fault and nothing but the fault; the twin is a right frame."""
    played = played_case(row, dialect)
    right = played.frame(row["right"])
    assert faulty_field(right, played.wrong(right, row["fault"])) == row["fault"]["field"]
    assert read(right, dialect).payload == right.payload


@pytest.mark.parametrize("row", EXCHANGES, ids=named)
def test_an_exchange_sends_right_frames_only(row: Any) -> None:
    """What may be wrong in it is what the records say, not how the frames are made."""
    for dialect in row.get("dialects", DIALECTS):
        played = played_case(row, dialect)
        for step in row["steps"]:
            for frame in map(played.frame, step["send"]):
                assert read(frame, dialect).batch_id == frame.batch_id


def read(frame: Frame, dialect: str) -> Frame:
    """What the strict decoder makes of a frame."""
    checksum = PRESETS[dialect].compute
    decoder = Decoder(checksum)
    decoder.feed(frame.encode(checksum))
    seen = decoder.next()
    assert isinstance(seen, Frame)
    return seen


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [
        ({"kind": "set", "field": "version", "value": 2}, 2),
        ({"kind": "set", "field": "magic", "value": "6c616e63"}, b"lanc"),
        ({"kind": "xor", "field": "header_crc", "mask": "1"}, 0xA3A28B0A),
        ({"kind": "byte-order", "field": "header_crc"}, 0x0B8BA2A3),
        ({"kind": "other-polynomial", "field": "header_crc"}, 0x539C1E06),
        ({"kind": "checksum-of", "field": "payload_crc", "bytes": ["68656c6c6f"]}, 0x9A71BB4C),
    ],
    ids=lambda value: str(value.get("kind")) if isinstance(value, dict) else "",
)
def test_faults_do_what_they_say(fault: Any, wanted: object) -> None:
    """Against values that were worked out by hand: the header of a Keepalive, and 'hello'."""
    row: Any = {"id": "x/y", "clause": "3.2/reserved"}
    wrong = played_case(row, "specified").wrong(Frame(flags=0x20), fault)
    assert getattr(wrong, fault["field"]) == wanted


def test_pieces_are_put_together() -> None:
    """Hexadecimal, a run, a topic's id, and an id that nobody has."""
    played = played_case({"id": "x/y", "clause": "3.2/reserved"}, "deployed")
    pieces = ["0102", {"repeat": "ff00", "times": 2}, {"topic": 3}, {"unknown": True}]
    assert played.bytes_of(pieces) == bytes.fromhex("0102 ff00ff00 03000000 000000f0")
