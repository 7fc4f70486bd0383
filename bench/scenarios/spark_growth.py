"""What a byte costs the data pipeline when there are more of them, and what a second core gives.

Segments of one small log stand in the large one again and again: their data is linked, their
sidecars say other bases. So a log of ten gigabytes takes as much of the disk as one of 100 MB.
``LANCE_BENCH_MB`` is the size of the small one; ``LANCE_BENCH_TIMES`` how much larger the other is.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench import machine
from bench.harness import Rate, Scenario, rate
from bench.scenarios.spark import TOPIC, drain, filled, session

_TIMES = int(os.environ.get("LANCE_BENCH_TIMES", "10"))


def grown(data: Path, target: Path, times: int) -> int:
    """Make a data directory in which the closed segments of another stand many times.

    Returns:
        Bytes of the records in it.
    """
    from lance_sdk.spark.files.segments import topic_files  # noqa: PLC0415 - heavy
    from lance_spec.disk.segment_names import SegmentName  # noqa: PLC0415 - likewise

    (folder,) = (
        path.parent
        for path in data.glob("segments/*/metadata.json")
        if json.loads(path.read_text())["name"] == TOPIC
    )
    home = target / "segments" / folder.name
    home.mkdir(parents=True)
    _forget_the_log(folder / "metadata.json", home / "metadata.json")
    closed = [each for each in topic_files(str(folder)).segments if each.name.is_closed]
    base = record = 0
    for _ in range(times):
        for segment in closed:
            name = SegmentName(record, segment.name.start_ns, segment.name.end_ns)
            (home / str(name)).hardlink_to(segment.path)
            records = _sidecar(Path(str(segment.sidecar)), home, name, base, record)
            base, record = base + segment.size, record + records
    return base


def _forget_the_log(source: Path, target: Path) -> None:
    """Copy a topic's metadata without what it says of its segments: the copy has others."""
    from lance_sdk.spark.files.topic_folder import stamp_of  # noqa: PLC0415 - heavy

    body = json.loads(source.read_text())
    del body["checksum"], body["log"]
    target.write_text(json.dumps(body | {"checksum": stamp_of(body)}))


def _sidecar(source: Path, home: Path, name: Any, base: int, record: int) -> int:
    """Write a segment's sidecar with another base; return how many records it has."""
    from crc32c import crc32c  # noqa: PLC0415 - heavy
    from numpy import frombuffer  # noqa: PLC0415 - an extra

    from lance_sdk.spark.files.segments import ENTRY  # noqa: PLC0415 - likewise
    from lance_spec.messages.engine import SidecarHeader  # noqa: PLC0415 - likewise

    raw, size = source.read_bytes(), SidecarHeader.SIZE
    head = replace(SidecarHeader.decode(raw[:size]), base_offset=base, base_record=record)
    head = replace(head, header_crc=crc32c(head.encode()[: size - 4]))
    path = home / f"{name.start_index}_{name.start_ns}.batches"
    path.write_bytes(head.encode() + raw[size:])
    return int(frombuffer(raw[size:], ENTRY)["records"].sum())


@contextmanager
def _logs(stack: ExitStack) -> Iterator[tuple[tuple[Path, int], tuple[Path, int]]]:
    """Yield a small log and a large one, with their bytes."""
    _, data, _ = stack.enter_context(filled())
    small, large = data.parent / "small", data.parent / "large"
    yield (small, grown(data, small, 1)), (large, grown(data, large, _TIMES))


@contextmanager
def _growing(work: Callable[[Any, Path], object]) -> Iterator[tuple[Rate, Rate]]:
    with ExitStack() as stack:
        (small, few), (large, many) = stack.enter_context(_logs(stack))
        spark = session(stack)
        yield rate(many, lambda: work(spark, large)), rate(few, lambda: work(spark, small))


def _audit(spark: Any, data: Path) -> None:
    from lance_sdk.spark.pipelines import audit  # noqa: PLC0415 - heavy

    if not audit(spark, str(data)).clean:
        raise RuntimeError(f"{data} is not clean")


def _read(spark: Any, data: Path) -> None:
    drain(spark.read.format("lwp").schema("value binary").load(str(data)))


@contextmanager
def _on_cores() -> Iterator[tuple[Rate, Rate]]:
    from lance_sdk.spark.pipelines.audit import audit_one, targets  # noqa: PLC0415 - heavy

    with ExitStack() as stack:
        (small, _), (large, size) = stack.enter_context(_logs(stack))
        del small
        spark = session(stack)
        found = targets(str(large))

        def work(tasks: int) -> None:
            spark.sparkContext.parallelize(found, tasks).map(audit_one).collect()

        yield rate(size, lambda: work(machine.cores())), rate(size, lambda: work(1))


def _scenario(name: str, other: str, sides: Callable[[], Any]) -> Scenario:
    return Scenario(name=f"spark/{name}", unit="B/s", other=other, sides=sides)


SCENARIOS = (
    _scenario("audit-large", f"a log of 1/{_TIMES} of the size", partial(_growing, _audit)),
    _scenario("read-files-large", f"a log of 1/{_TIMES} of the size", partial(_growing, _read)),
    _scenario("audit-cores", "one task, where ours has as many as there are cores", _on_cores),
)
