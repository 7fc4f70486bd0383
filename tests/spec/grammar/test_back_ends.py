"""Every family has the forms that are promised for it."""

import pytest

from lance_spec import vectors
from lance_spec.emit import back_ends
from lance_spec.ir.families import composed, families


@pytest.fixture(scope="module")
def cells() -> dict[str, dict[str, str]]:
    """The table as the site shows it."""
    return back_ends.table(lambda family: len(vectors.load(family).tests))


@pytest.mark.parametrize("family", back_ends.TITLES)
@pytest.mark.parametrize(
    "form",
    ["Codec", "Wireshark", "JSON", "Vectors", "Strategies", "``explain``", "Tables here"],
)
def test_every_family_has_these_forms(
    family: str, form: str, cells: dict[str, dict[str, str]]
) -> None:
    """Codec, dissector, JSON, vectors, strategies, explanations and tables."""
    assert cells[family][form]


@pytest.mark.parametrize("family", ["lwp", "groups", "engine", "store_forward", "qwp"])
@pytest.mark.parametrize("form", ["Kaitai", "C header"])
def test_the_families_of_programs_of_ours_have_these_too(
    family: str, form: str, cells: dict[str, dict[str, str]]
) -> None:
    """What a client or a tool in another language starts from."""
    assert cells[family][form]


def test_every_family_and_every_file_of_vectors_is_in_the_table() -> None:
    """A new one has to be placed."""
    assert set(back_ends.TITLES) == {*families(), *composed()} == set(back_ends.VECTORS)
    placed = [each for row in back_ends.VECTORS.values() for each in row]
    assert sorted(placed) == sorted(vectors.FAMILIES)
