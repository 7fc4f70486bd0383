"""Public modules that have moved are found where they were, with a warning."""

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("lance_spec.fluvio_apis", "lance_spec.fluvio.apis", "APIS"),
        ("lance_spec.gorilla", "lance_spec.qwp.gorilla", "pack"),
        ("lance_spec.rustlog_json", "lance_spec.rustlog.json_messages", "encode_request"),
    ],
)
def test_a_module_that_moved_has_its_names(old: str, new: str, name: str) -> None:
    """They are those of the new module."""
    with pytest.warns(DeprecationWarning, match=f"{old} is deprecated since 0.2; import {new}"):
        assert getattr(import_module(old), name) is getattr(import_module(new), name)


def test_a_name_that_never_was_is_missing() -> None:
    """As in every module."""
    with pytest.raises(AttributeError):
        _ = import_module("lance_spec.gorilla").nothing
