"""Makes Spark know the format ``lwp``: it looks for modules named ``pyspark_*`` by itself.

Everything is in `lance_sdk.spark`.
"""

from typing import TYPE_CHECKING

from lance_sdk.spark import too_old

if TYPE_CHECKING or too_old() is None:
    from lance_sdk.spark.source import LwpDataSource as DefaultSource
else:  # Spark passes over a module that cannot be imported, and says only that nothing was found
    from lance_sdk.spark.unsupported import UnsupportedSource as DefaultSource

__all__ = ["DefaultSource"]
