"""What the conformance kit asks of a server, and whom it proves itself on."""

from collections.abc import Iterable

from sphinx.application import Sphinx

from lance_conformance.cases import AREAS, Case, all_cases
from lance_conformance.mutants import Mutant, all_mutants
from lance_docs._base import Generated, escape, heading, list_table, literal


class Cases(Generated):
    """Every case, one section for each area of the protocol."""

    def text(self) -> str:
        """Return the sections."""
        return "".join(_area(area, title) for area, title in AREAS.items())


class Mutants(Generated):
    """Every server that is broken on purpose."""

    def text(self) -> str:
        """Return how many there are, and a table with one row for each."""
        rows = [(literal(each.id), escape(each.title), _dialects(each)) for each in _mutants()]
        table = list_table(("Server", "How it is broken", "Dialect"), rows, widths="30 55 15")
        return f"There are {len(rows)} of them, for {len(all_cases())} cases.\n\n{table}"


def _mutants() -> Iterable[Mutant]:
    return all_mutants().values()


def _area(area: str, title: str) -> str:
    cases = [each for each in all_cases() if each.area == area]
    if not cases:
        return ""
    header = ("Case", "Level", "What must hold", "Rests on", "Dialect")
    return heading(title, "~") + list_table(header, map(_row, cases), widths="25 10 35 15 15")


def _row(case: Case) -> tuple[str, ...]:
    rests_on = [f"LWP section {case.clause.section}", *case.clause.register]
    title = "\n\n".join(map(escape, filter(None, (case.title, case.details))))
    return literal(case.id), case.level.value, title, ", ".join(rests_on), _dialects(case)


def _dialects(what: Case | Mutant) -> str:
    return what.dialects[0] if len(what.dialects) == 1 else "both"


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-cases", Cases)
    app.add_directive("lance-mutants", Mutants)
