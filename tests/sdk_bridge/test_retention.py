"""Sources that do not keep everything."""

from pathlib import Path

import pytest

from lance_sdk import Client
from lance_sdk.cli._app import run
from lance_server.testing import eventually

from .conftest import every_protocol

SYSTEMS = ("lance", "fluvio", "rustlog")
VALUES = [b"%03d" % number + b"." * 195 for number in range(60)]
RECORD = 5 + 198
KEPT = 13 * RECORD
"""What is left of segments of one record each when the limit is 14.5 records.

Twelve closed segments, at most seven eighths of the limit, and the one that is written.
"""


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_kept_is_copied_and_what_is_missed_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], system: str
) -> None:
    """A copy begins with the first record there is, and does not pass over any later."""
    state = ("--state", str(tmp_path / "state"))
    with every_protocol(tmp_path / "data", segment_size=RECORD, upkeep_interval=0.05) as urls:
        with Client(urls.lwp) as client:
            client.create_topic("short", max_bytes=KEPT + 3 * RECORD // 2)
            source = urls.of(system, "short")

            def fill(values: list[bytes]) -> None:
                for value in values:
                    urls.fill("short", value)
                end = VALUES.index(values[-1]) + 1
                eventually(lambda: client.get_topic("short").start_offset == end * RECORD - KEPT)

            fill(VALUES[:30])
            assert run(["bridge", source, urls.of("lance", "to"), "--create-topic", *state]) == 0
            assert urls.bodies("to") == VALUES[17:30]
            fill(VALUES[30:])
        capsys.readouterr()
        assert run(["bridge", source, urls.of("lance", "to"), *state]) == 1
        assert "were removed from the source before they were copied" in capsys.readouterr().err
        assert urls.bodies("to") == VALUES[17:30]
