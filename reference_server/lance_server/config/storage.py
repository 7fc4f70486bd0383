"""Options about the log and its storage."""

from typing import Final

import click

from lance_server.config.option_types import FOLDER, SIZE, group, setting
from lance_server.storage.backend_selection import BACKENDS, DURABILITIES

STORAGE: Final = group(
    click.option(
        "--data-dir",
        required=True,
        type=FOLDER,
        help="Folder for all data; created if it does not exist.",
    ),
    click.option(  # a server inside a program, see `ServerConfig`, starts at once, without a trial
        "--storage",
        default="auto",
        type=click.Choice(BACKENDS),
        help="System calls for writing; auto uses the faster one in a short trial on the data "
        "directory.",
    ),
    setting(
        "--durability",
        type=click.Choice(DURABILITIES),
        help="When a batch counts as durable. auto: on the disk, in a write-ahead log or in "
        "its files, whichever is faster; wal, fsync: always one of the two; os: in the "
        "system's memory, where it survives a crash of the server, but not of the "
        "machine.",
    ),
    setting(
        "--inline-commits/--no-inline-commits",
        help="Make a small batch that comes alone durable in the event loop, as long as the "
        "disk usually takes less than 1 ms; or let threads make everything durable.",
    ),
    setting("--segment-size", type=SIZE, help="Close segments of this size."),
    setting(
        "--segment-age-secs",
        type=click.IntRange(min=0),
        help="Close segments of this age; 0: never by age.",
    ),
    setting("--compaction/--no-compaction", help="Merge small segments into one."),
    setting(
        "--upkeep-interval",
        type=click.FloatRange(min=0, min_open=True),
        help="Seconds between two runs of retention and compaction.",
    ),
    setting(
        "--scrub-days",
        type=click.FloatRange(min=0),
        help="Compare closed segments with their checksums once in this number of days; 0: never.",
    ),
    setting(
        "--commit-retention-secs",
        type=click.IntRange(min=0),
        help="Seconds for which a consumer's commits are kept after it has left; 0: for ever.",
    ),
    setting(
        "--dedup-entries",
        type=click.IntRange(min=0),
        help="Batches per topic that are recognised when they are sent again; 0: none.",
    ),
)
