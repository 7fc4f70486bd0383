"""The suites by name, each loaded when it is first asked for."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from lance_conformance.engine.registry import Case
from lance_conformance.engine.suite import Suite

_CLASSES: Mapping[str, tuple[str, str]] = {
    "lwp": ("lance_conformance.server.suite", "Lwp"),
    "rustlog": ("lance_conformance.rustlog.suite", "Rustlog"),
    "fluvio": ("lance_conformance.fluvio.suite", "Fluvio"),
}
_CLIENTS: Mapping[str, tuple[str, str]] = {
    "lwp-client": ("lance_conformance.client.suite", "LwpClients"),
}
"""Suites about clients, which are asked by a command of their own."""
PROTOCOLS = tuple(_CLASSES)
"""The names of the suites about servers, the default one first."""
SUITES = (*_CLASSES, *_CLIENTS)
"""The names of all suites."""


@cache
def suite_named(name: str) -> Suite:
    """Return a suite.

    Args:
        name: One of `SUITES`.
    """
    module, cls = {**_CLASSES, **_CLIENTS}[name]
    suite = getattr(import_module(module), cls)()
    assert isinstance(suite, Suite)
    return suite


def every_suite() -> tuple[Suite, ...]:
    """All suites."""
    return tuple(suite_named(name) for name in SUITES)


def case_by_id(case_id: str) -> tuple[Suite, Case] | None:
    """Find a case by its id, which is unique among all suites."""
    for suite in every_suite():
        if case_id in suite.by_id:
            return suite, suite.by_id[case_id]
    return None
