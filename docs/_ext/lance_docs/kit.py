"""What the conformance kit asks of a server, and whom it proves itself on."""

from typing import ClassVar

from sphinx.application import Sphinx

from lance_conformance.client.cases import codes
from lance_conformance.engine.axes import Cell, axes_of, cells
from lance_conformance.engine.registry import Case
from lance_conformance.engine.suite import Mutant, Suite
from lance_conformance.engine.suites import SUITES, suite_named
from lance_docs._base import Generated, escape, heading, list_table, literal


class AboutSuite(Generated):
    """A part about one protocol, which the argument names; LWP without one."""

    optional_arguments: ClassVar[int] = 1

    def suite(self) -> Suite:
        """Return the suite that is meant."""
        name = self.arguments[0] if self.arguments else SUITES[0]
        if name not in SUITES:
            raise self.refuse(f"the kit knows {', '.join(SUITES)}, not {name}")
        return suite_named(name)


class Cases(AboutSuite):
    """Every case, one section for each area of the protocol."""

    def text(self) -> str:
        """Return the sections."""
        suite = self.suite()
        return "".join(_area(suite, area, title) for area, title in suite.areas.items())


class Mutants(AboutSuite):
    """Every server that is broken on purpose."""

    def text(self) -> str:
        """Return how many there are, and a table with one row for each."""
        suite = self.suite()
        mutants = suite.proof().mutants().values()
        rows = [(literal(m.id), escape(m.title), _dialects(suite, m)) for m in mutants]
        table = list_table(("Server", "How it is broken", "Dialect"), rows, widths="30 55 15")
        return f"There are {len(rows)} of them, for {len(suite.cases)} cases.\n\n{table}"


class Axes(AboutSuite):
    """Along which axes each rule is asked, by how many usual cases, and why along no other."""

    def text(self) -> str:
        """Return the axes, a table with one row for each rule that has one, and the reasons."""
        suite = self.suite()
        axes = axes_of(suite)
        about = [(axis.name, escape(axis.about), escape(axis.otherwise)) for axis in axes]
        header = ("Axis", "What the rule may depend on", "Where it does not apply")
        found = cells(suite)
        rows = [
            (literal(rule), *(_count(row[axis.name]) for axis in axes))
            for rule, row in found.items()
            if any(cell.applies for cell in row.values())
        ]
        reasons = [
            (axis.name, literal(rule), escape(why))
            for axis in axes
            for rule, why in axis.reasons.items()
        ]
        return (
            list_table(header, about, widths="15 35 50")
            + list_table(("Rule", *(axis.name for axis in axes)), rows)
            + list_table(("Axis", "Rule", "Why it has no case there"), reasons, widths="15 25 60")
        )


def _count(cell: Cell) -> str:
    return str(len(cell.cases)) if cell.cases else "reason" if cell.applies else ""


class Kinds(Generated):
    """Which kind of error a driver tells for each code of a server."""

    sources = (codes,)

    def text(self) -> str:
        """Return a table with one row for each code, and one for each text of `deployed`."""
        told = [
            (literal(f"0x{code:02X}"), literal(name), " or ".join(map(literal, kinds)))
            for code, (name, kinds) in sorted((codes.CODES | codes.REDIRECTS).items())
        ]
        texts = [
            ("text", literal(text), " or ".join(map(literal, kinds)))
            for _, text, kinds in codes.TEXTS.values()
        ]
        return list_table(("Code", "Error", "Kind"), [*told, *texts], widths="10 60 30")


def _area(suite: Suite, area: str, title: str) -> str:
    cases = [each for each in suite.cases if each.area == area]
    if not cases:
        return ""
    header = ("Case", "Level", "What must hold", "Rests on", "Dialect")
    rows = [_row(suite, case) for case in cases]
    return heading(title, "~") + list_table(header, rows, widths="25 10 35 15 15")


def _row(suite: Suite, case: Case) -> tuple[str, ...]:
    section = case.clause.section
    numbered = suite.name == SUITES[0]
    rests_on = [f"LWP section {section}" if numbered else section, *case.clause.register]
    title = "\n\n".join(map(escape, filter(None, (case.title, case.details))))
    where = _dialects(suite, case)
    return literal(case.id), case.level.value, title, ", ".join(rests_on), where


def _dialects(suite: Suite, what: Case | Mutant) -> str:
    dialects = what.dialects
    if len(suite.presets) > 1 and set(dialects) == set(suite.presets):
        return "all" if len(dialects) > 2 else "both"
    return ", ".join(dialects)


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-cases", Cases)
    app.add_directive("lance-mutants", Mutants)
    app.add_directive("lance-axes", Axes)
    app.add_directive("lance-error-kinds", Kinds)
