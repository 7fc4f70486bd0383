"""Acks that name a consumer: they must name the one that asked (LWP sections 5.12 and 5.14)."""

from functools import partial

from lance_sdk._protocol.request_tracker import PendingRequest
from lance_spec.checksum import Buffer
from lance_spec.enums import Command
from lance_spec.errors import DecodeError
from lance_spec.messages.lwp import CommitAck, CommitOffset, SubscribeAck


def begun(payload: Buffer, consumer_id: int) -> SubscribeAck:
    """Read a SubscribeAck.

    Raises:
        DecodeError: the payload is not a SubscribeAck, or is one for another consumer.
    """
    ack = SubscribeAck.decode(payload)
    if ack.consumer_id != consumer_id:
        raise DecodeError("SubscribeAck", "consumer_id", 0, str(consumer_id), str(ack.consumer_id))
    return ack


def commit_call(topic_id: int, consumer_id: int, offset: int) -> PendingRequest:
    """Return the request that commits an offset; its answer must be of the same commit."""
    asked = CommitOffset(topic_id, consumer_id, offset)
    read = partial(_committed, asked=asked)
    payload, answer = asked.encode(), Command.COMMIT_ACK
    return PendingRequest(Command.COMMIT_OFFSET, payload, answer, read, repeatable=True)


def _committed(payload: Buffer, asked: CommitOffset) -> CommitAck:
    ack = CommitAck.decode(payload)
    if ack.consumer_id != asked.consumer_id:
        wanted, told = str(asked.consumer_id), str(ack.consumer_id)
        raise DecodeError("CommitAck", "consumer_id", 0, wanted, told)
    if ack.offset != asked.offset:
        raise DecodeError("CommitAck", "offset", 8, str(asked.offset), str(ack.offset))
    return ack
