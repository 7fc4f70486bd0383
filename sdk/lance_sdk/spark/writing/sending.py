"""Frames of rows, sent under ids that a repetition uses again."""

from typing import Any, Final

from lance_sdk._api.frame_producer import FrameProducer
from lance_sdk.spark.options import Options
from lance_sdk.spark.rows.encoding import Frame

_BUFFER: Final = 32 << 20


class FrameSender(FrameProducer):
    """Sends frames to one topic, in order.

    Args:
        options: of the query.
        topic: the topic's name.
        nonce: upper 24 bits of the batch ids of all frames, when they were given some.
        frames: how many of those there are.
        **more: settings of the producer.
    """

    def __init__(
        self, options: Options, topic: str, *, nonce: int = 0, frames: int = 0, **more: Any
    ) -> None:
        super().__init__(
            options.url(topic),
            nonce=nonce,
            batches=frames,
            create_topic=options.create_topic,
            buffer_bytes=max(_BUFFER, 4 * options.batch_bytes),
            **options.client_options(),
            **more,
        )

    def send_frame(self, frame: Frame, *, batch_id: int = 0, timestamp_ns: int = 0) -> None:
        """Hand a frame over, see `FrameProducer.send_batch`.

        Args:
            frame: the frame.
            batch_id: the id to send it under, each time; 0 takes the producer's next.
            timestamp_ns: the time that goes with it.

        Raises:
            DeliveryError: an earlier frame could not be delivered.
            BufferFull: there was no room for a minute.
        """
        self.send_batch(frame.payload, frame.count, batch_id=batch_id, timestamp_ns=timestamp_ns)
