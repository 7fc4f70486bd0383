"""``python -m lance_server.selfcheck``: the conformance kit against this server.

The kit runs as a program of its own, once for each dialect, against a server with an empty log.
"""

import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from lance_server.embedded import running
from lance_spec.dialect import DIALECTS

_DEADLINE: Final = 600.0


def check(dialect: str, extra: Sequence[str] = ()) -> int:
    """Run the kit against a server of one dialect and return its exit code."""
    with running(dialect=dialect) as server:
        host, port = server.address
        command = [sys.executable, "-m", "lance_conformance", "--target", f"{host}:{port}"]
        if dialect != "auto":
            command += ["--dialect", dialect]
        # The program is this interpreter and the arguments are the caller's own.
        outcome = subprocess.run([*command, *extra], check=False, timeout=_DEADLINE)  # noqa: S603 - see above
        return outcome.returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Check every dialect; return 0 only if the kit is satisfied with all of them."""
    extra = sys.argv[1:] if arguments is None else arguments
    codes: dict[str, int] = {}
    for dialect in [*DIALECTS, "auto"]:
        sys.stdout.write(f"== dialect {dialect}\n")
        sys.stdout.flush()
        codes[dialect] = check(dialect, extra)
    for dialect, code in codes.items():
        verdict = "passed" if code == 0 else f"FAILED, the kit exited with {code}"
        sys.stdout.write(f"{dialect}: {verdict}\n")
    return 0 if not any(codes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
