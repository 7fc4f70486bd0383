"""Programs that are not ours against the vectors: as right, and as wrong, as is known."""

import sys

import pytest

from lance_spec import __main__ as command
from lance_spec import vectors


def test_it_differs_where_the_list_says_and_nowhere_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`vectors/adapters/lnc_client.known.json` is true, no more and no less."""
    adapters = vectors.root() / "adapters"
    program = f"{sys.executable} {adapters / 'lnc_client_adapter.py'}"
    known = str(adapters / "lnc_client.known.json")
    arguments = ["vectors", "check", "--exec", program, "--known", known, "--timeout", "60"]
    assert command.main(arguments) == 0, capsys.readouterr().out


def test_an_adapter_in_another_language_keeps_the_contract(
    node: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`vectors/adapters/node_adapter.mjs`, from which others can be written."""
    program = f"{node} {vectors.root() / 'adapters' / 'node_adapter.mjs'}"
    assert command.main(["vectors", "check", "--exec", program]) == 0, capsys.readouterr().out
    assert "node example: 76 passed" in capsys.readouterr().out
