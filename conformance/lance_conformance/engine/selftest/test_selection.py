"""Chooses the cases for each target: enough to prove every case and every mutant.

The whole matrix is cases times mutants, and grows with the square of the kit. A witness is one
mutant that fails a case, by the committed matrix. Asking each witness its cases shows again that
every case can fail, for the recorded reason, and that every mutant is told from the golden server.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from zlib import crc32

from lance_conformance.engine.selftest.matrix import Matrix
from lance_conformance.engine.selftest.targets import Asked, SelftestTarget
from lance_conformance.engine.suite import Suite

SLOW = ("timeout", "not-closed")
"""Reasons that take a whole deadline to show."""
Row = Mapping[str, str]


def witnesses(rows: Mapping[str, Row]) -> dict[str, set[str]]:
    """The cases to ask each mutant, so that every case and every mutant is asked once at least.

    Args:
        rows: The committed matrix of one dialect.
    """
    chosen: dict[str, set[str]] = {name: set() for name in rows}
    for case in sorted({case for row in rows.values() for case in row}):
        chosen[_best(case, rows)].add(case)
    for name, cases in chosen.items():
        if not cases and rows[name]:
            cases.add(min(rows[name], key=lambda case: (rows[name][case] in SLOW, case)))
    return chosen


def _best(case: str, rows: Mapping[str, Row]) -> str:
    """The quickest and most particular of the mutants that fail a case."""
    failing = (name for name, row in rows.items() if case in row)
    return min(failing, key=lambda name: (rows[name][case] in SLOW, len(rows[name]), name))


def asked_of(
    suite: Suite,
    subjects: Sequence[SelftestTarget],
    before: Matrix,
    *,
    whole: bool,
    again: Collection[str] = (),
) -> Asked:
    """What to ask whom.

    Everybody but the mutants is asked everything, and so is a mutant that the committed matrix
    does not know; every mutant is asked the cases that nobody is known to fail.

    Args:
        suite: What it is about.
        subjects: Who is on trial.
        before: The committed matrix.
        whole: Ask everybody everything.
        again: Globs of mutants to ask everything, and of cases to ask everybody.
    """
    chosen = {dialect: witnesses(rows) for dialect, rows in before.items()}
    news = {dialect: set(_news(suite, dialect, rows)) for dialect, rows in before.items()}
    repeated = {case for case in suite.by_id if _matches(case, again)}
    mutants = suite.proof().mutants()
    # Cases that a mutant asks for by name are put to such mutants only.
    named = {globs for mutant in mutants.values() for globs in mutant.asked}
    # A case of thorough runs is asked where a mutant needs exactly this one.
    usual = frozenset(
        case.id for case in suite.cases if whole or not case.thorough or case.id in named
    )
    thorough = frozenset(suite.by_id) - usual
    usual_news = {dialect: cases - _put_to(cases, named) for dialect, cases in news.items()}
    asked: Asked = {}
    for subject in subjects:
        globs = mutants[subject.name].asked if subject.kind == "mutant" else ()
        every = _put_to(suite.by_id, globs) - thorough if globs else usual
        known = chosen.get(subject.dialect, {}).get(subject.name)
        everything = whole or subject.kind != "mutant" or known is None
        if everything or _matches(subject.name, again):
            asked[subject] = every
        elif known is not None:
            new = news[subject.dialect] if globs else usual_news[subject.dialect]
            asked[subject] = frozenset((known & usual | new | repeated) & every)
    return asked


def sampled(asked: Asked, before: Matrix, parts: int, seed: int) -> Asked:
    """Keep one part of the mutants; the others are asked nothing.

    Every target that is not a mutant, and every mutant that the committed matrix does not know, is
    asked all the same. The parts do not depend on the seed: as many seeds in a row as there are
    parts ask every mutant.

    Args:
        asked: What a whole self-test asks.
        before: The committed matrix.
        parts: How many parts of equal size the mutants are dealt to.
        seed: Chooses the part.
    """
    known = [each for each in asked if each.name in before.get(each.dialect, {})]
    mutants = [each for each in known if each.kind == "mutant"]
    dealt = sorted(mutants, key=lambda each: (crc32(str(each).encode()), str(each)))
    left_out = set(dealt) - set(dealt[seed % parts :: parts])
    return {each: frozenset() if each in left_out else cases for each, cases in asked.items()}


def _put_to(cases: Collection[str], globs: Collection[str]) -> frozenset[str]:
    """The cases that a mutant is put to which says so itself."""
    return frozenset(case for case in cases if _matches(case, globs))


def _news(suite: Suite, dialect: str, rows: Mapping[str, Row]) -> Iterator[str]:
    """Scored cases that no mutant is known to fail."""
    proven = {case for row in rows.values() for case in row}
    for case in suite.cases:
        scored = case.scored and not case.thorough
        if scored and dialect in case.dialects and case.id not in proven:
            yield case.id


def _matches(name: str, globs: Collection[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def restricted(matrix: Matrix, asked: Asked) -> Matrix:
    """What a matrix says about the pairs that were asked."""
    found: Matrix = {}
    for subject, cases in asked.items():
        row = matrix.get(subject.dialect, {}).get(subject.name)
        if subject.kind == "mutant" and row is not None:
            known = {case: reason for case, reason in row.items() if case in cases}
            found.setdefault(subject.dialect, {})[subject.name] = known
    return found
