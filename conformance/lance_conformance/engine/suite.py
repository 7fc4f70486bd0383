"""Suites: all that the kit's runs, reports and self-test need to know of a protocol."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import Any, ClassVar, Protocol

from lance_conformance.dump import Row
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.registry import Case
from lance_conformance.engine.transcript import Direction
from lance_conformance.spec.clauses import Clause

PLAIN = ""
"""The setting of most cases: no TLS, no tokens."""

StartServer = Callable[[], AbstractAsyncContextManager[int]]
"""Makes a fresh server; it serves for as long as the context lasts, and its port comes out."""


class PreflightResult(Protocol):
    """What the preflight found the target to do."""

    @property
    def budget(self) -> float:
        """Seconds that one case needs at most, going by what was measured."""
        ...

    def facts(self) -> dict[str, Any]:
        """What was found, for the head of the run file."""
        ...


class FrameFormatter(Protocol):
    """How the bytes of a connection are shown to people."""

    def frames(self, stream: bytes) -> list[bytes]:
        """Cut a stream where its frames end; the rest stays in one piece."""
        ...

    def rows(self, frame: bytes, direction: Direction, fault: str | None) -> Iterable[Row]:
        """Annotate one frame, as far as its bytes go.

        Args:
            frame: The bytes, perhaps cut short, perhaps no frame at all.
            direction: Seen from the kit.
            fault: The field that is wrong on purpose.
        """
        ...

    def text(self, frame: bytes, direction: Direction) -> str | None:
        """What a frame says in words, `None` where it is binary."""
        ...


class Mutant(Protocol):
    """One way to be wrong."""

    @property
    def id(self) -> str:
        """Its name, a verb phrase."""
        ...

    @property
    def title(self) -> str:
        """How it is wrong, as a sentence."""
        ...

    @property
    def dialects(self) -> tuple[str, ...]:
        """Where it is wrong."""
        ...

    @property
    def asked(self) -> tuple[str, ...]:
        """Globs of the cases that it is put to; every case without any."""
        ...


class Proof(ABC):
    """The servers that prove a suite: right ones, broken ones, and others altogether.

    Attributes:
        attacked: Ids of the cases put to hostile servers.
        reaching: Hostile servers that pass the preflight, with the reason by case for which they
            must be found out.
        budget: Seconds that a case gets in the self-test; whoever is on trial lives in its process
            and answers in a few ms.
    """

    attacked: ClassVar[tuple[str, ...]]
    reaching: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    budget: ClassVar[float] = 0.5

    @abstractmethod
    def golden(self, dialect: str, setting: str) -> StartServer:
        """The server that does everything right, in one of the settings of `Suite.setting`."""

    @abstractmethod
    def mutants(self) -> Mapping[str, Mutant]:
        """The servers that are wrong in one way, by id."""

    @abstractmethod
    def mutant(self, name: str, dialect: str, setting: str) -> StartServer:
        """One of them."""

    def equipped(self, base: Conditions, setting: str) -> Conditions:
        """The conditions with what it takes to get in at a server in some setting."""
        del setting
        return base

    @abstractmethod
    def null_servers(self, dialect: str) -> Mapping[str, StartServer]:
        """Servers that do not speak the protocol at all."""

    @abstractmethod
    def hostile(self, dialect: str) -> Mapping[str, StartServer]:
        """Servers that attack the kit."""


class Suite(ABC):
    """Everything about one protocol.

    Attributes:
        by_hand: What was sent to a target can be sent by hand.
        name: How it is called on the command line and in run files.
        title: How it is called in reports.
        document: What the sections of its clauses are sections of.
        port: Where its servers listen, unless told otherwise.
        presets: The dialects that a target can be held to by name. Each has a `name`. The first
            one is the document's.
        areas: The title of each area, in the order of reports.
        ids: Package whose ``ids.lock`` has the ids of all cases there ever were.
        axes: Package whose ``axes.toml`` says why a rule has no case on an axis; empty without one.
        matrix: Package whose ``matrix.json`` is the committed kill matrix.
    """

    by_hand: ClassVar[bool] = True
    name: ClassVar[str]
    title: ClassVar[str]
    document: ClassVar[str]
    port: ClassVar[int]
    presets: ClassVar[Mapping[str, Any]]
    areas: ClassVar[Mapping[str, str]]
    ids: ClassVar[str]
    axes: ClassVar[str] = ""
    matrix: ClassVar[str]

    def __repr__(self) -> str:
        return f"<Suite {self.name}>"

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Every case, area by area."""
        return tuple(self.load_cases())

    @cached_property
    def by_id(self) -> Mapping[str, Case]:
        """Every case by its id."""
        return {case.id: case for case in self.cases}

    @abstractmethod
    def load_cases(self) -> Sequence[Case]:
        """Load the cases."""

    def setting(self, case: Case) -> str:
        """How a server must be set up for a case to be asked; the plain setting is empty."""
        del case
        return PLAIN

    def by_setting(self, cases: Sequence[Case]) -> Mapping[str, Sequence[Case]]:
        """Cases in their order, those that need the same setting together."""
        groups: dict[str, list[Case]] = {}
        for case in cases:
            groups.setdefault(self.setting(case), []).append(case)
        return groups

    @abstractmethod
    def clauses(self) -> Mapping[str, Clause]:
        """The clauses by key."""

    async def start(self, conditions: Conditions) -> None:
        """Prepare the target before the first case is asked; it never judges."""
        del conditions

    async def finish(self, conditions: Conditions) -> None:
        """Remove what cases and `start` have left, once the run is over; it never judges."""
        del conditions

    @abstractmethod
    async def preflight(
        self, base: Conditions, timeout_scale: float = 1.0, **timeouts: float
    ) -> tuple[Conditions, PreflightResult]:
        """Probe the target, and say under which conditions its cases are to be asked.

        Args:
            base: Target, names and seed; its `pinned` and `demanded` say what was asked for.
            timeout_scale: Stretches the budget that is measured.
            **timeouts: `step_timeout`: seconds that each step may take, if not those of the suite.

        Raises:
            PreflightError: Nothing can be proven about this target.
        """

    def target(self, text: str) -> Target | None:
        """The target that a run file names, where that is not HOST:PORT."""
        del text
        return None

    def command(self, target: Target) -> str:
        """What follows ``lance-conformance`` to ask a target."""
        protocol = "" if self.name == "lwp" else f"--protocol {self.name} "
        return f"{protocol}--target {target}"

    async def leave(self, target: Target) -> None:
        """Let go of what a run has made of its target; the run is over."""
        del target

    @abstractmethod
    def in_words(self, facts: Mapping[str, Any]) -> str:
        """What was found (see `PreflightResult.facts`), for the head of a report."""

    @abstractmethod
    def anatomy(self, dialect: Any) -> FrameFormatter:
        """How bytes are shown.

        Args:
            dialect: The one the target was found to speak.
        """

    @abstractmethod
    def proof(self) -> Proof:
        """The servers that prove it; they are slow to load."""
