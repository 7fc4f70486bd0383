"""The tests that the published Rust crate ships, run against our server as they stand."""

import os
import re
import subprocess
from pathlib import Path

import pytest

COMMITS_BEYOND_THE_END = ["--skip", "tests::test_subscribe_resumes_from_committed_offset"]
"""It commits 5000 to an empty topic: here a commit never lies beyond the end."""
NEEDS_A_CLUSTER = ["--skip", "test_cluster_", "--skip", "from_follower"]
"""These look for the addresses of two more nodes, and this server is one (AMB-43)."""


def run(folder: Path, address: str, *arguments: str) -> tuple[int, int, str]:
    """Run tests of the crate; return how many passed and failed, and the output."""
    manifest = str(folder / "lnc-client" / "Cargo.toml")
    built = ["--offline", "--locked", "--manifest-path", manifest, "--target-dir", str(folder)]
    done = subprocess.run(
        ["cargo", "test", *built, *arguments],
        check=False,
        capture_output=True,
        env={**os.environ, "CARGO_PROFILE_DEV_DEBUG": "0", "LANCE_TEST_ADDR": address},
        text=True,
        timeout=110,
    )
    found = re.search(r"test result: \w+\. (\d+) passed; (\d+) failed", done.stdout)
    assert found, done.stderr
    return int(found[1]), int(found[2]), done.stdout


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["--lib", "--", "--ignored", *COMMITS_BEYOND_THE_END], 25),
        (["--test", "integration", "--", "--ignored", *NEEDS_A_CLUSTER], 37),
    ],
    ids=["lib", "integration"],
)
def test_every_test_that_one_node_can_pass_passes(
    rust_folder: Path, lenient_address: str, arguments: list[str], count: int
) -> None:
    """Connections, topics, ingest, subscriptions, commits, retention, producers, pools."""
    passed, failed, output = run(rust_folder, lenient_address, *arguments)
    assert (passed, failed) == (count, 0), output
