"""Which event loop the server runs on."""

import sys

import pytest

from lance_server.errors import ConfigError
from lance_server.runtime.event_loop import loop_factory


def made(name: str) -> str:
    """The module of the loop that a choice makes."""
    loop = loop_factory(name)()
    loop.close()
    return type(loop).__module__.partition(".")[0]


@pytest.fixture
def without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which uvloop is not installed."""
    monkeypatch.setitem(sys.modules, "uvloop", None)


def test_auto_takes_the_quicker_one_where_it_is_installed() -> None:
    """Nobody has to ask for it."""
    pytest.importorskip("uvloop", reason="uvloop is not installed")
    assert made("auto") == "uvloop"


@pytest.mark.usefixtures("without_uvloop")
def test_auto_does_without_it() -> None:
    """Then asyncio's own serves."""
    assert made("auto") == "asyncio"


def test_asyncio_can_be_asked_for() -> None:
    """Whatever is installed."""
    assert made("asyncio") == "asyncio"


@pytest.mark.usefixtures("without_uvloop")
def test_asking_for_what_is_not_installed_says_what_to_install() -> None:
    """A choice by name is never replaced by another one."""
    with pytest.raises(ConfigError, match=r"pip install 'lance-sdk\[uvloop\]'"):
        loop_factory("uvloop")
