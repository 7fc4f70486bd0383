"""The text protocol of published group coordinators (AMB-38).

A request is one message without an end mark, at most 4096 bytes, by default to port 19920. The
answer is what the published coordinator prints for its own value.
"""

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self, TypeAlias

from lance_spec.checksum import Buffer
from lance_spec.errors import DecodeError, EncodeError

MAX_MESSAGE: Final = 4096
"""Most bytes of a request or answer."""
_DIGITS: Final = 20
_LAST_CHARACTER: Final = 0x10FFFF


class Verb(StrEnum):
    """What a member asks."""

    JOIN = "JOIN"
    HEARTBEAT = "HEARTBEAT"
    GET_ASSIGNMENTS = "GET_ASSIGNMENTS"
    LEAVE = "LEAVE"


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A member's request.

    Attributes:
        verb: what it asks.
        worker_id: who asks.
    """

    verb: Verb
    worker_id: str

    def encode(self) -> bytes:
        """Return the request's bytes.

        Raises:
            EncodeError: the worker's id is empty or makes the request too long.
        """
        encoded = f"{self.verb}:{self.worker_id}".encode()
        if not self.worker_id or len(encoded) > MAX_MESSAGE:
            expected = f"an id, and at most {MAX_MESSAGE} bytes in all"
            raise EncodeError("GroupRequest", "worker_id", expected, f"{len(encoded)} bytes")
        return encoded

    @classmethod
    def decode(cls, data: Buffer) -> Self:
        """Read a request.

        Raises:
            DecodeError: it is too long, no UTF-8, has no known verb or no worker's id.
        """
        verb, colon, worker_id = _text("GroupRequest", data).partition(":")
        if not colon or verb not in set(Verb):
            expected = f"one of {', '.join(Verb)}, and a colon"
            raise DecodeError("GroupRequest", "verb", 0, expected, repr(verb[:80]))
        if not worker_id:
            raise DecodeError("GroupRequest", "worker_id", len(verb) + 1, "an id", "nothing")
        return cls(Verb(verb), worker_id)


@dataclass(frozen=True, slots=True)
class JoinAccepted:
    """Answers JOIN: the member's name, the generation, and the ids of its topics."""

    worker_id: str
    generation: int
    assignments: tuple[int, ...]

    def __str__(self) -> str:
        worker = _quoted(self.worker_id)
        tail = f"generation: {self.generation}, assignments: {list(self.assignments)}"
        return f"JoinAccepted {{ worker_id: {worker}, {tail} }}"


@dataclass(frozen=True, slots=True)
class HeartbeatAck:
    """Answers HEARTBEAT with the generation of the group."""

    generation: int

    def __str__(self) -> str:
        return f"HeartbeatAck {{ generation: {self.generation} }}"


@dataclass(frozen=True, slots=True)
class Assignments:
    """Answers GET_ASSIGNMENTS: the generation, and the ids of the member's topics."""

    generation: int
    assignments: tuple[int, ...]

    def __str__(self) -> str:
        topics = list(self.assignments)
        return f"Assignments {{ generation: {self.generation}, assignments: {topics} }}"


@dataclass(frozen=True, slots=True)
class LeaveAcknowledged:
    """Answers LEAVE."""

    def __str__(self) -> str:
        return "LeaveAcknowledged"


@dataclass(frozen=True, slots=True)
class Refused:
    """Answers what the coordinator cannot do, with its sentence."""

    message: str

    def __str__(self) -> str:
        return f"Error {{ message: {_quoted(self.message)} }}"


Answer: TypeAlias = JoinAccepted | HeartbeatAck | Assignments | LeaveAcknowledged | Refused

_STRING: Final = r'"((?:[^"\\]|\\.)*)"'
_GENERATION: Final = rf"generation: (\d{{1,{_DIGITS}}})"
_TOPICS: Final = r"assignments: \[((?:\d{1,10}(?:, \d{1,10})*)?)\]"
_FORMS: Final = (
    (
        "JoinAccepted",
        re.compile(rf"\{{ worker_id: {_STRING}, {_GENERATION}, {_TOPICS} \}}", re.DOTALL),
    ),
    ("HeartbeatAck", re.compile(rf"\{{ {_GENERATION} \}}")),
    ("Assignments", re.compile(rf"\{{ {_GENERATION}, {_TOPICS} \}}")),
    ("Error", re.compile(rf"\{{ message: {_STRING} \}}", re.DOTALL)),
)


def encode_answer(answer: Answer) -> bytes:
    """Return an answer's bytes.

    Raises:
        EncodeError: they are too many.
    """
    encoded = str(answer).encode()
    if len(encoded) > MAX_MESSAGE:
        expected = f"at most {MAX_MESSAGE} bytes"
        raise EncodeError(type(answer).__name__, "", expected, f"{len(encoded)} bytes")
    return encoded


def decode_answer(data: Buffer) -> Answer:
    """Read an answer.

    Raises:
        DecodeError: it is too long, no UTF-8, of no known form, or a number is too large.
    """
    text = _text("GroupAnswer", data)
    if text == "LeaveAcknowledged":
        return LeaveAcknowledged()
    for name, form in _FORMS:
        head = f"{name} "
        if not text.startswith(head):
            continue
        if match := form.fullmatch(text, len(head)):
            return _answer(name, match)
        raise DecodeError(name, "", len(head), "the fields of this answer", repr(text[:80]))
    names = ", ".join([*(name for name, _ in _FORMS), "LeaveAcknowledged"])
    raise DecodeError("GroupAnswer", "", 0, f"one of {names}", repr(text[:80]))


def _answer(name: str, match: re.Match[str]) -> Answer:
    if name == "Error":
        return Refused(_unquoted(match[1]))
    if name == "HeartbeatAck":
        return HeartbeatAck(_number(match, 1, "generation", 64))
    if name == "Assignments":
        return Assignments(_number(match, 1, "generation", 64), _topics(match, 2))
    generation = _number(match, 2, "generation", 64)
    return JoinAccepted(_unquoted(match[1]), generation, _topics(match, 3))


def _topics(match: re.Match[str], group: int) -> tuple[int, ...]:
    topics = tuple(int(each) for each in match[group].split(", ") if each)
    for topic_id in topics:
        if topic_id >= 2**32:
            start = match.start(group)
            raise DecodeError("GroupAnswer", "assignments", start, "32-bit ids", str(topic_id))
    return topics


def _number(match: re.Match[str], group: int, field: str, bits: int) -> int:
    number = int(match[group])
    if number >= 1 << bits:
        raise DecodeError("GroupAnswer", field, match.start(group), f"{bits} bits", match[group])
    return number


def _text(message: str, data: Buffer) -> str:
    if len(data) > MAX_MESSAGE:
        expected = f"at most {MAX_MESSAGE} bytes"
        raise DecodeError(message, "", MAX_MESSAGE, expected, f"{len(data)} bytes")
    try:
        return bytes(data).decode()
    except UnicodeDecodeError as error:
        raise DecodeError(message, "", error.start, "UTF-8", error.reason) from None


_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_UNESCAPES: Final = {escape[1]: character for character, escape in _ESCAPES.items()}
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|(.))", re.DOTALL)


def _quoted(text: str) -> str:
    return f'"{"".join(_escaped(each) for each in text)}"'


def _escaped(character: str) -> str:
    if unicodedata.category(character) == "Cc" and character not in _ESCAPES:
        return f"\\u{{{ord(character):x}}}"
    return _ESCAPES.get(character, character)


def _unquoted(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return _UNESCAPES.get(escape[2], escape[2])
    code = int(escape[1], 16)
    if code > _LAST_CHARACTER or 0xD800 <= code < 0xE000:
        raise DecodeError("GroupAnswer", "", 0, "a Unicode character", f"\\u{{{code:x}}}")
    return chr(code)
