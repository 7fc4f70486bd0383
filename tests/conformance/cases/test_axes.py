"""Each rule is asked along each axis on which it may hold only sometimes, or it is said why not."""

import json

import pytest
from click.testing import CliRunner

from lance_conformance.app import app
from lance_conformance.engine.axes import axes_of, cells
from lance_conformance.engine.suites import suite_named

SUITES = ("lwp", "lwp-client")
every_suite = pytest.mark.parametrize("name", SUITES)


@every_suite
def test_each_rule_has_a_usual_case_along_each_axis_of_its_own_or_a_reason(name: str) -> None:
    """No cell is open: neither without a case where the axis applies, nor without a reason."""
    opened = [
        (rule, axis)
        for rule, row in cells(suite_named(name)).items()
        for axis, cell in row.items()
        if not cell.cases and not cell.reason
    ]
    assert opened == []


@every_suite
def test_an_axis_applies_to_each_rule_that_has_a_case_there(name: str) -> None:
    """A rule that gets its first case on an axis is entered there."""
    unknown = [
        (rule, axis)
        for rule, row in cells(suite_named(name)).items()
        for axis, cell in row.items()
        if cell.cases and not cell.applies
    ]
    assert unknown == []


@every_suite
def test_a_reason_is_given_only_where_there_is_no_case(name: str) -> None:
    """What is explained away is not asked, and is a rule of the suite."""
    suite = suite_named(name)
    found = cells(suite)
    stale = [
        (rule, axis.name)
        for axis in axes_of(suite)
        for rule in axis.rules
        if rule not in found or (rule in axis.reasons and found[rule][axis.name].cases)
    ]
    assert stale == []


@every_suite
def test_each_axis_has_cases(name: str) -> None:
    """Of usual runs."""
    suite = suite_named(name)
    asked = {axis for row in cells(suite).values() for axis, cell in row.items() if cell.cases}
    assert asked == {axis.name for axis in axes_of(suite)}


def test_the_command_lists_the_cells() -> None:
    """``coverage --axes`` has a row for each rule, as text and as JSON."""
    told = CliRunner().invoke(app, ["coverage", "--axes"]).output
    assert "11.1/magic" in told
    rows = json.loads(CliRunner().invoke(app, ["coverage", "--axes", "--json"]).output)
    assert rows.keys() == cells(suite_named("lwp")).keys()
