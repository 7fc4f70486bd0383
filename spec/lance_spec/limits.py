"""Limits of the protocol that all packages share (LWP section 1.2, AMB-32)."""

from typing import Final

MAGIC: Final = b"LANC"
VERSION: Final = 1
HEADER_SIZE: Final = 44
"""Bytes of the header that opens every frame (LWP section 3.1)."""

PREFIX_SIZE: Final = 12
"""Bytes of the header that the header CRC protects, and the CRC itself (LWP section 9.3)."""

DEFAULT_PORT: Final = 1992
KEEPALIVE_INTERVAL: Final = 10.0
"""Seconds without traffic after which a client sends a Keepalive (LWP section 2.3)."""

IDLE_TIMEOUT: Final = 30.0
"""Seconds without any frame after which a connection may be closed (LWP section 2.3)."""

RECORD_HEADER_SIZE: Final = 5
"""Bytes of type and length before each record's value (LWP section 8.1)."""

MAX_RECORD_VALUE: Final = 16 * 1024 * 1024
"""Largest record value in bytes (LWP section 8.7)."""

MAX_PAYLOAD: Final = MAX_RECORD_VALUE + RECORD_HEADER_SIZE
"""Largest frame payload in bytes, so that the largest record fits (AMB-32)."""

MAX_TOPIC_NAME: Final = 255
"""Largest topic name in UTF-8 bytes (LWP section 5.3)."""

END_OFFSET: Final = 2**64 - 1
"""A Fetch that starts here is answered empty, with the end of the topic (AMB-06)."""

DEFAULT_TOPIC_ID: Final = 0
"""The topic that exists without being created (LWP section 6.1)."""

BATCH_COUNTER_BITS: Final = 40
"""Lower bits of a batch id that count; the upper ones are a producer's nonce (AMB-25)."""
