"""``python release/pictures.py``: take the pictures of the page "Pictures" again.

They are of what a user sees: a server under a small load in a browser and in ``lwp top``, the
kit's report about that server, the plot of its topics, the audit of a damaged data directory, and
the lag of a streaming query of Spark. It needs Chromium and the extras
``cli``, ``server``, ``conformance`` and ``spark``; `tox run -e pictures` has the latter.
"""

import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from lance_sdk import Client, Consumer, Producer
from lance_server import running
from lance_server.config.settings import Address
from lance_server.embedded import EmbeddedServer

_STATIC: Final = Path(__file__).parents[1] / "docs" / "_static"
_TOPICS: Final = {"orders": 300, "payments": 700, "sensor-readings-north": 1100}
"""Topics, and the bytes of their records."""
_READERS: Final = {"billing": "orders", "search": "payments"}
"""Consumers, and what each reads, the second one slowly."""
_LOAD_SECONDS: Final = 20.0
_HOURS: Final = 72
_OUTAGE: Final = range(30, 36)
"""The hours without payments."""
_STREAMED: Final = 4_000
"""Records of 1 kB that the streaming query takes in a micro-batch at most."""
_STREAMED_SECONDS: Final = 75
_BURST: Final = range(10, 15)
"""The seconds in which more arrives than the query takes."""
_USUAL: Final = "/var/lib/lance"
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_COMMAND: Final = (sys.executable, "-m")


def main() -> int:
    """Take all pictures; return the exit code."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        print(f"no browser: install one of {', '.join(_BROWSERS)}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        at = Address("127.0.0.1", 0)
        with (
            running(folder / "data", http=at, consumer_names=tuple(_READERS)) as server,
            _load(server),
        ):
            time.sleep(_LOAD_SECONDS)
            assert server.http_url is not None
            _shoot(browser, server.http_url, _STATIC / "status-page.png", (1240, 940))
            top = ("top", "--once", server.http_url.removeprefix("http://"))
            _show_terminal(browser, top, _STATIC / "lwp-top.png", folder / "data", 520)
        _show_kit(browser, folder)
        days = folder / "days"
        _plot(days)
        _damage(days)
        audit = ("pipeline", "audit", str(days))
        _show_terminal(browser, audit, _STATIC / "pipeline-audit.png", days, 112)
        _draw_lag(folder)
    return 0


@contextmanager
def _load(server: EmbeddedServer) -> Iterator[None]:
    """Write to each topic, and read some of them."""
    over = threading.Event()

    def write(topic: str, size: int) -> None:
        with Producer(f"{server.url}/{topic}", create_topic=True) as producer:
            while not over.wait(0.1):
                producer.send_many([os.urandom(size)] * 25, record_type=0x01)

    def read(name: str, number: int) -> None:
        url = f"{server.url}/{_READERS[name]}"
        with Consumer(url, consumer=name, offsets="server") as consumer:
            for _ in consumer:
                if over.wait(0.003 * (1 + number)):
                    return

    with Client(server.url) as client:
        for topic in _TOPICS:
            client.create_topic(topic)
        client.set_retention("orders", max_age_secs=7 * 86_400, max_bytes=10 * 2**30)
    threads = [threading.Thread(target=write, args=each) for each in _TOPICS.items()]
    threads += [
        threading.Thread(target=read, args=(name, number)) for number, name in enumerate(_READERS)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _show_terminal(
    browser: str, arguments: tuple[str, ...], target: Path, data: Path, height: int
) -> None:
    """Have ``lwp`` print something, and show it as a terminal does.

    Args:
        browser: what takes the picture.
        arguments: of the command.
        target: the picture.
        data: the server's folder, in whose place a usual one is shown.
        height: of the picture.
    """
    done = subprocess.run(
        [*_COMMAND, "lance_sdk.cli", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "110"},
    )
    text = f"$ lwp {shlex.join(arguments)}\n\n{done.stdout}".replace(str(data), _USUAL)
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    style = "margin:0;padding:16px;background:#12181f;color:#dbe2ea;font:14px/1.35 monospace"
    page = data.parent / f"{target.stem}.html"
    page.write_text(f"<body style='{style}'><pre>{text}</pre>")
    _shoot(browser, page.as_uri(), target, (1180, height))


def _show_kit(browser: str, folder: Path) -> None:
    """Ask a server of its own the kit's quick questions, and show the report."""
    page = folder / "report.html"
    with running(folder / "asked") as server:
        address = server.url.removeprefix("lance://")
        arguments = ("--target", address, "--profile", "quick", "--html", str(page))
        subprocess.run(
            [*_COMMAND, "lance_conformance", *arguments], stdout=subprocess.DEVNULL, check=False
        )
    _shoot(browser, page.as_uri(), _STATIC / "kit-report.png", (1240, 940))


def _plot(data: Path) -> None:
    """Write records of three days, more by day than by night, and plot them."""
    hour_ns = 3_600 * 10**9
    begin_ns = time.time_ns() // hour_ns * hour_ns - _HOURS * hour_ns
    with running(data) as server:
        for topic, size in _TOPICS.items():
            with Producer(f"{server.url}/{topic}", create_topic=True) as producer:
                for hour in range(_HOURS):
                    if topic == "payments" and hour in _OUTAGE:
                        continue
                    for number in range(20 + round(40 * math.sin(math.pi * (hour % 24) / 24))):
                        at = begin_ns + hour * hour_ns + number * 10**9
                        producer.send(os.urandom(size), timestamp=at)
    target = _STATIC / "pipeline-report.svg"
    arguments = ("pipeline", "report", str(data), "--plot", str(target))
    subprocess.run([*_COMMAND, "lance_sdk.cli", *arguments], stdout=subprocess.DEVNULL, check=True)
    _undate(target)


def _damage(data: Path) -> None:
    """Change one bit in the middle of the largest segment."""
    segment = max(data.rglob("*.lnc"), key=lambda path: path.stat().st_size)
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)


def _draw_lag(folder: Path) -> None:
    """Let a burst arrive in one of two topics that a streaming query reads, and draw its lag."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - it starts Java, after all the others

    from lance_sdk.spark.lag_listener import LagListener  # noqa: PLC0415 - it needs pyspark

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = session.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    listener = LagListener()
    spark.streams.addListener(listener)
    with running(folder / "streamed") as server, ExitStack() as stack:
        producers = {
            topic: stack.enter_context(Producer(f"{server.url}/{topic}", create_topic=True))
            for topic in ("orders", "payments")
        }
        source = spark.readStream.format("lwp").options(
            servers=server.url.removeprefix("lance://"),
            topic="orders,payments",
            startingOffsets="earliest",
            maxOffsetsPerTrigger=_STREAMED,
        )
        written = source.load().writeStream.format("noop").trigger(processingTime="1 second")
        query = written.option("checkpointLocation", str(folder / "checkpoint")).start()
        query.processAllAvailable()  # the first micro-batch takes long
        for second in range(_STREAMED_SECONDS):
            for topic, producer in producers.items():
                burst = topic == "payments" and second in _BURST
                producer.send_many(
                    [os.urandom(1000)] * (4 * _STREAMED if burst else _STREAMED // 16)
                )
            time.sleep(1.0)
        query.stop()
    spark.stop()
    target = _STATIC / "spark-lag.svg"
    listener.draw(target)
    _undate(target)


def _undate(picture: Path) -> None:
    """Leave out when a picture was drawn."""
    picture.write_text(re.sub(r"<dc:date>.*?</dc:date>", "", picture.read_text()))


def _shoot(browser: str, url: str, target: Path, size: tuple[int, int]) -> None:
    """Take a picture of what a browser shows."""
    subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--window-size={size[0]},{size[1]}",
            f"--screenshot={target}",
            url,
        ],
        capture_output=True,
        check=True,
    )
    print(target)


if __name__ == "__main__":
    sys.exit(main())
