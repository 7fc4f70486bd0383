"""Servers that are wrong about frames, their order, and each other's connections."""

from lance_conformance.rustlog.golden.framing import LIMIT
from lance_conformance.rustlog.golden.rules import Rules
from lance_conformance.rustlog.golden.state import Connection, Refused
from lance_conformance.rustlog.mutants.registry import (
    BINARY,
    BOTH,
    JSON,
    golden,
    mutant,
)


@mutant(Rules.length_ok)
def waits_for_nothing(_server: Rules, size: int, /) -> bool:
    """An empty frame is passed on as if it were one."""
    return 0 < size <= LIMIT or size == 0


@mutant(Rules.length_ok)
def takes_a_byte_too_many(_server: Rules, size: int, /) -> bool:
    """The limit is one byte higher."""
    return 1 <= size <= LIMIT + 1


@mutant(Rules.length_ok)
def waits_for_4_gib(_server: Rules, size: int, /) -> bool:
    """Only what does not fit in a signed number is taken, as in a cast."""
    return 1 <= size <= LIMIT or size == 2**32 - 1


@mutant(Rules.length_ok, only=BINARY)
def refuses_the_largest_frame(_server: Rules, size: int, /) -> bool:
    """The limit is one byte lower."""
    return 1 <= size < LIMIT


@mutant(Rules.closes)
def stays_after_an_empty_frame(_server: Rules, size: int, /) -> bool:
    """The connection goes on after an empty frame."""
    return size > 0


@mutant(Rules.closes)
def stays_after_a_large_frame(_server: Rules, size: int, /) -> bool:
    """The connection goes on after the length of a frame that is too large."""
    return size == 0


@mutant(Rules.closes)
def stays_after_4_gib(_server: Rules, size: int, /) -> bool:
    """The connection goes on after the highest length there is."""
    return size < 2**32 - 1


@mutant(Rules.frame_refusal, only=BINARY)
def calls_frame_errors_decode_errors(server: Rules, size: int, /) -> Refused:
    """A bad length has the code of a bad request."""
    return Refused(2, golden(server).frame_refusal(size).text)


@mutant(Rules.frame_refusal, only=BINARY)
def has_other_words_for_empty_frames(server: Rules, size: int, /) -> Refused:
    """An empty frame is called an error and nothing else."""
    return Refused(1, "empty frame") if size == 0 else golden(server).frame_refusal(size)


@mutant(Rules.frame_refusal, only=BINARY)
def has_other_words_for_large_frames(server: Rules, size: int, /) -> Refused:
    """The size of a frame that is too large is not told."""
    return Refused(1, "Frame error: frame too large") if size else golden(server).frame_refusal(0)


@mutant(Rules.frame_refusal, only=BINARY)
def refuses_empty_frames_with_code_3(server: Rules, size: int, /) -> Refused:
    """An empty frame has a code of its own."""
    refusal = golden(server).frame_refusal(size)
    return refusal if size else Refused(3, refusal.text)


@mutant(Rules.spreads)
def frame_errors_end_every_connection(_server: Rules, _connection: Connection, /) -> bool:
    """One bad length closes all connections."""
    return True


@mutant(Rules.holds_up)
def serves_one_frame_at_a_time(_server: Rules, _connection: Connection, /) -> bool:
    """While one client is in the middle of a frame, nobody is served."""
    return True


@mutant(Rules.kept)
def forgets_what_is_not_whole(_server: Rules, _tail: bytearray, _whole: int, /) -> bytearray:
    """A frame must come in one read."""
    return bytearray()


@mutant(Rules.kept)
def forgets_what_follows_a_frame(_server: Rules, tail: bytearray, whole: int, /) -> bytearray:
    """The beginning of a frame after a whole one is lost."""
    return bytearray() if whole else tail


@mutant(Rules.kept)
def forgets_lengths_in_pieces(_server: Rules, tail: bytearray, _whole: int, /) -> bytearray:
    """A length must come in one read."""
    return bytearray() if len(tail) < 4 else tail


@mutant(Rules.kept)
def forgets_a_length_alone(_server: Rules, tail: bytearray, _whole: int, /) -> bytearray:
    """A length without a byte of its payload is lost."""
    return bytearray() if len(tail) == 4 else tail


@mutant(Rules.kept)
def forgets_single_bytes(_server: Rules, tail: bytearray, _whole: int, /) -> bytearray:
    """A first byte that comes alone is lost."""
    return bytearray() if len(tail) == 1 else tail


@mutant(Rules.kept)
def waits_for_at_least_half(_server: Rules, tail: bytearray, _whole: int, /) -> bytearray:
    """All but the last byte of a frame is taken for nothing when it ends there."""
    size = int.from_bytes(tail[:4], "big")
    return bytearray() if len(tail) >= 4 and len(tail) == 3 + size else tail


@mutant(Rules.served)
def serves_one_frame_a_read(_server: Rules, frames: list[bytes], /) -> list[bytes]:
    """Of the frames of one read only the first is served."""
    return frames[:1]


@mutant(Rules.served, only=BINARY)
def serves_two_frames_a_read(_server: Rules, frames: list[bytes], /) -> list[bytes]:
    """Of the frames of one read only two are served."""
    return frames[:2]


@mutant(Rules.served, only=BINARY)
def serves_sixteen_frames_a_read(_server: Rules, frames: list[bytes], /) -> list[bytes]:
    """Of the frames of one read only sixteen are served."""
    return frames[:16]


@mutant(Rules.served, only=BINARY)
def fetches_before_it_produces(_server: Rules, frames: list[bytes], /) -> list[bytes]:
    """Frames of one read are served by their types, reads first."""
    return sorted(frames, key=lambda frame: frame[:1] == b"\1")


@mutant(Rules.arranged, only=BINARY)
def answers_pings_first(_server: Rules, answers: list[bytes], /) -> list[bytes]:
    """Answers to Pings overtake the others."""
    return sorted(answers, key=lambda answer: answer != b"\xff")


@mutant(Rules.arranged, only=BINARY)
def answers_pings_twice(_server: Rules, answers: list[bytes], /) -> list[bytes]:
    """A Ping is answered with two."""
    return [each for answer in answers for each in [answer] * (1 + (answer == b"\xff"))]


@mutant(Rules.arranged, only=BINARY)
def answers_errors_last(_server: Rules, answers: list[bytes], /) -> list[bytes]:
    """Errors are sent after the other answers of a read."""
    return sorted(answers, key=lambda answer: answer[:1] == b"\xfe")


@mutant(Rules.arranged, only=BOTH)
def answers_binary_first(_server: Rules, answers: list[bytes], /) -> list[bytes]:
    """JSON answers of a read are sent after the binary ones."""
    return sorted(answers, key=lambda answer: answer[:1] == b"{")


@mutant(Rules.after_error, only=BINARY)
def an_error_ends_the_read(_server: Rules, _rest: list[bytes], /) -> list[bytes]:
    """What came in the same read after a request that was refused is lost."""
    return []


@mutant(Rules.gone, only=BINARY)
def carries_out_what_is_cut_off(server: Rules, tail: bytes, /) -> None:
    """A Produce that its connection ends in the middle of is carried out all the same."""
    if tail[4:5] == b"\1":
        topic = tail[7 : 7 + int.from_bytes(tail[5:7], "big")].decode()
        server.memory.topics[topic][0].append(b"cut off")


@mutant(Rules.framed, only=BINARY)
def counts_the_length_of_pings_itself(server: Rules, payload: bytes, /) -> bytes:
    """The length of a Ping counts its own four bytes."""
    return b"\0\0\0\5\xff" if payload == b"\xff" else golden(server).framed(payload)


@mutant(Rules.framed, only=BINARY)
def cuts_long_answers(server: Rules, payload: bytes, /) -> bytes:
    """The answer to a Fetch that takes more than 16 KiB lacks its last byte."""
    cut = payload[:1] == b"\2" and len(payload) > 16_384
    return golden(server).framed(payload[:-1] if cut else payload)


@mutant(Rules.form_of_frame_errors, only="json")
def refuses_lengths_in_binary(_server: Rules, /) -> str:
    """Errors about lengths are binary, although everything else is JSON."""
    return "binary"


@mutant(Rules.form, only=BOTH)
def takes_space_for_a_type(server: Rules, payload: bytes, /) -> str:
    """Only a brace opens JSON."""
    return "binary" if payload[:1] in (b" ", b"\r", b"\n") else golden(server).form(payload)


@mutant(Rules.form, only=BOTH)
def takes_a_line_end_for_a_type(server: Rules, payload: bytes, /) -> str:
    """The end of a line does not open JSON."""
    return "binary" if payload[:1] in (b"\r", b"\n") else golden(server).form(payload)


@mutant(Rules.form, only=BOTH)
def takes_every_tab_for_a_type(server: Rules, payload: bytes, /) -> str:
    """A tab is the type of a request whatever follows."""
    return "binary" if payload[:1] == b"\t" else golden(server).form(payload)


@mutant(Rules.form, only=BOTH)
def takes_every_tab_for_json(server: Rules, payload: bytes, /) -> str:
    """A tab alone is JSON, too, so metrics cannot be asked for."""
    return "json" if payload[:1] == b"\t" else golden(server).form(payload)


@mutant(Rules.form, only=BOTH)
def stays_with_json(server: Rules, payload: bytes, /) -> str:
    """After JSON that could not be read, a type that nobody knows is taken for more of it."""
    scars = server.memory.scars
    if payload[:2] == b"{n":
        scars.add("json")
    if payload == b"\x0b" and "json" in scars:
        scars.discard("json")
        return "json"
    return golden(server).form(payload)


@mutant(Rules.form, only="binary")
def serves_json_though_binary(_server: Rules, payload: bytes, /) -> str:
    """A brace opens JSON, although only binary is served."""
    return "json" if payload[:1] == b"{" else "binary"


@mutant(Rules.form, only="json")
def serves_binary_though_json(_server: Rules, payload: bytes, /) -> str:
    """A byte that opens no JSON is a type, although only JSON is served."""
    return "json" if payload[:1] in b"{ \t\r\n" else "binary"


@mutant(Rules.stays_after_bad_json, only=JSON)
def closes_after_bad_json(_server: Rules, /) -> bool:
    """A JSON request that is refused ends the connection."""
    return False
