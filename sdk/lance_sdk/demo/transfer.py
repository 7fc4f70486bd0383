"""Records into a topic and out of it again, as any application would move them."""

from collections.abc import Sequence
from typing import Final

from lance_sdk.cli._settings import Settings
from lance_sdk.cli._target import client_options
from lance_sdk.cli.console.progress import Meter
from lance_sdk.cli.records.batch_reader import to_the_end
from lance_sdk.demo.compare import Comparison
from lance_sdk.url import URL
from lance_spec.enums import RecordType
from lance_spec.records import decode_records

_SLICE: Final = 1024  # records handed over at a time, so that progress is seen


def produce_all(url: URL, records: Sequence[bytes], settings: Settings, meter: Meter) -> None:
    """Send every record as JSON and wait until all are acknowledged, that is, durable.

    Args:
        url: the topic; it is created when it is not there.
        records: the values.
        settings: the shared options.
        meter: counts what was handed over.

    Raises:
        LanceError: when a record could not be delivered.
    """
    from lance_sdk import Producer  # noqa: PLC0415 - the network is loaded when it is needed

    with Producer(url, create_topic=True, **client_options(settings, url)) as producer:
        for start in range(0, len(records), _SLICE):
            some = records[start : start + _SLICE]
            producer.send_many(some, record_type=RecordType.JSON)
            meter.add(len(some), sum(map(len, some)))
        producer.flush()


def consume_all(url: URL, comparison: Comparison, settings: Settings, meter: Meter) -> None:
    """Read the topic from its beginning to its end, comparing each record.

    Args:
        url: the topic.
        comparison: knows what was sent.
        settings: the shared options.
        meter: counts what came back.

    Raises:
        LanceError: when the topic cannot be read.
        Failure: when nothing comes any more.
    """
    from lance_sdk import Consumer  # noqa: PLC0415 - the network is loaded when it is needed

    with Consumer(
        url, start="beginning", stop_at_end=True, **client_options(settings, url)
    ) as consumer:
        for batch in to_the_end(consumer, settings):
            values = [value for _, value in decode_records(batch.data)]
            comparison.take(values)
            meter.add(len(values), sum(map(len, values)))
