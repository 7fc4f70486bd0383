"""The number that stands for a consumer's name where only numbers fit.

LWP's CommitOffset and the published file names take a 64-bit consumer id; the published Rust
client makes it of the name in the same way, so both find each other's commits.
"""

from lance_spec.codec.siphash import consumer_id

__all__ = ["consumer_id"]
