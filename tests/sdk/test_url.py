"""lance:// URLs: what they say, and what is wrong with those that say nothing."""

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk.config import ClientConfig, ConsumerConfig, ProducerConfig
from lance_sdk.errors import ConfigError
from lance_sdk.url import URL, Endpoint, parse_url


def test_everything_in_one() -> None:
    """Scheme, token, hosts, topic and settings."""
    url = parse_url("lances://to%40ken@h1:2000,h2,[::1]:3000/my%20orders?linger=5ms&batch=64KiB")
    assert url.tls
    assert url.token == "to@ken"
    assert url.endpoints == (Endpoint("h1", 2000), Endpoint("h2", 1992), Endpoint("::1", 3000))
    assert url.topic == "my orders"
    assert url.query == {"linger": "5ms", "batch_bytes": "64KiB"}


def test_the_default_port_is_1992() -> None:
    """LWP section 1.2; for names and for IPv6 addresses."""
    assert parse_url("lance://localhost").endpoints == (Endpoint("localhost", 1992),)
    assert parse_url("lance://[fe80::1]").endpoints == (Endpoint("fe80::1", 1992),)


def test_a_topic_by_number() -> None:
    """The path is always a name (AMB-24)."""
    assert parse_url("lance://h?topic_id=7").topic_id == 7
    assert parse_url("lance://h/7").topic == "7"
    assert parse_url("lance://h/?topic_id=0").label == "#0"


def test_a_topic_name_is_normalised() -> None:
    """AMB-24: Unicode NFC."""
    assert parse_url("lance://h/e%CC%81").topic == "\u00e9"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("localhost:1992/orders", "must begin with lance://"),
        ("http://localhost/orders", "must begin with lance://"),
        ("lance://", "host ''"),
        ("lance://h:x/t", "a port from 1 to 65535, got 'x'"),
        ("lance://h:0/t", "a port from 1 to 65535"),
        ("lance://h:65536/t", "a port from 1 to 65535"),
        ("lance://h:\u0661/t", "a port from 1 to 65535"),
        ("lance://h:" + "9" * 5000, "a port from 1 to 65535"),
        ("lance://h,,i/t", "host ''"),
        ("lance://::1/t", "[IPv6]:port"),
        ("lance://h/a/b", "no '/'"),
        ("lance://h/%2E%2E", "other than '.' and '..'"),
        ("lance://h/%FF", "not UTF-8"),
        ("lance://h/t#x", "%23"),
        ("lance://h/t?lingr=5ms", "a URL has no key 'lingr': did you mean 'linger'?"),
        ("lance://h/t?linger", "given once, as linger=value"),
        ("lance://h/t?linger=1s&linger=2s", "given once"),
        ("lance://h/t?batch=1&batch_bytes=2", "given once"),
        ("lance://h/t?topic_id=7", "not both"),
        ("lance://h?topic_id=-1", "topic_id='-1'"),
        ("lance://h?topic_id=4294967296", "topic_id='4294967296'"),
        ("lance://h/t?token=x", "write lance://TOKEN@HOST"),
    ],
)
def test_what_is_wrong_is_named(text: str, complaint: str) -> None:
    """The part at fault, and where possible the remedy."""
    with pytest.raises(ConfigError) as caught:
        parse_url(text)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("nonsense", [None, 5, b"lance://h/t", ["lance://h/t"]])
def test_a_url_is_text(nonsense: Any) -> None:
    """Anything else is named by its type."""
    with pytest.raises(ConfigError, match=f"must be text, not {type(nonsense).__name__}"):
        parse_url(nonsense)


@pytest.mark.parametrize(
    "text",
    [
        "lance://" + "h" * 100_000,
        "lance://h:" + "9" * 100_000,
        "lance://h/" + "t" * 100_000,
        "lance://h?topic_id=" + "9" * 100_000,
        "lance://h/t?batch=" + "9" * 100_000,
        "lance://h/t?linger=" + "9" * 100_000,
        "lance://h/t?max_in_flight=" + "9" * 100_000,
    ],
)
def test_an_error_does_not_repeat_what_is_endless(text: str) -> None:
    """A screen is enough to read it."""
    with pytest.raises(ConfigError) as caught:
        parse_url(text).configure(ProducerConfig, {})
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("linger=5", "a duration such as 5ms"),
        ("linger=-5ms", "a duration"),
        ("linger=5 ms", "a duration"),
        ("batch=64XB", "a size such as"),
        ("max_in_flight=many", "a whole number"),
        ("create_topic=yes", "true or false"),
        ("on_full=drop", "'block' or 'raise'"),
        ("dialect=klingon", "'auto' or 'specified' or 'deployed'"),
        ("fetch_header=17", "16 or 24"),
        ("max_in_flight=0", "more than 0"),
        ("batch=64MiB", "batch_bytes=67108864"),
        ("buffer=1KiB", "buffer_bytes=1024 must be at least batch_bytes"),
    ],
)
def test_values_are_checked(text: str, complaint: str) -> None:
    """With the key and what it must be."""
    with pytest.raises(ConfigError) as caught:
        parse_url(f"lance://h/t?{text}").configure(ProducerConfig, {})
    assert complaint in str(caught.value)


def test_settings_come_from_the_query_and_keywords_win() -> None:
    """Durations as seconds, sizes as bytes."""
    url = parse_url("lance://h/t?linger=5ms&batch=64KiB&max_in_flight=3&create_topic=true")
    config = url.configure(ProducerConfig, {"max_in_flight": 9})
    assert (config.linger, config.batch_bytes, config.max_in_flight) == (0.005, 65536, 9)
    assert config.create_topic


def test_one_url_serves_producers_and_consumers() -> None:
    """Keys that another kind of client knows are left out, not refused."""
    url = parse_url("lance://h/t?linger=5ms&start=end&stop_at_end=1")
    assert url.configure(ProducerConfig, {}).linger == 0.005
    assert url.configure(ConsumerConfig, {}).start == "end"
    assert isinstance(url.configure(ClientConfig, {}), ClientConfig)


def test_an_unknown_keyword_suggests_the_nearest() -> None:
    """As an unknown key of the URL does."""
    with pytest.raises(ConfigError, match=r"Producer has no option 'lingr'.*did you mean 'linger'"):
        parse_url("lance://h/t").configure(ProducerConfig, {"lingr": 5})


def test_the_token_reaches_the_settings_and_no_text() -> None:
    """Neither repr nor str, of the URL or of the settings, shows it."""
    url = parse_url("lance://s3cret@h/t")
    config = url.configure(ProducerConfig, {})
    assert config.token == "s3cret"
    for text in (str(url), repr(url), repr(config)):
        assert "s3cret" not in text
    assert str(url) == "lance://***@h:1992/t"


def test_no_error_shows_the_token() -> None:
    """Whatever is wrong with the rest."""
    with pytest.raises(ConfigError) as caught:
        parse_url("lance://s3cret@h:x/t")
    assert "s3cret" not in str(caught.value)


def test_urls_and_settings_can_be_pickled() -> None:
    """They travel to other processes; connections do not."""
    url = parse_url("lance://h/t?linger=5ms")
    assert pickle.loads(pickle.dumps(url)) == url
    config = url.configure(ProducerConfig, {})
    assert pickle.loads(pickle.dumps(config)) == config


def test_a_parsed_url_is_taken_as_it_is() -> None:
    """By whatever takes a URL."""
    url = parse_url("lance://h/t")
    assert parse_url(url) is url


@given(st.text(max_size=60))
def test_no_text_does_anything_but_parse_or_raise_config_error(text: str) -> None:
    """With or without a scheme in front."""
    for candidate in (text, f"lance://{text}", f"lance://h/{text}", f"lance://h?{text}"):
        try:
            assert isinstance(parse_url(candidate), URL)
        except ConfigError as error:
            assert str(error)  # noqa: PT017 - either outcome is right, and has a message


names = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=40
).filter(lambda name: name not in {".", ".."})


@given(names)
def test_any_topic_name_survives_a_url(name: str) -> None:
    """What `str` of a URL writes, `parse_url` reads."""
    try:
        url = parse_url(str(URL(endpoints=(Endpoint("h"),), topic=name)))
    except ConfigError as error:
        assert "255" in str(error)  # noqa: PT017 - a name may be too long when encoded
    else:
        assert parse_url(str(url)) == url
