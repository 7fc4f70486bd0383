"""JUnit XML: broken rules are failures, kit bugs are errors, what proved nothing is skipped."""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from lance_conformance.engine.report.run import by_area
from lance_conformance.engine.run.verdict import UNPROVEN, Result, Verdict

_NOT_XML = dict.fromkeys(
    [*range(9), 11, 12, *range(14, 32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF], "?"
)


def junit(results: Sequence[Result], *, strict: bool = False) -> str:
    """The results as one JUnit document.

    Args:
        results: The results.
        strict: SHOULD and FLAKY are failures, too.
    """
    counts = _counts("lance-conformance", results, strict=strict)
    del counts["skipped"]  # the schemas of those who read it have it in suites only
    root = ET.Element("testsuites", counts)
    for rows in by_area(results).values():
        heading = rows[0].case.heading
        suite = ET.SubElement(root, "testsuite", _counts(heading, rows, strict=strict))
        for result in rows:
            _case(suite, result, strict=strict)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _counts(name: str, results: Sequence[Result], *, strict: bool) -> dict[str, str]:
    outcomes = [_outcome(result, strict=strict) for result in results]
    return {
        "name": name,
        "tests": str(len(results)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
        "skipped": str(outcomes.count("skipped")),
        "time": f"{sum(result.seconds for result in results):.6f}",
    }


def _outcome(result: Result, *, strict: bool) -> str | None:
    if result.fails(strict=strict):
        return "failure"
    if result.verdict is Verdict.ERROR:
        return "error"
    unproven = result.verdict in UNPROVEN or result.verdict in (Verdict.SKIP, Verdict.XFAIL)
    return "skipped" if unproven else None


def _case(suite: ET.Element, result: Result, *, strict: bool) -> None:
    area, _, slug = result.case.id.partition("/")
    case = ET.SubElement(suite, "testcase", classname=area, name=slug, time=f"{result.seconds:.6f}")
    outcome = _outcome(result, strict=strict)
    if outcome is None:
        return
    message = f"{result.verdict}: {result.message}".translate(_NOT_XML)
    attributes = {"message": message}
    if outcome != "skipped":
        attributes["type"] = result.reason or result.verdict.value
    clause = result.case.clause
    text = f"{clause.level} {clause.key} ({clause.basis}): {clause.text}\n{message}"
    ET.SubElement(case, outcome, attributes).text = text
