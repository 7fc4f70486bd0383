"""What sources tell beside their records."""

from collections.abc import Iterator, Sequence

import pytest

from lance_sdk.bridge import Envelope, ReadOptions, SourceChangedError, open_source
from lance_sdk.errors import DeadlineExceeded
from lance_sdk.fluvio import FluvioConsumer

from .urls import Urls

FOLLOWED = ReadOptions(follow=True, wait=0.01)


@pytest.mark.parametrize("system", ["lance", "fluvio", "rustlog"])
def test_a_followed_source_says_that_there_is_nothing(urls: Urls, system: str) -> None:
    """Again and again, and goes on with what comes."""
    urls.fill("from", b"a")
    with open_source(urls.of(system, "from"), FOLLOWED) as source:
        batches = source.batches()
        found = until_there_is(1, batches)
        assert [list(next(batches)) for _ in range(3)] == [[], [], []]
        urls.fill("from", b"b")
        found += until_there_is(1, batches)
    assert [each.value for each in found] == [b"a", b"b"]
    assert found[0].following == found[1].offset


def until_there_is(count: int, batches: Iterator[Sequence[Envelope]]) -> list[Envelope]:
    """Return so many records, however long they take."""
    found: list[Envelope] = []
    while len(found) < count:
        found += next(batches)
    return found


def test_a_rustlog_topic_that_became_shorter_is_noticed(urls: Urls) -> None:
    """Its broker would only ever say that there is nothing after the end."""
    urls.fill("from", b"a", b"b")
    with open_source(urls.of("rustlog", "from"), FOLLOWED) as source:
        batches = source.batches()
        assert [each.value for each in next(batches)] == [b"a", b"b"]
        assert next(batches) == []
        urls.delete("from")
        urls.fill("from", b"a")
        with pytest.raises(SourceChangedError, match="does not reach to offset 2 any more"):
            next(batches)


def test_a_server_that_falls_silent_is_not_waited_for(
    urls: Urls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where records are known to be there, they come, or it is an error."""
    urls.fill("from", b"a")
    monkeypatch.setattr(FluvioConsumer, "poll", lambda *_: [])
    with (
        open_source(urls.of("fluvio", "from")) as source,
        pytest.raises(DeadlineExceeded, match="nothing came from offset 0 on in 30 s"),
    ):
        next(source.batches())
