"""Makes Spark know the format ``lwp``: it looks for modules named ``pyspark_*`` by itself.

Everything is in `lance_sdk.spark`.
"""

from lance_sdk.spark.source import LwpDataSource as DefaultSource

__all__ = ["DefaultSource"]
