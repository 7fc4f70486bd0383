"""The list of cases, filled by the modules of this package."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import cleandoc

from lance_conformance.dialect import DialectName
from lance_conformance.peer.dialogue import Dialogue
from lance_conformance.spec.clauses import Clause, Level, clauses

Question = Callable[[Dialogue], Awaitable[None]]

BOTH: tuple[DialectName, ...] = ("specified", "deployed")
AREAS: Mapping[str, str] = {
    "axis": "Dialect axes",
    "hdr": "Header",
    "seg": "Segmentation",
    "crc": "Checksum",
    "kal": "Keepalive",
    "ing": "Ingest and Ack",
    "top": "Topics",
    "name": "Topic names",
    "ctl": "Control payloads",
    "ret": "Retention",
    "fet": "Fetch",
    "ord": "Order of answers",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One question to the target.

    Attributes:
        id: ``area/slug``, never reused for another question.
        title: What must hold, as one sentence.
        details: What else there is to know.
        clause: The clause it asks about, which also gives its level.
        question: Asks it; returns when all is well and raises otherwise.
        dialects: Where it has a meaning.
        pinned_only: It would punish a target that serves both dialects on purpose.
        quick: It belongs to the quick profile.
    """

    id: str
    title: str
    details: str
    clause: Clause
    question: Question
    dialects: tuple[DialectName, ...] = BOTH
    pinned_only: bool = False
    quick: bool = True

    @property
    def area(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]

    @property
    def level(self) -> Level:
        """How much depends on it."""
        return self.clause.level

    @property
    def scored(self) -> bool:
        """Whether it can fail; a MAY is observed only."""
        return self.level is not Level.MAY


_CASES: dict[str, Case] = {}


def case(
    case_id: str,
    clause: str,
    *,
    dialects: tuple[DialectName, ...] = BOTH,
    pinned_only: bool = False,
    quick: bool = True,
) -> Callable[[Question], Question]:
    """Register a question; its docstring's first line is the rule in one sentence.

    Args:
        case_id: ``area/slug``.
        clause: Key into ``clauses.toml``.
        dialects: Where the question has a meaning.
        pinned_only: Ask only a target that is held to one dialect by name.
        quick: Whether it belongs to the quick profile.
    """

    def register(question: Question) -> Question:
        title, _, details = cleandoc(question.__doc__ or "").partition("\n")
        assert case_id not in _CASES, f"two cases are called {case_id}"
        assert case_id.partition("/")[0] in AREAS, f"{case_id} is in no area"
        _CASES[case_id] = Case(
            id=case_id,
            title=title,
            details=details.strip(),
            clause=clauses()[clause],
            question=question,
            dialects=dialects,
            pinned_only=pinned_only,
            quick=quick,
        )
        return question

    return register


def registered() -> Mapping[str, Case]:
    """What has been registered so far."""
    return _CASES
