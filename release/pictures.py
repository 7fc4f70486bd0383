"""``python release/pictures.py``: take the pictures of the page "Pictures" again.

They are of what a user sees: a server under a small load in a browser and in ``lwp top``, the
kit's report about that server, and the plot of its topics. It needs Chromium and the extras
``cli``, ``server``, ``conformance`` and ``spark``; `tox run -e pictures` has the latter.
"""

import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
            _show_top(browser, server.http_url.removeprefix("http://"), folder)
        _show_kit(browser, folder)
        _plot(folder / "days")
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


def _show_top(browser: str, address: str, folder: Path) -> None:
    """Have ``lwp top`` print a moment, and show it as a terminal does."""
    done = subprocess.run(
        [*_COMMAND, "lance_sdk.cli", "top", "--once", address],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "110"},
    )
    page = folder / "top.html"
    text = done.stdout.replace("&", "&amp;").replace("<", "&lt;")
    style = "margin:0;padding:16px;background:#12181f;color:#dbe2ea;font:14px/1.35 monospace"
    page.write_text(f"<body style='{style}'><pre>$ lwp top {address}\n\n{text}</pre>")
    _shoot(browser, page.as_uri(), _STATIC / "lwp-top.png", (1180, 520))


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
    target.write_text(re.sub(r"<dc:date>.*?</dc:date>", "", target.read_text()))


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
