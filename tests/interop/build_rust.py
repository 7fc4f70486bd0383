"""Build the published Rust client for the tests of this folder.

    python tests/interop/build_rust.py FOLDER

Into FOLDER go the driver (``rust/``), that of the conformance kit, and the tests that the crate
ships. Without cargo nothing is built, and the tests that need it skip; a build that breaks fails.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

_MANIFEST = Path(__file__).parent / "rust" / "Cargo.toml"
_KIT = Path(__file__).parents[2] / "conformance" / "drivers" / "rust" / "Cargo.toml"
_CRATE = "lnc-client"


def main(folder: Path) -> int:
    """Build, and return the exit code."""
    cargo = shutil.which("cargo")
    if cargo is None:
        sys.stderr.write("cargo is not there: the tests with the Rust client will skip\n")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    _cargo(cargo, folder, _MANIFEST, "build")
    _cargo(cargo, folder, _KIT, "build")
    suite = _copy(cargo, folder / _CRATE)
    _cargo(cargo, folder, suite, "test", "--lib", "--test", "integration", "--no-run")
    return 0


def _cargo(cargo: str, folder: Path, manifest: Path, *command: str) -> None:
    where = ["--locked", "--manifest-path", str(manifest), "--target-dir", str(folder)]
    environment = {**os.environ, "CARGO_PROFILE_DEV_DEBUG": "0"}  # half as large
    subprocess.run([cargo, *command, *where], check=True, env=environment)


def _copy(cargo: str, target: Path) -> Path:
    """Copy the crate out of cargo's store, where it cannot be built; return its manifest."""
    command = [cargo, "metadata", "--format-version", "1", "--locked"]
    told = subprocess.run(
        [*command, "--manifest-path", str(_MANIFEST)], check=True, capture_output=True
    )
    packages = json.loads(told.stdout)["packages"]
    (manifest,) = [each["manifest_path"] for each in packages if each["name"] == _CRATE]
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(Path(manifest).parent, target)
    with (target / "Cargo.toml").open("a") as copied:
        copied.write("\n[workspace]\n")  # FOLDER may lie in somebody's workspace
    return target / "Cargo.toml"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
