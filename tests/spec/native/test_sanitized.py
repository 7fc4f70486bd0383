"""The compiled loops under address and undefined-behaviour sanitizers."""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
SOURCES = sorted((FOLDER.parents[2] / "spec" / "lance_spec" / "native").glob("*.c"))
CALLS = int(os.environ.get("LANCE_SANITIZE_CALLS", "3000"))
"""Of entry points; ``tox run -e sanitize`` makes more."""
SEED = os.environ.get("LANCE_SANITIZE_SEED", "1")
LONG = CALLS > 3000
FLAGS = ["-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"]


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, str]]:
    """Compile the module; return what runs it, and in which environment."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler[0]) is None or not SOURCES:
        pytest.skip("there is no C compiler here, or no source")
    libraries = [library_of(compiler, name) for name in ("libasan.so", "libubsan.so")]
    target = tmp_path_factory.mktemp("sanitized") / "_accelerator.so"
    include = f"-I{sysconfig.get_path('include')}"
    stopping = "-fno-sanitize-recover=undefined"
    command = [*compiler, *FLAGS, stopping, "-shared", "-fPIC", include, *map(str, SOURCES)]
    done = subprocess.run(
        [*command, "-o", str(target)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # each object has memory of its own, with guards around it
    }
    return [sys.executable, str(FOLDER / "sanitized.py"), str(target)], environment


def library_of(compiler: list[str], name: str) -> str:
    """Return where a sanitizer's library is."""
    asked = [*compiler, f"-print-file-name={name}"]
    path = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    if not Path(path).is_absolute():
        pytest.skip(f"the compiler has no {name}")
    return path


def test_no_call_of_an_entry_point_does_what_is_not_allowed(
    sanitized: tuple[list[str], dict[str, str]],
) -> None:
    """Random calls, half of them with arguments that nobody would pass."""
    command, environment = sanitized
    done = subprocess.run(
        [*command, SEED, str(CALLS)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"of {CALLS} calls succeeded" in done.stdout


@pytest.mark.skipif(not LONG, reason="LANCE_SANITIZE_CALLS is not set: part of tox -e sanitize")
def test_the_tests_of_the_compiled_loops_do_nothing_that_is_not_allowed(
    sanitized: tuple[list[str], dict[str, str]],
) -> None:
    """All of their inputs, too."""
    command, environment = sanitized
    files = [str(FOLDER / name) for name in ("test_accelerator.py", "test_answering.py")]
    done = subprocess.run(
        [*command, *files], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_mistake_would_be_found(
    sanitized: tuple[list[str], dict[str, str]], tmp_path: Path
) -> None:
    """A program that reads behind the end of its memory ends with a report of that."""
    del sanitized
    program = tmp_path / "mistake.c"
    program.write_text("int main(int n, char **v) { char a[4] = {0}; return a[n + 3]; }")
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    command = [*compiler, *FLAGS, str(program), "-o", str(tmp_path / "mistake")]
    subprocess.run(command, check=True)
    done = subprocess.run([tmp_path / "mistake"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr or "runtime error" in done.stderr
