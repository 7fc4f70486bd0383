"""A report as one HTML page."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from lance_sdk.spark.pipelines.plotting import drawing, unit_of
from lance_sdk.spark.pipelines.volume import Volume

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Records by topic</title>
<style>
body {{ font: 1rem/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
svg {{ max-width: 100%; height: auto }}
table {{ border-collapse: collapse; margin: 1rem 0 }}
th, td {{ padding: 0.2rem 0.8rem; border-bottom: 1px solid #ccc; text-align: right }}
th:first-child, td:first-child {{ text-align: left }}
</style>
</head>
<body>
<h1>Records by topic</h1>
<p>{summary}</p>
{picture}
<h2>Topics</h2>
{topics}
<h2>Hours</h2>
{hours}
</body>
</html>
"""


def page_of(volumes: Sequence[Volume]) -> str:
    """Return the page.

    Args:
        volumes: what the log holds, by topic, hour and type.

    Raises:
        ConfigError: matplotlib is missing.
    """
    topics: dict[str, list[int]] = {}
    for volume in volumes:
        sums = topics.setdefault(volume.topic, [0, 0])
        sums[0] += volume.records
        sums[1] += volume.bytes
    records, size = (sum(sums[place] for sums in topics.values()) for place in (0, 1))
    return _PAGE.format(
        summary=f"Topics: {len(topics):,}; records: {records:,}; size: {_size(size)}",
        picture=drawing(volumes) if volumes else "",
        topics=_table(
            ["topic", "records", "bytes"],
            ([name, f"{sums[0]:,}", f"{sums[1]:,}"] for name, sums in sorted(topics.items())),
        ),
        hours=_table(
            ["topic", "hour (UTC)", "type", "records", "bytes"],
            (
                [
                    each.topic,
                    each.hour_text,
                    f"{each.type:#04x}",
                    f"{each.records:,}",
                    f"{each.bytes:,}",
                ]
                for each in volumes
            ),
        ),
    )


def _size(size: int) -> str:
    scale, unit = unit_of(size)
    return f"{size:,} {unit}" if scale == 1 else f"{size / scale:.1f} {unit}"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "\n".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
