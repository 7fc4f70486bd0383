"""The format in the shells that Spark itself has, and in Spark Connect; nothing is registered."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(900)

Fill = Callable[..., list[bytes]]
At = Mapping[str, str]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}
PROGRAM = Path(__file__).parent / "connect_program.py"


@pytest.fixture
def shell(sessions: None, tmp_path: Path) -> Callable[..., str]:
    """Run one of Spark's shells in a folder of its own; return what it printed."""
    del sessions
    import pyspark  # noqa: PLC0415 - an extra

    home = Path(pyspark.__file__).parent

    def run(name: str, *arguments: str, said: str = "") -> str:
        settings = [f"--conf={key}={value}" for key, value in SETTINGS.items()]
        done = subprocess.run(
            [str(home / "bin" / name), "--master", "local[2]", *settings, *arguments],
            check=False,
            capture_output=True,
            text=True,
            input=said,
            cwd=tmp_path,
            env={**os.environ, "SPARK_HOME": str(home)},
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    return run


def test_spark_sql_reads_and_writes_a_table(
    shell: Callable[..., str], produce: Fill, reader: Any, at: At
) -> None:
    """With SQL only: a table of the catalog, a view, and rows that are inserted."""
    expected = produce("orders", 40)
    produce("copy", 0)
    where = f"servers '{at['servers']}', dialect 'specified'"
    told = shell(
        "spark-sql",
        "-e",
        f"CREATE TABLE orders USING lwp OPTIONS ({where}, topic 'orders');"
        f"CREATE TABLE copy USING lwp OPTIONS ({where}, topic 'copy', createTopic 'true');"
        "DESCRIBE orders;"
        "SELECT count(*), max(offset) FROM orders WHERE offset >= 450;"
        "INSERT INTO copy (value) SELECT value FROM orders WHERE offset < 900;",
    )
    lines = [line.split() for line in told.splitlines()]
    assert ["value", "binary"] in lines
    assert ["30", "1755"] in lines
    assert reader.values(**at, topic="copy") == expected[:20]


def test_the_scala_shell_reads_and_writes(
    shell: Callable[..., str], produce: Fill, reader: Any, at: At
) -> None:
    """As a source and as a sink, by the format's name."""
    expected = produce("orders", 40)
    options = f'.format("lwp").option("servers", "{at["servers"]}").option("dialect", "specified")'
    told = shell(
        "spark-shell",
        said=f"""
val rows = spark.read{options}.option("topic", "orders").load()
println("rows=" + rows.count())
val sink = rows.select("value").write{options}.option("topic", "copy")
sink.option("createTopic", "true").mode("append").save()
""",
    )
    assert "rows=40" in told
    assert reader.values(**at, topic="copy") == expected


def test_spark_connect_reads_writes_and_streams(
    sessions: None, produce: Fill, reader: Any, at: At, tmp_path: Path
) -> None:
    """A client without a Java side of its own: batch, stream, rows written; no pipelines."""
    del sessions
    pytest.importorskip("grpc_status", reason="pip install 'pyspark[connect]'")
    expected = produce("orders", 40)
    told = tmp_path / "told.json"
    done = subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps({**at}), str(tmp_path), str(told)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answer = json.loads(told.read_text())
    assert answer["count"] == 40
    assert ["do not run on Spark Connect" in each for each in answer["refused"]] == [True, True]
    assert reader.values(**at, topic="copy") == expected
    assert reader.values(**at, topic="streamed") == expected
