"""Mistakes and mishaps, each made for real: its error says what it was and what to do.

`mistakes.toml` has what the documentation prints of each; the programs that cause them stand in
the modules beside this one.
"""

import re
import time
import tomllib
from pathlib import Path
from typing import Final

import pytest
from tests.sdk.mistakes import (  # noqa: F401 - they register their programs
    calls,
    connecting,
    consuming,
    delivery,
    topics,
    urls_and_options,
    values,
)
from tests.sdk.mistakes.registry import MISTAKES

import lance_sdk.errors
from lance_sdk.errors import LanceError

ROWS: Final = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text())["mistake"]
PATIENCE: Final = 9.0
"""Seconds, on a busy machine; a default that nobody looked at waits for ten or more."""
INTERNAL: Final = re.compile(
    r"\b(?:AMB|SF|KIT|CLU|RL|FLV|SPK)-\d|\bLWP section|\bErrno\b|\bCode 0x|<class |<[\w.]+ object|"
    r"datetime\.datetime\(|Traceback"
)
"""What no first sentence has: ids of the register, codes, types of Python."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_mistake_is_named_with_its_remedy(row: dict[str, str], tmp_path: Path) -> None:
    """The error is of the class that the table says, and its text has both; nobody waits long."""
    kind = getattr(lance_sdk.errors, row["error"], None)
    began = time.monotonic()
    with pytest.raises((LanceError, TypeError, ValueError)) as caught:
        MISTAKES[row["id"]](tmp_path)
    assert time.monotonic() - began < PATIENCE
    assert type(caught.value).__name__ == row["error"], caught.value
    assert kind is None or isinstance(caught.value, LanceError)
    text = " ".join(str(caught.value).split())
    assert row["says"] in text, text
    assert row["remedy"] in text, text
    first = re.split(r"[.;:] ", text, maxsplit=1)[0]
    assert INTERNAL.search(first) is None, first


def test_every_program_has_a_row() -> None:
    """Four fifths of the mistakes have words of their own, and a remedy of their own."""
    assert sorted(MISTAKES) == sorted(row["id"] for row in ROWS)
    assert len({row["says"] for row in ROWS}) >= 0.8 * len(ROWS)
    assert len({row["remedy"] for row in ROWS}) >= 0.8 * len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_row_is_complete(row: dict[str, str]) -> None:
    """What was done, what comes, what it says and what to do."""
    assert row.keys() == {"id", "what", "error", "says", "remedy"}
    assert all(row.values())
