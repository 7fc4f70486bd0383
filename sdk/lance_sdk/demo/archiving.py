"""The demo's last step, for those who ask: the topic, streamed into Parquet files with Spark."""

import tempfile
from pathlib import Path
from time import monotonic

from lance_sdk.cli._settings import Settings
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.url import URL

LEFT_OUT = "left out; --archive streams the topic into Parquet (pip install 'lance-sdk[spark]')"


def archive_topic(topic: URL, settings: Settings, expected: int) -> str:
    """Archive a topic, count what Spark finds in the files, and say what was done.

    Args:
        topic: where it lives.
        settings: the shared options.
        expected: how many records it has.

    Raises:
        ConfigError: PySpark or Java is missing.
        Failure: the archive holds another number of records.
    """
    from lance_sdk.spark.pipelines.session import local_session  # noqa: PLC0415 - an extra

    said = {"servers": topic.server_url(), "topics": topic.label, "token": settings.token}
    options = {name: value for name, value in said.items() if value is not None}
    with tempfile.TemporaryDirectory(prefix="lance-demo-") as folder, local_session() as spark:
        from lance_sdk.spark.pipelines.archive import archive  # noqa: PLC0415 - an extra

        began, target = monotonic(), Path(folder, "archive")
        archive(spark, options, str(target))
        elapsed = monotonic() - began
        found = spark.read.parquet(str(target)).count()
        size = sum(path.stat().st_size for path in target.rglob("*.parquet"))
    if found != expected:
        raise Failure(f"the archive holds {found} records of {expected}")
    records, seconds = number_format.count(found, "record"), number_format.seconds(elapsed)
    return f"{records} as Parquet, {number_format.size(size)}, in {seconds}"
