"""Every named value has a meaning, which the site shows."""

import ast
import inspect
from enum import IntEnum, IntFlag
from types import ModuleType

import pytest

from lance_spec import enums
from lance_spec.emit._enums import named_values
from lance_spec.grammar.lwp import lz4
from lance_spec.ir.families import composed, families
from lance_spec.qwp import upgrade

FOUND = {
    each.__qualname__ + each.__module__: each
    for family in (*families().values(), *composed().values())
    for each in named_values(family)
}


def of(module: ModuleType) -> list[type[IntEnum | IntFlag]]:
    """The classes of named values that a module declares."""
    return [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, IntEnum | IntFlag)
        and each.__module__ == module.__name__
    ]


EVERY = [*FOUND.values(), *of(upgrade), *of(lz4), *of(enums)]


@pytest.mark.parametrize("names", EVERY, ids=lambda each: f"{each.__module__}.{each.__name__}")
def test_every_value_has_a_sentence_under_it(names: type[IntEnum | IntFlag]) -> None:
    """Each ends with a full stop, so that a table reads like text."""
    (declared,) = ast.parse(inspect.getsource(names)).body
    assert isinstance(declared, ast.ClassDef)
    told = {}
    for member, text in zip(declared.body, declared.body[1:], strict=False):
        if isinstance(member, ast.Assign) and isinstance(text, ast.Expr):
            assert isinstance(text.value, ast.Constant)
            told[ast.unparse(member.targets[0])] = str(text.value.value)
    assert set(told) == set(names.__members__)
    assert all(each.endswith(".") for each in told.values())
