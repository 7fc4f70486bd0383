"""Pipelines over whole logs: as functions here, as ``lwp pipeline …``, and for spark-submit.

Each but `compact` takes a Spark session and returns a plain object that says what was done. With
None instead, all but `archive` work in processes on this machine.
"""

from lance_sdk.spark import explained

try:
    from lance_sdk.spark.pipelines.archive import Archived, archive
    from lance_sdk.spark.pipelines.audit import Audited, FileReport, audit
    from lance_sdk.spark.pipelines.compact import Compacted, compact
    from lance_sdk.spark.pipelines.migrate import Migrated, migrate
    from lance_sdk.spark.pipelines.reindex import Reindexed, reindex
    from lance_sdk.spark.pipelines.replay import Replayed, replay
    from lance_sdk.spark.pipelines.report import Report, plot, report, write_page
    from lance_sdk.spark.pipelines.session import local_session
    from lance_sdk.spark.pipelines.volume import Volume
except ModuleNotFoundError as error:
    raise explained(error) from None

__all__ = [
    "Archived",
    "Audited",
    "Compacted",
    "FileReport",
    "Migrated",
    "Reindexed",
    "Replayed",
    "Report",
    "Volume",
    "archive",
    "audit",
    "compact",
    "local_session",
    "migrate",
    "plot",
    "reindex",
    "replay",
    "report",
    "write_page",
]
