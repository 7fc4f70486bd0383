"""Where and how the log is kept."""

from typing import Final

import click

from lance_server.config.option_types import FOLDER, SIZE, group
from lance_server.storage.backend_selection import BACKENDS, DURABILITIES

STORAGE: Final = group(
    click.option(
        "--data-dir",
        required=True,
        type=FOLDER,
        help="Where topics are kept; created when it is not there.",
    ),
    click.option(
        "--storage",
        default="auto",
        type=click.Choice(BACKENDS),
        help="How to write; auto: the faster one in a short trial on the data directory.",
    ),
    click.option(
        "--durability",
        default="auto",
        type=click.Choice(DURABILITIES),
        help="When a batch counts as durable. auto: on the disk, in a write-ahead log or in its "
        "files, as is quicker; wal, fsync: always one of the two; os: in the system's memory, "
        "where it outlives the server but not the machine.",
    ),
    click.option(
        "--inline-commits/--no-inline-commits",
        default=True,
        help="Make a small batch that comes alone durable in the event loop, as long as the disk "
        "usually takes less than 1 ms; or have threads make everything durable.",
    ),
    click.option("--segment-size", default="1GiB", type=SIZE, help="Close segments of this size."),
    click.option(
        "--segment-age-secs",
        default=7 * 24 * 3600,
        type=click.IntRange(min=0),
        help="Close segments of this age; 0: never by age.",
    ),
    click.option(
        "--compaction/--no-compaction", default=True, help="Merge small segments into one."
    ),
    click.option(
        "--upkeep-interval",
        default=30.0,
        type=click.FloatRange(min=0, min_open=True),
        help="Seconds between two looks at retention and compaction.",
    ),
    click.option(
        "--scrub-days",
        default=14.0,
        type=click.FloatRange(min=0),
        help="Read closed segments against their checksums once in so many days; 0: never.",
    ),
    click.option(
        "--commit-retention-secs",
        default=30 * 24 * 3600,
        type=click.IntRange(min=0),
        help="Keep what a consumer committed for so long after it left; 0: for ever.",
    ),
    click.option(
        "--dedup-entries",
        default=1_000_000,
        type=click.IntRange(min=0),
        help="Batches per topic that are recognised when they are sent again; 0 is off.",
    ),
)
