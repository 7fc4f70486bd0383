"""Importing the package costs next to nothing; names load at their first use."""

import subprocess
import sys
import textwrap

import pytest

import lance_sdk

HEAVY = ("construct", "crc32c", "lz4", "asyncio", "anyio", "trio", "ssl", "socket")


def loaded_by(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has loaded after a statement."""
    program = f"{statement}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    out = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    return set(out.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    """Not even the sockets."""
    assert not loaded_by("import lance_sdk").intersection(HEAVY)


def test_the_sync_api_needs_no_event_loop() -> None:
    """Threads and sockets only."""
    loaded = loaded_by("from lance_sdk import Producer, Consumer, Client")
    assert not loaded.intersection({"asyncio", "anyio", "trio", "construct", "lz4"})


@pytest.mark.parametrize(
    ("name", "other"), [("Producer", "consume"), ("Consumer", "produce.sender")]
)
def test_the_first_client_loads_only_what_it_uses(name: str, other: str) -> None:
    """No parser of command lines or mails, no TLS, no C interface."""
    program = f"""
        import sys, lance_sdk
        before = set(sys.modules)
        lance_sdk.{name}("lance://localhost/orders")
        print(*set(sys.modules) - before)
    """
    done = subprocess.run(
        [sys.executable, "-I", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert not loaded & {
        "argparse",
        "csv",
        "email",
        "zipfile",
        "ssl",
        "ctypes",
        "difflib",
        "asyncio",
    }
    assert f"lance_sdk._protocol.{other}" not in loaded
    assert len(loaded) < 170, sorted(loaded)


def test_the_async_api_does_not_force_an_event_loop_on_anyone() -> None:
    """Anyio loads the one that runs, when it runs."""
    assert not loaded_by("from lance_sdk import AsyncProducer").intersection({"trio", "construct"})


@pytest.mark.parametrize("name", lance_sdk.__all__)
def test_every_public_name_loads(name: str) -> None:
    """And tells where it lives."""
    assert getattr(lance_sdk, name) is not None


def test_dir_lists_the_public_names() -> None:
    """Before anything is loaded."""
    assert dir(lance_sdk) == sorted(lance_sdk.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As with any module."""
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        lance_sdk.Nonsense  # noqa: B018 - reading it is the test


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_nothing_is_imported_on_an_event_loop(backend: str) -> None:
    """Once a client was made, opening, sending and reading load no module: that would block it."""
    program = f"""
        import sys, anyio, lance_sdk
        from lance_sdk.testing import FakeServer
        from lance_sdk.values import Json
        async def main(url):
            producer = lance_sdk.AsyncProducer(url)
            consumer = lance_sdk.AsyncConsumer(url, stop_at_end=True, values="json")
            before = set(sys.modules)
            async with producer:
                await producer.send(b"1", key="k", timestamp=7)
                await producer.send(None)
                await producer.flush()
            async with consumer:
                async for record in consumer:
                    record.value, record.key, record.timestamp
            print(sorted(set(sys.modules) - before))
        with FakeServer() as server:
            anyio.run(main, server.url(), backend="{backend}")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
