"""The picture of a report: what is drawn together, in which bars, and in which unit."""

import pytest

pytest.importorskip("pyarrow", reason="pip install 'lance-sdk[spark]'")

from pathlib import Path

from lance_sdk.spark.pipelines.page import page_of
from lance_sdk.spark.pipelines.plotting import bar_seconds, draw, grouped, unit_of
from lance_sdk.spark.pipelines.volume import Volume

HOUR = 3600
DAY = 24 * HOUR


def volumes(topics: int, hours: list[int]) -> list[Volume]:
    """Return a volume of each topic in each hour; the first topics are the largest."""
    return [
        Volume(f"topic-{topic:02}", hour if hour < 0 else hour * HOUR, 1, 1, 1000 - topic)
        for topic in range(topics)
        for hour in hours
    ]


def test_few_topics_are_drawn_each() -> None:
    """The largest first."""
    found = grouped([*volumes(8, [0]), Volume("large", 0, 1, 1, 10**6)][1:], HOUR)
    assert list(found)[:2] == ["large", "topic-01"]
    assert len(found) == 8


def test_the_smallest_of_many_topics_are_drawn_together() -> None:
    """With nothing left out."""
    every = volumes(50, [0, 1])
    found = grouped(every, HOUR)
    assert list(found)[-1] == "other (43 topics)"
    assert len(found) == 8
    drawn = sum(size for bars in found.values() for size in bars.values())
    assert drawn == sum(volume.bytes for volume in every)


@pytest.mark.parametrize(
    ("hours", "width"), [([0], HOUR), ([0, 336], HOUR), ([0, 337], DAY), ([-1], HOUR)]
)
def test_a_bar_is_a_day_where_there_are_more_than_two_weeks(hours: list[int], width: int) -> None:
    """Else an hour."""
    assert bar_seconds(volumes(1, hours)) == width


def test_hours_of_a_day_are_one_bar_and_unknown_times_another() -> None:
    """A time that is not known is not a time."""
    (bars,) = grouped(volumes(1, [-1, 0, 23, 24]), DAY).values()
    assert bars == {None: 1000, 0: 2000, DAY: 1000}


@pytest.mark.parametrize(
    ("size", "unit"),
    [(0, (1, "bytes")), (999, (1, "bytes")), (1000, (1000, "kB")), (3 * 10**12, (10**12, "TB"))],
)
def test_sizes_are_drawn_in_a_unit_that_fits(size: int, unit: tuple[int, str]) -> None:
    """So that the axis has short numbers."""
    assert unit_of(size) == unit


@pytest.mark.parametrize("hours", [[-1], [0], [-1, 5, 6], [0, 700]])
def test_whatever_times_are_known_a_picture_is_drawn(tmp_path: Path, hours: list[int]) -> None:
    """With a title, a unit and the topics' names."""
    pytest.importorskip("matplotlib", reason="pip install 'lance-sdk[spark]'")
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    path = tmp_path / "volume.svg"
    with mpl.rc_context({"svg.fonttype": "none"}):  # text stays text
        draw(volumes(3, hours), path)
    drawn = path.read_text()
    unknown_alone = hours == [-1]
    expected = ["Records by topic", "topic-02"]
    expected += ["unknown"] if -1 in hours else []
    expected += ["kB"] if unknown_alone else ["kB per day" if 700 in hours else "kB per hour"]
    assert [text for text in expected if text not in drawn] == []


def test_a_page_has_sums_the_picture_and_every_number() -> None:
    """Topics' names are text, whatever is in them."""
    pytest.importorskip("matplotlib", reason="pip install 'lance-sdk[spark]'")
    volumes = [Volume("a<b", 0, 1, 2000, 3_000_000), Volume("c", -1, 2, 1, 5)]
    page = page_of(volumes)
    assert "Topics: 2; records: 2,001; size: 3.0 MB" in page
    assert page.count("<svg") == 1
    assert "<td>a&lt;b</td><td>1970-01-01 00:00</td><td>0x01</td><td>2,000</td>" in page


def test_a_page_of_an_empty_log_has_no_picture() -> None:
    """It says that there is nothing."""
    page = page_of([])
    assert "Topics: 0; records: 0; size: 0 bytes" in page
    assert "<svg" not in page
