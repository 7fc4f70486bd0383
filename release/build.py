"""Builds what is uploaded, and checks it as an index and an installer would.

    tox run -e package

The sdist is built from the tree and every wheel from the sdist alone, so neither git nor the tree
is needed by those who build from it. There is a wheel for each CPython from 3.11 on that is found,
whose tag auditwheel sets for the oldest Linux that it runs on, and one without compiled loops. Each
is installed in an empty environment, where the demo takes records through producer, server, disk
and consumer, and asks the kit's questions.
"""

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PYTHONS: Final = tuple(f"python3.{minor}" for minor in range(11, 16))
"""CPython's releases that wheels are built for, where they are found."""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a program and return what it said; end this one where it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{done.stdout}")
    return done.stdout


def interpreters() -> dict[str, str]:
    """Return each CPython that works, by its path: a name on the path may be only a shim."""
    found = {}
    for name in PYTHONS:
        path = shutil.which(name)
        if path is None:
            continue
        script = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([path, "-c", script], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found[path] = done.stdout.strip()
    return found


def build_sdist(target: Path) -> Path:
    """Build the source distribution from the tree."""
    run(sys.executable, "-m", "build", "--sdist", "--outdir", target, ROOT)
    [built] = target.glob("*.tar.gz")
    return built


def build_wheel(python: str, source: Path, target: Path, *, pure: bool = False) -> Path:
    """Build one wheel with an interpreter and return it, fit for the oldest Linux it runs on."""
    with tempfile.TemporaryDirectory() as folder:
        compiler = ("env", "CC=no-such-compiler") if pure else ()
        command = (python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, source)
        run(*compiler, *command)
        [built] = Path(folder).glob("*.whl")
        if built.name.endswith("none-any.whl"):
            return Path(shutil.move(built, target))
        before = set(target.iterdir())
        run("auditwheel", "repair", "--wheel-dir", target, built)
        [repaired] = set(target.iterdir()) - before
        return repaired


def try_wheel(python: str, wheel: Path) -> None:
    """Install a wheel in an empty environment and use it there."""
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", folder)
        inside = Path(folder, "bin", "python")
        run(inside, "-m", "pip", "install", "--quiet", f"{wheel}[demo]")
        run(Path(folder, "bin", "lwp"), "demo", "--rows", "2000", "--quiet", cwd=Path(folder))
        for command in ("lwp", "lance-server", "lance-conformance"):
            run(Path(folder, "bin", command), "--version", cwd=Path(folder))


def main() -> None:
    """Build and check everything."""
    parser = argparse.ArgumentParser(description="Build and check what is uploaded.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder to fill")
    target: Path = parser.parse_args().dist
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    run("validate-pyproject", ROOT / "pyproject.toml")
    sdist = build_sdist(target)
    print(sdist.name, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        [source] = Path(folder).iterdir()
        wheels = {}
        for python in interpreters():
            wheels[build_wheel(python, source, target)] = python
        pure = build_wheel(sys.executable, source, target, pure=True)
        wheels[pure] = sys.executable
    for wheel, python in wheels.items():
        try_wheel(python, wheel)
        print(f"{wheel.name} works with {python}", flush=True)
    everything = sorted(target.iterdir())
    run("twine", "check", "--strict", *everything)
    run("check-wheel-contents", "--ignore", "W009", *wheels)  # W009: five packages are meant


if __name__ == "__main__":
    main()
