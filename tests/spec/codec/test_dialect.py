"""The named dialects and what they change."""

import pytest

from lance_spec.dialect import DEPLOYED, DIALECTS, SPECIFIED
from lance_spec.errors import EncodeError
from lance_spec.names import check_topic_name


def test_presets_by_name() -> None:
    """A dialect is asked for by its name."""
    assert DIALECTS == {"specified": SPECIFIED, "deployed": DEPLOYED}
    assert str(DEPLOYED) == "deployed"


def test_limits_let_the_largest_record_fit() -> None:
    """A payload holds one record of 16 MiB; a deployed frame is 16 MiB in all (AMB-32)."""
    assert SPECIFIED.max_payload == 16_777_221
    assert DEPLOYED.max_payload == 16_777_216
    assert DEPLOYED.max_fetch_data == 16_777_156


@pytest.mark.parametrize("name", ["orders", "a" * 255, "Ünïcode topic", "a.b", "日本"])
def test_allowed_names(name: str) -> None:
    """Names are 1 to 255 bytes of UTF-8 (AMB-24)."""
    assert check_topic_name(name, SPECIFIED)


@pytest.mark.parametrize(
    "name", ["", "a" * 256, "é" * 128, "a/b", "a\nb", "a\0b", "\x7f", ".", "..", "\ud800"]
)
def test_refused_names(name: str) -> None:
    """No separators, no control characters, nothing that means a folder (AMB-24)."""
    with pytest.raises(EncodeError, match=r"CreateTopic\.name"):
        check_topic_name(name, SPECIFIED)


@pytest.mark.parametrize("name", ["under_score", "a.b", "é", "orders\n"])
def test_deployed_servers_take_letters_digits_and_dashes(name: str) -> None:
    """Where names are strict, anything else is refused before it is sent (AMB-24)."""
    with pytest.raises(EncodeError, match="only letters"):
        check_topic_name(name.strip() if name != "orders\n" else "orders_", DEPLOYED)


def test_names_are_compared_in_normal_form() -> None:
    """A composed and a decomposed letter are the same name (AMB-24)."""
    assert check_topic_name("e\u0301") == check_topic_name("\u00e9")
